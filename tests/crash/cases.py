"""Cases from which each run plays a different sample."""

import argparse
import collections
import random
import re
import shutil
import tempfile

from server import kill_all


def parser(text, cases):
    made = argparse.ArgumentParser(description=text,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--binary", required=True)
    made.add_argument("--seed", type=int, default=None)
    made.add_argument("--cases", type=int, default=cases)
    return made


def seed_of(options):
    return options.seed if options.seed is not None else random.randrange(1 << 31)


def choose(cases, kind_of, count, rng):
    """A sample of this size, each kind about as often: rare kinds matter as much."""
    kinds = collections.defaultdict(list)
    for case in cases:
        kinds[kind_of(case)].append(case)
    chosen = []
    while len(chosen) < min(count, len(cases)):
        for kind in kinds.values():
            if kind and len(chosen) < count:
                chosen.append(kind.pop(rng.randrange(len(kind))))
    return chosen


def most_calls(trace, calls):
    """How often a thread makes each of these calls at most, by what strace wrote."""
    per_thread = collections.Counter()
    with open(trace, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = re.match(r"(\d+) +(\w+)\(", line)
            if found and found[2] in calls:
                per_thread[found[2], found[1]] += 1
    most = collections.Counter()
    for (call, _), times in per_thread.items():
        most[call] = max(most[call], times)
    return most


class Tally:
    """Outcomes of checks, each of which is a problem or None."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def note(self, name, problem, quiet=True):
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1
        if problem is not None or not quiet:
            print(f"{name}: {problem or 'ok'}", flush=True)


def play_in_scratch(name, play):
    """play(directory, tally) in a directory that is gone afterwards; the exit status."""
    directory = tempfile.mkdtemp(prefix=f"stanchion-{name}-")
    tally = Tally()
    try:
        play(directory, tally)
    finally:
        kill_all()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0
