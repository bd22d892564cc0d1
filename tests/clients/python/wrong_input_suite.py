"""Bytes, headers and values that no client should send: each gets the right error, and the server
goes on as if nothing had happened."""
import json
import os
import pathlib
import random
import socket
import sys
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import raw, suite

QUEUE = "wrong-input"
MALFORMED = "MalformedInput"
INVALID = "InvalidParameterValue"
MISSING = "MissingParameter"


class WrongInput(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.endpoint = os.environ["STANCHION_ENDPOINT"]
        cls.client = raw.Client(cls.endpoint)
        cls.client.json("CreateQueue", {"QueueName": QUEUE})

    def setUp(self):
        self.client.json("PurgeQueue", {"QueueUrl": QUEUE})

    def tearDown(self):
        """Whatever was sent, the server still runs, and nothing became a message."""
        answer = self.client.json("GetQueueAttributes", {
            "QueueUrl": QUEUE, "AttributeNames": ["ApproximateNumberOfMessages"]})
        self.assertEqual(answer.json(), {"Attributes": {"ApproximateNumberOfMessages": "0"}})

    def bytes_answered(self, data):
        """The status of the answer to these bytes; 0 if there is none."""
        address = urllib.parse.urlsplit(self.endpoint)
        with socket.create_connection((address.hostname, address.port), 20) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while piece := connection.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
        return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0

    def test_what_is_not_http(self):
        get = b"GET /?Action=ListQueues HTTP/1.1\r\n"
        post = b"POST / HTTP/1.1\r\nHost: h\r\n"
        for data, status in [
                (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # The beginning of TLS.
                (b"\0" * 50 + b"\r\n\r\n", 400),
                (b"nonsense\r\n\r\n", 400),
                (get + b"\r\n", 400),
                (get + b"Host: a\r\nHost: b\r\n\r\n", 400),
                (get + b"Host : h\r\n\r\n", 400),
                (get + b"Host: h\r\nX: a\0b\r\n\r\n", 400),
                (get + b"Host: h\r\nX: a\r\n b\r\n\r\n", 400),
                (b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
                (b"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
                (get + b"Host: h\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 431),
                (get + b"Host: h\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
                (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 431),
                (post + b"Content-Length: -1\r\n\r\n", 400),
                (post + b"Content-Length: 1x\r\n\r\n", 400),
                (post + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
                (post + b"Content-Length: 9223372036854775808\r\n\r\n", 413),
                (post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
                (post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
                (post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
                (post + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
                (post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413),
                (post + b"Expect: miracles\r\nContent-Length: 1\r\n\r\n", 417)]:
            with self.subTest(data=data[:100]):
                self.assertEqual(self.bytes_answered(data), status)

    def test_random_bytes(self):
        chance = random.Random(1)
        for _ in range(300):
            data = chance.randbytes(chance.randrange(1, 2000))
            self.assertIn(self.bytes_answered(data), (0, 400, 431, 505))

    def test_a_call_with_random_changes(self):
        chance = random.Random(2)
        body = json.dumps({"QueueUrl": "not-" + QUEUE, "MessageBody": "x"}).encode()
        head = (b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Type: "
                b"application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n" % len(body))
        for _ in range(500):
            data = bytearray(head + body)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            status = self.bytes_answered(bytes(data))
            self.assertTrue(status == 0 or 400 <= status < 500 or status in (501, 505), data)

    def test_methods_that_are_no_calls(self):
        for method, status in (("HEAD", 405), ("PUT", 405), ("DELETE", 405), ("PATCH", 405),
                               ("TRACE", 405), ("FOO", 405), ("OPTIONS", 204)):
            answer = self.client.send(method, f"/?Action=DeleteQueue&QueueUrl={QUEUE}", {}, None)
            with self.subTest(method=method):
                self.assertEqual(answer.status, status)
                self.assertEqual(answer.headers["Allow"], "GET, POST, OPTIONS")

    def test_what_names_no_action(self):
        body = json.dumps({"QueueUrl": QUEUE, "MessageBody": "x"}).encode()
        target = {"X-Amz-Target": "AmazonSQS.SendMessage"}
        for kind in ("application/json", "text/plain", "", "application/cbor",
                     "multipart/form-data; boundary=x"):
            answer = self.client.send("POST", "/", {**target, "Content-Type": kind}, body)
            self.assertEqual((answer.status, answer.body), (404, b"<UnknownOperationException/>\n"))
        for path in ("/", "//", "/../", "/000000000000/wrong-input", "/favicon.ico"):
            answer = self.client.send("GET", path, {}, None)
            self.assertEqual((answer.status, answer.body), (404, b"<UnknownOperationException/>\n"))

    def test_actions_that_do_not_exist(self):
        for name in ("Foo", "sendmessage", "", "SendMessage\u00e9"):
            answer = self.client.query(name, {})
            self.assertEqual((answer.status, answer.code), (400, "InvalidAction"))
            self.assertEqual(answer.message, f"The action {name} is not valid for this endpoint.")
        for target in ("AmazonSQS.Foo", "AmazonSNS.Publish", "SendMessage"):
            answer = self.client.send("POST", "/", {**raw.JSON, "X-Amz-Target": target}, b"{}")
            self.assertEqual((answer.status, answer.type, answer.code), (
                400, "com.amazon.coral.service#UnknownOperationException", "InvalidAction"))

    def test_json_that_is_none(self):
        for body, words in [
                (b"null", "NULL_VALUE can not be converted to a Structure"),
                (b"[]", "Start of list found where not expected"),
                (b"5", "NUMBER_VALUE can not be converted to a Structure"),
                (b"{", "The request body is not valid JSON: unexpected end at byte 1."),
                (b"{}}", "The request body is not valid JSON: something follows the request at "
                 "byte 2."),
                (b'{"a":1,}', "The request body is not valid JSON: expected a member's name at "
                 "byte 7."),
                (b"{'a':1}", "The request body is not valid JSON: expected a member's name at "
                 "byte 1."),
                (b"\xef\xbb\xbf{}", "The request body is not valid JSON: expected a value at "
                 "byte 0."),
                (b'{"a":' * 50_000, "The request body is not valid JSON: nested too deeply at "
                 "byte 161."),
                (b"[" * 100_000, "Start of list found where not expected")]:
            answer = self.client.json("SendMessage", body)
            with self.subTest(body=body[:50]):
                self.assertEqual((answer.status, answer.code, answer.message),
                                 (400, MALFORMED, words))

    def test_text_that_is_not_unicode(self):
        for text in (rb"\ud800", rb"\udc00\ud800", b"\xff", b"\xc0\x80", b"\xed\xa0\x80",
                     b"\xf5\x80\x80\x80", b"\xe2\x82", b"a\nb", b"a\0b", rb"\x", rb"\u12"):
            body = b'{"QueueUrl":"wrong-input","MessageBody":"' + text + b'"}'
            answer = self.client.json("SendMessage", body)
            with self.subTest(text=text):
                self.assertEqual((answer.status, answer.code), (400, MALFORMED))
        for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"):
            answer = self.client.query("SendMessage", [("QueueUrl", QUEUE), ("MessageBody", text)])
            self.assertEqual((answer.status, answer.code, answer.message), (
                400, MALFORMED, "The value of parameter MessageBody is not UTF-8"))

    def test_members_of_the_wrong_type(self):
        for member, held, words in [
                ("MessageBody", "5", "NUMBER_VALUE can not be converted to a String"),
                ("MessageBody", "true", "TRUE_VALUE can not be converted to a String"),
                ("MessageBody", "[]", "Start of list found where not expected"),
                ("MessageBody", "{}", "Start of structure or map found where not expected."),
                ("DelaySeconds", '"5"', "STRING_VALUE can not be converted to an Integer"),
                ("DelaySeconds", "1.5", "NUMBER_VALUE can not be converted to an Integer"),
                ("DelaySeconds", "9223372036854775808",
                 "NUMBER_VALUE can not be converted to an Integer"),
                ("DelaySeconds", "1e999", "NUMBER_VALUE can not be converted to an Integer"),
                ("DelaySeconds", "false", "FALSE_VALUE can not be converted to an Integer"),
                ("MessageAttributes", "[]", "Start of list found where not expected"),
                ("MessageAttributes", '{"a":5}', "NUMBER_VALUE can not be converted to a Structure"),
                ("MessageAttributes", '{"a":{"DataType":"Binary","BinaryValue":"***"}}',
                 "BinaryValue is not valid Base64")]:
            members = {"QueueUrl": json.dumps(QUEUE), "MessageBody": '"x"', member: held}
            body = ",".join(f'"{name}":{value}' for name, value in members.items())
            answer = self.client.json("SendMessage", b"{" + body.encode() + b"}")
            with self.subTest(body=body):
                self.assertEqual((answer.status, answer.code, answer.message),
                                 (400, MALFORMED, words))

    def test_numbers_of_forms(self):
        for number in ("", " 5", "5.0", "0x5", "five", "9223372036854775808",
                       "-9223372036854775809", "9" * 100, "--5"):
            answer = self.client.query("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "x",
                                                       "DelaySeconds": number})
            self.assertEqual((answer.status, answer.code, answer.message), (
                400, INVALID, f"Value {number} for parameter DelaySeconds is invalid. Reason: Must "
                "be an integer."))

    def test_numbers_at_the_edge_of_their_type(self):
        for number in (2**63 - 1, -2**63, 2**31, -1):
            for ask in (self.client.json, self.client.query):
                answer = ask("SendMessage", {"QueueUrl": QUEUE, "MessageBody": "x",
                                             "DelaySeconds": number})
                self.assertEqual((answer.status, answer.code, answer.message), (
                    400, INVALID, f"Value {number} for parameter DelaySeconds is invalid. Reason: "
                    "DelaySeconds must be >= 0 and <= 900."))

    def test_parameters_that_come_twice(self):
        answer = self.client.json(
            "SendMessage", b'{"QueueUrl":"wrong-input","MessageBody":"x","MessageBody":"y"}')
        self.assertEqual((answer.status, answer.message),
                         (400, "The member MessageBody is given more than once"))
        # In a form the last one counts, and the body wins over the URL.
        answer = self.client.query("GetQueueUrl", [("QueueName", "none"), ("QueueName", QUEUE)])
        self.assertEqual(answer.status, 200)
        answer = self.client.query("GetQueueUrl", [("QueueName", QUEUE)], path="/?QueueName=none")
        self.assertEqual(answer.status, 200)

    def test_forms_that_are_none(self):
        url = ("QueueUrl", QUEUE)
        name, held = "Attribute.{}.Name", "Attribute.{}.Value"
        for index in ("0", "-1", "99999999999999999999", "x", "01"):
            answer = self.client.query("SetQueueAttributes", [
                url, (name.format(index), "DelaySeconds"), (held.format(index), "5")])
            self.assertEqual((answer.code, answer.message), (
                MISSING, "The request must contain the parameter Attribute.Name."))
        answer = self.client.query("SetQueueAttributes", [url, (name.format(1), "DelaySeconds")])
        self.assertEqual(answer.message, "The request must contain the parameter Attribute.1.Value.")
        many = [(f"p{i}", "") for i in range(3000)]
        answer = self.client.query("ListQueues", many)
        self.assertEqual((answer.code, answer.message),
                         (MALFORMED, "The request has more than 2000 parameters"))
        for body in (b"Action=SendMessage&MessageBody=%", b"Action=SendMessage&%zz=x"):
            answer = self.client.send("POST", "/", raw.FORM, body)
            self.assertEqual((answer.code, answer.message),
                             (MALFORMED, "A percent sign is not followed by two digits"))

    def test_lists_without_end(self):
        for parameters in ({"AttributeNames": ["All"] * 1001}, {"AttributeNames": [""] * 100_000}):
            answer = self.client.json("GetQueueAttributes", {"QueueUrl": QUEUE, **parameters})
            self.assertEqual((answer.status, answer.code), (400, MALFORMED))
        answer = self.client.query("GetQueueAttributes",
                                   {"QueueUrl": QUEUE, "AttributeNames": ["All"] * 1001})
        self.assertEqual((answer.status, answer.code), (400, MALFORMED))

    def test_bodies_that_are_too_large(self):
        parameters = {"QueueUrl": QUEUE, "MessageBody": "x" * (8 << 20)}
        for ask in (self.client.json, self.client.query):
            answer = ask("SendMessage", parameters)
            self.assertEqual((answer.status, answer.code, answer.message), (
                413, "RequestEntityTooLarge", "The request body is too large."))
        answer = self.client.send("POST", "/", {"Content-Type": "text/plain"}, b"x" * (8 << 20))
        self.assertEqual((answer.status, answer.body), (413, b"The request body is too large.\n"))

    def test_pages_in_browsers(self):
        """Whatever a page could send is refused, whether the browser says that it is a page or not."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        text = {"Content-Type": "text/plain;charset=UTF-8"}
        said = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        asked = {"X-Stanchion-Control": "1", **raw.JSON, "X-Amz-Target": "AmazonSQS.DeleteQueue"}
        path = f"/?Action=DeleteQueue&QueueUrl={QUEUE}"
        body = f"Action=DeleteQueue&QueueUrl={QUEUE}".encode()
        for method, target, headers, sent in (
                ("POST", path, {**raw.FORM, **said}, b""), ("POST", path, form, b""),
                ("POST", "/", form, body), ("POST", path, text, body), ("POST", path, text, b""),
                ("POST", path, {}, None), ("GET", path, {"Sec-Fetch-Site": "cross-site"}, None),
                ("GET", path, {}, None), ("GET", path, {"Sec-Fetch-Site": "none"}, None),
                ("GET", path + "&X-Amz-Date=20260801T000000Z&X-Amz-Signature=00", {}, None),
                ("GET", path, {"Authorization": "Basic dXNlcjpwYXNz"}, None),
                # A name that a browser resolved to this machine, and others that are not ours.
                *(("POST", "/", {**asked, "Host": host}, b'{"QueueUrl":"wrong-input"}')
                  for host in ("evil.example:9324", "0.0.0.0:9324", "stanchion", "queues.local",
                               "127.0.0.1.evil.example", "[::ffff:192.0.2.1]:9324"))):
            answer = self.client.send(method, target, headers, sent)
            self.assertEqual((answer.status, answer.code), (403, "AccessDenied"), (target, headers))
        answer = self.client.send("POST", "/", form, body)
        self.assertIn("X-Stanchion-Control: 1", answer.message)
        answer = self.client.send("POST", "/", {**asked, "Host": "stanchion"}, b"{}")
        self.assertIn("--allowed-hosts stanchion", answer.message)

    def test_what_a_page_may_not_do_but_a_program_may(self):
        """Reading needs no header; an allowed host is any of this machine's."""
        answer = self.client.send("GET", "/?Action=ListQueues", {}, None)
        self.assertEqual(answer.status, 200)
        for host in ("localhost", "127.0.0.1:9324", "[::1]:9324", "[::ffff:127.0.0.1]:9324",
                     "sqs.eu-west-1.localhost"):
            answer = self.client.query("PurgeQueue", {"QueueUrl": QUEUE}, Host=host)
            self.assertEqual(answer.status, 200, host)

    def test_a_preflight_is_not_allowed(self):
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "x-amz-target",
                 "Access-Control-Request-Private-Network": "true"}
        answer = self.client.send("OPTIONS", "/", asked, None)
        self.assertEqual([name for name in answer.headers if name.startswith("Access-")], [])

    def test_addresses_of_older_clients(self):
        for url in (QUEUE, f"/queue/{QUEUE}", f"http://elsewhere:9324/queue/{QUEUE}",
                    f"http://queue.amazonaws.com/000000000000/{QUEUE}",
                    f"http://us-east-1.queue.localhost:9324/000000000000/{QUEUE}"):
            for ask in (self.client.json, self.client.query):
                self.assertEqual(ask("PurgeQueue", {"QueueUrl": url}).status, 200, url)
        for path in (f"/queue/{QUEUE}", f"/000000000000/{QUEUE}"):
            self.assertEqual(self.client.query("PurgeQueue", {}, path=path).status, 200, path)
        for path in ("/", "//", "http://proxied.example/", "http://proxied.example"):
            answer = self.client.query("ListQueues", {}, path=path, Host="localhost")
            self.assertEqual(answer.status, 200, path)


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
