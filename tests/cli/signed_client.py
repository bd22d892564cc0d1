"""A small SQS client: AWS JSON 1.0 over HTTP or HTTPS, signed by hand with Signature Version 4."""
import datetime
import hashlib
import hmac
import http.client
import json
import ssl
import urllib.parse


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message


class Key:
    def __init__(self, key_id, secret, token=None):
        self.id, self.secret, self.token = key_id, secret, token


def sign(key, region, host, path, headers, body, at, service="sqs"):
    """The headers to send: those given, with date, token and Authorization."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    headers = {**headers, "Host": host, "X-Amz-Date": stamp}
    if key.token:
        headers["X-Amz-Security-Token"] = key.token
    names = sorted(name.lower() for name in headers)
    lines = {name.lower(): value for name, value in headers.items()}
    canonical = "\n".join(["POST", path, "", *(f"{name}:{lines[name]}" for name in names), "",
                           ";".join(names), hashlib.sha256(body).hexdigest()])
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    signing_key = ("AWS4" + key.secret).encode()
    for part in scope.split("/"):
        signing_key = hmac.new(signing_key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(signing_key, to_sign.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={key.id}/{scope}, "
                                f"SignedHeaders={';'.join(names)}, Signature={signature}")
    return headers


class Client:
    def __init__(self, url, key=None, region="us-east-1", skew=datetime.timedelta(0)):
        self.url = urllib.parse.urlsplit(url)
        self.key, self.region, self.skew = key, region, skew

    def connection(self):
        if self.url.scheme == "https":
            unverified = ssl._create_unverified_context()
            return http.client.HTTPSConnection(self.url.netloc, timeout=60, context=unverified)
        return http.client.HTTPConnection(self.url.netloc, timeout=60)

    def call(self, action, tamper=None, **parameters):
        """The reply as a dictionary. `tamper` changes (headers, body) after they were signed."""
        body = json.dumps(parameters).encode()
        headers = {"Content-Type": "application/x-amz-json-1.0",
                   "X-Amz-Target": "AmazonSQS." + action}
        if self.key:
            at = datetime.datetime.now(datetime.timezone.utc) + self.skew
            headers = sign(self.key, self.region, self.url.netloc, "/", headers, body, at)
        if tamper:
            headers, body = tamper(headers, body)
        connection = self.connection()
        try:
            connection.request("POST", "/", body=body, headers=headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        is_json = "json" in response.getheader("Content-Type", "")
        reply = json.loads(text) if is_json and text else {}
        if response.status != 200:
            raise Refused(response.status, reply.get("__type", "").split("#")[-1],
                          reply.get("message", reply.get("Message", "")))
        return reply
