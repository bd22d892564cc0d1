"""Clients that hold as much of the server as they can: memory, connections, files.

A check returns what is wrong. Whatever the hostile ones do, the server stays within what it was
given, and others are served beside them.
"""

import collections
import os
import resource
import subprocess
import time

from durations import slowness
from process import MIB, open_connections, resident_bytes
from server import Server
from sqs import Client, Refused
from swarm import Swarm, call, http

QUEUE = "hostile"
HOSTILE = 5000
MEMORY = 64
# Memory of one connection, whatever it sends; and memory that is neither: the program, the budget
# of messages, what the allocator has not returned yet.
PER_CONNECTION = 6 * 1024
AROUND = 100 * MIB
CALL_SECONDS_MAX = 2.0
# Much that arrives at once exceeds the bound for a moment, in which other clients are told to come
# again. If it were kept, that would last longer than this.
REFUSED_SECONDS_MAX = 15

JSON = "Content-Type: application/x-amz-json-1.0"
POLL = "X-Amz-Target: AmazonSQS.ReceiveMessage"


def start(run, name, *options):
    server = Server(run.binary, run.path(name),
                    ("--memory", "64MiB", "--limits-memory", f"{MEMORY}MiB",
                     # On a slow machine the timeout alone would cut them off.
                     "--limits-header-timeout", "10m", "--limits-body-timeout", "10m", *options))
    server.start()
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    return server, client


class Watch:
    """Checks the server's memory and makes calls of an ordinary client between hostile ones."""

    def __init__(self, server, client):
        self.server, self.client = server, client
        self.most, self.durations, self.sent, self.problems = 0, [], 0, []

    def look(self):
        self.most = max(self.most, resident_bytes(self.server.process.pid))
        deadline = time.monotonic() + REFUSED_SECONDS_MAX
        while refused := self.send():
            if refused.status != 503 or time.monotonic() > deadline:
                self.problems.append(f"a send beside them: {refused}")
                return
            time.sleep(0.05)
        self.sent += 1

    def send(self):
        """One call; the refusal, if it was refused."""
        began = time.monotonic()
        try:
            self.client.call("SendMessage", QueueUrl=QUEUE, MessageBody="beside them" * 500)
            return None
        except Refused as error:
            return error
        finally:
            self.durations.append(time.monotonic() - began)

    def verdict(self, what, connections, more=0):
        bound = MEMORY * MIB + connections * PER_CONNECTION + AROUND + more
        print(f"     {what}: at most {self.most / MIB:.0f} MiB of {bound / MIB:.0f}, {self.sent} sends "
              f"beside them, the slowest {max(self.durations) * 1000:.0f} ms")
        if self.most > bound:
            self.problems.append(f"{self.most / MIB:.0f} MiB, more than {bound / MIB:.0f}")
        return self.problems + slowness("a send beside them", self.durations, CALL_SECONDS_MAX)


def end(server):
    server.kill()
    return server.died


def hold_halves(swarm, watch, pieces):
    """Each member sends its part of `pieces`, which never becomes a request."""
    for i, member in enumerate(swarm.members):
        swarm.send(member, pieces[i % len(pieces)])
        if i % 250 == 0:
            swarm.run(0)
            watch.look()
    swarm.run_until(lambda: not any(m.output for m in swarm.members if not m.ended), 20)
    watch.look()


def finish_one(swarm, members, rest):
    """A client that is still connected can finish its request. The server may not have read all
    that lies in its sockets, so it may cut off some of `members` only now; not all of them."""
    for member in reversed(members):
        swarm.send(member, rest)
        if not swarm.wait_for_answers([member], [0], 10):
            return ["a request that came to its end was not answered"]
        status = member.answers[0].status if member.answers else 503
        if status == 200:
            return []
        if status != 503:
            return [f"a request that came to its end was answered with {status}"]
    return [f"none of {len(members)} clients could finish its request"]


def check_half_requests(run):
    """Bodies of 64 KiB that never end, heads that never end, chunks, and requests without a key."""
    server, client = start(run, "halves")
    watch = Watch(server, client)
    body = b'{"QueueUrl":"' + QUEUE.encode() + b'","Unknown":"' + b"x" * 65_000 + b'"}'
    whole = http(body, POLL, JSON)
    chunked = (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
               b"f000\r\n" + b"x" * 0xF000 + b"\r\n")
    pieces = [whole[:-1], whole[:40_000], b"GET / HTTP/1.1\r\nA: " + b"x" * 16_000, chunked,
              whole[:1000]]
    with Swarm(server.find(), HOSTILE) as swarm:
        hold_halves(swarm, watch, pieces)
        cut = sum(bool(member.answers) or member.ended for member in swarm.members)
        statuses = collections.Counter(a.status for m in swarm.members for a in m.answers)
        print(f"     {cut} of {HOSTILE} were cut off: {dict(statuses)}")
        if set(statuses) - {503}:
            watch.problems.append(f"answers: {statuses}")
        if cut < HOSTILE / 4:
            watch.problems.append(f"only {cut} were cut off")
        still = [m for i, m in enumerate(swarm.members) if i % len(pieces) == 0
                 and not m.answers and not m.ended]
        watch.problems += finish_one(swarm, still, whole[-1:])
    return watch.verdict(f"{HOSTILE} half requests", HOSTILE) + end(server)


def check_parked_bodies(run):
    """Long polls, sixteen on each connection, with megabytes of padding."""
    server, client = start(run, "bodies")
    watch = Watch(server, client)
    client.call("CreateQueue", QueueName="empty")
    body = b'{"QueueUrl":"empty","WaitTimeSeconds":20,"Unknown":"' + b"x" * (2 * MIB) + b'"}'
    poll = http(body, POLL, JSON)
    names = ",".join(f'"{"n" * 250}{i}"' for i in range(900)).encode()
    greedy = http(b'{"QueueUrl":"empty","WaitTimeSeconds":20,"MessageAttributeNames":[' + names + b"]}",
                  POLL, JSON)
    members = 20
    with Swarm(server.find(), members) as swarm:
        for _ in range(16):
            for member in swarm.members:
                member.socket.setblocking(True)
                member.socket.sendall(poll)
                member.socket.setblocking(False)
            watch.look()
        swarm.run(0)
        answers = [a.status for m in swarm.members for a in m.answers]
        # A slow machine may take longer than the polls do.
        if any(m.ended for m in swarm.members) or set(answers) - {200}:
            watch.problems.append(f"polls that came at once were refused: {answers}")
    with Swarm(server.find(), 200) as swarm:
        for _ in range(4):
            for member in swarm.members:
                swarm.send(member, greedy)
            swarm.run_until(lambda: not any(m.output for m in swarm.members if not m.ended), 20)
            watch.look()
    return watch.verdict(f"{members * 16} polls with 2 MiB each, 800 with many names",
                         members) + end(server)


def check_answers_that_wait(run):
    """Answers of a megabyte behind a long poll, on many connections that nobody reads."""
    server, client = start(run, "answers")
    client.call("CreateQueue", QueueName="empty")
    client.call("CreateQueue", QueueName="large", Attributes={"VisibilityTimeout": "0"})
    client.call("SendMessage", QueueUrl="large", MessageBody="x" * 1_000_000)
    watch = Watch(server, client)
    wait = call("ReceiveMessage", QueueUrl="empty", WaitTimeSeconds=20)
    take = call("ReceiveMessage", QueueUrl="large")
    with Swarm(server.find(), 200) as swarm:
        for i, member in enumerate(swarm.members):
            swarm.send(member, wait + take * 10 if i % 2 else take * 10)
            swarm.poll.modify(member.socket, 0)
            if i % 20 == 0:
                watch.look()
        for _ in range(20):
            watch.look()
    return watch.verdict("200 clients that read nothing", 200, 128 * MIB) + end(server)


def check_files(run):
    """A hard limit of open files: connections are refused before the data lacks a file."""
    limited = run.path("limited")
    with open(limited, "w", encoding="ascii") as script:
        script.write(f'#!/bin/sh\nulimit -n 1024\nexport STANCHION_LIMITS_CONNECTIONS=40000\n'
                     f'exec "{os.path.abspath(run.binary)}" "$@"\n')
    os.chmod(limited, 0o755)
    server = Server(limited, run.path("files-kept"), ("--threads", "2"))
    server.start()
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    problems = []
    with Swarm(server.find(), 1500) as swarm:
        swarm.ask_all(call("GetQueueUrl", QueueName=QUEUE), 10)
        open_now = open_connections(server.process.pid)
        client.call("SendMessage", QueueUrl=QUEUE, MessageBody="x")
        # A backup makes a checkpoint of each shard, and opens more files than anything else.
        done = subprocess.run([run.binary, "backup", "--data", server.data, "--to",
                               run.path("files-backup")], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            problems.append(f"a backup beside {open_now} connections: {done.stderr}")
    with open(server.log_path, encoding="utf-8") as log:
        if "connections instead of 40000: the limit of open files is 1024" not in log.read():
            problems.append(f"the log does not say it: {server.log_tail()}")
    print(f"     {open_now} connections under a limit of 1024 files")
    return problems + end(server)


def check_no_files_at_all(run):
    """No descriptor is free: whatever needs one waits for it, and the server goes on."""
    server, client = start(run, "nofiles", "--threads", "1")
    pid = server.process.pid
    used = len(os.listdir(f"/proc/{pid}/fd"))
    client.call("SendMessage", QueueUrl=QUEUE, MessageBody="before")
    # The hard limit stays: not every user may raise it again.
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, hard))
    sent, refused = 1, collections.Counter()
    # More than one checkpoint's worth.
    for _ in range(220):
        try:
            client.call("SendMessage", QueueUrl=QUEUE, MessageBody="x" * 1_000_000)
            sent += 1
        except Refused as error:
            refused[str(error)[:40]] += 1
            if sum(refused.values()) > 20:
                break
    problems = []
    if server.process.poll() is not None:
        return [f"the server ended: {server.log_tail()}"]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    deadline = time.monotonic() + 20
    while True:
        try:
            client.call("SendMessage", QueueUrl=QUEUE, MessageBody="after")
            sent += 1
            break
        except Refused as error:
            if time.monotonic() > deadline:
                problems.append(f"sends are refused after there are files again: {error}")
                break
            time.sleep(0.1)
    server.kill()
    server.start()
    found = int(Client(server.find).call("GetQueueAttributes", QueueUrl=QUEUE, AttributeNames=["All"])
                ["Attributes"]["ApproximateNumberOfMessages"])
    print(f"     {sent} sends of 1 MB without a file to be had, {sum(refused.values())} refused")
    if found != sent:
        problems.append(f"{sent} sends were acknowledged, {found} messages are there")
    return problems + end(server)


COLD_MESSAGES = 1600
COLD_SIZE = 250_000
COLD_RECEIVE_SECONDS_MAX = 5.0 + 2.0
COLD_REFUSALS = 3  # Any of them may meet a machine that does other things.


def take_numbers(client, taken):
    """One receive; returns how many messages came. None of them may have come before."""
    answer = client.call("ReceiveMessage", QueueUrl=QUEUE, MaxNumberOfMessages=4,
                         VisibilityTimeout=3600)
    numbers = [int(m["Body"].split()[0]) for m in answer.get("Messages", [])]
    assert not taken & set(numbers), f"received twice: {taken & set(numbers)}"
    taken.update(numbers)
    return len(numbers)


def fill_beyond_memory(client):
    for first in range(0, COLD_MESSAGES, 4):
        entries = [{"Id": str(i), "MessageBody": f"{i} " + "x" * COLD_SIZE}
                   for i in range(first, first + 4)]
        answer = client.call("SendMessageBatch", QueueUrl=QUEUE, Entries=entries)
        assert len(answer["Successful"]) == 4, f"a batch was taken in part: {answer}"


def receive_without_files(client, swarm, taken):
    """Receives while connections hold every descriptor; returns what is wrong."""
    swarm.grow(100)
    swarm.run(0.5)
    refused, durations, before = 0, [], len(taken)
    while refused < COLD_REFUSALS and len(taken) < COLD_MESSAGES:
        began = time.monotonic()
        try:
            if not take_numbers(client, taken):
                return [f"after {len(taken)} messages there were no more"]
        except Refused as error:
            refused += 1
            if error.status != 503:
                return [f"without files a receive is answered with {error}"]
        durations.append(time.monotonic() - began)
    print(f"     {len(taken) - before} messages received beside connections that hold all files; "
          f"the slowest call took {max(durations):.1f} s")
    problems = [] if refused else ["no receive lacked a file: this checks nothing"]
    return problems + slowness("a receive", durations, COLD_RECEIVE_SECONDS_MAX)


def check_cold_reads_without_files(run):
    """A backlog larger than memory, and no file to read it with: it is there when there is one."""
    server, client = start(run, "coldreads", "--shards", "1", "--threads", "1")
    fill_beyond_memory(client)
    # The next process has few of the tables open.
    server.terminate(20)
    server.start()
    pid, taken = server.process.pid, set()
    take_numbers(client, taken)
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 20, hard))
    with Swarm(server.find()) as swarm:
        problems = receive_without_files(client, swarm, taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    deadline = time.monotonic() + 60
    while len(taken) < COLD_MESSAGES and time.monotonic() < deadline and server.process.poll() is None:
        try:
            if not take_numbers(client, taken):
                break
        except Refused:
            time.sleep(0.1)
    if len(taken) < COLD_MESSAGES:
        problems.append(f"of {COLD_MESSAGES} messages {len(taken)} were received")
    return problems + end(server)


CHECKS = [
    ("half requests of many clients are held within bounds", check_half_requests),
    ("bodies of calls that wait are not kept", check_parked_bodies),
    ("answers that nobody reads are held within bounds", check_answers_that_wait),
    ("the data has its files, however many connections come", check_files),
    ("without a file to be had the server waits for one", check_no_files_at_all),
    ("messages on disk wait for a file to read them with", check_cold_reads_without_files),
]
