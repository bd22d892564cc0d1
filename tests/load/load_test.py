#!/usr/bin/env python3
"""Many connections, slow clients, clients that vanish, a full disk, and stops under load.

    load_test.py --binary build/release/stanchion [--connections 10000] [--idle-seconds 3]

Each check has a server of its own. Figures are printed as they are measured; the last line says
how many checks passed and failed.
"""

import argparse
import os
import pathlib
import resource
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "crash"))

import connections
import faults
import full_disk
import groups
import hostile
import transit
from server import StartFailed, kill_all

# The largest share of the limit that the two ends of all connections take, and some more.
SPARE_FILES = 2000

CHECKS = (connections.CHECKS + faults.CHECKS + hostile.CHECKS + full_disk.CHECKS +
          groups.CHECKS + transit.CHECKS)


class Run:
    """What every check needs to know."""

    def __init__(self, arguments, directory):
        self.binary = arguments.binary
        self.connections = arguments.connections
        self.idle_seconds = arguments.idle_seconds
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)


def raise_open_files_limit(connections_wanted):
    """As many as are needed, or an explanation why not."""
    wanted = connections_wanted + SPARE_FILES
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(hard, wanted), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            break
        except (OSError, ValueError):
            continue
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
        sys.exit(f"{wanted} open files are needed, {hard} are allowed: see ulimit -Hn")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", required=True, help="the stanchion to test")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--idle-seconds", type=float, default=3, help="how long CPU is measured")
    parser.add_argument("--only", default="", help="the checks whose names contain this")
    return parser.parse_args()


def run_check(name, check, run):
    """None if it cannot be done here, else whether it passed."""
    began = time.monotonic()
    try:
        problems = check(run)
    except StartFailed as error:
        problems = [str(error)]
    if problems is None:
        print(f"skip {name}: mounting a file system is not permitted here")
        return None
    print(f"{'FAIL' if problems else 'ok  '} {name} ({time.monotonic() - began:.1f} s)", flush=True)
    for problem in problems[:20]:
        print(f"       {problem}")
    return not problems


def main():
    arguments = parse_arguments()
    raise_open_files_limit(arguments.connections)
    directory = tempfile.mkdtemp(prefix="stanchion-load-")
    outcomes = []
    try:
        for name, check in CHECKS:
            if arguments.only in name:
                outcomes.append(run_check(name, check, Run(arguments, directory)))
    finally:
        kill_all()
    passed, failed, skipped = (outcomes.count(outcome) for outcome in (True, False, None))
    if failed:
        print(f"the data directories and logs are kept in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
