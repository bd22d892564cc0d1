"""A full disk on its own file system: draining it makes sends work again, without help."""

import base64
import contextlib
import json
import os
import random
import subprocess
import time

from directory_checks import mounted
from server import Server
from sqs import Client, Refused
from swarm import Swarm, call

QUEUE = "full"
DEAD = "dead"
KEEPER = "beside"
ARN = "arn:aws:sqs:us-east-1:000000000000:"
DISK_MIB = 320
# From the last call that frees space to the first accepted send, and for each send after it. A few
# seconds where nothing else runs; merging the remains of many groups takes the longest.
RECOVERY_SECONDS_MAX = 30
# This much must fit again once everything is gone.
SENT_AGAIN_MIB = 32
CONNECTIONS = 32
# Sends that may still succeed after the first refusals: space that is found at the last moment.
QUIET_SECONDS = 2.5


@contextlib.contextmanager
def small_disk(path, image):
    """A file system with room for little: ext4 in a file, or one in memory; yields its kind."""
    os.makedirs(path, exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(DISK_MIB << 20)
    made = (["mkfs.ext4", "-q", "-m", "0", image], ["mount", "-o", "loop", image, path])
    try:
        done = all(subprocess.run(c, capture_output=True, check=False).returncode == 0 for c in made)
    except OSError:
        done = False
    if done:
        try:
            yield "ext4"
        finally:
            subprocess.run(["umount", path], check=True)
            os.remove(image)
        return
    os.remove(image)
    with mounted(path, f"size={DISK_MIB}m") as in_memory:
        yield "tmpfs" if in_memory else None


class Filler:
    """Connections that send batches until the disk is full."""

    def __init__(self, address, body_size, groups=0):
        self.swarm = Swarm(address, CONNECTIONS)
        # Random, so that the data cannot be compressed.
        self.noise = base64.b64encode(random.randbytes(1 << 20)).decode()
        self.body_size = body_size
        self.groups = groups
        self.number = 0
        self.accepted = 0
        self.statuses = set()

    def send_next(self, member):
        entries = []
        for i in range(10):
            self.number += 1
            at = random.randrange(len(self.noise) - self.body_size)
            entry = {"Id": str(i), "MessageBody": self.noise[at : at + self.body_size]}
            if self.groups:
                entry["MessageGroupId"] = f"group-{random.randrange(self.groups)}"
            entries.append(entry)
        self.swarm.send(member, call("SendMessageBatch", QueueUrl=QUEUE, Entries=entries))

    def fill(self, seconds):
        """Waits until no send was accepted for a while; False if that does not happen."""
        for member in self.swarm.members:
            self.send_next(member)
        last = time.monotonic()
        deadline = last + seconds
        while time.monotonic() < deadline:
            self.swarm.run(0.05)
            for member in self.swarm.members:
                while member.answers:
                    answer = member.answers.pop(0)
                    self.statuses.add(answer.status)
                    if answer.status == 200:
                        self.accepted += len(json.loads(answer.body)["Successful"])
                        last = time.monotonic()
                    self.send_next(member)
            if time.monotonic() > last + QUIET_SECONDS:
                return True
        return False


def take(client, count, queue=QUEUE):
    answer = client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=count,
                         VisibilityTimeout=600)
    return answer.get("Messages", [])


def receive_and_delete_all(client, queue=QUEUE):
    taken = 0
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            messages = take(client, 10, queue=queue)
            if not messages:
                return taken
            client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)
            ])
            taken += len(messages)
        except Refused as refused:
            # The journal's last space is used up; a checkpoint frees some.
            if refused.status != 503:
                raise
            time.sleep(0.1)
    raise AssertionError(f"after {taken} messages the drain did not go on")


def drain_dead_letters(client):
    """All are received once, which is as often as they may be, and then both queues are drained."""
    received = []
    while messages := take(client, 10):
        received.append(messages)
    for messages in received:
        client.call("ChangeMessageVisibilityBatch", QueueUrl=QUEUE, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0}
            for i, m in enumerate(messages)])
    deadline, taken = time.monotonic() + 120, 0
    while time.monotonic() < deadline:
        for queue in (QUEUE, DEAD):
            taken += receive_and_delete_all(client, queue)
        if taken and not sum(left_in(client, queue) for queue in (QUEUE, DEAD)):
            return taken
        time.sleep(0.1)
    raise AssertionError(f"after {taken} messages the drain did not go on")


def left_in(client, queue):
    numbers = client.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=[
        "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed"])["Attributes"]
    return sum(map(int, numbers.values()))


def purge(client):
    client.call("PurgeQueue", QueueUrl=QUEUE)


def delete(client):
    client.call("DeleteQueue", QueueUrl=QUEUE)


def try_until(deadline, action):
    """Retries while it is refused; returns the last refusal if that does not end."""
    while True:
        try:
            action()
            return None
        except Refused as refused:
            if refused.status != 503:
                raise
            if time.monotonic() > deadline:
                return refused
        time.sleep(0.1)


def problems_of_sends(client, since):
    """One send is accepted soon, and then as many as there is room for."""
    noise = base64.b64encode(random.randbytes(75_000)).decode()

    def send():
        client.call("SendMessage", QueueUrl=KEEPER, MessageBody=noise)

    refused = try_until(since + RECOVERY_SECONDS_MAX, send)
    if refused:
        return [f"{RECOVERY_SECONDS_MAX} s after everything was gone: {refused}"]
    print(f"     sends work again {time.monotonic() - since:.1f} s after the last message was gone")
    refusals = 0
    for _ in range((SENT_AGAIN_MIB << 20) // len(noise)):
        before = time.monotonic()
        refused = try_until(before + RECOVERY_SECONDS_MAX, send)
        refusals += time.monotonic() > before + 0.1
        if refused:
            return [f"of {SENT_AGAIN_MIB} MiB sent again one is refused: {refused}"]
    return []


def what_takes_space(path):
    space = os.statvfs(path)
    lines = [f"{space.f_bavail * space.f_frsize >> 20} MiB are free"]
    for folder, _, names in os.walk(path):
        for name in names:
            size = os.stat(os.path.join(folder, name)).st_blocks * 512
            if size > 1 << 20:
                lines.append(f"{size >> 20} MiB {os.path.relpath(os.path.join(folder, name), path)}")
    return lines


def run_case(run, name, free, restart, body_size=20_000, groups=0, attributes=None):
    disk = run.path(f"disk-{name}")
    with small_disk(disk, run.path(f"{name}.img")) as kind:
        if kind is None:
            return None
        server = Server(run.binary, os.path.join(disk, "data"), ["--shards", "1"])
        server.log_path = run.path(f"disk-{name}.log")
        server.start()
        try:
            return case_problems(server, kind, free, restart, body_size, groups, attributes or {})
        finally:
            server.kill()


def case_problems(server, kind, free, restart, body_size, groups, attributes):
    client = Client(server.find)
    for queue in (DEAD, KEEPER):
        client.call("CreateQueue", QueueName=queue)
    client.call("CreateQueue", QueueName=QUEUE, Attributes=attributes)
    filler = Filler(server.find(), body_size, groups)
    problems = [] if filler.fill(300) else ["the disk did not become full"]
    print(f"     {kind}: {filler.accepted} messages of {body_size} bytes fit on {DISK_MIB} MiB")
    if not filler.statuses <= {200, 503}:
        problems.append(f"a full disk is answered with {filler.statuses}")
    filler.swarm.close()
    if restart:
        client.close()
        server.kill()
        server.start()
    taken = free(client)
    since = time.monotonic()
    if taken is not None and taken < filler.accepted:
        problems.append(f"of {filler.accepted} messages {taken} were received")
    problems += problems_of_sends(client, since)
    client.close()
    if problems:
        problems += what_takes_space(server.data)
    return problems + server.died


def case(name, free, restart, **shape):
    return lambda run: run_case(run, name, free, restart, **shape)


CHECKS = [
    ("a full disk that is drained takes sends again", case("drain", receive_and_delete_all, False)),
    ("a full disk that is drained after a restart takes sends again",
     case("drain-again", receive_and_delete_all, True)),
    ("a full disk takes sends again after a purge", case("purge", purge, False)),
    ("a full disk takes sends again after a restart and a purge", case("purge-again", purge, True)),
    ("a full disk takes sends again after its queue is deleted", case("delete", delete, True)),
    ("a full disk of messages that are all dead letters is drained",
     case("dead", drain_dead_letters, False, attributes={"RedrivePolicy": json.dumps({
         "deadLetterTargetArn": ARN + DEAD, "maxReceiveCount": 1})})),
    # What is left of thousands of groups is merged before its space is free.
    ("a full disk of small messages in groups is drained",
     case("groups", receive_and_delete_all, False, body_size=6_000, groups=5_000)),
]
