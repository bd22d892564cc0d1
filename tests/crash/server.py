"""The real server as a child process that can be killed at any moment."""

import os
import re
import signal
import subprocess
import threading
import time

START_SECONDS_MAX = 60


class StartFailed(Exception):
    pass


running = set()  # Processes that must not outlive this one.


def kill_all():
    for process in list(running):
        process.kill()
        process.wait()


class Server:
    """One data directory and the process that serves it, if one runs.

    Every start listens on a port of the kernel's choice: a fixed one could be taken, while the
    server is down, by a connection that one of our own clients makes.
    """

    def __init__(self, binary, data, options=()):
        self.binary = binary
        self.data = data
        self.options = list(options)
        self.log_path = str(data).rstrip("/") + ".log"
        self.process = None
        self.starts = 0
        self.slowest_start = 0.0
        self.died = []  # Its output if it ended by itself.
        self.ready = threading.Condition()
        self.address = None

    def spawn(self):
        """Starts the process and does not wait for it."""
        assert self.process is None
        command = [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0"]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                command + self.options, stdout=subprocess.PIPE, stderr=log, text=True
            )
        running.add(self.process)
        self.starts += 1
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def start(self):
        """Starts the process and waits until it is ready."""
        began = time.time()
        self.spawn()
        with self.ready:
            self.ready.wait_for(
                lambda: self.address is not None or self.process.poll() is not None,
                START_SECONDS_MAX,
            )
            if self.address is None:
                self.kill()
                raise StartFailed(f"the server did not become ready:\n{self.log_tail()}")
        self.slowest_start = max(self.slowest_start, time.time() - began)

    def find(self, timeout=START_SECONDS_MAX):
        """The address of the running server, once there is one; None if that takes too long."""
        with self.ready:
            self.ready.wait_for(lambda: self.address is not None, timeout)
            return self.address

    def kill(self):
        """SIGKILL; afterwards the process is gone."""
        if self.process is None:
            return
        if self.process.poll() is not None:
            self.died.append(f"exit status {self.process.returncode}: {self.log_tail()}")
        self.process.kill()
        self._gone()

    def terminate(self, timeout):
        """SIGTERM; returns the exit status, or None if it did not end in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self._gone()
            return None
        status = self.process.returncode
        self._gone()
        return status

    def log_tail(self):
        with open(self.log_path, "rb") as log:
            log.seek(max(0, os.path.getsize(self.log_path) - 2000))
            return log.read().decode(errors="replace").strip()

    def torn_tails(self):
        with open(self.log_path, "rb") as log:
            return log.read().count(b"cut a torn write")

    def _gone(self):
        with self.ready:
            self.address = None
        self.process.wait()
        running.discard(self.process)
        self.process = None

    def _read(self, process):
        with process.stdout:
            for line in process.stdout:
                found = re.match(r"ready http://([\d.]+):(\d+)", line)
                with self.ready:
                    if found and self.process is process:
                        self.address = (found[1], int(found[2]))
                        self.ready.notify_all()
        process.wait()
        with self.ready:
            self.ready.notify_all()


def run(binary, *arguments, timeout=START_SECONDS_MAX):
    """Runs the program to its end: (exit status or None, standard output, standard error)."""
    try:
        done = subprocess.run(
            [binary, *arguments], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return None, "", "it was still running"
    return done.returncode, done.stdout, done.stderr
