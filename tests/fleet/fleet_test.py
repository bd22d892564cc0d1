#!/usr/bin/env python3
"""Breaks a real fleet at random, under load, and audits what its clients saw.

    fleet_test.py --binary build/release/stanchion [--faults N] [--kinds a,b | --long] [--seed N]
                  [--soak]

Three Kafka brokers, three nodes, and the clients and the audit of the crash test. The faults are
those of faults.py, with --long also those of log_loss.py: each kind once before any comes again, in
random order. Where Kafka cannot be had, the test is skipped and counted as skipped. --soak goes on,
round after round with another seed, until a check fails or it is interrupted.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import ROOT, Cluster, on_kafka
from faults import KINDS, WRITE_TIMEOUT, Faults, in_random_order
from log_loss import LOSSES, LogLoss

from ledger import ALIVE, COUNTS, Ledger  # noqa: E402
from load import Load, all_queues, drain, wait_for_move_tasks  # noqa: E402
from sqs import Client, Doubt, NotSent, Refused  # noqa: E402

BETWEEN_FAULTS = (1.0, 3.0)
ALL_KINDS = [*KINDS, *LOSSES]
CLIENT_SECONDS_MAX = 45
INSIST_SECONDS_MAX = 60
WHOLE_SECONDS_MAX = 180


class FleetClient(Client):
    """Of a fleet, "nobody knows" and "nobody serves this now" are answers."""

    def call(self, action, timeout=CLIENT_SECONDS_MAX, **parameters):
        try:
            return super().call(action, timeout, **parameters)
        except Refused as error:
            if error.status == 500:
                raise Doubt(str(error)) from error
            if error.status == 503:
                raise NotSent(str(error)) from error
            raise

    def insist(self, action, **parameters):
        """For calls that may be repeated."""
        deadline = time.monotonic() + CLIENT_SECONDS_MAX
        while True:
            try:
                return self.call(action, **parameters)
            except (NotSent, Doubt):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def create_queues(load):
    """As Load.create_queues(), in a fleet whose nodes may just have begun."""
    deadline = time.monotonic() + INSIST_SECONDS_MAX
    while True:
        try:
            return load.create_queues()
        except (NotSent, Doubt):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def one_round(binary, directory, seed, options):
    began = time.time()
    chance = random.Random(seed)
    random.seed(seed)
    name = f"test-{seed % 1_000_000_007}"
    cluster = Cluster(binary, directory, name,
                      options=["--fleet-write-timeout", f"{WRITE_TIMEOUT}s"])
    ledger, deaths = Ledger(), []
    load = Load(cluster, ledger, seed, FleetClient)
    log = lambda text: print(f"  {time.time() - began:6.1f} s  {text}", flush=True)  # noqa: E731
    try:
        cluster.start()
        log("the fleet serves")
        audit_metrics(cluster, ledger)
        create_queues(load)
        load.start()
        faults = Faults(cluster, ledger, chance, log, FleetClient, directory, load)
        for number, kind in zip(range(options.faults), in_random_order(chance, options.kinds)):
            time.sleep(chance.uniform(*BETWEEN_FAULTS))
            if kind in KINDS:
                faults.play(kind)
                continue
            lost = cluster
            cluster = LogLoss(faults, load, number).play(kind)
            deaths += lost.died()
            faults = Faults(cluster, ledger, chance, log, FleetClient, directory, load)
        time.sleep(2)
        load.stop()
        log("the faults are over")
        cluster.wait_until_whole(WHOLE_SECONDS_MAX)
        log("the fleet is whole again")
        audit_the_end(cluster, ledger)
    except (RuntimeError, subprocess.SubprocessError, NotSent, Doubt, Refused) as error:
        load.stop()
        ledger.violated(ALIVE, repr(error))
    cluster.stop()
    for death in deaths + cluster.died():
        ledger.violated(ALIVE, f"a node ended by itself: {death}")
    stats = ", ".join(f"{count} {what}" for what, count in sorted(ledger.stats.items()))
    print(f"seed {seed}: {options.faults} faults, {time.time() - began:.1f} s\n{stats}")
    return ledger.report()


def audit_metrics(cluster, ledger):
    """Every shard is served, all nodes know of each other, and metrics.md describes the page."""
    deadline = time.monotonic() + INSIST_SECONDS_MAX
    while True:
        try:
            pages = [node.metrics() for node in cluster.nodes]
            alive = {figure(page, "stanchion_fleet_nodes_alive") for page in pages}
            served = sum(figure(page, "stanchion_fleet_shards_served") for page in pages)
            in_touch = sum(figure(page, "stanchion_fleet_in_touch") for page in pages)
            if (alive == {len(cluster.nodes)} and served == cluster.shards
                    and in_touch == len(cluster.nodes)):
                break
            wrong = f"nodes alive: {alive}, in touch: {in_touch}, shards served: {served}"
        except OSError as error:
            wrong = f"a page of metrics does not come: {error!r}"
        if time.monotonic() > deadline:
            return ledger.violated(ALIVE, wrong)
        time.sleep(0.2)
    rows = re.findall(r"^\| `(stanchion_fleet_\w+)` \| (\w+) \|",
                      (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    shown = re.findall(r"^# TYPE (stanchion_fleet_\w+) (\w+)$", pages[0], re.MULTILINE)
    if sorted(rows) != sorted(shown):
        ledger.violated(ALIVE, f"metrics.md is not the page: {set(rows) ^ set(shown)}")
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=pages[0], text=True,
                                 capture_output=True, check=False)
        if checked.returncode != 0:
            ledger.violated(ALIVE, f"promtool: {checked.stderr}")
    return None


def figure(page, name):
    return float(re.search(rf"^{name} (\S+)$", page, re.MULTILINE)[1])


def audit_the_end(cluster, ledger):
    """Everything that is owed arrives now, and then nothing is left."""
    wait_for_move_tasks(cluster, ledger, InsistentClient)
    if not drain(cluster, ledger, all_queues(), InsistentClient):
        ledger.violated(COUNTS, "messages were still counted long after everything was received")
    ledger.audit_drained()


class InsistentClient(FleetClient):
    """Once the faults are over every call is answered, if need be at another attempt. The calls of
    the audit may be repeated: a message that is gone counts as deleted, and one whose receive was
    not answered comes again."""

    def call(self, action, timeout=CLIENT_SECONDS_MAX, **parameters):
        deadline = time.monotonic() + INSIST_SECONDS_MAX
        while True:
            try:
                return super().call(action, timeout, **parameters)
            except (NotSent, Doubt):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


def run(options):
    while True:
        directory = tempfile.mkdtemp(prefix="stanchion-fleet-")
        passed, failed = one_round(options.binary, directory, options.seed, options)
        if failed:
            print(f"what is left is in {directory}")
        else:
            shutil.rmtree(directory)
        if failed or not options.soak:
            break
        options.seed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--faults", type=int)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS),
                        help=f"of {', '.join(ALL_KINDS)}")
    parser.add_argument("--long", action="store_true", help="all kinds, also those of log_loss.py")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--soak", action="store_true")
    options = parser.parse_args()
    if options.long:
        options.kinds = ALL_KINDS
    if unknown := set(options.kinds) - set(ALL_KINDS):
        parser.error(f"there are no faults {', '.join(unknown)}")
    options.faults = options.faults or len(options.kinds)
    return on_kafka(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
