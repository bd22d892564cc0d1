"""Large messages on their way from queue to queue, in little memory.

    transit.py --binary build/release/stanchion [--messages 700] [--memory 64] [--data DIR]

A dead-letter queue with many messages of a megabyte is moved back by a move task, and becomes dead
letters once more, while the server is killed and started again. Nothing may be lost or doubled, and
the process may never take more memory than its budget explains. The check of load_test.py is the
same with fewer messages. With --data, the move goes on that another server has begun in DIR.
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from process import MIB, peak_bytes
from server import Server, kill_all
from sqs import Client, Doubt, NotSent, Refused

BODY_BYTES = 1_000_000
WORK, DEAD = "work", "dead"
ARN = "arn:aws:sqs:us-east-1:000000000000:"
# Messages may take twice the budget until sends wait, and a checkpoint under way holds some of them
# a little longer; the rest does not depend on the budget (operations.md, Memory).
MEMORY_FACTOR = 2.0
UNCOUNTED_MIB = 160
# No progress for so long is none.
PATIENCE_SECONDS = 120


class Peaks:
    """The most memory that any process of the server has taken."""

    def __init__(self):
        self.highest = 0

    def look(self, server):
        if server.process is not None and server.process.poll() is None:
            self.highest = max(self.highest, peak_bytes(server.process.pid))


def insist(client, action, **parameters):
    """Calls until it is answered: a send may be told to wait until memory has room."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return client.call(action, timeout=30, **parameters)
        except (Refused, Doubt, NotSent):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def fill(client, messages):
    insist(client, "CreateQueue", QueueName=DEAD)
    insist(client, "CreateQueue", QueueName=WORK, Attributes={
        "RedrivePolicy": f'{{"maxReceiveCount":1,"deadLetterTargetArn":"{ARN}{DEAD}"}}'})
    for number in range(messages):
        body = f"{number:06}".ljust(BODY_BYTES, "x")
        insist(client, "SendMessage", QueueUrl=DEAD, MessageBody=body)


def visible(client, queue):
    found = insist(client, "GetQueueAttributes", QueueUrl=queue,
                   AttributeNames=["ApproximateNumberOfMessages"])
    return int(found["Attributes"]["ApproximateNumberOfMessages"])


def wait_until(client, server, peaks, count, problems, kills_at=()):
    """Until count() says that it is done; kills the server when it has reached these numbers."""
    kills = list(kills_at)
    best, since = -1, time.monotonic()
    while True:
        peaks.look(server)
        if server.process.poll() is not None:
            problems.append(f"the server is gone: {server.log_tail()}")
            return False
        now, done = count()
        if done:
            return True
        if kills and now >= kills[0]:
            kills.pop(0)
            server.kill()
            client.close()
            server.start()
        if now > best:
            best, since = now, time.monotonic()
        if time.monotonic() > since + PATIENCE_SECONDS:
            problems.append(f"nothing moves any more after {now} messages")
            return False
        time.sleep(0.02)


def moved(client):
    task = insist(client, "ListMessageMoveTasks", SourceArn=ARN + DEAD)["Results"][0]
    return task.get("ApproximateNumberOfMessagesMoved", 0), task["Status"] != "RUNNING"


def drain(client, server, peaks, messages):
    """The numbers of all messages in WORK, and how often each was there."""
    found = {}
    idle = 0
    while len(found) < messages and idle < 10:
        peaks.look(server)
        got = insist(client, "ReceiveMessage", QueueUrl=WORK, MaxNumberOfMessages=10,
                     WaitTimeSeconds=1).get("Messages", [])
        idle = 0 if got else idle + 1
        for message in got:
            number = int(message["Body"][:6])
            found[number] = found.get(number, 0) + 1
            insist(client, "DeleteMessage", QueueUrl=WORK, ReceiptHandle=message["ReceiptHandle"])
    return found


def move_back(client, server, peaks, messages, problems, resume=False):
    if not resume:
        insist(client, "StartMessageMoveTask", SourceArn=ARN + DEAD, DestinationArn=ARN + WORK)
    kills = [messages // 5, messages // 2]
    if not wait_until(client, server, peaks, lambda: moved(client), problems, kills):
        return
    task = insist(client, "ListMessageMoveTasks", SourceArn=ARN + DEAD)["Results"][0]
    if task["Status"] != "COMPLETED":
        problems.append(f"the task is {task}")


def die_again(client, server, peaks, messages, problems):
    """Every message is received once, is visible again at once, and is a dead letter then."""

    def count():
        insist(client, "ReceiveMessage", QueueUrl=WORK, MaxNumberOfMessages=10, VisibilityTimeout=0)
        dead = visible(client, DEAD)
        return dead, dead == messages

    wait_until(client, server, peaks, count, problems, [messages // 3])


def problems_of(server, memory_mib, messages, resume=False):
    problems, peaks = [], Peaks()
    server.start()
    client = Client(server.find)
    began = time.monotonic()
    if not resume:
        fill(client, messages)
        peaks.look(server)
        server.kill()
        client.close()
        server.start()
    filled = time.monotonic()
    move_back(client, server, peaks, messages, problems, resume)
    print(f"     {messages} messages of {BODY_BYTES} bytes: filled in {filled - began:.0f} s, moved in"
          f" {time.monotonic() - filled:.0f} s", flush=True)
    if not resume and not problems:
        die_again(client, server, peaks, messages, problems)
        if not problems:
            move_back(client, server, peaks, messages, problems)
    if not problems:
        found = drain(client, server, peaks, messages)
        lost = [number for number in range(messages) if number not in found]
        doubled = [number for number, times in found.items() if times > 1]
        if lost or doubled:
            problems.append(f"lost {len(lost)}: {lost[:5]}, doubled {len(doubled)}: {doubled[:5]}")
    peaks.look(server)
    client.close()
    server.kill()
    allowed = memory_mib * MEMORY_FACTOR + UNCOUNTED_MIB
    print(f"     at most {peaks.highest / MIB:.0f} MiB under {memory_mib} MiB, with"
          f" {server.starts} starts")
    if peaks.highest / MIB > allowed:
        problems.append(f"{peaks.highest / MIB:.0f} MiB are more than {allowed:.0f}")
    return problems + server.died


def options(memory_mib):
    # Connections have memory of their own; here there is one.
    return ["--memory", f"{memory_mib}MiB", "--shards", "2"]


def check(messages):
    def run_it(run):
        return problems_of(Server(run.binary, run.path("transit"), options(64)), 64, messages)

    return run_it


CHECKS = [("dead letters of a megabyte are moved in little memory", check(300))]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", required=True, help="the stanchion to test")
    parser.add_argument("--messages", type=int, default=700)
    parser.add_argument("--memory", type=int, default=64, help="MiB")
    parser.add_argument("--data", help="of a server with a move task under way")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="stanchion-transit-")
    data = arguments.data or os.path.join(directory, "data")
    server = Server(arguments.binary, data, options(arguments.memory))
    try:
        problems = problems_of(server, arguments.memory, arguments.messages,
                               arguments.data is not None)
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
