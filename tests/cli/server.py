"""Starts and stops the real server, and collects what it says."""
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading

START_SECONDS_MAX = 60
READY = re.compile(r"^ready (\S+) after \d+ ms$")


def run(binary, *arguments, environment=None, cwd=None, stdin=None, timeout=60):
    """Runs the program to its end: (exit status, standard output, standard error)."""
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=timeout,
                          input=stdin, cwd=cwd, env=clean_environment(environment))
    return done.returncode, done.stdout, done.stderr


def clean_environment(extra):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("STANCHION_", "AWS_"))}
    return {**kept, **(extra or {})}


class Server:
    """A server process; its URL once it is ready. Lines of its log can be waited for."""

    def __init__(self, binary, *arguments, environment=None, cwd=None):
        self.process = subprocess.Popen([binary, "serve", *arguments], text=True, cwd=cwd,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=clean_environment(environment))
        self.lines = queue.Queue()
        self.log = []
        self.output = []
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        self.url = self.wait_until_ready()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            self.lines.put(line)

    def wait_until_ready(self):
        for line in self.process.stdout:
            self.output.append(line)
            if match := READY.match(line.rstrip()):
                return match.group(1)
        self.process.wait(START_SECONDS_MAX)
        self.reader.join(10)
        raise RuntimeError(f"ended with {self.process.returncode}: {''.join(self.log)}")

    def wait_for_log(self, words):
        """The next line of the log that contains these words."""
        while True:
            line = self.lines.get(timeout=START_SECONDS_MAX)
            if words in line:
                return line

    def reload(self, expected):
        """SIGHUP; returns the line of the log with which the reload ended."""
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for_log(expected)

    def stop(self):
        """SIGTERM; returns the exit status and the whole log."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output += self.process.stdout.readlines()
        self.reader.join(10)
        return self.process.returncode, "".join(self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def write(path, text):
    pathlib.Path(path).write_text(text)
    return str(path)
