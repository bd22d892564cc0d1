"""Drives Chromium by chromedriver, with nothing but WebDriver's own protocol."""
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE_SECONDS = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--disable-component-update")


def is_available():
    return shutil.which("chromedriver") and shutil.which("chromium")


class Browser:
    """One window. What is looked for is waited for."""

    def __init__(self, width=1200, dark=False, rules=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(["chromedriver", f"--port={port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.root = f"http://127.0.0.1:{port}"
        self.wait(lambda: self.request("GET", "/status")["ready"])
        flags = [*FLAGS, f"--window-size={width},900"]
        flags += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        flags += [f"--host-resolver-rules={rules}"] if rules else []
        session = self.request("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.root += "/session/" + session["sessionId"]

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            self.root + path, method=method,
            data=json.dumps(body or {}).encode() if method == "POST" else None)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    @staticmethod
    def wait(found):
        """What `found` returns, once it is true; errors count as not found yet."""
        until = time.monotonic() + PATIENCE_SECONDS
        problem = None
        while time.monotonic() < until:
            try:
                if value := found():
                    return value
            except (RuntimeError, OSError) as error:
                problem = error
            time.sleep(0.05)
        raise AssertionError(f"did not come: {problem}")

    def open(self, url):
        self.request("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.request("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        return self.request("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def wait_for(self, words, selector="body"):
        try:
            return self.wait(lambda: words in self.text(selector) and words)
        except AssertionError:
            raise AssertionError(f"{words!r} is not in {self.text()!r}") from None

    def find(self, selector):
        return self.wait(lambda: self.request("POST", "/element", {
            "using": "css selector", "value": selector})[ELEMENT])

    def button(self, words):
        return self.wait(lambda: self.request("POST", "/element", {
            "using": "xpath",
            "value": f"//button[normalize-space()='{words}' and not(@hidden)]"})[ELEMENT])

    def click(self, element):
        self.request("POST", f"/element/{element}/click")

    def press(self, words):
        self.click(self.button(words))

    def type(self, selector, keys):
        self.request("POST", f"/element/{self.find(selector)}/value", {"text": keys})

    def problems(self):
        """What the browser's own log calls severe: refused scripts, failed loads, exceptions."""
        return [line for line in self.request("POST", "/se/log", {"type": "browser"})
                if line["level"] == "SEVERE"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.request("DELETE", "")
        except (RuntimeError, OSError):
            pass
        self.process.terminate()
        self.process.wait()
