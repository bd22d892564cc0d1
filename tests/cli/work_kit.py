"""What the tests of `stanchion work` share: a server with queues, and a worker whose lines can be
waited for."""
import contextlib
import json
import pathlib
import queue
import signal
import struct
import subprocess
import threading
import time

from case import Case, check
from server import Server, clean_environment
from signed_client import Client

PATIENCE = 60
SHIM = pathlib.Path(__file__).parent / "wall_clock_shim.cc"
COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


class WorkCase(Case):
    @contextlib.contextmanager
    def served(self, *flags):
        with Server(self.binary, "--listen", "127.0.0.1:0", "--threads", "1",
                    *(flags or ["--in-memory"]), cwd=self.directory) as server:
            self.client = Client(server.url)
            yield server

    def queue(self, name, **attributes):
        return self.client.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]

    def with_dead_letters(self, name, tries, **attributes):
        """The URLs of a queue and of its dead-letter queue."""
        dead = self.queue(name.replace(".fifo", "") + "-dead" + (".fifo" if ".fifo" in name else ""),
                          **attributes)
        arn = self.client.call("GetQueueAttributes", QueueUrl=dead, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": tries}
        return self.queue(name, RedrivePolicy=json.dumps(policy), **attributes), dead

    def send(self, url, *bodies, **more):
        for body in bodies:
            self.client.call("SendMessage", QueueUrl=url, MessageBody=body, **more)

    def send_fifo(self, url, group, *bodies):
        for body in bodies:
            self.send(url, body, MessageGroupId=group, MessageDeduplicationId=f"{group}/{body}".replace(" ", "/"))

    def left(self, url):
        """How many are visible and how many are in flight."""
        counts = self.client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=COUNTS)
        return [int(counts["Attributes"][name]) for name in COUNTS]

    def wait_until_empty(self, url):
        deadline = time.monotonic() + 2 * PATIENCE
        while self.left(url) != [0, 0]:
            check(time.monotonic() < deadline, self.left(url))
            time.sleep(0.05)

    def drain(self, url):
        """The bodies of all visible messages, which are deleted."""
        bodies = []
        while found := self.client.call("ReceiveMessage", QueueUrl=url,
                                        MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                bodies.append(message["Body"])
                self.client.call("DeleteMessage", QueueUrl=url,
                                 ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def with_clock_off_by(self, seconds):
        """An environment in which the wall clock is ahead by so many seconds."""
        shim = str(self.directory / "shim.so")
        subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", shim, str(SHIM)], check=True)
        self.set_clock(seconds)
        return {"LD_PRELOAD": shim, "WALL_CLOCK_OFFSET": str(self.directory / "offset")}

    def set_clock(self, seconds):
        """From now on the wall clock of that environment is ahead by so many seconds."""
        (self.directory / "offset").write_bytes(struct.pack("q", seconds))

    def work(self, url, *flags, environment=None):
        return Worker(self.binary, self.directory, url, flags, environment)


class Lines:
    """Lines of a pipe, read by a thread so that the writer never waits."""

    def __init__(self, pipe):
        self.all, self.waiting = [], queue.Queue()
        self.thread = threading.Thread(target=self.read, args=[pipe], daemon=True)
        self.thread.start()

    def read(self, pipe):
        for line in pipe:
            self.all.append(line)
            self.waiting.put(line)
        self.waiting.put("")

    def next(self):
        """The next line; empty at the end."""
        try:
            return self.waiting.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no line came for {PATIENCE} s: {''.join(self.all)}") from None

    def find(self, words):
        """The next line that contains these words."""
        while line := self.next():
            if words in line:
                return line
        raise AssertionError(f"no line has {words!r}: {''.join(self.all)}")

    def text(self):
        self.thread.join(PATIENCE)
        return "".join(self.all)


class Worker:
    """`stanchion work`; its output and its log."""

    def __init__(self, binary, directory, url, flags, environment):
        urls = [url] if isinstance(url, str) else url
        self.process = subprocess.Popen(
            [binary, "work", *(word for each in urls for word in ("--queue-url", each)), *flags],
            text=True, cwd=directory, env=clean_environment(environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.output, self.log = Lines(self.process.stdout), Lines(self.process.stderr)

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self):
        """SIGTERM, and what was logged until the end."""
        if not any('"working"' in line for line in self.log.all):
            self.log.find('"working"')
        return self.end(signal.SIGTERM)

    def end(self, *signals):
        for number in signals:
            self.signal(number)
        self.process.wait(PATIENCE)
        log = self.log.text()
        check(self.process.returncode == 0, (self.process.returncode, log))
        return log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
