"""Clients that are slow, vanish or come in too great a number; a full disk; a kill under load."""

import base64
import collections
import os
import random
import resource
import time

from directory_checks import mounted
from durations import slowness
from process import MIB, cpu_share, open_connections, resident_bytes, wait_for_open_connections
from server import Server
from sqs import Client, Refused
from swarm import Swarm, call, http

QUEUE = "load"
SLOW_CLIENTS = 500
SLOW_LIMIT_SECONDS = 2
CALL_SECONDS_MAX = 1.0
# For what ends by itself, on a machine that is busy with other things.
PATIENCE_SECONDS = 60
VANISHING = 1000
POLL_SECONDS = 20
# Bytes that the server lets wait for all clients together.
OUTPUTS_MAX = 512 * MIB
DISK_SIZE = "200m"


def start(run, name, *options):
    server = Server(run.binary, run.path(name), options)
    server.start()
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    return server, client


def receive(client, **parameters):
    answer = client.call(
        "ReceiveMessage",
        **{"QueueUrl": QUEUE, "AttributeNames": ["ApproximateReceiveCount"], **parameters},
    )
    return answer.get("Messages", [])


def end(server):
    server.kill()
    return server.died


def trickle(swarm, plan, client, began):
    """Sends each member's bytes one at a time, and meanwhile serves `client`.

    Returns when each member was cut off, by its number, and how long the client's calls took.
    """
    cut, durations, sent = {}, [], 0
    while time.monotonic() < began + PATIENCE_SECONDS and len(cut) < len(plan):
        for member, data in plan:
            if sent < len(data):
                swarm.send(member, data[sent : sent + 1])
        sent += 1
        swarm.run(0.05)
        for i, (member, _) in enumerate(plan):
            if i not in cut and (member.ended or member.answers):
                cut[i] = time.monotonic() - began
        before = time.monotonic()
        client.call("SendMessage", QueueUrl=QUEUE, MessageBody="beside them")
        durations.append(time.monotonic() - before)
    return cut, durations


def check_slow_requests(run):
    limit = f"{SLOW_LIMIT_SECONDS}s"
    server, client = start(
        run, "slow", "--limits-header-timeout", limit, "--limits-body-timeout", limit
    )
    request = call("SendMessage", QueueUrl=QUEUE, MessageBody="never whole " + "x" * 2000)
    head, _, body = request.partition(b"\r\n\r\n")
    problems = []
    with Swarm(server.find(), SLOW_CLIENTS) as swarm:
        slow_heads = [(member, head + b"x" * 10_000) for member in swarm.members[::2]]
        slow_bodies = [(member, body) for member in swarm.members[1::2]]
        began = time.monotonic()
        swarm.send_all(head + b"\r\n\r\n", [member for member, _ in slow_bodies])
        plan = slow_heads + slow_bodies
        cut, durations = trickle(swarm, plan, client, began)
        if len(cut) < len(plan):
            problems.append(f"{len(plan) - len(cut)} of {len(plan)} slow clients were not cut off")
        if cut and min(cut.values()) < SLOW_LIMIT_SECONDS - 0.5:
            problems.append(f"a slow client was cut off after {min(cut.values()):.1f} s")
        outcomes = collections.Counter(m.answers[0].status if m.answers else None for m, _ in plan)
        if set(outcomes) != {408}:
            problems.append(f"slow clients were answered with {outcomes}")
        problems += slowness("a send beside them", durations, CALL_SECONDS_MAX)
    print(f"     slowest call beside {SLOW_CLIENTS} slow clients: {max(durations) * 1000:.0f} ms")
    return problems + end(server)


def check_slow_readers(run):
    """Unread answers take bounded memory and bounded time."""
    server, client = start(run, "readers", "--limits-write-timeout", f"{SLOW_LIMIT_SECONDS}s")
    for _ in range(10):
        client.call("SendMessage", QueueUrl=QUEUE, MessageBody="x" * 100_000)
    problems = []
    files = open_connections(server.process.pid)
    with Swarm(server.find(), 50) as swarm:
        ask = call(
            "ReceiveMessage", QueueUrl=QUEUE, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        for member in swarm.members:
            swarm.poll.modify(member.socket, 0)  # Nothing is read any more.
            member.socket.send(ask * 20)
        if not wait_for_open_connections(server.process.pid, files, SLOW_LIMIT_SECONDS + 20):
            left = open_connections(server.process.pid) - files
            problems.append(f"{left} connections that do not read are still there")
    memory = resident_bytes(server.process.pid)
    print(f"     after 50 clients that asked for 1 GB and read nothing: {memory / MIB:.0f} MiB")
    if memory > OUTPUTS_MAX * 1.3:
        problems.append(f"the server has {memory / MIB:.0f} MiB")
    if not receive(client, VisibilityTimeout=0):
        problems.append("the messages are gone")
    return problems + end(server)


def check_vanishing_requests(run):
    """Clients that disconnect in the middle of a request: it is not executed, and nothing stays."""
    server, client = start(run, "vanish")
    files = open_connections(server.process.pid)
    request = call("SendMessage", QueueUrl=QUEUE, MessageBody="never whole " + "x" * 500)
    chance = random.Random(1)
    with Swarm(server.find(), VANISHING) as swarm:
        for member in list(swarm.members):
            swarm.send(member, request[: chance.randrange(len(request))])
        for member in list(swarm.members):
            swarm.leave(member, rudely=chance.random() < 0.5)
        problems = []
        if not wait_for_open_connections(server.process.pid, files, 20):
            problems.append(f"{open_connections(server.process.pid) - files} connections are still open")
    if messages := receive(client):
        problems.append(f"half a request was taken for a whole one: {messages}")
    return problems + end(server)


def poll_all(swarm):
    swarm.send_all(
        call("ReceiveMessage", QueueUrl=QUEUE, WaitTimeSeconds=POLL_SECONDS, VisibilityTimeout=1)
    )
    swarm.run_until(lambda: not any(member.output for member in swarm.members))


def check_vanished_polls(run):
    """Pollers that left before the message came do not get it: one that is still there does."""
    server, client = start(run, "polls")
    files = open_connections(server.process.pid)
    problems = []
    with Swarm(server.find(), VANISHING) as swarm:
        poll_all(swarm)
        for i, member in enumerate(list(swarm.members)):
            swarm.leave(member, rudely=i % 2 == 0)
        # Long before their polls end by themselves.
        if not wait_for_open_connections(server.process.pid, files, POLL_SECONDS / 2):
            problems.append(f"{open_connections(server.process.pid) - files} connections are still open")
        survivor = swarm.grow(1)[0]
        poll_all(swarm)
        sender = Client(server.find)
        sender.call("SendMessage", QueueUrl=QUEUE, MessageBody="for the one who waits")
        swarm.wait_for_answers([survivor], [0], 10)
        messages = survivor.answers[0].messages() if survivor.answers else []
        if [message["Body"] for message in messages] != ["for the one who waits"]:
            problems.append(f"the one who waits got {messages}")
        later = receive(client, WaitTimeSeconds=5)
        if [m["Attributes"]["ApproximateReceiveCount"] for m in later] != ["2"]:
            problems.append(f"somebody else received it as well: {later}")
    return problems + end(server)


def check_polls_that_race(run):
    """Pollers that leave while messages come: undelivered messages become visible again in time."""
    server, client = start(run, "race")
    chance = random.Random(2)
    sent, received = [], []
    with Swarm(server.find(), VANISHING) as swarm:
        poll_all(swarm)
        for i, member in enumerate(list(swarm.members)):
            if i % 2 == 0:
                swarm.leave(member, rudely=chance.random() < 0.5)
            if i % 4 == 0:
                sent.append(f"message {i}")
                client.call("SendMessage", QueueUrl=QUEUE, MessageBody=sent[-1])
        swarm.run_until(lambda: False, 1)
        for member in swarm.members:
            received += [m["Body"] for answer in member.answers for m in answer.messages()]
    deadline = time.monotonic() + 20
    while not set(sent) <= set(received) and time.monotonic() < deadline:
        received += [
            message["Body"]
            for message in receive(client, WaitTimeSeconds=1, MaxNumberOfMessages=10)
        ]
    missing = set(sent) - set(received)
    return [f"{len(missing)} of {len(sent)} messages are lost"] * bool(missing) + end(server)


def check_too_many(run):
    limit = 200
    server, client = start(run, "limit", "--limits-connections", str(limit))
    problems = []
    ask = call("GetQueueUrl", QueueName=QUEUE)
    with Swarm(server.find(), limit + 100) as swarm:
        answers = swarm.ask_all(ask, 10)
        outcomes = collections.Counter(answer.status if answer else None for answer in answers)
        # The other client has one connection.
        if outcomes[200] != limit - 1 or outcomes[503] + outcomes[None] != 101:
            problems.append(f"with a limit of {limit} connections: {outcomes}")
        client.call("GetQueueUrl", QueueName=QUEUE)
        files = open_connections(server.process.pid)
    wait_for_open_connections(server.process.pid, files - limit + 10, 10)
    with Swarm(server.find(), 10) as swarm:
        if any(answer is None or answer.status != 200 for answer in swarm.ask_all(ask, 10)):
            problems.append("new connections are refused after the others left")
    return problems + end(server)


def check_no_more_files(run):
    """A limit of open files below that of connections: nothing spins, and it passes by itself."""
    files_max = 150
    server, client = start(run, "files")
    pid = server.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files_max, files_max))
    problems = []
    with Swarm(server.find(), files_max * 2):
        share = cpu_share(pid, 1)
        if share > 0.1:
            problems.append(f"out of files, it takes {share * 100:.0f} % of a CPU")
        client.call("GetQueueUrl", QueueName=QUEUE)
    with Swarm(server.find(), 10) as swarm:
        answers = swarm.ask_all(call("GetQueueUrl", QueueName=QUEUE), 20)
        if any(answer is None or answer.status != 200 for answer in answers):
            problems.append("new connections are not served after the others left")
    return problems + end(server)


def check_coming_and_going(run):
    """Short-lived connections leave no memory behind."""
    server, client = start(run, "churn")
    files = open_connections(server.process.pid)
    sizes, problems = [], []
    for _ in range(4):
        for _ in range(5):
            with Swarm(server.find(), 500) as swarm:
                swarm.ask_all(call("GetQueueUrl", QueueName=QUEUE))
            # With two swarms at once there would be more memory in use at a time.
            if not wait_for_open_connections(server.process.pid, files, PATIENCE_SECONDS):
                problems.append("connections that were closed are still open")
        sizes.append(resident_bytes(server.process.pid))
    print(f"     after each 2,500 connections: {', '.join(f'{s / MIB:.1f}' for s in sizes)} MiB")
    grown = sizes[-1] - sizes[0]
    client.close()
    if grown > 2 * MIB:
        problems.append(f"it has grown by {grown} bytes")
    return problems + end(server)


def check_large_bodies(run):
    """Half of a large body on every connection: memory is what was sent, and is freed again."""
    server, client = start(run, "bodies", "--limits-body-timeout", f"{SLOW_LIMIT_SECONDS}s")
    half = http(b"x" * (1 << 20), "X-Amz-Target: AmazonSQS.SendMessage")[: 1 << 19]
    files = open_connections(server.process.pid)
    with Swarm(server.find(), 200) as swarm:
        swarm.send_all(half)
        swarm.run_until(lambda: not any(member.output for member in swarm.members), 20)
        during = resident_bytes(server.process.pid)
        client.call("SendMessage", QueueUrl=QUEUE, MessageBody="beside them")
    problems = []
    if not wait_for_open_connections(server.process.pid, files, 20):
        problems.append("connections are still open")
    after = resident_bytes(server.process.pid)
    print(f"     200 half bodies of 512 KiB: {during / MIB:.0f} MiB, then {after / MIB:.0f} MiB")
    if during > 400 * MIB:
        problems.append(f"half bodies take {during / MIB:.0f} MiB")
    if not receive(client):
        problems.append("a send beside them did not arrive")
    return problems + end(server)


class Producers:
    """Connections that send one message after the other, and what was acknowledged to them."""

    def __init__(self, address, count, size):
        self.swarm = Swarm(address, count)
        self.size = size
        self.sent = [0] * count
        self.acknowledged = []
        self.refusals = collections.Counter()
        self.bodies = {}

    def send_next(self, i):
        self.sent[i] += 1
        # Random, so that the data cannot be compressed on a disk that is to be filled.
        noise = base64.b64encode(random.randbytes(self.size)).decode()
        body = f"{i}/{self.sent[i]} {noise}"[: self.size]
        self.bodies[i] = body
        data = call("SendMessage", QueueUrl=QUEUE, MessageBody=body)
        self.swarm.send(self.swarm.members[i], data)

    def run(self, seconds, until=lambda: False):
        for i in range(len(self.sent)):
            self.send_next(i)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            self.swarm.run(0.1)
            self.note_answers(and_go_on=True)

    def note_answers(self, and_go_on):
        for i, member in enumerate(self.swarm.members):
            while member.answers:
                answer = member.answers.pop(0)
                if answer.status == 200:
                    self.acknowledged.append(self.bodies[i])
                else:
                    self.refusals[answer.status] += 1
                if and_go_on:
                    self.send_next(i)

    def finish(self, seconds=10):
        """Reads what the server still answered before it ended."""
        self.swarm.run_until(lambda: not self.swarm.by_fd, seconds)
        self.note_answers(and_go_on=False)
        self.swarm.close()


def drain(client):
    """Receives and deletes all messages; returns their bodies."""
    bodies = []
    while messages := receive(client, MaxNumberOfMessages=10):
        client.call("DeleteMessageBatch", QueueUrl=QUEUE, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)
        ])
        bodies += [message["Body"] for message in messages]
    return bodies


def loss(producers, client, what):
    """Whether an acknowledged message is missing. Those in doubt may be."""
    found = drain(client)
    missing = set(producers.acknowledged) - set(found)
    print(f"     {what}: {len(producers.acknowledged)} sends acknowledged, {len(found)} found")
    problems = []
    if not producers.acknowledged:
        problems.append("nothing was acknowledged at all")
    if missing:
        problems.append(f"{len(missing)} acknowledged messages are lost")
    if len(found) != len(set(found)):
        problems.append("messages came twice")
    return problems


def check_stop_under_load(run, name, stop):
    server, client = start(run, name)
    producers = Producers(server.find(), 200, 300)
    producers.run(PATIENCE_SECONDS, until=lambda: len(producers.acknowledged) > 10_000)
    problems = stop(server)
    producers.finish()
    client.close()
    server.start()
    return problems + loss(producers, Client(server.find), name) + end(server)


def check_kill(run):
    def kill(server):
        server.kill()
        return []

    return check_stop_under_load(run, "SIGKILL", kill)


def check_terminate(run):
    def terminate(server):
        status = server.terminate(15)
        return [] if status == 0 else [f"the exit status is {status}: {server.log_tail()}"]

    return check_stop_under_load(run, "SIGTERM", terminate)


def check_full_disk(run):
    disk = run.path("small-disk")
    with mounted(disk, f"size={DISK_SIZE}") as done:
        if not done:
            return None
        server = Server(run.binary, os.path.join(disk, "data"), ["--shards", "1"])
        server.log_path = run.path("small-disk.log")
        server.start()
        try:
            return full_disk_problems(server)
        finally:
            server.kill()


def full_disk_problems(server):
    client = Client(server.find)
    client.call("CreateQueue", QueueName=QUEUE)
    producers = Producers(server.find(), 100, 20_000)
    producers.run(2 * PATIENCE_SECONDS, until=lambda: producers.refusals.total() > 1000)
    problems = []
    if set(producers.refusals) != {503}:
        problems.append(f"a full disk is answered with {producers.refusals}")
    try:
        receive(client, VisibilityTimeout=0)
    except Refused as refused:
        problems.append(f"a receive on a full disk is refused: {refused}")
    server.kill()
    producers.finish()
    client.close()
    server.start()
    return problems + loss(producers, Client(server.find), "full disk") + server.died


CHECKS = [
    ("slow requests are cut off and disturb nobody", check_slow_requests),
    ("clients that do not read are cut off", check_slow_readers),
    ("clients that vanish in the middle of a request leave nothing", check_vanishing_requests),
    ("messages do not go to pollers that have left", check_vanished_polls),
    ("messages that came while pollers left are not lost", check_polls_that_race),
    ("too many connections are refused, and welcome later", check_too_many),
    ("without files for more connections nothing spins", check_no_more_files),
    ("connections that come and go leave no memory behind", check_coming_and_going),
    ("half bodies take no more memory than was sent", check_large_bodies),
    ("SIGKILL under load loses nothing that was acknowledged", check_kill),
    ("SIGTERM under load loses nothing that was acknowledged", check_terminate),
    ("a full disk under load loses nothing that was acknowledged", check_full_disk),
]
