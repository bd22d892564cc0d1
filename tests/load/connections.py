"""Ten thousand connections: idle, waiting, and told to end. A check returns what is wrong."""

import collections
import time

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
BATCH = 10


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
        took = timed(client, "SendMessage", QueueUrl=queue_name(0), MessageBody="x")
        if took > CALL_SECONDS_MAX:
            problems.append(f"a send beside them took {took:.2f} s")
    server.kill()
    return problems + server.died


def park(swarm):
    """A long poll on every connection; returns how long it took to send all."""
    began = time.monotonic()
    for i, member in enumerate(swarm.members):
        swarm.send(
            member,
            call(
                "ReceiveMessage",
                QueueUrl=queue_name(i),
                WaitTimeSeconds=WAIT_SECONDS,
                VisibilityTimeout=600,
                AttributeNames=["ApproximateReceiveCount"],
            ),
        )
    swarm.run_until(lambda: not any(member.output for member in swarm.members))
    return time.monotonic() - began


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
        took = park(swarm)
        problems += measure(run, server, f"{run.connections} parked polls")
        if early := sum(bool(member.answers) for member in swarm.members):
            problems.append(f"{early} polls of empty queues were answered early")
        began = time.monotonic()
        bodies = send_to_all(client, run.connections)
        swarm.wait_for_answers(swarm.members, [0] * len(swarm.members), WAIT_SECONDS)
        woken = time.monotonic() - began
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
            call("ReceiveMessage", QueueUrl=queue_name(0), WaitTimeSeconds=wait), wait + 10
        )
        took = time.monotonic() - began
        if not wait - 0.1 <= took <= wait + 5:
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
