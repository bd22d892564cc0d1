#!/usr/bin/env python3
"""A real browser visits hostile pages, and a server without accounts stays as it was.

Each page tries every way in which a browser sends something for it, to every name under which the
server can be reached. Other pages have names of their own that lead to the server itself, as DNS
may be made to do, and may then send anything. Where no browser is installed, the test is skipped.
"""
import argparse
import http.client
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from case import IN_MEMORY, check
from server import Server, write
from signed_client import Client

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--mute-audio",
         # Protections that only some users have are turned off: the server must not need them.
         "--disable-features=BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights,"
         "PrivateNetworkAccessRespectPreflightResults,LocalNetworkAccessChecks,HttpsUpgrades,"
         "HttpsFirstBalancedModeAutoEnable,BlockInsecurePrivateNetworkRequestsFromPrivate")
VISIT_SECONDS_MAX = 300
# Names that the browser is told to resolve to this machine, as rebinding or mDNS would.
RENAMED = ("evil.example", "stanchion", "queues.local", "127.0.0.1.evil.example")
DIRECT = ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433",
          "a.localhost")

# Everything a page can do that makes the browser send a request. `done` is reported to our own
# server.
PAGE = """<!doctype html><meta charset=utf-8><title>hostile</title><body><script>
const targets = %(targets)s, sent = [];
const calls = ["Action=SendMessage&QueueUrl=kept&MessageBody=hostile", "Action=PurgeQueue&QueueUrl=kept",
               "Action=CreateQueue&QueueName=hostile", "Action=ReceiveMessage&QueueUrl=kept",
               "Action=DeleteQueue&QueueUrl=kept"];
const settled = (promise) => { sent.push(promise.then(() => 1, () => 1)); };
const loaded = (element, attribute, url) => settled(new Promise((end) => {
  element.onload = element.onerror = end; element[attribute] = url; document.body.append(element);
  setTimeout(end, 1500);
}));
function form(url, call, enctype) {
  const frame = document.createElement("iframe"), form = document.createElement("form");
  frame.name = "f" + Math.random();
  document.body.append(frame, form);
  Object.assign(form, { action: url, method: "POST", enctype, target: frame.name });
  for (const [name, value] of new URLSearchParams(call))
    form.append(Object.assign(document.createElement("input"), { name, value }));
  settled(new Promise((end) => { frame.onload = end; setTimeout(end, 1500); form.submit(); }));
}
for (const target of targets) for (const call of calls) {
  const root = target + "/", got = root + "?" + call;
  loaded(new Image(), "src", got);
  loaded(document.createElement("iframe"), "src", got);
  loaded(document.createElement("script"), "src", got);
  loaded(document.createElement("video"), "src", got);
  loaded(Object.assign(document.createElement("link"), { rel: "stylesheet" }), "href", got);
  form(root, call, "application/x-www-form-urlencoded");
  form(got, call, "text/plain");
  form(got, call, "multipart/form-data");
  const urlencoded = { "Content-Type": "application/x-www-form-urlencoded" };
  const plain = { "Content-Type": "text/plain" };
  settled(fetch(got, { mode: "no-cors" }));
  settled(fetch(got, { mode: "no-cors", referrerPolicy: "no-referrer", credentials: "include" }));
  settled(fetch(root, { mode: "no-cors", method: "POST", headers: urlencoded, body: call }));
  settled(fetch(root, { mode: "no-cors", method: "POST", headers: plain, body: call }));
  settled(fetch(got, { mode: "no-cors", method: "POST", headers: plain, body: "{}" }));
  settled(fetch(got));
  const action = /Action=(\\w+)/.exec(call)[1], queue = { QueueUrl: "kept", QueueName: "hostile", MessageBody: "x" };
  const asked = { "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action,
                  "X-Stanchion-Control": "1", "Authorization": "AWS4-HMAC-SHA256 Credential=a" };
  settled(fetch(root, { method: "POST", headers: asked, body: JSON.stringify(queue) }));
  settled(fetch(got, { headers: { "X-Stanchion-Control": "1" } }));
  navigator.sendBeacon(root, new URLSearchParams(call));
  navigator.sendBeacon(got, "x");
  try { navigator.sendBeacon(root, new Blob([JSON.stringify(queue)], { type: "application/x-amz-json-1.0" })); } catch {}
  try { const socket = new WebSocket(got.replace("http", "ws"));
        settled(new Promise((end) => { socket.onerror = socket.onclose = end; setTimeout(end, 1500); })); } catch {}
}
// The clock of a server that lets it be moved.
for (const target of targets) for (const mode of ["cors", "no-cors"])
  settled(fetch(target + "/_stanchion/clock", { mode, method: "POST", headers: mode === "cors" ? { "X-Stanchion-Control": "1" } : {},
                                                body: '{"advanceSeconds": 3600}' }));
Promise.all(sent).then(() => fetch(%(done)s, { method: "POST", mode: "no-cors", body: String(sent.length) }));
</script>"""


class Site(http.server.ThreadingHTTPServer):
    """Somebody's web site: gives the page to whoever asks, and is told when it has done its worst."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Visit)
        self.page, self.attempts = "", []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Visit(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(self.server.page if self.path == "/" else "")

    def do_POST(self):
        self.server.attempts.append(int(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer("")

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Relay:
    """A port that leads to the site first and, once told so, to the server: a name that is rebound.

    The browser holds the page of the port's origin by then, so that the page and the server are one
    origin for it, and everything the page sends is sent unasked.
    """

    def __init__(self, site, server):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.site, self.server = site, server
        self.forwarded = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        with client:
            head = client.recv(65536)
            to_site = head.startswith((b"GET / ", b"POST /done ", b"GET /favicon"))
            self.forwarded += not to_site
            with socket.create_connection(
                    ("127.0.0.1", self.site if to_site else self.server)) as behind:
                # One exchange per connection, so that each is routed to where it belongs.
                behind.sendall(head.replace(b"Connection: keep-alive", b"Connection: close"))
                client.settimeout(5)
                threading.Thread(target=self.pump, args=(client, behind), daemon=True).start()
                self.pump(behind, client)

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass


def visit(browser, url, site, pages):
    """Opens the page until it has tried everything; returns how many requests the browser made."""
    before = len(site.attempts)
    with tempfile.TemporaryDirectory(prefix="stanchion-browser-",
                                     ignore_cleanup_errors=True) as profile:
        rules = ",".join(f"MAP {name} 127.0.0.1" for name in RENAMED)
        process = subprocess.Popen(
            [browser, *FLAGS, f"--host-resolver-rules={rules}", f"--user-data-dir={profile}", url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + VISIT_SECONDS_MAX
            while len(site.attempts) < before + pages and time.monotonic() < end:
                time.sleep(0.05)
        finally:
            process.terminate()
            process.wait(120)
    return sum(site.attempts[before:])


def state_of(server):
    client = Client(server.url)
    queues = client.call("ListQueues")
    counts = client.call("GetQueueAttributes", QueueUrl="kept", AttributeNames=["All"])
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/_stanchion/clock", headers={"X-Stanchion-Control": "1"})
    ahead = json.loads(connection.getresponse().read())["aheadMillis"]
    connection.close()
    return queues, counts["Attributes"], ahead


def count_of_calls(server):
    return sum("access " in line for line in server.log)


def attack(binary, browser, directory, options, names):
    """What the pages changed; it should be nothing."""
    config = write(pathlib.Path(directory) / "s.toml",
                   IN_MEMORY + '[log]\naccess = true\n')
    with Server(binary, "--config", config, "--listen", "localhost:0", "--virtual-time",
                *options) as server:
        port = int(server.url.rsplit(":", 1)[1])
        client = Client(server.url)
        client.call("CreateQueue", QueueName="kept", Attributes={"VisibilityTimeout": "0"})
        client.call("SendMessage", QueueUrl="kept", MessageBody="kept")
        before = state_of(server)
        site = Site()
        page_port = site.server_address[1]
        # From another origin.
        site.page = PAGE % {"targets": json.dumps([f"http://{name}:{port}" for name in DIRECT + names]),
                            "done": json.dumps(f"http://127.0.0.1:{page_port}/done")}
        attempts = visit(browser, f"http://127.0.0.1:{page_port}/", site, 1)
        calls = count_of_calls(server)
        check(attempts > 0, "the page was not opened")
        check(calls > attempts / 4, f"{calls} calls of {attempts} attempts reached the server")
        # From the same origin, under names that resolve to this machine.
        for name in names:
            relay = Relay(page_port, port)
            origin = f"http://{name}:{relay.port}"
            site.page = PAGE % {"targets": json.dumps([origin]), "done": json.dumps(origin + "/done")}
            more = visit(browser, origin + "/", site, 1)
            check(more > 0 and relay.forwarded > more / 4,
                  f"{name}: {relay.forwarded} of {more} attempts were led to the server")
            attempts += more
            relay.listening.close()
        after = state_of(server)
        check(after == before, f"changed: {before} -> {after}")
        messages = client.call("ReceiveMessage", QueueUrl="kept", MaxNumberOfMessages=10,
                               AttributeNames=["All"])["Messages"]
        check([m["Body"] for m in messages] == ["kept"], messages)
        check(messages[0]["Attributes"]["ApproximateReceiveCount"] == "1", messages)
        site.shutdown()
        print(f"     {attempts} attempts of pages, {count_of_calls(server)} calls that the server saw")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="build/release/stanchion")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no browser is installed: skipped")
        print("0 passed, 0 failed, 2 skipped")
        return 0
    binary = str(pathlib.Path(options.binary).resolve())
    good = bad = 0
    for what, arguments, names in (
            ("a server for this machine", (), RENAMED),
            ("a server for all machines", ("--insecure",), ("evil.example", "127.0.0.1.evil.example"))):
        directory = tempfile.mkdtemp(prefix="stanchion-")
        try:
            attack(binary, browser, directory, arguments, names)
            good += 1
            print(f"ok   {what}", flush=True)
        except Exception as error:  # noqa: BLE001: whatever goes wrong is a failed test
            bad += 1
            print(f"FAIL {what}: {error}", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
