#!/usr/bin/env python3
"""Damages files of a store in every way that a disk or a person might, and repairs them.

    python3 tests/crash/repair_damage_test.py --binary build/release/stanchion [--seed N] [--cases N]

A directory with plain and FIFO queues, messages in flight, delayed and dead letters, has bytes of its
store flipped, zeroed, cut off, exchanged, or whole files removed. Then `repair` must say that it
cannot help, and leave everything as it is; or the server must start, with messages that were sent
and not deleted, none of them twice, and not fewer than it said. Clients come with receipts and
attempt ids from before: they may be refused, but not with a fault of the server's.
"""

import base64
import os
import random
import re
import shutil
import sys

import cases
from server import Server, run
from sqs import Client, Refused

QUEUES = ["plain", "ordered.fifo", "dead"]
ATTEMPT = "an-attempt"


def body(rng, i):
    return f"{i} {base64.b64encode(rng.randbytes(700)).decode()}"


class Original:
    """A data directory, and what clients know of it."""

    def __init__(self, binary, data, rng):
        self.data = data
        self.held = {queue: set() for queue in ("plain", "ordered.fifo")}
        self.receipts = []
        server = Server(binary, data, ["--shards", "1"])
        server.start()
        self.client = Client(server.find)
        self.make_queues()
        for part in range(3):
            self.send(rng, part)
            self.consume(part)
            if part < 2:
                status, _, said = run(binary, "backup", "--data", data, "--to", f"{data}.backup{part}")
                assert status == 0, said
        # Until nothing is delayed or in flight any more.
        self.client.call("ReceiveMessage", QueueUrl="nothing", WaitTimeSeconds=4)
        self.client.close()
        server.kill()
        os.remove(os.path.join(data, "control.sock"))

    def make_queues(self):
        create = self.client.call
        create("CreateQueue", QueueName="nothing")
        create("CreateQueue", QueueName="dead")
        create("CreateQueue", QueueName="plain", Attributes={
            "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead",'
                             '"maxReceiveCount":"1"}'})
        create("CreateQueue", QueueName="ordered.fifo", Attributes={"FifoQueue": "true"})

    def send(self, rng, part):
        for i in range(120):
            text = body(rng, f"{part}-{i}")
            more = {"DelaySeconds": 3} if i % 10 == 0 else {}
            self.client.call("SendMessage", QueueUrl="plain", MessageBody=text, **more)
            self.held["plain"].add(text)
            text = body(rng, f"{part}-{i}-fifo")
            self.client.call("SendMessage", QueueUrl="ordered.fifo", MessageBody=text,
                             MessageGroupId=str(i % 7), MessageDeduplicationId=f"{part}-{i}")
            self.held["ordered.fifo"].add(text)

    def consume(self, part):
        """Some are deleted, some stay in flight, some become dead letters."""
        for queue in ("plain", "ordered.fifo"):
            more = {"ReceiveRequestAttemptId": ATTEMPT} if queue.endswith(".fifo") and part == 1 else {}
            # Long enough that the receipts are good until all that follows is done.
            messages = self.client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                                        VisibilityTimeout=60, **more).get("Messages", [])
            for i, message in enumerate(messages):
                self.receipts.append((queue, message["ReceiptHandle"]))
                if i < 4:
                    self.client.call("DeleteMessage", QueueUrl=queue,
                                     ReceiptHandle=message["ReceiptHandle"])
                    self.held[queue].discard(message["Body"])
                else:
                    self.client.call("ChangeMessageVisibility", QueueUrl=queue,
                                     ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=2)


def store_files(data):
    folder = os.path.join(data, "shard-000", "store")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if os.path.isfile(os.path.join(folder, name)) and name != "LOCK"]


def damage(data, rng):
    """A description of the damage."""
    files = store_files(data)
    tables = [path for path in files if path.endswith(".sst")]
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        path = rng.choice(tables if rng.random() < 0.8 and tables else files)
        size = os.path.getsize(path)
        how = rng.choice(["flip", "flip", "zero", "cut", "noise", "remove", "exchange"])
        at = rng.randrange(max(size, 1))
        length = min(rng.choice([1, 512, 4096, 20_000]), size - at)
        with open(path, "r+b") as file:
            content = bytearray(file.read())
            if how == "flip" and size > 0:
                content[at] ^= 1 << rng.randrange(8)
            elif how == "zero":
                content[at:at + length] = bytes(length)
            elif how == "noise":
                content[at:at + length] = rng.randbytes(length)
            elif how == "cut":
                del content[at:]
            elif how == "exchange":
                with open(rng.choice(tables or files), "rb") as other:
                    content = bytearray(other.read())
            file.seek(0)
            file.truncate()
            file.write(content)
        if how == "remove":
            os.remove(path)
            files.remove(path)
            tables = [path for path in files if path.endswith(".sst")]
        done.append(f"{how} {os.path.basename(path)} at {at} for {length}")
    return "; ".join(done)


def fingerprint(data):
    found = {}
    for folder, _, names in os.walk(data):
        for name in names:
            if name != "LOCK":
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.join(folder, name)] = hash(file.read())
    return found


def is_fault(call, *arguments, **parameters):
    """Whether the call is answered with a server error."""
    try:
        call(*arguments, **parameters)
    except Refused as refused:
        return refused.status >= 500
    return False


def make_visible(client, original):
    """Calls of clients that know nothing about the damage; a problem or None."""
    for queue, receipt in original.receipts:
        if is_fault(client.call, "ChangeMessageVisibility", QueueUrl=queue, ReceiptHandle=receipt,
                    VisibilityTimeout=0):
            return "a receipt from before is answered with a fault"
    if is_fault(client.call, "ReceiveMessage", QueueUrl="ordered.fifo", MaxNumberOfMessages=10,
                VisibilityTimeout=0, ReceiveRequestAttemptId=ATTEMPT):
        return "an attempt from before is answered with a fault"
    return None


def drain(client, queue):
    bodies = []
    while True:
        messages = client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                               VisibilityTimeout=600, WaitTimeSeconds=2 if queue == "dead" else 0
                               ).get("Messages", [])
        if not messages:
            return bodies
        bodies += [message["Body"] for message in messages]
        client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)])


def look_at(binary, original, data, said):
    """A problem with what a server finds after a repair that said this, or None."""
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    try:
        problem = make_visible(client, original)
        if problem:
            return problem
        every = original.held["plain"] | original.held["ordered.fifo"]
        found = []
        for queue in QUEUES:
            found += drain_if_there(client, queue)
        for queue, receipt in original.receipts:
            if is_fault(client.call, "DeleteMessage", QueueUrl=queue, ReceiptHandle=receipt):
                return "a delete from before is answered with a fault"
        if len(found) != len(set(found)):
            return "messages came back twice"
        if not set(found) <= every:
            return "messages came back that had been deleted"
        numbers = [int(n) for n in re.findall(r"(\d+) are lost", said)]
        vague = re.search("at least|some may be|queues are lost|on their way", said)
        if not vague and len(every) - len(found) > sum(numbers):
            return f"{len(every) - len(found)} messages are missing, {sum(numbers)} were said to be"
        return None
    finally:
        client.close()
        server.kill()


def drain_if_there(client, queue):
    try:
        return drain(client, queue)
    except Refused as refused:
        if refused.status >= 500:
            raise
        return []  # The queue itself is lost.


def play(binary, original, directory, rng, case):
    data = os.path.join(directory, f"case-{case}")
    shutil.copytree(original.data, data)
    done = damage(data, rng)
    before = fingerprint(data)
    status, output, errors = run(binary, "repair", "--data", data, timeout=120)
    if status not in (0, 1) or not output + errors:
        return f"{done}: repair ended with {status}: {output}{errors}"
    if status == 1:
        if "backup" not in errors:
            return f"{done}: it does not say what to do: {errors}"
        if fingerprint(data) != before:
            return f"{done}: it could not help, and changed something: {errors}"
    else:
        problem = look_at(binary, original, data, output)
        if problem:
            return f"{done}: {problem}\n{output}"
    shutil.rmtree(data)
    return None


def main():
    options = cases.parser(__doc__, 12).parse_args()
    seed = cases.seed_of(options)
    print(f"seed {seed}: {options.cases} cases", flush=True)

    def play_all(directory, tally):
        original = Original(options.binary, os.path.join(directory, "original"), random.Random(seed))
        for case in range(options.cases):
            tally.note(f"case {case}", play(options.binary, original, directory,
                                            random.Random(f"{seed}/{case}"), case))

    return cases.play_in_scratch("damage", play_all)


if __name__ == "__main__":
    sys.exit(main())
