"""A client of both protocols that adds nothing and checks nothing: what a test says is sent."""
import contextlib
import http.client
import json
import urllib.parse
import xml.etree.ElementTree

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"
JSON = {"Content-Type": "application/x-amz-json-1.0"}
# A form alone could come from a web page, which may change nothing while there are no accounts.
FORM = {"Content-Type": "application/x-www-form-urlencoded", "X-Stanchion-Control": "1"}

# Members of JSON that are maps or lists, and their names in a form.
MAPS = {"Attributes": ("Attribute", "Name", "Value"), "tags": ("Tag", "Key", "Value"),
        "Tags": ("Tag", "Key", "Value"), "MessageAttributes": ("MessageAttribute", "Name", "Value"),
        "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value")}
LISTS = {"TagKeys": "TagKey", "AttributeNames": "AttributeName", "AWSAccountIds": "AWSAccountId",
         "MessageSystemAttributeNames": "MessageSystemAttributeName", "Actions": "ActionName",
         "MessageAttributeNames": "MessageAttributeName", "StringListValues": "StringListValue",
         "BinaryListValues": "BinaryListValue"}


class Answer:
    """An answer, and its error if it is one."""

    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body
        self.type = self.code = self.fault = self.message = None
        if self.status == 200:
            return
        if "json" in response.headers.get("Content-Type", ""):
            self.read_json()
        elif "xml" in response.headers.get("Content-Type", "") and b"<Error>" in body:
            self.read_xml()

    def read_json(self):
        error = json.loads(self.body)
        if "Error" in error:  # The Query protocol's errors for clients that want JSON.
            error = error["Error"]
            self.code, self.fault, self.message = (error[name] for name in ("Code", "Type", "Message"))
            return
        self.type, self.message = error["__type"], error.get("message", "")
        self.code, self.fault = self.headers["x-amzn-query-error"].split(";")

    def read_xml(self):
        error = self.xml().find(f"{NAMESPACE}Error")
        self.code, self.fault, self.message = (
            error.find(NAMESPACE + name).text or "" for name in ("Code", "Type", "Message"))

    def json(self):
        return json.loads(self.body) if self.body else {}

    def xml(self):
        return xml.etree.ElementTree.fromstring(self.body)

    def texts(self, name):
        """The texts of all elements of this name."""
        return [element.text or "" for element in self.xml().iter(NAMESPACE + name)]


class Client:
    def __init__(self, endpoint):
        self.address = urllib.parse.urlsplit(endpoint).netloc

    def send(self, method, path, headers, body):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            # A server that refuses a request may close before it has read it all, with an answer.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def json(self, action, parameters, **headers):
        body = parameters if isinstance(parameters, bytes) else json.dumps(parameters).encode()
        target = {"X-Amz-Target": f"AmazonSQS.{action}"}
        return self.send("POST", "/", {**JSON, **target, **headers}, body)

    def query(self, action, parameters, path="/", **headers):
        """`parameters` as in JSON, or the pairs of a form as they are."""
        if isinstance(parameters, dict):
            parameters = flatten(action, parameters)
        pairs = [("Action", action), ("Version", "2012-11-05"), *parameters]
        return self.send("POST", path, {**FORM, **headers}, urllib.parse.urlencode(pairs).encode())

    def query_json(self, action, parameters, path="/", **headers):
        """The Query protocol with answers in JSON."""
        return self.query(action, parameters, path, Accept="application/json", **headers)


def flatten(action, parameters, prefix=""):
    """Converts members of JSON to the pairs of a form."""
    pairs = []
    for name, value in parameters.items():
        if name in MAPS:
            word, key, held = MAPS[name]
            for i, (inner, content) in enumerate(value.items(), 1):
                pairs.append((f"{prefix}{word}.{i}.{key}", inner))
                if isinstance(content, dict):
                    pairs += flatten(action, content, f"{prefix}{word}.{i}.{held}.")
                else:
                    pairs.append((f"{prefix}{word}.{i}.{held}", content))
        elif name in LISTS:
            pairs += [(f"{prefix}{LISTS[name]}.{i}", item) for i, item in enumerate(value, 1)]
        elif name == "Entries":
            for i, entry in enumerate(value, 1):
                pairs += flatten(action, entry, f"{action}RequestEntry.{i}.")
        else:
            pairs.append((prefix + name, value))
    return pairs
