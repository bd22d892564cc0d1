#!/usr/bin/env python3
"""Cuts zones off from a real fleet, under load, and audits what its clients saw.

    zones_test.py --binary build/release/stanchion [--cuts 1] [--seed N]

Three zones as network namespaces, each with a Kafka broker, a node, and clients that call the node
of their zone, with the audit of the crash test. The first cut is of a whole zone; further ones also
keep a node from one broker or two zones from each other, or lose what one sends to another. Clients of zones that were not
cut off must be served meanwhile, and those that were, afterwards. Skipped, and counted as skipped,
where Kafka or namespaces cannot be had.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

from cluster import Cluster
from faults import figure, in_random_order
from fleet_test import FleetClient, audit_metrics, audit_the_end, create_queues
from ledger import ALIVE, Ledger
from load import Load
from senders import Senders
from sqs import Doubt, NotSent
from zones import Residents, brokers_of, secret_of, skipping, three_zones

CUT_SECONDS = (11.0, 13.0)
# Much more than it should take, since this machine may do other things as well; but less than a cut
# lasts, so that a fleet that only waits for its end is noticed.
GAP_SECONDS_MAX = 10
QUEUES_WATCHED = 12
# Of each shard, in all that time: two nodes that take it from each other need many more.
CLAIMS_MAX = 10


class Cuts:
    """What can be done to the network. Each is over, and the fleet whole again, at the return."""

    def __init__(self, cluster, zones, ledger, chance, log):
        self.cluster = cluster
        self.zones = zones
        self.ledger = ledger
        self.chance = chance
        self.log = log

    def cut_zone(self):
        zone = self.chance.choice(self.zones)
        self.log(f"{zone.name} is cut off")
        self.endure(zone.cut, [zone], [other for other in self.zones if other is not zone])

    def cut_between(self):
        first, second = self.chance.sample(self.zones, 2)
        self.log(f"{first.name} and {second.name} do not reach each other")
        self.endure(lambda: first.cut_from(second), [first, second], [])

    def lose_one_way(self):
        first, second = self.chance.sample(self.zones, 2)
        self.log(f"what {first.name} sends to {second.name} is lost")
        self.endure(lambda: first.lose_what_goes_to(second), [first], [])

    def miss_broker(self):
        """The node cannot read or write what the broker leads, perhaps its own zone's. The others can,
        and must serve; clients that call the node get what the others answer, or wait."""
        zone, other = self.chance.choice(self.zones), self.chance.choice(self.zones)
        self.log(f"the node of {zone.name} misses the broker of {other.name}")
        claims = self.claims()
        self.endure(lambda: zone.miss_broker(other), [zone],
                    [one for one in self.zones if one is not zone], is_noticed=False)
        made = self.claims() - claims
        self.log(f"{made:.0f} claims")
        if made > CLAIMS_MAX * self.cluster.shards:
            self.ledger.violated(ALIVE, f"{made:.0f} claims while one node missed one broker")

    def claims(self):
        return sum(figure(node, "stanchion_fleet_claims_total") for node in self.cluster.nodes)

    def in_order(self):
        """A whole zone first; each kind once before any comes again."""
        kinds = [self.cut_zone, self.miss_broker, self.cut_between, self.lose_one_way]
        yield kinds[0]
        yield from self.chance.sample(kinds[1:], len(kinds) - 1)
        yield from in_random_order(self.chance, kinds)

    def endure(self, fault, touched, survivors, is_noticed=True):
        """`is_noticed`: by the nodes of the survivors."""
        if survivors:
            self.watch(fault, survivors)
            if is_noticed:
                self.audit_warned(survivors)
        else:
            fault()
            time.sleep(self.chance.uniform(*CUT_SECONDS))
        for zone in touched:
            zone.heal()
        self.log("healed")
        self.cluster.wait_until_whole()
        self.log("the fleet is whole again")

    def watch(self, fault, survivors):
        with Senders(Residents(self.cluster, survivors).find, QUEUES_WATCHED, 0.05) as senders:
            time.sleep(1)
            since = time.monotonic()
            fault()
            time.sleep(self.chance.uniform(*CUT_SECONDS))
            gap = senders.longest_gap(since)
        self.log(f"the other zones' longest time without a send: {gap:.2f} s")
        if gap > GAP_SECONDS_MAX:
            self.ledger.violated(ALIVE, f"with a zone cut off, no send for {gap:.1f} s")

    def audit_warned(self, survivors):
        for zone in survivors:
            node = self.cluster.nodes[zone.number - 1]
            if " warning Kafka: " not in node.log_text():
                self.ledger.violated(ALIVE, f"{node.name} does not say that a broker is away")


def one_round(binary, directory, zones, options):
    began = time.time()
    chance = random.Random(options.seed)
    cluster = Cluster(binary, directory, f"zones-{options.seed % 1_000_000_007}",
                      options=["--insecure", "--fleet-secret-file", secret_of(directory)],
                      places=[zone.place for zone in zones], brokers=brokers_of(zones))
    ledger = Ledger()
    load = Load(Residents(cluster, zones), ledger, options.seed, FleetClient)
    log = lambda text: print(f"  {time.time() - began:6.1f} s  {text}", flush=True)  # noqa: E731
    try:
        cluster.start()
        audit_metrics(cluster, ledger)
        create_queues(Load(cluster, ledger, options.seed, FleetClient))
        log("the fleet serves")
        load.start()
        cuts = Cuts(cluster, zones, ledger, chance, log)
        for _, cut in zip(range(options.cuts), cuts.in_order()):
            time.sleep(chance.uniform(1, 3))
            cut()
        load.stop()
        log("the clients have stopped")
        audit_the_end(cluster, ledger)
    except (RuntimeError, NotSent, Doubt) as error:
        for zone in zones:
            zone.heal()
        load.stop()
        ledger.violated(ALIVE, repr(error))
    cluster.stop()
    for death in cluster.died():
        ledger.violated(ALIVE, f"a node ended by itself: {death}")
    stats = ", ".join(f"{count} {what}" for what, count in sorted(ledger.stats.items()))
    print(f"seed {options.seed}: {options.cuts} cuts, {time.time() - began:.1f} s\n{stats}")
    return ledger.report()


def run(options):
    with three_zones() as zones:
        directory = tempfile.mkdtemp(prefix="stanchion-zones-")
        passed, failed = one_round(os.path.abspath(options.binary), directory, zones, options)
    if failed:
        print(f"what is left is in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--cuts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    return skipping(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
