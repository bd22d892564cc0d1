#!/usr/bin/env python3
"""Every system call of `stanchion repair` on its files fails once, or is the last that it makes.

    python3 tests/crash/repair_fault_test.py --binary build/release/stanchion [--seed N] [--cases N | --all]

A directory with a damaged queue is repaired under strace, which makes the N-th call of a kind fail,
or kills the program there. Whatever happens, it must not end by a signal of its own nor without
saying why; a repair without faults afterwards must succeed, bring back the very messages that one
without any fault does, and leave the damaged store where it can be found.

`make test` plays some of the cases, others each time; --all plays every one.
"""

import glob
import os
import random
import shutil
import subprocess
import sys

import cases
from directory_checks import damage_a_message
from fault_test import CALLS, QUEUES, drain, make_original
from server import Server, run
from sqs import Client

# The calls of fault_test.py, and the one that exchanges the stores.
REPAIR_CALLS = {**CALLS, "renameat2": ["EIO", "EINVAL"]}
KILL = "SIGKILL"
# What removes a directory makes these calls as well, and when one of them fails, some of it stays.
REMOVING_CALLS = ["openat", "newfstatat", "getdents64", "unlink"]


def repair_under_strace(binary, data, arguments):
    return subprocess.run(["strace", "-f", "-qq", "-o", data + ".trace", *arguments, binary, "repair",
                           "--data", data], capture_output=True, text=True, timeout=120, check=False)


def count_calls(binary, original, directory):
    """How often each thread makes each call at most, when nothing fails."""
    data = os.path.join(directory, "counted")
    shutil.copytree(original, data)
    done = repair_under_strace(binary, data, ["-e", "trace=" + ",".join(REPAIR_CALLS)])
    if done.returncode != 0:
        sys.exit(f"without a fault it ended with {done.returncode}: {done.stdout}{done.stderr}")
    return data, cases.most_calls(data + ".trace", REPAIR_CALLS)


def find_messages(binary, data):
    server = Server(binary, data, ["--shards", "1"])
    server.start()
    client = Client(server.find)
    try:
        return {queue: drain(client, queue) for queue in QUEUES}
    finally:
        client.close()
        server.kill()


def names_of_stores(data):
    return sorted(os.path.relpath(path, data) for path in glob.glob(os.path.join(data, "shard-*", "store*")))


def play(binary, original, expected, directory, case):
    """What is wrong after this case, or None."""
    call, error, when = case
    data = os.path.join(directory, f"{call}-{error}-{when}")
    shutil.copytree(original, data)
    stores = names_of_stores(data)
    how = f"signal={error}" if error == KILL else f"error={error}"
    done = repair_under_strace(binary, data,
                               ["-e", f"trace={call}", "-e", f"inject={call}:{how}:when={when}"])
    said = done.stdout + done.stderr
    # 127: the program was not loaded at all.
    if error != KILL and done.returncode not in (0, 1, 127):
        return f"it ended with {done.returncode}: {said}"
    if not said and error != KILL:
        return f"it ended with {done.returncode} and said nothing"
    if "stays as it is" in said and call not in REMOVING_CALLS and names_of_stores(data) != stores:
        return f"it left {names_of_stores(data)} in place of {stores}: {said}"
    again = run(binary, "repair", "--data", data, timeout=120)
    if again[0] != 0:
        return f"the repair afterwards ended with {again[0]}: {again[1]}{again[2]}; before: {said}"
    found = find_messages(binary, data)
    if found != expected:
        counts = {queue: (len(found[queue]), len(expected[queue])) for queue in QUEUES}
        return f"found and expected: {counts}; before: {said}"
    if not glob.glob(os.path.join(data, "shard-*", "store.damaged-*")):
        return f"the damaged store is gone; before: {said}"
    shutil.rmtree(data, ignore_errors=True)
    return None


def cases_of(most):
    return [(call, error, when) for call, errors in REPAIR_CALLS.items()
            for error in [*errors, KILL] for when in range(1, most[call] + 1)]


def main():
    parser = cases.parser(__doc__, 24)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    seed = cases.seed_of(options)

    def play_all(directory, tally):
        original = os.path.join(directory, "original")
        held = make_original(options.binary, original)
        in_store = sorted(text for text in held["plain"] if text.startswith("original-0/"))
        if not damage_a_message(original, in_store[70]):
            sys.exit("the message to damage was not found in the store")
        repaired, most = count_calls(options.binary, original, directory)
        expected = find_messages(options.binary, repaired)
        lost = sum(len(held[queue] - expected[queue]) for queue in QUEUES)
        if not 0 < lost < 100:
            sys.exit(f"a repair without faults lost {lost} messages")
        chosen = cases_of(most)
        if not options.all:
            chosen = cases.choose(chosen, lambda case: (case[0], case[1] == KILL), options.cases,
                                  random.Random(seed))
        print(f"seed {seed}: {len(chosen)} cases, with {lost} messages lost", flush=True)
        for case in chosen:
            tally.note(":".join(map(str, case)), play(options.binary, original, expected, directory, case))

    return cases.play_in_scratch("repair", play_all)


if __name__ == "__main__":
    sys.exit(main())
