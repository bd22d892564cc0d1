#!/usr/bin/env python3
"""Sets the wall clock back and forward under the real program and looks whether time goes on.

    clock_test.py --binary build/release/stanchion [NAME...]

A library that is preloaded into the server shifts its wall clock, and nothing else, by what a file
says. Needs g++, else the standard library only. The last line says how many tests passed and failed.
"""
import datetime
import http.client
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

from case import ACCOUNTS, ALICE, Case, check, refused, run_tests, tests_of
from signed_client import Client

HOUR = 3600
SHIM = pathlib.Path(__file__).parent / "wall_clock_shim.cc"
# Time may run a tenth slower while a difference is made up; the rest is for a busy machine. It is
# far less than an hour, and a client waits for its answer a little longer.
LATE_MAX = 50


class ClockCase(Case):
    """A case whose servers have a wall clock that can be set."""
    shim = None

    def __init__(self, binary, directory):
        super().__init__(binary, directory)
        self.offset = self.directory / "offset"
        self.set_clock(0)
        self.environment = {"LD_PRELOAD": self.shim, "WALL_CLOCK_OFFSET": str(self.offset)}

    def set_clock(self, seconds):
        """From now on the wall clock is ahead of the machine's by this much."""
        if not self.offset.exists():
            self.offset.write_bytes(bytes(8))
        with open(self.offset, "r+b") as file:
            file.write(struct.pack("<q", seconds))

    def serve_data(self, *arguments):
        return self.serve("--data", "data", "--threads", "2", "--listen", "127.0.0.1:0", *arguments,
                          environment=self.environment)

    def inspect(self):
        status, output, errors = self.run("inspect", "data", environment=self.environment)
        check(status == 0, output + errors)
        return output


def ahead_of_wall_clock(server):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/health")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["aheadOfWallClockMillis"] / 1000


def receive(client, url, **more):
    return client.call("ReceiveMessage", QueueUrl=url, MessageSystemAttributeNames=["All"],
                       **more).get("Messages", [])


def sent_at(message):
    return int(message["Attributes"]["SentTimestamp"]) / 1000


class Timed(threading.Thread):
    """A call on a separate thread, and when it ended."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.result, self.ended = call, None, None
        self.start()

    def run(self):
        self.result = self.call()
        self.ended = time.monotonic()

    def outcome(self, due):
        """Its result, which must not come before it is due, nor much later."""
        self.join(max(0, due + LATE_MAX - time.monotonic()))
        check(self.ended is not None, f"it has not ended {LATE_MAX} s after it was due")
        late = self.ended - due
        check(-0.1 <= late <= LATE_MAX, f"{late} s late")
        return self.result


def everything_comes_in_time(server, change=lambda: None):
    """A long poll, a message in flight and one that is delayed, with the clock changed meanwhile.
    Returns when the last message says that it was sent."""
    client = Client(server.url)
    urls = {name: client.call("CreateQueue", QueueName=name)["QueueUrl"]
            for name in ("empty", "flying", "delayed")}
    client.call("SendMessage", QueueUrl=urls["flying"], MessageBody="flies")
    due = {"flying": time.monotonic() + 2}
    check(len(receive(client, urls["flying"], VisibilityTimeout=2)) == 1)
    due["delayed"] = time.monotonic() + 2
    client.call("SendMessage", QueueUrl=urls["delayed"], MessageBody="delayed", DelaySeconds=2)
    due["empty"] = time.monotonic() + 6
    poll = Timed(lambda: receive(Client(server.url), urls["empty"], WaitTimeSeconds=6))
    change()
    comes_back = {name: Timed(lambda name=name: receive(Client(server.url), urls[name],
                                                        WaitTimeSeconds=9))
                  for name in ("flying", "delayed")}
    for name, wait in comes_back.items():
        messages = wait.outcome(due[name])
        check(len(messages) == 1, f"{name}: {messages}")
        client.call("DeleteMessage", QueueUrl=urls[name], ReceiptHandle=messages[0]["ReceiptHandle"])
    check(poll.outcome(due["empty"]) == [], "something came out of an empty queue")
    return sent_at(messages[0])


def time_goes_on_when_the_clock_is_set_back_by_an_hour(case):
    with case.serve_data() as server:
        check(ahead_of_wall_clock(server) == 0)
        everything_comes_in_time(server, lambda: case.set_clock(-HOUR))
        line = server.wait_for_log("the wall clock was set back by")
        check("59 min" in line or "1 h" in line, line)
        check(HOUR - 60 < ahead_of_wall_clock(server) < HOUR + 1, ahead_of_wall_clock(server))


def time_goes_on_after_a_restart_with_the_clock_two_hours_behind(case):
    with case.serve_data() as server:
        first = everything_comes_in_time(server)
    case.set_clock(-2 * HOUR)
    check("ahead of this machine's clock: time continues from there" in case.inspect())
    with case.serve_data() as server:
        server.wait_for_log("behind the last record")
        check(2 * HOUR - 60 < ahead_of_wall_clock(server) <= 2 * HOUR)
        second = everything_comes_in_time(server)
        check(second > first, "time ran back")
    # Killed, not stopped.
    with case.serve_data() as server:
        server.process.kill()
    with case.serve_data() as server:
        client = Client(server.url)
        url = client.call("CreateQueue", QueueName="empty")["QueueUrl"]
        client.call("SendMessage", QueueUrl=url, MessageBody="x")
        check(sent_at(receive(client, url)[0]) >= second, "time ran back")


def a_jump_of_a_day_expires_nothing_while_the_server_runs(case):
    with case.serve_data() as server:
        client = Client(server.url)
        url = client.call("CreateQueue", QueueName="q", Attributes={
            "MessageRetentionPeriod": "3600", "VisibilityTimeout": "300"})["QueueUrl"]
        for body in ("waits", "flies"):
            client.call("SendMessage", QueueUrl=url, MessageBody=body)
        check(len(receive(client, url)) == 1)
        before = ahead_of_wall_clock(server)
        case.set_clock(24 * HOUR)
        check(ahead_of_wall_clock(server) < before - 86_300, "the clock was not moved")
        line = server.wait_for_log("the wall clock was set forward by")
        check("A restart adopts the wall clock's time at once" in line, line)
        check(len(receive(client, url)) == 1, "the message that waits has expired")
        check(receive(client, url) == [], "a visibility timeout of five minutes is over")
        counts = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
        check(counts["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "2", counts)
    with case.serve_data() as server:
        line = server.wait_for_log("have passed since the last record")
        check("1 d" in line or "23 h" in line, line)
        counts = Client(server.url).call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
        check(counts["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "0", counts)
        check(ahead_of_wall_clock(server) == 0)


def a_start_may_be_refused_after_a_jump_forward(case):
    limit = ("--clock-max-jump-forward", "48h")
    with case.serve_data(*limit) as server:
        url = Client(server.url).call("CreateQueue", QueueName="q", Attributes={
            "MessageRetentionPeriod": "3600"})["QueueUrl"]
        Client(server.url).call("SendMessage", QueueUrl=url, MessageBody="waits")
    case.set_clock(72 * HOUR)
    status, output, errors = case.run("serve", "--data", "data", "--listen", "127.0.0.1:0", *limit,
                                      environment=case.environment)
    check(status == 1 and "ahead of the last record" in errors
          and "--clock-max-jump-forward 0s" in errors, f"{status} {output} {errors}")
    case.set_clock(0)
    with case.serve_data(*limit) as server:
        check(len(receive(Client(server.url), url)) == 1, "the refused start let a message expire")
    case.set_clock(72 * HOUR)
    with case.serve_data("--clock-max-jump-forward", "0s") as server:
        check(receive(Client(server.url), url) == [], "it has expired")


def signatures_are_judged_by_the_wall_clock(case):
    settings = '[server]\nlisten = "127.0.0.1:0"\ndata = "data"\nthreads = 1\n' + ACCOUNTS
    with case.serve_config(settings, environment=case.environment) as server:
        Client(server.url, ALICE).call("CreateQueue", QueueName="q")
        for hours in (-1, 1):
            case.set_clock(hours * HOUR)
            there = Client(server.url, ALICE, skew=datetime.timedelta(hours=hours))
            there.call("ListQueues")
            error = refused(Client(server.url, ALICE).call, "ListQueues")
            check((error.status, error.code) == (403, "InvalidSignatureException"), error)


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="stanchion-")
    try:
        ClockCase.shim = folder + "/wall_clock_shim.so"
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o",
                        ClockCase.shim, str(SHIM)], check=True)
        sys.exit(run_tests(tests_of(globals()), __doc__, ClockCase))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
