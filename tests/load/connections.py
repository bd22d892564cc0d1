"""Ten thousand connections: idle, waiting, and told to end. A check returns what is wrong."""

import collections
import time

from durations import slowness
from process import MIB, cpu_share, resident_bytes
from server import Server
from sqs import Client
from swarm import Swarm, call

# What the design requires.
MEMORY_MAX = 300 * MIB
IDLE_CPU_MAX = 0.02
# What other clients may notice of this load; generous, because the machine is shared.
CALL_SECONDS_MAX = 1.0
STOP_SECONDS_MAX = 10

QUEUES = 100
WAIT_SECONDS = 20
# For what ends by itself, on a machine that is busy with other things.
PATIENCE_SECONDS = 120
# Much less than a poll would take that nobody ends.
TIMEOUT_SLACK_SECONDS = 30
BATCH = 10
SENDS_BESIDE = 10


def queue_name(i):
    return f"load-{i % QUEUES}"


def prepare(server):
    client = Client(server.find)
    for i in range(QUEUES):
        client.call("CreateQueue", QueueName=queue_name(i))
    return client


def timed(client, action, **parameters):
    began = time.monotonic()
    client.call(action, **parameters)
    return time.monotonic() - began


def measure(run, server, what):
    """Memory and CPU of an idle server: prints both and returns the problems."""
    share = cpu_share(server.process.pid, run.idle_seconds)
    if share > IDLE_CPU_MAX:
        # A minute may have ended meanwhile, whose figures are written; whoever spins does so again.
        share = min(share, cpu_share(server.process.pid, run.idle_seconds))
    memory = resident_bytes(server.process.pid)
    print(f"     {what}: {memory / MIB:.0f} MiB, {share * 100:.2f} % of a CPU")
    problems = []
    if memory > MEMORY_MAX:
        problems.append(f"{what} take {memory / MIB:.0f} MiB")
    if share > IDLE_CPU_MAX:
        problems.append(f"{what} take {share * 100:.1f} % of a CPU")
    return problems


def check_idle(run):
    server = Server(run.binary, run.path("idle"))
    server.start()
    client = prepare(server)
    problems = []
    with Swarm(server.find(), run.connections) as swarm:
        ask = call("GetQueueUrl", QueueName=queue_name(0))
        for word in ("first", "second"):
            answers = swarm.ask_all(ask)
            bad = sum(answer is None or answer.status != 200 for answer in answers)
            if bad:
                problems.append(f"{bad} of {len(answers)} {word} requests were not answered")
            problems += measure(run, server, f"{run.connections} idle connections")
        durations = [timed(client, "SendMessage", QueueUrl=queue_name(0), MessageBody="x")
                     for _ in range(SENDS_BESIDE)]
        problems += slowness("a send beside them", durations, CALL_SECONDS_MAX)
    server.kill()
    return problems + server.died


class Polls:
    """A long poll on every connection, which is sent again when its time was over."""

    def __init__(self, swarm):
        self.swarm = swarm
        self.asked = [0.0] * len(swarm.members)
        self.early = 0

    def send(self, i):
        self.asked[i] = time.monotonic()
        self.swarm.send(
            self.swarm.members[i],
            call(
                "ReceiveMessage",
                QueueUrl=queue_name(i),
                WaitTimeSeconds=WAIT_SECONDS,
                VisibilityTimeout=600,
                AttributeNames=["ApproximateReceiveCount"],
            ),
        )

    def park(self):
        """Sends all; returns how long that took."""
        began = time.monotonic()
        for i in range(len(self.asked)):
            self.send(i)
        self.swarm.run_until(lambda: not any(member.output for member in self.swarm.members))
        return time.monotonic() - began

    def are_all_parked(self):
        return time.monotonic() < min(self.asked) + WAIT_SECONDS

    def renew(self, seconds):
        """Waits so long for answers and sends polls again that got nothing; whether there was
        an answer for each, and it was a message."""
        waiting = [m for m in self.swarm.members if not m.answers and not m.ended]
        answered = self.swarm.wait_for_answers(waiting, [0] * len(waiting), seconds)
        now = time.monotonic()
        for i, member in enumerate(self.swarm.members):
            if member.answers and member.answers[0].body == b"{}":
                self.early += now < self.asked[i] + WAIT_SECONDS - 0.1
                member.answers.pop(0)
                self.send(i)
                answered = False
        return answered

    def wait_for_messages(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.renew(1) and time.monotonic() < deadline:
            pass


def send_to_all(client, count):
    """One message for each of `count` polls, to the queue that it waits for; their bodies."""
    bodies = []
    for queue in range(QUEUES):
        mine = [f"{queue}/{i}" for i in range(queue, count, QUEUES)]
        for start in range(0, len(mine), BATCH):
            batch = mine[start : start + BATCH]
            client.call(
                "SendMessageBatch",
                QueueUrl=queue_name(queue),
                Entries=[{"Id": str(i), "MessageBody": body} for i, body in enumerate(batch)],
            )
        bodies += mine
    return bodies


def problems_with_answers(swarm, bodies):
    """Every poll got one message, and every message came to one poll."""
    polls = collections.Counter()
    received = collections.Counter()
    for member in swarm.members:
        if len(member.answers) != 1:
            polls["broken off" if member.ended else "without an answer"] += 1
            continue
        messages = member.answers[0].messages()
        polls[f"{member.answers[0].status} with {len(messages)} messages"] += 1
        received.update(message["Body"] for message in messages)
        if any(m["Attributes"]["ApproximateReceiveCount"] != "1" for m in messages):
            polls["a message that was received before"] += 1
    problems = []
    if set(polls) != {"200 with 1 messages"}:
        problems.append(f"polls ended in these ways: {dict(polls)}")
    if received != collections.Counter(bodies):
        problems.append(f"{len(received)} messages of {len(bodies)} came")
    return problems


def check_parked(run):
    server = Server(run.binary, run.path("parked"))
    server.start()
    client = prepare(server)
    problems = []
    with Swarm(server.find(), run.connections) as swarm:
        polls = Polls(swarm)
        took = polls.park()
        found = measure(run, server, f"{run.connections} parked polls")
        if not polls.are_all_parked():
            # Some had ended meanwhile, which costs more than to wait.
            polls.renew(PATIENCE_SECONDS)
            found = measure(run, server, f"{run.connections} parked polls")
        problems += found
        polls.renew(0)
        began = time.monotonic()
        bodies = send_to_all(client, run.connections)
        polls.wait_for_messages()
        woken = time.monotonic() - began
        if polls.early:
            problems.append(f"{polls.early} polls of empty queues were answered early")
        print(f"     {len(bodies)} polls sent in {took:.1f} s, woken one by one in {woken:.1f} s")
        problems += problems_with_answers(swarm, bodies)
    server.kill()
    return problems + server.died


def check_timeout(run):
    """Polls that get no message are answered when their time is over, not earlier."""
    wait = 2
    server = Server(run.binary, run.path("timeout"))
    server.start()
    prepare(server)
    problems = []
    with Swarm(server.find(), run.connections // 10) as swarm:
        began = time.monotonic()
        answers = swarm.ask_all(
            call("ReceiveMessage", QueueUrl=queue_name(0), WaitTimeSeconds=wait), PATIENCE_SECONDS
        )
        took = time.monotonic() - began
        if not wait - 0.1 <= took <= wait + TIMEOUT_SLACK_SECONDS:
            problems.append(f"polls of {wait} s ended after {took:.1f} s")
        outcomes = collections.Counter(a.body if a else None for a in answers)
        if set(outcomes) != {b"{}"}:
            problems.append(f"polls of an empty queue ended with {outcomes}")
    server.kill()
    return problems + server.died


def check_sigterm(run):
    server = Server(run.binary, run.path("sigterm"))
    server.start()
    client = prepare(server)
    client.close()
    problems = []
    with Swarm(server.find(), run.connections) as swarm:
        idle = run.connections // 10
        polls = swarm.members[idle:]
        began = time.monotonic()
        swarm.send_all(
            call("ReceiveMessage", QueueUrl=queue_name(1), WaitTimeSeconds=WAIT_SECONDS), polls
        )
        # Checked at once: bytes still on their way into the server count as well.
        server.process.terminate()
        swarm.run_until(lambda: not swarm.by_fd, STOP_SECONDS_MAX)
        status = server.terminate(STOP_SECONDS_MAX)
        took = time.monotonic() - began
        outcomes = collections.Counter(
            member.answers[0].body if member.answers else member.refused for member in polls
        )
        print(f"     SIGTERM with {len(polls)} polls and {idle} idle connections: {took:.1f} s")
        if set(outcomes) != {b"{}"}:
            problems.append(f"polls ended with {outcomes}")
        if status != 0:
            problems.append(f"the exit status is {status}: {server.log_tail()}")
    return problems


CHECKS = [
    ("idle connections cost little and all of them are served", check_idle),
    ("parked polls cost little and each gets its message", check_parked),
    ("parked polls end in time", check_timeout),
    ("SIGTERM answers all parked polls", check_sigterm),
]
