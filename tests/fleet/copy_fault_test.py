#!/usr/bin/env python3
"""Every system call on files while a store is copied between nodes fails once, or is the last one.

    python3 tests/fleet/copy_fault_test.py --binary build/release/tests/store_copy_victim [--cases N | --all]

A program copies the store of one node's directory to another's under strace, which makes the N-th
call of a kind fail in each thread, or kills the program there. Whatever happens, it must not end by a
signal of its own, nor fail without saying why. The store is then the old one, the new one, or absent;
a copy without faults afterwards succeeds; and nothing of either is left beside the stores.

`make test` plays some of the cases, others each time; --all plays every one.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

import cases  # noqa: E402

CALLS = {
    "pread64": ["EIO"],
    "read": ["EIO"],
    "write": ["EIO", "ENOSPC"],
    "openat": ["EIO", "EMFILE"],
    "fsync": ["EIO"],
    "fdatasync": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "link": ["EIO", "EXDEV"],
    "unlink": ["EIO"],
    "unlinkat": ["EIO"],
    "rmdir": ["EIO"],
    "newfstatat": ["EIO"],
    "getdents64": ["EIO"],
    "mkdir": ["EIO", "ENOSPC"],
    "fallocate": ["ENOSPC"],
    "poll": ["ENOMEM"],
}
KILL = "SIGKILL"


def victim(binary, *arguments, under=()):
    return subprocess.run([*under, binary, *arguments], capture_output=True, text=True, timeout=120,
                          check=False)


def strace(trace, *arguments):
    return ["strace", "-f", "-qq", "-o", trace, *arguments]


def copy_both(directory, originals):
    """Fresh copies of the two directories: where from, where to."""
    os.mkdir(directory)
    return [shutil.copytree(original, os.path.join(directory, os.path.basename(original)))
            for original in originals]


def count_calls(binary, originals, directory):
    """How often each thread makes each call at most, when nothing fails."""
    there = os.path.join(directory, "counted")
    source, target = copy_both(there, originals)
    trace = there + "/trace"
    done = victim(binary, "copy", source, target, under=strace(trace, "-e", "trace=" + ",".join(CALLS)))
    if done.returncode != 0:
        sys.exit(f"without a fault it ended with {done.returncode}: {done.stderr}")
    return cases.most_calls(trace, CALLS)


def left_over(*directories):
    return [str(path) for directory in directories for path in pathlib.Path(directory).glob("shard-*/*")
            if path.name not in ("store",)]


def play(binary, originals, directory, case):
    """What is wrong after this case, or None."""
    call, error, when = case
    there = os.path.join(directory, f"{call}-{error}-{when}")
    source, target = copy_both(there, originals)
    how = f"signal={error}" if error == KILL else f"error={error}"
    done = victim(binary, "copy", source, target, under=strace(
        there + "/trace", "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={when}"))
    # 127: the program was not loaded at all.
    if error != KILL and done.returncode not in (0, 1, 127):
        return f"it ended with {done.returncode}: {done.stderr}"
    if done.returncode == 1 and not done.stderr:
        return "it failed and did not say why"
    shown = victim(binary, "show", target)
    allowed = ["new\n"] if done.returncode == 0 else ["old\n", "new\n", "absent\n"]
    if shown.stdout not in allowed:
        return f"then the store is {shown.stdout!r}: {shown.stderr}; before: {done.stderr}"
    kept = victim(binary, "show", source)
    if kept.stdout != "new\n":
        return f"the source is {kept.stdout!r}: {kept.stderr}; before: {done.stderr}"
    again = victim(binary, "copy", source, target)
    shown = victim(binary, "show", target)
    if again.returncode != 0 or shown.stdout != "new\n":
        return f"a copy afterwards: {again.stderr}, then {shown.stdout!r}; before: {done.stderr}"
    if left := left_over(source, target):
        return f"left over: {left}; before: {done.stderr}"
    shutil.rmtree(there, ignore_errors=True)
    return None


def main():
    parser = cases.parser(__doc__, 40)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    seed = cases.seed_of(options)

    def play_all(directory, tally):
        originals = [os.path.join(directory, text) for text in ("new", "old")]
        for original in originals:
            made = victim(options.binary, "make", original, os.path.basename(original))
            if made.returncode != 0:
                sys.exit(made.stderr)
        most = count_calls(options.binary, originals, directory)
        chosen = [(call, error, when) for call, errors in CALLS.items() for error in [*errors, KILL]
                  for when in range(1, most[call] + 1)]
        if not options.all:
            chosen = cases.choose(chosen, lambda case: (case[0], case[1] == KILL), options.cases,
                                  random.Random(seed))
        print(f"seed {seed}: {len(chosen)} cases", flush=True)
        for case in chosen:
            tally.note(":".join(map(str, case)), play(options.binary, originals, directory, case))

    return cases.play_in_scratch("copy", play_all)


if __name__ == "__main__":
    sys.exit(main())
