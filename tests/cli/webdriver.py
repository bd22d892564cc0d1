"""Drives Chromium by chromedriver, with nothing but WebDriver's own protocol."""
import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE_SECONDS = 60
STARTED = re.compile(r"started successfully on port (\d+)")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--window-size=1200,900")


def is_available():
    return shutil.which("chromedriver") and shutil.which("chromium")


class Browser:
    """One window. What is looked for is waited for."""

    def __init__(self):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        port = next(found[1] for line in self.process.stdout if (found := STARTED.search(line)))
        self.root = f"http://127.0.0.1:{port}"
        self.wait(lambda: self.request("GET", "/status")["ready"])
        session = self.request("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": FLAGS, "binary": shutil.which("chromium")},
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

    def control(self, words, within="body"):
        """A button, link or summary that is seen and says just this, or is labelled so."""
        script = """
          const [words, within] = arguments;
          const says = (one) => one.textContent.trim() === words
            || one.getAttribute("aria-label") === words;
          return [...document.querySelectorAll(within)].flatMap((place) =>
            [...place.querySelectorAll("button, a, summary")])
            .find((one) => says(one) && one.checkVisibility()) ?? null;"""
        try:
            return self.wait(lambda: (self.run(script, words, within) or {}).get(ELEMENT))
        except AssertionError:
            raise AssertionError(f"{words!r} cannot be pressed in {self.text()!r}") from None

    def click(self, element):
        self.request("POST", f"/element/{element}/click")

    def press(self, words, within="body"):
        """Presses it once nothing is in its way."""
        def pressed():
            self.click(self.control(words, within))
            return True
        self.wait(pressed)

    def type(self, selector, keys):
        self.request("POST", f"/element/{self.find(selector)}/value", {"text": keys})

    def fill(self, selector, text):
        """Sets a control to a text of any characters, as if it had been typed."""
        self.find(selector)
        self.run("""const [selector, text] = arguments;
          const control = document.querySelector(selector);
          control.value = text;
          control.dispatchEvent(new Event("input", { bubbles: true }));
          control.dispatchEvent(new Event("change", { bubbles: true }));""", selector, text)

    def tick(self, selector):
        self.click(self.find(selector))

    def keys(self, *keys):
        """Presses keys one after the other, wherever the focus is."""
        actions = [action for key in keys for action in (
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]
        self.request("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.request("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look_like(self, width, height=900, dark=False, scale=1):
        """The size of the window and the colours that its user likes."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=scale, mobile=width < 600)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def be_wrong_by(self, millis):
        """Pages that are loaded from now on see a clock that is ahead by so much; a page whose
        window.wrongBy is changed has its clock set while it is open."""
        self.devtools("Page.addScriptToEvaluateOnNewDocument", source=f"""
          window.wrongBy = {millis};
          window.Date = class extends Date {{
            constructor(...given) {{ super(...(given.length ? given : [window.Date.now()])); }}
            static now() {{ return super.now() + window.wrongBy; }}
          }};""")

    def picture(self):
        return base64.b64decode(self.request("GET", "/screenshot"))

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
