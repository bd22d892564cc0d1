"""More message groups than memory has room for, while other queues are watched.

    groups.py --binary build/release/stanchion [--groups 1000000] [--memory 64MiB] [--tenants]

One queue gets messages of ever new groups; beside it a process of its own sends to, receives from
and deletes in other queues, on every shard, and notes how long that takes. Then the server is
stopped, which may not take long, started again, and watched while the groups are drained. The
checks of load_test.py are the same with fewer groups.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from durations import slowness
from process import MIB, resident_bytes
from server import Server, kill_all
from sqs import Client, Doubt, NotSent, Refused
from swarm import Swarm, call

QUEUE = "crowd"
CONNECTIONS = 16
BATCH = 10
BESIDE = [f"beside-{i}" for i in range(8)]
# How long one queue's load may make the others wait, on a machine that does nothing else.
BESIDE_SECONDS_MAX = 1.0
# Until another process has begun, on a machine that does other things as well.
BEGIN_SECONDS_MAX = 120
# The server's bound for any request that waits for memory (limits.h), and some more.
ANSWER_SECONDS_MAX = 5.0 + 2.0
STOP_SECONDS_MAX = 10.0
# Memory: the messages, twice that for the groups themselves and their deduplication ids, and what is
# not counted (operations.md).
MEMORY_FACTOR = 2.5
UNCOUNTED_MIB = 160


def watch(address, begun, ending, results):
    """Runs in a separate process: one call after the other, each timed."""
    client = Client(lambda: address)
    durations, refusals = collections.defaultdict(list), collections.Counter()

    def timed(action, **parameters):
        began = time.monotonic()
        try:
            return client.call(action, **parameters)
        except Refused as refused:
            refusals[f"{action}: {refused}"] += 1
            return {}
        finally:
            durations[action].append(time.monotonic() - began)

    try:
        while not ending.is_set():
            for queue in BESIDE:
                timed("SendMessage", QueueUrl=queue, MessageBody="beside")
                for message in timed("ReceiveMessage", QueueUrl=queue).get("Messages", []):
                    timed("DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            begun.set()
            ending.wait(0.02)
    except (Doubt, NotSent) as lost:
        refusals[str(lost)] += 1
        begun.set()
    results.send((dict(durations), dict(refusals)))


class Watch:
    """Other queues, watched by a separate process until it is asked for its results. It has made
    its first calls when this is there, however short the load is then."""

    def __init__(self, address):
        context = multiprocessing.get_context("spawn")
        begun, self.ending = context.Event(), context.Event()
        self.results, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=watch, args=(address, begun, self.ending, theirs),
                                       daemon=True)
        self.process.start()
        theirs.close()  # So that its end is noticed.
        assert begun.wait(BEGIN_SECONDS_MAX), "the other queues are not watched"

    def problems(self, when):
        self.ending.set()
        durations, refusals = self.results.recv()
        self.process.join()
        every = sorted(d for some in durations.values() for d in some)
        print(
            f"     beside it, {when}: {len(every)} calls, median {every[len(every) // 2] * 1000:.1f} ms,"
            f" 99 % within {every[len(every) * 99 // 100] * 1000:.0f} ms, slowest {every[-1] * 1000:.0f} ms"
        )
        problems = [f"{when}, another queue was refused: {r} ({n} times)" for r, n in refusals.items()]
        return problems + slowness(f"{when}, a call to another queue", every, BESIDE_SECONDS_MAX)


class Crowd:
    """Sends messages of ever new groups, and counts the outcomes."""

    def __init__(self, address, fifo):
        self.swarm = Swarm(address, CONNECTIONS)
        self.fifo = fifo
        self.sent = 0
        self.accepted = 0
        self.refusals = collections.Counter()
        self.durations = []
        self.began = {}

    def send_next(self, member):
        entries = []
        for i in range(BATCH):
            self.sent += 1
            name = f"{self.sent:08x}-a-name-as-long-as-a-uuid-is"
            entry = {"Id": str(i), "MessageBody": "a small message", "MessageGroupId": name}
            if self.fifo:
                entry["MessageDeduplicationId"] = name
            entries.append(entry)
        self.began[member] = time.monotonic()
        queue = QUEUE + (".fifo" if self.fifo else "")
        self.swarm.send(member, call("SendMessageBatch", QueueUrl=queue, Entries=entries))

    def note(self, member, answer):
        self.durations.append(time.monotonic() - self.began[member])
        if answer.status == 200:
            self.accepted += len(json.loads(answer.body)["Successful"])
        else:
            self.refusals[f"{answer.status} {json.loads(answer.body).get('message')}"] += BATCH

    def send(self, groups, seconds):
        """False if they were not all answered in time."""
        for member in self.swarm.members:
            self.send_next(member)
        deadline = time.monotonic() + seconds
        under_way = len(self.swarm.members)
        while under_way and time.monotonic() < deadline:
            self.swarm.run(0.02)
            for member in self.swarm.members:
                while member.answers:
                    self.note(member, member.answers.pop(0))
                    if self.sent < groups:
                        self.send_next(member)
                    else:
                        under_way -= 1
        return under_way == 0


class PeakMemory:
    """The most that a process had while this was open."""

    def __init__(self, pid):
        self.pid, self.peak, self.ending = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ending.wait(0.05):
            self.peak = max(self.peak, resident_bytes(self.pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()


def make_queues(client, fifo):
    client.call("CreateQueue", QueueName=QUEUE + (".fifo" if fifo else ""),
                Attributes={"FifoQueue": "true"} if fifo else {})
    for queue in BESIDE:
        client.call("CreateQueue", QueueName=queue)


def drain_some(client, fifo, count):
    """Receives and deletes; returns how many, and how long each receive took."""
    queue, taken, durations = QUEUE + (".fifo" if fifo else ""), 0, []
    while taken < count:
        began = time.monotonic()
        messages = client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                               WaitTimeSeconds=0).get("Messages", [])
        durations.append(time.monotonic() - began)
        if not messages:
            break
        client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)
        ])
        taken += len(messages)
    return taken, durations


def crowd_problems(server, memory_mib, groups, fifo, seconds):
    """Everything but the restart: sends, memory, and the other queues meanwhile."""
    watching = Watch(server.find())
    crowd = Crowd(server.find(), fifo)
    began = time.monotonic()
    problems = []
    with PeakMemory(server.process.pid) as memory:
        if not crowd.send(groups, seconds):
            problems.append(f"after {seconds} s {crowd.sent} of {groups} sends were answered")
    took = time.monotonic() - began
    crowd.swarm.close()
    print(
        f"     {crowd.accepted} of {crowd.sent} groups were taken in {took:.0f} s, the slowest call"
        f" took {max(crowd.durations, default=0):.2f} s, at most {memory.peak / MIB:.0f} MiB under"
        f" {memory_mib} MiB"
    )
    for refusal, count in crowd.refusals.items():
        print(f"     {count} times: {refusal[:120]}")
        if not refusal.startswith("503 ") or "--memory" not in refusal:
            problems.append(f"refused with: {refusal}")
    problems += watching.problems("while they came")
    problems += slowness("a send", crowd.durations, ANSWER_SECONDS_MAX)
    allowed = memory_mib * MEMORY_FACTOR + UNCOUNTED_MIB
    if memory.peak / MIB > allowed:
        problems.append(f"{memory.peak / MIB:.0f} MiB are more than the {allowed:.0f} promised")
    return problems, crowd.accepted


def problems_of(server, memory_mib, groups, fifo, seconds):
    server.start()
    client = Client(server.find)
    make_queues(client, fifo)
    problems, accepted = crowd_problems(server, memory_mib, groups, fifo, seconds)
    began = time.monotonic()
    status = server.terminate(STOP_SECONDS_MAX + 5)
    stopped = time.monotonic() - began
    if status != 0 or stopped > STOP_SECONDS_MAX:
        problems.append(f"SIGTERM: exit status {status} after {stopped:.1f} s")
    client.close()
    server.spawn()
    began = time.monotonic()
    status = server.terminate(STOP_SECONDS_MAX)  # In the middle of its start.
    if status not in (0, -signal.SIGTERM):
        problems.append(f"SIGTERM while it starts: exit status {status}")
    print(f"     told to stop while it starts, it was gone after {time.monotonic() - began:.1f} s")
    server.start()
    after = resident_bytes(server.process.pid)
    print(
        f"     stopped in {stopped:.1f} s, ready again after {server.slowest_start:.1f} s"
        f" with {after / MIB:.0f} MiB"
    )
    watching = Watch(server.find())
    wanted = min(accepted, max(2_000, groups // 80))
    taken, durations = drain_some(client, fifo, wanted)
    problems += watching.problems("while they were drained after a restart")
    print(f"     {taken} drained, the slowest receive took {max(durations, default=0):.2f} s")
    if taken < wanted:
        problems.append(f"of {wanted} messages {taken} could be received")
    problems += slowness("a receive", durations, ANSWER_SECONDS_MAX)
    client.close()
    server.kill()
    return problems + server.died


def check(groups, fifo):
    def run_it(run):
        name = "groups" if fifo else "tenants"
        server = Server(run.binary, run.path(name), ["--memory", "64MiB", "--shards", "2"])
        return problems_of(server, 64, groups, fifo, 120)

    return run_it


CHECKS = [
    ("more FIFO groups than memory has room for stop nobody else", check(160_000, True)),
    ("more tenants than memory has room for stop nobody else", check(160_000, False)),
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", required=True, help="the stanchion to test")
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--memory", type=int, default=64, help="MiB")
    parser.add_argument("--tenants", action="store_true", help="of a standard queue, not FIFO")
    parser.add_argument("--seconds", type=float, default=1800)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="stanchion-groups-")
    server = Server(arguments.binary, os.path.join(directory, "data"),
                    ["--memory", f"{arguments.memory}MiB", "--shards", "2"])
    try:
        problems = problems_of(server, arguments.memory, arguments.groups, not arguments.tenants,
                               arguments.seconds)
    finally:
        kill_all()
    for problem in problems:
        print(f"FAIL {problem}")
    if problems:
        print(f"the data directory and the log are kept in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{int(not problems)} passed, {int(bool(problems))} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
