"""Logs that lose what they had: cut off, or restored from older disks. The table LOSSES.

Clients are held while it happens. The nodes have everything, Kafka has not: they must give up what
they have more of than Kafka, say so, take nothing in, and leave their disks alone. Then the fleet is
rebuilt under another name, as docs/fleet.md says, and the same clients go on with it.
"""

import pathlib
import shutil
import time

from cluster import ALL_BROKERS, DATA, Cluster, kafka
from faults import KINDS, PATIENCE, figure, flip, ready_of, wait_until
from kafka_files import batches, last_with_records, note_offset, segments
from ledger import LOST
from load import all_queues
from sqs import Doubt, NotSent, Refused

QUEUES_TRIED = 2  # Each call waits ten seconds for an owner.
CUT_MIN = 4  # Entries with records.


class LogLoss:
    """One such event, from the moment at which the clients are held until the new fleet is whole."""

    def __init__(self, faults, load, number):
        self.faults = faults
        self.cluster = faults.cluster
        self.chance = faults.chance
        self.log = faults.log
        self.load = load
        self.number = number
        self.kept = None
        self.directory = pathlib.Path(faults.directory)

    def partitions(self):
        return [f"{self.cluster.name}.log-{shard}" for shard in range(self.cluster.shards)]

    def play(self, kind):
        """The fleet that the clients go on with."""
        self.log(kind)
        LOSSES[kind](self)
        again = self.rebuild()
        again.wait_until_whole(PATIENCE)
        self.load.server = again
        self.load.go_on()
        return again

    def audit_loss(self, hit):
        self.log(f"shards {hit} have lost something")
        if not hit:
            raise RuntimeError("no log has lost anything: the clients have sent too little")
        self.audit_given_up(hit)
        # Nodes that live through it may save what they have until they notice.
        before = self.kept or self.tables()
        self.audit_refused(hit)
        self.audit_stores(before, hit)

    def audit_stores(self, before, shards):
        after = self.tables()
        # Files that no manifest names, as those of a merge that a kill cut short, may go.
        made = [path for shard in shards for path, moment in after[shard].items()
                if before[shard].get(path) != moment]
        if made:
            self.faults.ledger.violated(
                LOST, f"a node has changed a store that is ahead of its log: {made[0]} is new")

    def hold_clients(self):
        self.faults.hold_clients(self.backup_of)

    def backup_of(self, node):
        return self.directory / f"backup-{self.number}-{node.name}"

    def stop_or_not(self):
        """Nodes may live through it, or be started afterwards."""
        self.stopped = self.chance.random() < 0.5
        if self.stopped:
            self.log("all nodes are killed before it")
            self.cluster.stop()
            self.kept = self.tables()

    def start_if_stopped(self):
        if self.stopped:
            for node in self.cluster.nodes:
                node.spawn()

    def kill_brokers(self):
        for broker in ALL_BROKERS:
            kafka("kill", str(broker))

    def truncate(self):
        self.hold_clients()
        self.stop_or_not()
        self.kill_brokers()
        hit = [shard for shard, partition in enumerate(self.partitions()) if self.cut(partition)]
        kafka("start")
        self.start_if_stopped()
        self.audit_loss(hit)

    def recreate(self):
        """The topic is deleted and made anew while brokers run, and the fleet with them or not."""
        self.hold_clients()
        hit = [shard for shard, partition in enumerate(self.partitions())
               if last_with_records(DATA, partition) >= 0]
        self.stop_or_not()
        topic = f"{self.cluster.name}.log"
        self.faults.meddler.delete(topic)
        wait_until("the topic is gone", lambda: not self.exists(topic))
        wait_until("it is made anew", lambda: self.cluster.fleet(
            "init", "--shards", str(self.cluster.shards), check=False) and self.exists(topic))
        self.faults.wait_for_copies()
        self.start_if_stopped()
        self.audit_loss(hit)

    def exists(self, topic):
        try:
            return bool(self.faults.meddler.partitions(topic))
        except RuntimeError:
            return False

    def break_all_copies(self):
        """A byte changes in all copies of the last entry with records, so that the log has a hole which
        nobody gets past, when nodes begin anew."""
        self.hold_clients()
        self.cluster.stop()
        self.kept = self.tables()
        kafka("stop")  # In order: what was killed is verified, and cut off where it is damaged.
        hit = [shard for shard, partition in enumerate(self.partitions())
               if self.break_last(partition)]
        kafka("start")
        for node in self.cluster.nodes:
            node.spawn()
        self.log(f"shards {hit} cannot be read")
        for node in self.cluster.nodes:
            wait_until(f"{node.name} gives them up", lambda node=node: set(hit) == {
                given["shard"] for given in ready_of(node).get("shardsGivenUp", [])})
        self.audit_refused(hit)
        self.audit_stores(self.kept, hit)

    def break_last(self, partition):
        last = last_with_records(DATA, partition)
        for broker in ALL_BROKERS:
            for path in segments(DATA / str(broker), partition):
                for batch in batches(path):
                    if batch.offset == last:
                        flip(path, batch.entry[len(batch.entry) // 2])
        return last >= 0

    def cut(self, partition):
        """All copies at the same offset, so that some entries with records are gone."""
        ends = [batch.offset for path in segments(DATA / "1", partition) for batch in batches(path)
                if batch.has_records]
        if len(ends) < 2 * CUT_MIN:
            return False
        end = self.chance.choice(ends[len(ends) // 2:-CUT_MIN + 1])
        for broker in ALL_BROKERS:
            home = DATA / str(broker)
            for path in segments(home, partition):
                kept = [batch for batch in batches(path) if batch.offset < end]
                with open(path, "r+b") as file:
                    file.truncate(kept[-1].at + kept[-1].size if kept else 0)
            # Kafka makes these anew after it was killed.
            for pattern in ("*.index", "*.timeindex", "*.snapshot"):
                for path in (home / partition).glob(pattern):
                    path.unlink()
            note_offset(home / "recovery-point-offset-checkpoint", partition)
            # It was trimmed behind that when the nodes saved: the older start comes back, too.
            note_offset(home / "log-start-offset-checkpoint", partition, ends[0])
        return True

    def restore(self):
        """Older disks come back, all of the same moment."""
        older = self.directory / "older"
        self.kill_brokers()
        shutil.copytree(DATA, older)
        kafka("start")
        self.faults.wait_for_brokers()
        self.hold_clients()
        self.stop_or_not()
        self.kill_brokers()
        hit = [shard for shard, partition in enumerate(self.partitions())
               if last_with_records(DATA, partition) > last_with_records(older, partition)]
        for broker in ALL_BROKERS:
            shutil.rmtree(DATA / str(broker))
            shutil.copytree(older / str(broker), DATA / str(broker))
        shutil.rmtree(older)
        kafka("start")
        self.start_if_stopped()
        self.audit_loss(hit)

    def tables(self):
        """By shard: the files of its stores that never change."""
        return [{str(path): path.stat().st_mtime_ns for node in self.cluster.nodes
                 for path in (pathlib.Path(node.data) / f"shard-{shard:03}").rglob("*.sst")}
                for shard in range(self.cluster.shards)]

    def audit_given_up(self, hit):
        # Clients are held, and an owner that lives through it and writes nothing does not notice.
        for node in self.cluster.nodes:
            wait_until(f"{node.name} names the shards that are given to nobody", lambda node=node: {
                held["shard"] for held in ready_of(node).get("shardsHeldBack", [])} == set(hit)
                or self.faults.ask_all_shards())
        wait_until("each of them is given up by a node", lambda: set(hit) == {
            given["shard"] for node in self.cluster.nodes
            for given in ready_of(node).get("shardsGivenUp", [])})
        wait_until("they are counted as shards without an owner", lambda: all(
            figure(node, "stanchion_fleet_shards_without_owner") == len(hit)
            for node in self.cluster.nodes))

    def audit_refused(self, hit):
        client = self.faults.make_client()
        for queue in self.chance.sample(all_queues(), QUEUES_TRIED):
            is_read = answers(client, "GetQueueAttributes", QueueUrl=queue)
            if is_read and len(hit) == self.cluster.shards:
                self.faults.ledger.violated(LOST, f"{queue} is read, and no shard has an owner")
            group = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
            if not is_read and answers(client, "SendMessage", QueueUrl=queue,
                                       MessageBody="nobody may take it",
                                       **(group if queue.endswith(".fifo") else {})):
                self.faults.ledger.violated(LOST, f"{queue} took a message on a log that lost some")

    def rebuild(self):
        """From the directories of the nodes, or from the backups that were made of them."""
        for node in self.cluster.nodes:
            node.kill()
        again = Cluster(self.cluster.binary, self.directory, f"{self.cluster.name}-{self.number}",
                        shards=self.cluster.shards, options=self.cluster.options)
        from_backups = self.chance.random() < 0.5
        for node in again.nodes:
            if from_backups:
                node.lose_disk()
                shutil.copytree(self.backup_of(node), node.data)
            shutil.rmtree(self.backup_of(node))
        self.log(f"the fleet is rebuilt from {'backups' if from_backups else 'its directories'}")
        deadline = time.monotonic() + PATIENCE
        # As the command says itself while brokers have just begun: "give the same command again".
        while (done := again.fleet("rebuild", "--data", ",".join(node.data for node in again.nodes),
                                   check=False)).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"fleet rebuild: {done.stdout} {done.stderr}")
            self.log(f"fleet rebuild again: {done.stderr.strip()}")
        for node in again.nodes:
            node.spawn()
        return again


def answers(client, action, **parameters):
    try:
        client.call(action, **parameters)
    except (NotSent, Doubt, Refused):
        return False
    return True


LOSSES = {
    "truncated-log": LogLoss.truncate,
    "restored-log": LogLoss.restore,
    "recreated-topics": LogLoss.recreate,
    "unreadable-log": LogLoss.break_all_copies,
}
assert not LOSSES.keys() & KINDS.keys()
