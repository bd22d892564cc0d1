"""Memory that the service needs besides messages and calls: each has a bound, whatever clients do."""
import json
import pathlib
import re
import select
import socket
import time
import urllib.parse

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check
from signed_client import Client

MIB = 1 << 20
# Besides what is measured: what the allocator has not returned yet, and the calls themselves.
AROUND = 12 * MIB
POLICIES = 400
POLICY_BYTES_MAX = 8 * MIB
VIEWS = 200
EVENT_SIZE = 150_000
EVENT_BYTES_MAX = 2 * MIB
ORDERS = ("name", "visible", "inFlight", "delayed", "oldest", "sent", "received", "deleted")


def status_bytes(server, name):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[1]) << 10


def forget_peak(server):
    """The most that it ever had is what it has now."""
    pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    return status_bytes(server, "VmRSS")


def short_values(queue, number):
    """A policy of 8 KiB that has as many values as possible."""
    policy = {"Version": "2012-10-17", "Statement": [{
        "Sid": f"s{number}", "Effect": "Allow", "Principal": "*", "Action": "sqs:*",
        "Resource": f"arn:aws:sqs:us-east-1:111111111111:{queue}",
        "Condition": {"StringNotLike": {"aws:UserAgent": []}}}]}
    room = 8_192 - len(json.dumps(policy, separators=(",", ":")))
    policy["Statement"][0]["Condition"]["StringNotLike"]["aws:UserAgent"] = ["x"] * (room // 4)
    return json.dumps(policy, separators=(",", ":"))


def policies_of_many_short_values_are_remembered_in_a_few_megabytes(case):
    four = IN_MEMORY.replace("threads = 1", "threads = 4")
    with case.serve_config(four + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        urls = []
        for number in range(POLICIES):
            name = f"q{number}"
            urls.append(alice.call("CreateQueue", QueueName=name, Attributes={
                "Policy": short_values(name, number)})["QueueUrl"])
        before = forget_peak(server)
        for url in urls:
            bob.call("GetQueueUrl", QueueName=url.rpartition("/")[2],
                     QueueOwnerAWSAccountId="111111111111")
        grown = status_bytes(server, "VmHWM") - before
        print(f"note: {POLICIES} policies: {grown / MIB:.1f} MiB more")
        check(grown < POLICY_BYTES_MAX + AROUND, grown)


class Stream:
    """Events of the console, of which only the size is looked at."""

    def __init__(self, url, query):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=60)
        self.socket.sendall(f"GET /console/events?{query} HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
        self.received, self.events, self.end = 0, 0, b""

    def read(self):
        piece = self.socket.recv(1 << 20)
        check(piece, "a stream ended")
        self.received += len(piece)
        self.events += (self.end + piece).count(b"data: {") - self.end.count(b"data: {")
        self.end = (self.end + piece)[-6:]


def views_that_all_differ_cost_no_more_than_a_few_events(case):
    with case.serve_config(IN_MEMORY.replace("threads = 1", "threads = 2")) as server:
        caller = Client(server.url)
        for number in range(200):
            caller.call("CreateQueue", QueueName=f"view-{number:03}-".ljust(80, "v"))
        # Each of those has sources, whose names are in its events.
        for number in range(1_200):
            target = f"view-{number % 200:03}-".ljust(80, "v")
            caller.call("CreateQueue", QueueName=f"w{number:04}".ljust(80, "w"), Attributes={
                "RedrivePolicy": json.dumps({
                    "deadLetterTargetArn": f"arn:aws:sqs:us-east-1:000000000000:{target}",
                    "maxReceiveCount": "3"})})
        before = forget_peak(server)
        streams = [Stream(server.url, f"filter={'v' * (1 + number // 8)}&sort={ORDERS[number % 8]}")
                   for number in range(VIEWS)]
        by_fd = {stream.socket.fileno(): stream for stream in streams}
        poll = select.poll()
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + 120
        rounds = 0
        # Every event differs from the last one, because a queue has one more message.
        while rounds < 3 and time.monotonic() < deadline:
            caller.call("SendMessage", QueueUrl="view-000-".ljust(80, "v"), MessageBody="m")
            for fd, _ in poll.poll(1_000):
                by_fd[fd].read()
            rounds = min(stream.events for stream in streams)
        check(rounds >= 3, "every stream gets events")
        check(min(s.received / s.events for s in streams) > EVENT_SIZE, "events are large")
        grown = status_bytes(server, "VmHWM") - before
        print(f"note: {VIEWS} views: {grown / MIB:.1f} MiB more")
        check(grown < EVENT_BYTES_MAX + AROUND, grown)
        for stream in streams:
            stream.socket.close()
