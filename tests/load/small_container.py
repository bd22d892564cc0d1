"""Everything that clients can do to a server in a small container, for an hour.

    small_container.py --binary build/release/stanchion [--minutes 60] [--memory 64] [--beside 64]
                       [--only NAME,...] [--without NAME,...] [--serve=OPTION=VALUE]...

The server runs in a memory cgroup of its budget and --beside MiB more, without swap; the clients
are outside. What is not in the budget (operations.md, Memory) is made small by OPTIONS, or by
--serve instead. Workloads run in turn, then several together, with kills. Errors that the server
answers are fine. After each phase the process must be the one that it was, the kernel must have
killed nothing, and a small message must come and go within a minute. A FIFO queue is audited beside
it: what was acknowledged is received once, in order. For root, by hand. The table has the most
memory of each phase: resident, of the cgroup without copies of files, and with them.
"""

import argparse
import base64
import collections
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from process import MIB, peak_bytes
from server import Server, StartFailed, kill_all
from sqs import Client, Doubt, NoAnswer, NotSent, Refused
from swarm import Swarm, call, http

OPTIONS = ["--limits-memory=32MiB", "--limits-queue-bytes-per-account=16MiB"]
PATIENCE_SECONDS = 60  # For a call, and for the probe after a phase.
TOGETHER_SECONDS = 120
AUDIT_GROUPS = 4
HISTORY_QUEUES = 20
ORDERS = ("name", "visible", "inFlight", "delayed", "oldest", "sent", "received", "deleted")
HISTORY_MINUTES = 15 * 24 * 60
ARN = "arn:aws:sqs:us-east-1:000000000000:"
NOISE = base64.b64encode(random.randbytes(2 * MIB)).decode()
JSON = "Content-Type: application/x-amz-json-1.0"
LIST, ADVICE = call("ListQueues", MaxResults=1000), call("StanchionAdvice")
ROW = "{:<48} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}"
HEAD = ROW.format("phase", "s", "requests", "refusals", "resident", "cgroup", "+files", "killed")


def noise(size):
    """A text that cannot be compressed."""
    at = random.randrange(len(NOISE) - size)
    return NOISE[at : at + size]


def page(path, body=b"", *lines):
    """The bytes of a request that a page of the console makes: a POST if there is a body."""
    whole = http(body, "Origin: http://127.0.0.1", "X-Stanchion-Console: 1", *lines)
    return whole.replace(b"POST /", b"POST " if body else b"GET ", 1).replace(
        b" HTTP", path.encode() + b" HTTP", 1)


class Cgroup:
    """A memory cgroup, of version 1 or 2, with a hard limit and no swap."""

    def __init__(self, limit):
        self.old = os.path.isdir("/sys/fs/cgroup/memory")
        root = pathlib.Path("/sys/fs/cgroup/memory" if self.old else "/sys/fs/cgroup")
        if not self.old:
            (root / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
        self.path = root / f"stanchion-small-{os.getpid()}"
        self.path.mkdir()
        for name, value in {"limit_in_bytes": limit, "memsw.limit_in_bytes": limit, "max": limit,
                            "swap.max": 0}.items():
            if (self.path / f"memory.{name}").exists():
                self.write(name, value)

    def write(self, name, value):
        (self.path / f"memory.{name}").write_text(str(value), encoding="ascii")

    def read(self, old, new):
        """The only number in the file of that name, or all numbers by their names."""
        text = (self.path / f"memory.{old if self.old else new}").read_text("ascii")
        if text.strip().isdigit():
            return int(text)
        return {name: int(number) for name, number in map(str.split, text.splitlines())}

    def kills(self):
        return self.read("oom_control", "events")["oom_kill"]

    def held(self):
        """What is used and not just a copy of a file, which the kernel can drop."""
        stat = self.read("stat", "stat")
        used = self.read("usage_in_bytes", "current")
        return used - stat["active_file"] - stat["inactive_file"]

    def wrap(self, binary, path):
        """A script that runs the program in this cgroup."""
        with open(path, "w", encoding="ascii") as script:
            script.write(f'#!/bin/sh\necho $$ > "{self.path}/cgroup.procs"\n'
                         f'exec "{os.path.abspath(binary)}" "$@"\n')
        os.chmod(path, 0o755)
        return path


class Caller(Client):
    """A client that counts what it asks, and takes a refusal for an answer."""

    def __init__(self, run):
        super().__init__(run.server.find)
        self.run = run

    def ask(self, action, **parameters):
        """The answer, or None if there is none."""
        self.run.requests += 1
        try:
            return self.call(action, timeout=PATIENCE_SECONDS, **parameters)
        except Refused as refused:
            code = refused.code.split("#")[-1]
            if action == "DeleteQueue" and code == "QueueDoesNotExist":
                return {}  # An earlier call deleted it, and its answer was cut off.
            self.run.refusals[f"{refused.status} {code}"] += 1
        except NoAnswer as error:
            self.run.problems.append(str(error))
        except (Doubt, NotSent):
            self.run.refusals["cut off"] += 1
        time.sleep(0.05)
        return None

    def insist(self, action, **parameters):
        """Asks until it is answered; an empty answer if that takes too long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.run.goes_on(deadline):
            if (answer := self.ask(action, **parameters)) is not None:
                return answer
        if not self.run.dead:
            self.run.problems.append(f"{action} was refused for {PATIENCE_SECONDS} s")
        return {}

    def create(self, *names, **attributes):
        for name in names:
            kind = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
            self.insist("CreateQueue", QueueName=name, Attributes={**attributes, **kind})

    def count(self, queues):
        states = ("", "NotVisible", "Delayed")
        return sum(int(count) for queue in queues for count in self.insist(
            "GetQueueAttributes", QueueUrl=queue, AttributeNames=[
                f"ApproximateNumberOfMessages{state}" for state in states]).get(
                    "Attributes", {}).values())

    def end(self, accepted, *queues):
        """All that was acknowledged is in the queues, which are deleted then. More may be there,
        if a send was cut off. What is on its way from one to the other is in none for a moment."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        found = self.count(queues) if accepted else 0
        while found < accepted and self.run.goes_on(deadline):
            time.sleep(0.2)
            found = self.count(queues)
        if found < accepted and not self.run.dead:
            self.run.problems.append(f"{queues}: {accepted} were acknowledged, {found} are there")
        for queue in queues:
            self.insist("DeleteQueue", QueueUrl=queue)
        self.close()


class Audit:
    """Numbered messages in a few groups: each that was acknowledged is received once, in order."""

    def __init__(self, run):
        self.run, self.sent, self.slowest = run, 0, 0.0
        self.expected = list(range(AUDIT_GROUPS))
        self.ending, self.ended = threading.Event(), threading.Event()
        Caller(run).create("audit.fifo", VisibilityTimeout="45")
        self.sender = threading.Thread(target=self.send, daemon=True)
        self.sender.start()
        threading.Thread(target=self.receive, daemon=True).start()

    def try_to(self, client, action, **parameters):
        try:
            return client.call(action, QueueUrl="audit.fifo", **parameters)
        except (Refused, Doubt, NotSent):
            return time.sleep(0.1)

    def send(self):
        client, began = Client(self.run.server.find), time.monotonic()
        # A send in doubt is repeated, and recognised by its id.
        while not self.ending.wait(0.05):
            if self.try_to(client, "SendMessage", MessageBody=f"{self.sent} " + noise(500),
                           MessageGroupId=f"g{self.sent % AUDIT_GROUPS}",
                           MessageDeduplicationId=str(self.sent)) is not None:
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.sent, began = self.sent + 1, time.monotonic()

    def receive(self):
        client = Client(self.run.server.find)
        while not self.ended.is_set():
            got = self.try_to(client, "ReceiveMessage", MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in (got or {}).get("Messages", []):
                self.take(client, message, int(message["Body"].split()[0]))

    def take(self, client, message, number):
        expected = self.expected[number % AUDIT_GROUPS]
        if number != expected:
            self.run.problems.append(f"audit: {number} came in place of {expected}")
        # Its turn is over when the deletion is acknowledged; until then it may come again.
        until = time.monotonic() + 40
        while self.try_to(client, "DeleteMessage", ReceiptHandle=message["ReceiptHandle"]) is None:
            if time.monotonic() > until:
                return
        self.expected[number % AUDIT_GROUPS] = number + AUDIT_GROUPS

    def finish(self):
        """Nothing of what was sent is missing two minutes later."""
        self.ending.set()
        self.sender.join()
        until = time.monotonic() + 120
        # The last send may be in doubt, and come all the same.
        while min(self.expected) < self.sent and time.monotonic() < until:
            time.sleep(0.2)
        self.ended.set()
        if min(self.expected) < self.sent:
            self.run.problems.append(f"audit: {self.sent} were sent, next are {self.expected}")
        print(f"     audit: {self.sent} messages, the slowest send took {self.slowest:.1f} s")


class Run:
    """The server, what was asked of it in this phase, and what went wrong in all of them."""

    def __init__(self, arguments, directory):
        self.directory, self.binary = directory, arguments.binary
        self.part = min(1.0, arguments.minutes / 60)
        self.cgroup = Cgroup((arguments.memory + arguments.beside) * MIB)
        program = self.cgroup.wrap(arguments.binary, os.path.join(directory, "in-cgroup"))
        self.server = Server(program, os.path.join(directory, "data"), [
            "--memory", f"{arguments.memory}MiB", "--shards", "2", "--virtual-time",
            *(arguments.serve or OPTIONS)])
        self.problems, self.table, self.refusals = [], [], collections.Counter()
        self.requests = self.rss = self.held = self.pid = 0
        self.dead = False
        self.starting, self.ending = threading.Lock(), threading.Event()

    def amount(self, number):
        """So many in an hour, and fewer in less."""
        return max(20, int(number * self.part))

    def goes_on(self, until):
        """Whether there is time left, and a server."""
        return time.monotonic() < until and not self.dead

    def watch(self):
        """Looks at the memory, in a thread of its own, until the end."""
        while not self.ending.wait(0.03):
            self.held = max(self.held, self.cgroup.held())
            with self.starting:
                self.dead = self.server.process is None or self.server.process.poll() is not None
                if not self.dead:
                    with contextlib.suppress(OSError):  # It may just have been killed.
                        self.rss = max(self.rss, peak_bytes(self.pid))

    def start(self):
        began = time.monotonic()
        self.server.start()
        self.pid, self.dead = self.server.process.pid, False
        print(f"     ready after {time.monotonic() - began:.1f} s", flush=True)

    def start_again(self, dead=False):
        """After SIGKILL, in the same cgroup, in which the replay has to fit. If somebody else has
        killed it, only where that is known."""
        with self.starting:
            if dead or self.server.process.poll() is None:
                self.server.kill()
                self.start()

    def phase(self, name, workloads, seconds):
        """Runs the workloads at the same time, and looks at what is left of the server."""
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")  # The most that it ever had is what it has now.
        if self.cgroup.old:
            self.cgroup.write("max_usage_in_bytes", 0)  # With version 2 that cannot be forgotten.
        self.requests = self.rss = self.held = 0
        self.refusals = collections.Counter()
        kills_before, began, old = self.cgroup.kills(), time.monotonic(), len(self.problems)
        together(self, [lambda w=w: w(self, began + seconds) for w in workloads])
        took, killed = time.monotonic() - began, self.cgroup.kills() - kills_before
        status = self.server.process.poll()
        if killed or status is not None:
            self.problems.append(f"the kernel killed {killed}, exit status {status}:"
                                 f" {self.server.log_tail()[-600:]}")
            self.start_again(dead=True)
        probe(self, name)
        self.table.append(ROW.format(
            name, round(took), self.requests, self.refusals.total(), self.rss // MIB,
            self.held // MIB, self.cgroup.read("max_usage_in_bytes", "peak") // MIB, killed))
        self.problems[old:] = [f"{name}: {problem}" for problem in self.problems[old:]]
        print(self.table[-1], f"     refused: {dict(self.refusals.most_common(6))}",
              *(f"FAIL {problem}" for problem in self.problems[old:]), sep="\n", flush=True)


def together(run, functions):
    """Calls each in a thread of its own, and waits for all."""
    def guarded(function):
        try:
            function()
        except Exception as error:
            run.problems.append(f"{function}: {error!r}")

    threads = [threading.Thread(target=guarded, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def probe(run, name):
    """A small message is sent, received and deleted."""
    client, until = Caller(run), time.monotonic() + PATIENCE_SECONDS
    client.create("probe")
    client.insist("SendMessage", QueueUrl="probe", MessageBody=name)
    while time.monotonic() < until:
        got = client.ask("ReceiveMessage", QueueUrl="probe", WaitTimeSeconds=1)
        for message in (got or {}).get("Messages", []):
            client.insist("DeleteMessage", QueueUrl="probe", ReceiptHandle=message["ReceiptHandle"])
            if message["Body"] == name:
                return client.close()
    return run.problems.append(f"a small message does not come within {PATIENCE_SECONDS} s")


def storm(run, make, connections, until, most):
    """Keeps connections busy with the requests make(number); how many of them succeeded."""
    asked = succeeded = 0
    while asked < most and run.goes_on(until):
        address = run.server.find(1)
        if address is None:
            continue
        with Swarm(address, connections) as swarm:
            busy = set()
            while run.goes_on(until) and (busy or asked < most):
                for member in swarm.members:
                    while member.answers:
                        succeeded += is_success(run, member.answers.pop(0))
                        busy.discard(member)
                    if not member.ended and member not in busy and asked < most:
                        asked += 1
                        busy.add(member)
                        swarm.send(member, make(asked))
                if any(member.ended for member in swarm.members):
                    run.refusals["cut off"] += sum(member.ended for member in busy)
                    break
                swarm.run(0.05)
    run.requests += asked
    return succeeded


def is_success(run, answer):
    if answer.status == 200 and b'"Failed":[{' not in answer.body:
        return True
    code = answer.json().get("__type", "") if answer.body.startswith(b"{") else ""
    run.refusals[f"{answer.status} {code.split('#')[-1]}"] += 1
    return False


def fill(run, queue, batches, until, size=1000, ten=10, connections=12, **more):
    """Batches of messages; how many messages were acknowledged."""
    whole = call("SendMessageBatch", QueueUrl=queue, Entries=[
        {"Id": str(i), "MessageBody": noise(size), **more} for i in range(ten)])
    return ten * storm(run, lambda _: whole, connections, until, run.amount(batches))


def drain(run, queue, until, threads=4, delete=True, attempts=0, **how):
    """Receives, and deletes, until the queue is empty; the first so many with attempt ids."""
    def one():
        client, empty, number = Caller(run), 0, 0
        while run.goes_on(until) and empty < 4:
            number += 1
            attempt = f"{threading.get_ident()}-{number}".ljust(128, "a")
            more = {"ReceiveRequestAttemptId": attempt} if number < attempts else {}
            got = client.ask("ReceiveMessage", QueueUrl=queue,
                             **{"MaxNumberOfMessages": 1 if more else 10, **how, **more})
            messages = (got or {}).get("Messages", [])
            empty = 0 if messages or got is None else empty + 1
            if delete and messages and not more:
                client.ask("DeleteMessageBatch", QueueUrl=queue, Entries=[
                    {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]}
                    for i, m in enumerate(messages)])
        client.close()

    together(run, [one] * threads)


def unread(run, pieces, connections, until):
    """Connections that send and never read, for a while."""
    if not run.goes_on(until):
        return
    with Swarm(run.server.find(), connections) as swarm:
        for i, member in enumerate(swarm.members):
            swarm.send(member, pieces[i % len(pieces)])
            if not member.ended:
                swarm.poll.modify(member.socket, 0)
        run.requests += connections
        soon = min(until, time.monotonic() + 20)
        while run.goes_on(soon):
            time.sleep(0.1)


def large_sends(run, until):
    """Messages of the largest size, many at once, far beyond memory."""
    client = Caller(run)
    client.create("large")
    client.end(fill(run, "large", 2000, until, MIB, 1, 24), "large")


def backlog(run, until):
    """Small messages beyond memory, all of which are received and deleted."""
    client = Caller(run)
    client.create("backlog", "kept", VisibilityTimeout="600")
    kept = fill(run, "kept", 2_000, until)
    fill(run, "backlog", 40_000, (time.monotonic() + until) / 2)
    drain(run, "backlog", until)
    client.end(kept, "kept", "backlog")


def in_flight(run, until):
    """As many messages in flight as a queue may have, in several queues."""
    client, names = Caller(run), [f"flying-{i}" for i in range(4)]
    client.create(*names, VisibilityTimeout="3600")
    accepted = sum(fill(run, name, 8_000, until, 100) for name in names)
    together(run, [lambda n=n: drain(run, n, until, 1, delete=False) for n in names])
    client.end(accepted, *names)


def poison(run, until):
    """Small messages that are received once too often, with a queue for them elsewhere."""
    client, names = Caller(run), [f"poison-{i}" for i in range(4)]
    client.create("poison-dead")
    client.create(*names, RedrivePolicy=json.dumps(
        {"maxReceiveCount": 1, "deadLetterTargetArn": ARN + "poison-dead"}))
    accepted = sum(fill(run, name, 2_000, until, 2000) for name in names)
    together(run, [lambda n=n: drain(run, n, until, 2, delete=False, VisibilityTimeout=0)
                   for n in names])
    time.sleep(3)
    client.end(accepted, *names, "poison-dead")


def redrive(run, until):
    """Dead letters of a megabyte are moved back, die again, and are moved once more."""
    client, task = Caller(run), {"Status": "COMPLETED"}
    client.create("dead")
    client.create("work", RedrivePolicy=json.dumps(
        {"maxReceiveCount": 1, "deadLetterTargetArn": ARN + "dead"}))
    accepted = fill(run, "dead", 700, until, 1_000_000, 1)
    while run.goes_on(until):
        client.ask("StartMessageMoveTask", SourceArn=ARN + "dead", DestinationArn=ARN + "work")
        while run.goes_on(until):
            tasks = client.insist("ListMessageMoveTasks", SourceArn=ARN + "dead").get("Results")
            task = (tasks or [task])[0]
            if task["Status"] != "RUNNING":
                break
            time.sleep(0.2)
        drain(run, "work", until, 3, delete=False, VisibilityTimeout=0)
    if task["Status"] == "RUNNING":
        client.ask("CancelMessageMoveTask", TaskHandle=task["TaskHandle"])
    time.sleep(3)
    client.end(accepted, "work", "dead")


def delayed(run, until):
    client = Caller(run)
    client.create("delayed")
    client.end(fill(run, "delayed", 20_000, until, 200, DelaySeconds=900), "delayed")


def fifo(run, until):
    """Ever new groups, deduplication ids and attempt ids, until they are refused."""
    client, body = Caller(run), noise(100)
    client.create("groups.fifo", VisibilityTimeout="600")
    storm(run, lambda number: call("SendMessageBatch", QueueUrl="groups.fifo", Entries=[
        {"Id": str(i), "MessageBody": body, "MessageGroupId": f"{number}-{i}".ljust(128, "g"),
         "MessageDeduplicationId": f"{number}-{i}".ljust(128, "d")} for i in range(10)]),
          12, (time.monotonic() + until) / 2, run.amount(40_000))
    drain(run, "groups.fifo", until, attempts=run.amount(20_000))
    client.end(0, "groups.fifo")


def many_queues(run, until):
    """Queues with as many and as long tags as there can be, then plain ones, until they are too
    many; lists of them, and figures about them, of which some are not read."""
    client, most = Caller(run), run.amount(20_000)
    all_tags = {f"{i:02}" + "\U0001f600" * 126: "\U0001f600" * 256 for i in range(50)}

    def make(name, tags):
        body = json.dumps({"QueueName": name.ljust(80, "n"), "tags": tags}, ensure_ascii=False)
        return http(body.encode(), "X-Amz-Target: AmazonSQS.CreateQueue", JSON)

    storm(run, lambda n: make(f"tagged-{n:06}", all_tags), 8, until, min(4000, most))
    client.insist("DeleteQueue", QueueUrl="tagged-000001".ljust(80, "n"))
    storm(run, lambda n: make(f"plain-{n:06}", {}), 8, until, most)
    storm(run, lambda n: LIST if n % 4 else page("/console/server"), 32, until, most)
    tags_of_one = call("ListQueueTags", QueueUrl="tagged-000002".ljust(80, "n"))
    unread(run, [page("/metrics") * 16, page("/console/events"), tags_of_one * 16], 300, until)
    unread(run, [LIST * 16], 100, until)
    unread(run, [ADVICE * 16], 100, until)
    urls = [""]
    while urls and not run.dead:
        urls = [url for name in ("plain-", "tagged-") for url in client.insist(
            "ListQueues", QueueNamePrefix=name, MaxResults=1000).get("QueueUrls", [])]
        storm(run, lambda n, u=urls: call("DeleteQueue", QueueUrl=u[n - 1]), 8,
              time.monotonic() + PATIENCE_SECONDS, len(urls))
    client.close()


def unread_answers(run, until):
    """Messages of a megabyte that are received and looked at, but not read, also behind a poll."""
    client = Caller(run)
    client.create("unread", "empty", VisibilityTimeout="0")
    fill(run, "unread", 300, until, 1_000_000, 1)
    take = call("ReceiveMessage", QueueUrl="unread", MaxNumberOfMessages=10)
    wait = call("ReceiveMessage", QueueUrl="empty", WaitTimeSeconds=5)
    look = call("StanchionPeek", QueueUrl="unread", MaxResults=100)
    while run.goes_on(until):
        unread(run, [take * 16, wait + take * 15, look * 16], 100, until)
    client.end(0, "unread", "empty")


def slow_readers(run, until):
    """Large pages, streams and answers that are read by a few bytes at a time."""
    client, names = Caller(run), [f"page-{i:03}".ljust(80, "p") for i in range(300)]
    client.create(*names)
    client.create("slow", VisibilityTimeout="0")
    fill(run, "slow", 40, until, 1_000_000, 1)
    take = call("ReceiveMessage", QueueUrl="slow", MaxNumberOfMessages=10)
    asks = [page("/metrics") * 8, page("/console/events"), take * 8, LIST * 8]
    while run.goes_on(until):
        with Swarm(run.server.find(), 200) as swarm:
            for i, member in enumerate(swarm.members):
                swarm.send(member, asks[i % 4])
                if not member.ended:
                    swarm.poll.modify(member.socket, 0)
            run.requests += len(swarm.members)
            soon = min(until, time.monotonic() + 15)
            while run.goes_on(soon):
                time.sleep(0.05)
                for member in random.sample(swarm.members, 50):
                    with contextlib.suppress(OSError):
                        member.socket.recv(2000)
    client.end(0, "slow", *names)


def attributes(run, until):
    """Messages that are nothing but attributes, sent ten at a time, received, and made visible
    again and again."""
    client, named = Caller(run), [f"{i}".ljust(250, "a") for i in range(10)]
    client.create("attributes", VisibilityTimeout="60")
    accepted = fill(run, "attributes", 3_000, (time.monotonic() + until) / 2, 100,
                    MessageAttributes={name: {"DataType": "String", "StringValue": noise(9000)}
                                       for name in named})

    def to_and_fro():
        mine = Caller(run)
        while run.goes_on(until):
            got = mine.ask("ReceiveMessage", QueueUrl="attributes", MaxNumberOfMessages=10,
                           MessageAttributeNames=["All"], AttributeNames=["All"])
            if messages := (got or {}).get("Messages", []):
                mine.ask("ChangeMessageVisibilityBatch", QueueUrl="attributes", Entries=[
                    {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"],
                     "VisibilityTimeout": i % 3} for i, m in enumerate(messages)])
        mine.close()

    together(run, [to_and_fro] * 4)
    client.end(accepted, "attributes")


def policies(run, until):
    """The largest policies, of as many values as fit, set on many queues, changed, looked through for
    advice, and listed by who reads nothing."""
    client, most = Caller(run), run.amount(4_000)
    names = [f"policy-{i:05}" for i in range(min(400, most))]
    client.create(*names)

    def policy(number):
        values = ["${aws:userid}" if number % 2 else "${a}"] * (480 if number % 2 else 1_050)
        return call("SetQueueAttributes", QueueUrl=names[number % len(names)], Attributes={
            "Policy": json.dumps({"Version": "2012-10-17", "Statement": [{
                "Sid": f"s{number}", "Effect": "Allow",
                "Principal": "*", "Action": "sqs:SendMessage",
                "Resource": ARN + names[number % len(names)],
                "Condition": {"StringLike": {"aws:UserAgent": values}}}]},
                separators=(",", ":"))})

    storm(run, policy, 16, until, most)
    show = call("GetQueueAttributes", QueueUrl=names[0], AttributeNames=["All"])
    unread(run, [show * 64, ADVICE * 16], 100, until)
    storm(run, policy, 16, until, most)
    client.end(0, *names)


def views(run, until):
    """As many open tabs of the console as there may be, each of which shows two hundred queues with
    long names in its own way; half of them are not read."""
    client, amount = Caller(run), run.amount(2_000)
    targets = [f"view-{i:03}-".ljust(80, "v") for i in range(200)]
    client.create(*targets)

    def source(number):
        return http(json.dumps({"QueueName": f"w{number:05}".ljust(80, "w"), "Attributes": {
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": ARN + targets[number % 200],
                                         "maxReceiveCount": "3"})}}).encode(),
                    "X-Amz-Target: AmazonSQS.CreateQueue", JSON)

    storm(run, source, 8, until, amount)
    address = run.server.find()
    while run.goes_on(until) and run.server.address == address:
        with Swarm(address, 200) as swarm:
            for i, member in enumerate(swarm.members):
                swarm.send(member, page(f"/console/events?filter={'v' * (1 + i // 8)}"
                                        f"&sort={ORDERS[i % 8]}"))
                if i % 2 and not member.ended:
                    swarm.poll.modify(member.socket, 0)
            run.requests += len(swarm.members)
            soon = min(until, time.monotonic() + 15)
            while run.goes_on(soon):
                client.ask("SendMessage", QueueUrl=targets[0], MessageBody="m")
                swarm.run(0.2)
                for member in swarm.members:
                    member.input = b""  # Events have no end that it could find.
    client.end(0, *targets, *(f"w{i + 1:05}".ljust(80, "w") for i in range(amount)))


def sign_ins(run, until):
    """Sign-ins and calls of the console with JSON that is large and deep."""
    small = json.dumps({"id": "x" * 1500, "secret": "y" * 1500}).encode()
    lists = b"[" + b"[]," * 2_000_000 + b"[]]"
    empty = b'{"QueueUrl":"probe","Entries":[' + b"{}," * 2_000_000 + b"{}]}"
    numbers = b'{"x":[' + b"1," * 3_000_000 + b'1],"QueueName":"probe"}'
    asks = [page("/console/sign-in", body, JSON) for body in (small, lists, b"[" * 6_000_000)]
    asks += [page("/console/api", body, JSON, "X-Amz-Target: AmazonSQS.SendMessageBatch")
             for body in (empty, numbers, lists)]
    storm(run, lambda n: asks[n % len(asks)], 24, until, run.amount(4_000))


def half_requests(run, until):
    """Thousands of idle connections, and bodies of 6 MB of which the last byte does not come."""
    body = b'{"QueueUrl":"probe","MessageBody":"' + b"x" * 6_000_000 + b'"}'
    whole, small = (http(part, "X-Amz-Target: AmazonSQS.SendMessage", JSON)[:-1]
                    for part in (body, body[:60_000]))
    address = run.server.find()
    while run.goes_on(until) and run.server.address == address:
        with Swarm(address, 3000), Swarm(address, 600) as swarm:
            for i, member in enumerate(swarm.members):
                swarm.send(member, small if i % 10 else whole)
            run.requests += len(swarm.members)
            swarm.run_until(lambda s=swarm: not run.goes_on(until) or not any(
                m.output for m in s.members if not m.ended), 30)
            run.refusals["cut off"] += sum(member.ended for member in swarm.members)
            time.sleep(1)


def long_polls(run, until):
    """Polls by the thousand, some of them with many names, and messages that wake a few."""
    client, queues = Caller(run), [f"poll-{i}" for i in range(100)]
    names = [f"{i}".ljust(250, "n") for i in range(200)]
    client.create(*queues)
    address = run.server.find()
    while run.goes_on(until) and run.server.address == address:
        with Swarm(address, 4000) as swarm:
            for i, member in enumerate(swarm.members):
                swarm.send(member, call(
                    "ReceiveMessage", QueueUrl=queues[i % 100], WaitTimeSeconds=20,
                    **({} if i % 20 else {"MessageAttributeNames": names})))
            run.requests += len(swarm.members)
            for i in range(200):
                client.ask("SendMessage", QueueUrl=queues[i % 100], MessageBody=noise(20_000))
                swarm.run(0)
            swarm.run_until(lambda: not run.goes_on(until), 21)
    client.end(0, *queues)


def make_history(run):
    """Two weeks of minutes, before anything else: time is moved on by a minute at a time."""
    Caller(run).create(*(f"history-{i}" for i in range(HISTORY_QUEUES)))
    move = http(b'{"advanceSeconds": 60}', "X-Stanchion-Control: 1").replace(
        b"POST / ", b"POST /_stanchion/clock ")
    moved = storm(run, lambda _: move, 1, time.monotonic() + 600 * run.part + 10,
                  int(HISTORY_MINUTES * run.part))
    print(f"     {moved} minutes of history", flush=True)


def cloudwatch(run, until):
    """Calls that ask for two weeks of five hundred metrics."""
    end = time.time() + 16 * 86400
    body = json.dumps({"StartTime": end - 32 * 86400, "EndTime": end, "MetricDataQueries": [
        {"Id": f"m{i}", "MetricStat": {
            "Metric": {"Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible",
                       "Dimensions": [{"Name": "QueueName",
                                       "Value": f"history-{i % HISTORY_QUEUES}"}]},
            "Period": 60 if i % 2 else 3600, "Stat": "Sum"}} for i in range(500)]}).encode()
    whole = http(body, "X-Amz-Target: GraniteServiceVersion20100801.GetMetricData", JSON)
    unread(run, [whole * 4], 100, min(until, time.monotonic() + 10))
    storm(run, lambda _: whole, 24, (time.monotonic() + until) / 2, run.amount(1_000))
    answered = storm(run, lambda n: just_below(end, n), 24, until, run.amount(1_000))
    print(f"     {answered} questions just below the limit", flush=True)


def just_below(end, number):
    """A call that needs nearly a million points, and is answered: two weeks of as many metrics as may
    be, or one that is filled for months and added up."""
    metric = {"Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible",
              "Dimensions": [{"Name": "QueueName", "Value": f"history-{number % HISTORY_QUEUES}"}]}
    queries, minutes = [{"Id": f"m{i}", "MetricStat": {
        "Metric": metric, "Period": 60, "Stat": "Sum"}} for i in range(45)], 15 * 1440
    if number % 2:
        queries = [queries[0], {"Id": "e1", "Expression": "FILL(m0, 1)"},
                   {"Id": "e2", "Expression": "SUM([e1])"}]
        minutes = 325_000
    return http(json.dumps({"StartTime": end - minutes * 60, "EndTime": end,
                            "MetricDataQueries": queries}).encode(),
                "X-Amz-Target: GraniteServiceVersion20100801.GetMetricData", JSON)


def purge(run, until):
    """Large queues that are purged and deleted while they are filled and received from."""
    def empty(soon):
        while run.goes_on(soon):
            time.sleep(3)
            Caller(run).ask("PurgeQueue", QueueUrl="purged")

    while run.goes_on(until):
        client, soon = Caller(run), min(until, time.monotonic() + 15)
        client.create("purged", "deleted")
        together(run, [lambda s=soon: fill(run, "purged", 200_000, s), lambda s=soon: empty(s),
                       lambda s=soon: fill(run, "deleted", 3000, s, MIB, 1, 6),
                       lambda s=soon: drain(run, "purged", s, 1)])
        client.end(0, "purged", "deleted")


def peek(run, until):
    """Looks at a queue beyond memory, searches, and receives of what was seen."""
    client = Caller(run)
    client.create("seen")
    accepted = fill(run, "seen", 8_000, (time.monotonic() + until) / 2, 8000)

    def look(**search):
        mine, token = Caller(run), {}
        while run.goes_on(until):
            seen = mine.ask("StanchionPeek", QueueUrl="seen", MaxResults=100, **search, **token)
            token = {"NextToken": seen["NextToken"]} if seen and "NextToken" in seen else {}
            places = [m["StanchionPosition"] for m in (seen or {}).get("Messages", [])]
            if places:
                mine.ask("ReceiveMessage", QueueUrl="seen", VisibilityTimeout=1,
                         StanchionPositions=random.sample(places, min(10, len(places))))

    together(run, [look] * 3 + [lambda: look(Search="nowhere at all")] * 2)
    client.end(accepted, "seen")


def kills(run, until):
    """SIGKILL under load; what was acknowledged is there."""
    client, accepted = Caller(run), collections.Counter()
    client.create("killed-large", "killed-small")

    def send(queue, *shape):
        accepted[queue] = fill(run, queue, 5_000, until - 10, *shape)

    def kill():
        while run.goes_on(until - 10):
            time.sleep(random.uniform(3, 10))
            run.start_again()

    together(run, [lambda: send("killed-large", MIB, 1), lambda: send("killed-small"), kill])
    client.end(accepted.total(), "killed-large", "killed-small")


def backup(run, until):
    """Backups while messages come and go."""
    client, to = Caller(run), os.path.join(run.directory, "backup")
    client.create("copied")

    def copy():
        while run.goes_on(until):
            done = subprocess.run([run.binary, "backup", "--data", run.server.data, "--to", to],
                                  capture_output=True, text=True, timeout=300, check=False)
            if done.returncode != 0:
                run.refusals[f"backup: {done.stderr.strip()[:80]}"] += 1
            shutil.rmtree(to, ignore_errors=True)
            time.sleep(1)

    together(run, [lambda: fill(run, "copied", 40_000, until, 4000, connections=6),
                   lambda: drain(run, "copied", until, 1), copy])
    client.end(0, "copied")


# Each with its part of the time, in minutes of an hour.
PHASES = {large_sends: 2, backlog: 4, in_flight: 2, redrive: 3, poison: 2, delayed: 1, fifo: 4,
          sign_ins: 1, half_requests: 2, long_polls: 2, cloudwatch: 2, purge: 1.5, peek: 2,
          kills: 3, backup: 1.5, many_queues: 4, unread_answers: 2, slow_readers: 1.5,
          attributes: 2, policies: 1.5, views: 2}
ALONE = (kills, backup)


def run_all(run, minutes, only, without):
    end = time.monotonic() + minutes * 60
    phases = [workload for workload in PHASES if workload.__name__ not in without
              and (not only or workload.__name__ in only)]
    run.start()
    threading.Thread(target=run.watch, daemon=True).start()
    if cloudwatch in phases:
        make_history(run)
    audit = Audit(run)
    print(HEAD)
    for workload in phases:
        run.phase(workload.__name__, [workload], max(15, PHASES[workload] * 60 * run.part))
    choice = [workload for workload in phases if workload not in ALONE]
    while len(choice) >= 3 and time.monotonic() < end:
        some = random.sample(choice, 3) + random.sample(ALONE, random.randrange(2))
        run.phase("+".join(workload.__name__ for workload in some), some,
                  max(30, TOGETHER_SECONDS * run.part))
    audit.finish()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", required=True, help="the stanchion to test")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--memory", type=int, default=64, help="MiB, the server's budget")
    parser.add_argument("--beside", type=int, default=64, help="MiB that the cgroup has beyond it")
    parser.add_argument("--only", default="", help="these workloads, with commas between them")
    parser.add_argument("--without", default="", help="all workloads but these")
    parser.add_argument("--serve", action="append", metavar="OPTION=VALUE", help="of the server")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    directory = tempfile.mkdtemp(prefix="stanchion-container-")
    run = Run(arguments, directory)
    try:
        run_all(run, arguments.minutes, arguments.only.split(",") if arguments.only else [],
                arguments.without.split(","))
    except StartFailed as error:
        run.problems.append(f"a start failed, the kernel killed {run.cgroup.kills()}: {error}")
    finally:
        run.ending.set()
        time.sleep(0.2)
        kill_all()
        time.sleep(0.5)  # Until the kernel, too, knows that it is empty.
        run.cgroup.path.rmdir()
    print(HEAD, *run.table, *(f"FAIL {problem}" for problem in run.problems), sep="\n")
    if run.problems:
        print(f"the data directory and the log are kept in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{len(run.table)} phases, {len(run.problems)} problems")
    return 1 if run.problems else 0


if __name__ == "__main__":
    sys.exit(main())
