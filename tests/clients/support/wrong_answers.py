"""A proxy between a client and the server that falsifies one field of the answers.

It serves the tests of the tests: a suite that still passes while a field is wrong or missing does
not look at that field. Which falsehood is told is set over HTTP, at a path that SQS does not have:

    PUT /falsehood {"action": "SendMessage", "field": "MessageId", "how": "alter" | "drop"}
    GET /falsehood -> {"told": how many answers were falsified since}

As a program: wrong_answers.py URL-OF-THE-SERVER; says `ready URL` once it listens.
"""
import http.client
import http.server
import json
import re
import sys
import threading
import urllib.parse

CONTROL = "/falsehood"
# In a header rather than in the body.
HEADERS = {"x-amzn-query-error", "x-amzn-requestid"}


def alter(value):
    """Another value of the same kind."""
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    if value and value[0] in "0123456789":
        return str((int(value[0]) + 1) % 10) + value[1:]
    # Clients ignore the namespace before a shape's name.
    space, mark, name = value.rpartition("#")
    return space + mark + ("y" if name.startswith("x") else "x") + name[1:]


def falsify_body(body, field, how):
    """`body` with each occurrence of the field altered or dropped, and how many there were."""
    name = re.escape(field)
    if how == "drop":
        body, in_json = re.subn(f'"{name}":', f'"No{field}":', body)
        body, in_xml = re.subn(f"<(/?){name}>", rf"<\1No{field}>", body)
        return body, in_json + in_xml
    body, in_json = re.subn(
        rf'("{name}":\s*\[?"?)((?:[^"\\,{{}}\[\]]|\\.)+)', lambda m: m[1] + alter(m[2]), body)
    body, in_xml = re.subn(rf"(<{name}>)([^<]+)", lambda m: m[1] + alter(m[2]), body)
    return body, in_json + in_xml


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # An answer is sent in one piece.

    def do_PUT(self):
        self.server.falsehood = {"told": 0, **json.loads(self._body())}
        self._answer(200, {}, b"{}")

    def do_GET(self):
        self._answer(200, {}, json.dumps({"told": self.server.falsehood["told"]}).encode())

    def do_POST(self):
        body = self._body()
        action = self.headers.get("X-Amz-Target", "").rpartition(".")[2] or \
            urllib.parse.parse_qs(body.decode())["Action"][0]
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=60)
        upstream.request("POST", self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        content = answer.read()
        upstream.close()
        falsehood = self.server.falsehood
        # An error has its own name, whatever action it answers.
        if falsehood.get("action") == ("Error" if answer.status >= 400 else action):
            headers, content = self._falsify(falsehood, headers, content)
        self._answer(answer.status, headers, content)

    def _falsify(self, falsehood, headers, content):
        field, how = falsehood["field"], falsehood["how"]
        if field in HEADERS:
            told = int(field in headers)
            kept = alter(headers.pop(field, "x"))
            if how == "alter":
                headers[field] = kept
        else:
            text, told = falsify_body(content.decode(), field, how)
            content = text.encode()
        falsehood["told"] += told
        return headers, content

    def _body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status, headers, content):
        self.send_response_only(status)
        for name, value in headers.items():
            if name not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *unused):
        pass


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.falsehood = {"told": 0}

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


if __name__ == "__main__":
    proxy = Proxy(sys.argv[1])
    print(f"ready {proxy.url}", flush=True)
    proxy.serve_forever()
