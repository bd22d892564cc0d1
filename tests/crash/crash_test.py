#!/usr/bin/env python3
"""Kills the real server again and again under load, and audits what its clients saw.

    crash_test.py --binary build/release/stanchion [--cycles 30] [--seed N] [--soak]

The last line says how many checks passed and failed; the exit status is 0 if none failed. What a
failed check left behind is kept, and its place is printed. --soak goes on, round after round with
another seed, until a check fails or it is interrupted.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

from directory_checks import DIRECTORY_CHECKS
from ledger import ALIVE, COUNTS, Ledger
from load import Load, all_queues, counts_of, drain, wait_for_move_tasks
from server import Server, StartFailed, kill_all, run
from sqs import Client
from tool_checks import TOOL_CHECKS

LOAD_SECONDS = (0.05, 0.5)
SECOND_KILL_SECONDS = (0.0, 0.12)
PARKED_POLLS = 8
STOP_SECONDS_MAX = 20


def crash_cycles(server, chance, cycles):
    """Load for a moment, SIGKILL, restart; now and then another kill during the start."""
    kills_during_start = 0
    for _ in range(cycles):
        time.sleep(chance.uniform(*LOAD_SECONDS))
        server.kill()
        while chance.random() < 0.3:
            server.spawn()
            time.sleep(chance.uniform(*SECOND_KILL_SECONDS))
            server.kill()
            kills_during_start += 1
        server.start()
    return kills_during_start


def audit_the_end(server, ledger):
    """The faults are over: everything that is owed arrives now, and then nothing is left."""
    wait_for_move_tasks(server, ledger)
    if not drain(server, ledger, all_queues()):
        ledger.violated(COUNTS, "messages were still counted long after everything was received")
    ledger.audit_drained()
    server.kill()
    server.start()
    client = Client(server.find)
    for queue in all_queues():
        if any(counts := counts_of(client, queue)):
            ledger.violated(COUNTS, f"{queue} has {counts} messages after the last restart")
    client.close()
    drain(server, ledger, all_queues())
    server.kill()
    status, output, errors = run(server.binary, "inspect", server.data)
    if status != 0:
        ledger.violated(ALIVE, f"inspect finds damage: {errors} {output[-500:]}")
    return output


def shards_of_pairs(inspected):
    """How many dead-letter queues live in another shard than their source, by inspect's output."""
    shard, homes = None, {}
    for line in inspected.splitlines():
        words = line.split()
        if line.startswith("shard "):
            shard = words[1]
        elif words[:1] == ["queue"]:
            homes[words[1]] = shard
    return sum(homes[f"work-{i}"] != homes[f"dead-{i}"] for i in "abc")


def crash_round(binary, directory, seed, cycles):
    """One run of the crash test: (passed, failed)."""
    began = time.time()
    chance = random.Random(seed)
    server = Server(binary, os.path.join(directory, "data"), ["--shards", "3"])
    ledger = Ledger()
    load = Load(server, ledger, seed)
    kills_during_start = 0
    try:
        server.start()
        load.create_queues()
        load.start()
        kills_during_start = crash_cycles(server, chance, cycles)
        load.stop()
        crossing = shards_of_pairs(audit_the_end(server, ledger))
        if crossing == 0:
            ledger.violated(ALIVE, "no dead-letter queue lives in another shard than its source")
    except StartFailed as error:
        load.stop()
        ledger.violated(ALIVE, str(error))
    for death in server.died:
        ledger.violated(ALIVE, f"the server ended by itself: {death}")
    server.kill()
    stats = ", ".join(f"{count} {name}" for name, count in sorted(ledger.stats.items()))
    print(
        f"seed {seed}: {cycles} cycles, {kills_during_start} kills during a start,"
        f" {server.torn_tails()} torn tails cut, slowest start {server.slowest_start:.2f} s,"
        f" {time.time() - began:.1f} s in all\n{stats}"
    )
    return ledger.report()


class ParkedPoll(threading.Thread):
    """A long poll of an empty queue, and how it ended."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = Client(server.find)
        self.client.call("GetQueueUrl", QueueName="empty")
        self.outcome = "no answer"

    def run(self):
        try:
            answer = self.client.call("ReceiveMessage", QueueUrl="empty", WaitTimeSeconds=20)
            self.outcome = "messages" if answer.get("Messages") else "empty"
        except Exception as error:
            self.outcome = repr(error)


def inspect_under_load(server):
    """A journal that is being written to is not damaged."""
    deadline = time.time() + 1
    while time.time() < deadline:
        status, output, errors = run(server.binary, "inspect", server.data)
        if status != 0:
            return [f"inspect of a running server ended with {status}: {errors} {output[-500:]}"]
    return []


def check_sigterm(binary, directory, seed):
    """SIGTERM under load: polls are answered, the exit status is 0, nothing is lost."""
    server = Server(binary, os.path.join(directory, "sigterm"))
    ledger = Ledger()
    load = Load(server, ledger, seed)
    server.start()
    load.create_queues()
    client = Client(server.find)
    client.call("CreateQueue", QueueName="empty")
    client.close()
    polls = [ParkedPoll(server) for _ in range(PARKED_POLLS)]
    for poll in polls:
        poll.start()
    load.start()
    problems = inspect_under_load(server)
    began = time.time()
    status = server.terminate(STOP_SECONDS_MAX)
    took = time.time() - began
    for poll in polls:
        poll.join(30)
    outcomes = sorted({poll.outcome for poll in polls})
    if status != 0:
        problems.append(f"the exit status is {status}: {server.log_tail()}")
    if outcomes != ["empty"]:
        problems.append(f"parked polls ended with {outcomes}")
    server.start()
    load.stop()
    if server.torn_tails():
        problems.append("the journal had a torn tail after a clean stop")
    audit_the_end(server, ledger)
    problems += [f"{promise}: {what}" for promise, all in ledger.violations.items() for what in all]
    if not ledger.stats["sends"]:
        problems.append("nothing was sent")
    print(f"     SIGTERM: {took:.2f} s to stop, {ledger.stats['sends']} sends audited")
    return problems


CHECKS = [("SIGTERM answers parked polls, ends with status 0 and loses nothing", check_sigterm)]


def run_checks(binary, directory, seed):
    passed, failed = 0, 0
    for name, check in CHECKS + DIRECTORY_CHECKS + TOOL_CHECKS:
        try:
            problems = check(binary, directory, seed)
        except StartFailed as error:
            problems = [str(error)]
        if problems is None:
            print(f"skip {name}: mounting a file system is not permitted here")
            continue
        print(f"{'FAIL' if problems else 'ok  '} {name}")
        for problem in problems[:8]:
            print(f"       {problem}")
        failed += bool(problems)
        passed += not problems
    return passed, failed


def soak(arguments, directory):
    """Rounds until one fails. Each begins with an empty directory and a seed of its own."""
    seed = arguments.seed
    while True:
        passed, failed = crash_round(arguments.binary, directory, seed, arguments.cycles)
        if failed:
            return passed, failed
        print(f"{seed - arguments.seed + 1} rounds\n")
        shutil.rmtree(directory)
        os.mkdir(directory)
        sys.stdout.flush()
        seed += 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the stanchion to test")
    parser.add_argument("--cycles", type=int, default=30, help="kills under load")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--soak", action="store_true", help="go on until a check fails")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = tempfile.mkdtemp(prefix="stanchion-crash-")
    try:
        if arguments.soak:
            passed, failed = soak(arguments, directory)
        else:
            passed, failed = crash_round(
                arguments.binary, directory, arguments.seed, arguments.cycles
            )
            more_passed, more_failed = run_checks(arguments.binary, directory, arguments.seed)
            passed, failed = passed + more_passed, failed + more_failed
    except KeyboardInterrupt:
        print("interrupted; nothing failed so far")
        passed, failed = 0, 0
    finally:
        kill_all()
    if failed:
        print(f"seed {arguments.seed}; the data directories and logs are kept in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
