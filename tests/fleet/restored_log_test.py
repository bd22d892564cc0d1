#!/usr/bin/env python3
"""A fleet whose brokers come back with an older copy of their disks: the nodes, whose stores are
ahead of their log, own and follow nothing, say so everywhere, and change nothing on their disks.
Then the fleet is rebuilt from their directories, once more when the brokers have lost everything and
a zone is lost with them, and a third time from a backup, after somebody has purged a queue by mistake.
Another fleet loses its control topic only: it is not rebuilt on its own logs, and has lost nothing
under another name.

    restored_log_test.py --binary build/release/stanchion

Where Kafka cannot be had, the test is skipped, and counted as skipped.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from cluster import ALL_BROKERS, ROOT, Cluster, insist, kafka, on_kafka
from faults import Meddler

from sqs import Client, Doubt, NotSent, Refused  # noqa: E402

MESSAGES = 60
PATIENCE = 120
DATA = pathlib.Path(os.environ.get("STANCHION_KAFKA_DIR", ROOT / "build" / "kafka")) / "data"


def wait_until(what, happened):
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.3)


def figure(node, name):
    """0 as long as the node does not answer."""
    try:
        page = node.metrics()
    except OSError:
        return 0
    return sum(float(line.split()[-1]) for line in page.splitlines()
               if line.startswith(name + " "))


def send(client, first):
    for number in range(first, first + MESSAGES):
        insist(client, "SendMessage", QueueUrl="orders", MessageBody=f"m{number}")


def content(cluster, node):
    """What is in the store of a stopped node, whatever files RocksDB has merged."""
    shown = subprocess.run([cluster.binary, "inspect", node.data], capture_output=True, text=True,
                           timeout=60, check=False).stdout
    assert "orders" in shown, shown
    return [line for line in shown.splitlines() if not line.startswith("  store:")]


def saved_messages(cluster, node):
    """How many messages the node's store has, which it may be using."""
    shown = subprocess.run([cluster.binary, "inspect", node.data], capture_output=True, text=True,
                           timeout=60, check=False).stdout
    return sum(int(on_disk) + int(in_memory) for on_disk, in_memory in re.findall(
        r"(\d+) messages on disk only; (\d+) in memory", shown))


def stop_all(cluster):
    for node in cluster.nodes:
        node.kill()
    kafka("stop")


def start_all(cluster):
    kafka("start")
    for node in cluster.nodes:
        node.spawn()


def names_shard_0(node):
    with urllib.request.urlopen(f"http://{node.host}:{node.port}/health/ready") as page:
        ready = json.load(page)
    assert ready["shardsGivenUp"][0]["shard"] == 0, ready
    return ready.get("shardsWithoutOwner") == [0]


def check(binary, directory):
    cluster = Cluster(binary, directory, "restored", shards=1)
    cluster.start()
    for node in cluster.nodes:
        status, said = back_up(node, pathlib.Path(directory) / f"empty-{node.name}")
        # An owner writes a record to have something to copy.
        assert status == 0 and " of the 1 shards of the fleet restored" in said, said
    client = Client(cluster.find)
    insist(client, "CreateQueue", QueueName="orders")
    send(client, 0)
    cluster.wait_until_whole()
    client.close()
    stop_all(cluster)
    older = pathlib.Path(directory) / "older"
    shutil.copytree(DATA, older)

    start_all(cluster)
    cluster.wait_until_whole()
    client = Client(cluster.find)
    send(client, MESSAGES)

    def all_have_saved():
        # A replica makes a checkpoint when records come.
        insist(client, "SendMessage", QueueUrl="orders", MessageBody="another one")
        return all(saved_messages(cluster, node) >= 2 * MESSAGES for node in cluster.nodes)

    wait_until("a checkpoint of each node", all_have_saved)
    client.close()
    stop_all(cluster)
    shutil.rmtree(DATA)
    shutil.copytree(older, DATA)
    kept = [content(cluster, node) for node in cluster.nodes]

    start_all(cluster)
    wait_until("all nodes give the shard up", lambda: all(
        figure(node, "stanchion_fleet_shards_given_up") == 1 for node in cluster.nodes))
    for node in cluster.nodes:
        assert "but Kafka's partition" in node.log_text(), node.log_tail()
        # The others' beats say a moment later that nobody can own it.
        wait_until("its readiness says so", lambda node=node: names_shard_0(node))
    done = cluster.fleet("status", check=False)
    assert done.returncode == 1, done.stdout
    for node in cluster.nodes:
        assert f"node {node.name} has given up shard 0: the store has the records" in done.stdout, (
            done.stdout)
    client = Client(cluster.find)
    try:
        client.call("SendMessage", QueueUrl="orders", MessageBody="nobody may take it", timeout=15)
        raise AssertionError("a send was acknowledged")
    except (NotSent, Doubt, Refused):
        pass
    client.close()
    assert not cluster.died(), cluster.died()
    cluster.stop()
    assert [content(cluster, node) for node in cluster.nodes] == kept, "a store has changed"

    rebuilt = rebuild_with_the_log_that_is_left(binary, directory, cluster, older)
    rebuild_from_two_nodes(rebuilt)
    undo_a_purge(binary, directory, rebuilt)
    lose_a_shard_for_good(binary, directory)
    lose_the_control_topic(binary, directory)


def rebuild(cluster, nodes, *flags):
    """(exit status, what was said)"""
    done = cluster.fleet("rebuild", "--data", ",".join(node.data for node in nodes), *flags,
                         check=False)
    return done.returncode, done.stdout + done.stderr


def bodies(cluster, queue="orders"):
    """Of all messages, which stay: they are looked at, not received."""
    client = Client(cluster.find)
    found, token = [], None
    while True:
        page = insist(client, "StanchionPeek", QueueUrl=queue, MaxResults=100,
                      **({"NextToken": token} if token else {}))
        found += [message["Body"] for message in page.get("Messages", [])]
        token = page.get("NextToken")
        if not token:
            client.close()
            return found


def start_whole(cluster):
    for node in cluster.nodes:
        node.spawn()
    cluster.wait_until_whole(PATIENCE)


def rebuild_with_the_log_that_is_left(binary, directory, cluster, older):
    """Under another name: the stores have what the log has lost."""
    status, said = rebuild(cluster, cluster.nodes)
    assert status == 1 and "there is a fleet restored already" in said, said
    again = Cluster(binary, directory, "again", shards=1)
    status, said = rebuild(again, again.nodes)
    assert status == 0, said
    assert "using what Kafka still has of its logs" in said, said
    assert "the old log has lost its end" in said and "with the records up to" in said, said
    start_whole(again)
    found = bodies(again)
    assert {f"m{n}" for n in range(2 * MESSAGES)} <= set(found), sorted(found)
    client = Client(again.find)
    insist(client, "SendMessage", QueueUrl="orders", MessageBody="after the first")
    client.close()
    shutil.rmtree(older)
    return again


def rebuild_from_two_nodes(cluster):
    """Everything in Kafka is lost, and a zone; the fleet keeps its name."""
    client = Client(cluster.find)
    acknowledged = len(bodies(cluster))

    def all_have_saved():
        insist(client, "SendMessage", QueueUrl="orders", MessageBody="another one")
        return all(saved_messages(cluster, node) >= acknowledged for node in cluster.nodes)

    wait_until("a checkpoint of each node", all_have_saved)
    client.close()
    stop_all(cluster)
    shutil.rmtree(DATA)
    kafka("start")
    lost = cluster.nodes[2]
    lost.lose_disk()
    left = cluster.nodes[:2]
    # Brokers that have just begun may refuse to make topics: from then on they do not.
    Cluster(cluster.binary, pathlib.Path(lost.data).parent, "first", shards=1, nodes=0).found()
    status, said = rebuild(cluster, left)
    assert status == 0 and "everything acknowledged after that is lost" in said, said
    status, said = rebuild(cluster, left)
    assert status == 1 and "there is a fleet again already" in said, said
    # Kafka notes once a minute where logs begin. It has forgotten that their first claims were removed.
    for broker in ALL_BROKERS:
        kafka("kill", str(broker))
    kafka("start")
    start_whole(cluster)
    found = set(bodies(cluster))
    assert {f"m{n}" for n in range(2 * MESSAGES)} | {"after the first"} <= found, sorted(found)
    assert not cluster.died(), cluster.died()


def back_up(node, to):
    """(exit status, what was said)"""
    done = subprocess.run([node.binary, "backup", "--data", node.data, "--to", str(to)],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr


def undo_a_purge(binary, directory, cluster):
    """From a backup of any node, made while it ran, of the owner or of a standby."""
    before = sorted(bodies(cluster))
    backups = [pathlib.Path(directory) / f"backup-{node.name}" for node in cluster.nodes]
    for node, to in zip(cluster.nodes, backups):
        status, said = back_up(node, to)
        assert status == 0 and f"has 1 of the 1 shards of the fleet {cluster.name}" in said, said
        status, said = back_up(node, to)
        assert status == 1 and "is not empty" in said, said
    client = Client(cluster.find)
    insist(client, "PurgeQueue", QueueUrl="orders")
    client.close()
    assert bodies(cluster) == []
    assert not cluster.died(), cluster.died()
    cluster.stop()
    stopped = pathlib.Path(directory) / "backup-stopped"
    status, said = back_up(cluster.nodes[0], stopped)
    assert status == 0 and "has 1 of the 1 shards" in said, said

    for number, backup in enumerate([*backups, stopped]):
        undone = Cluster(binary, directory, f"undone{number}", shards=1)
        for node in undone.nodes:
            node.lose_disk()
        # The backup itself stays as it is.
        shutil.copytree(backup, undone.nodes[number % 3].data)
        status, said = rebuild(undone, [undone.nodes[number % 3]], "--without-log")
        assert status == 0, said
        start_whole(undone)
        if backup != stopped:
            assert sorted(bodies(undone)) == before, bodies(undone)
        client = Client(undone.find)
        insist(client, "SendMessage", QueueUrl="orders", MessageBody="it goes on")
        client.close()
        assert "it goes on" in bodies(undone)
        assert not undone.died(), undone.died()
        undone.stop()


def lose_a_shard_for_good(binary, directory):
    """Of two shards, no directory that is left has one: it begins empty, if that is accepted."""
    lost = Cluster(binary, directory, "lost", shards=2)
    for node in lost.nodes:
        node.lose_disk()
    lost.start()
    client = Client(lost.find)
    queues = [f"q{number}" for number in range(8)]
    for queue in queues:
        insist(client, "CreateQueue", QueueName=queue)
        insist(client, "SendMessage", QueueUrl=queue, MessageBody=f"in {queue}")
    client.close()
    lost.wait_until_whole()
    for node in lost.nodes:
        status, said = back_up(node, pathlib.Path(directory) / f"saved-{node.name}")
        assert status == 0, said
    lost.stop()
    for node in lost.nodes:
        shutil.rmtree(pathlib.Path(node.data) / "shard-001")
    left = Cluster(binary, directory, "left", shards=2)
    status, said = rebuild(left, left.nodes, "--without-log")
    assert status == 1 and "shard 1: none of the directories has it" in said, said
    status, said = rebuild(left, left.nodes, "--without-log", "--accept-loss")
    assert status == 0, said
    start_whole(left)
    client = Client(left.find)
    there = {url.rsplit("/", 1)[-1] for url in insist(client, "ListQueues").get("QueueUrls", [])}
    assert there and there < set(queues), there
    for queue in queues:
        insist(client, "CreateQueue", QueueName=queue)
        insist(client, "SendMessage", QueueUrl=queue, MessageBody="it goes on")
        found = insist(client, "StanchionPeek", QueueUrl=queue).get("Messages", [])
        bodies_there = [f"in {queue}", "it goes on"] if queue in there else ["it goes on"]
        assert sorted(message["Body"] for message in found) == bodies_there, (queue, found)
    client.close()
    assert not left.died(), left.died()
    left.stop()


def write_much(cluster, queues):
    """By queue, what was acknowledged and must be there. Most of it is in no checkpoint yet."""
    client = Client(cluster.find)
    for queue in queues:
        insist(client, "CreateQueue", QueueName=queue,
               Attributes={"FifoQueue": "true"} if queue.endswith(".fifo") else {})
    for number in range(MESSAGES):
        for queue in queues:
            group = {"MessageGroupId": "g", "MessageDeduplicationId": str(number)}
            insist(client, "SendMessage", QueueUrl=queue, MessageBody=f"m{number}",
                   **(group if queue.endswith(".fifo") else {}))
    kept = {queue: [f"m{number}" for number in range(MESSAGES)] for queue in queues}
    for queue in queues:
        for message in insist(client, "ReceiveMessage", QueueUrl=queue,
                              MaxNumberOfMessages=5)["Messages"]:
            insist(client, "DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            kept[queue].remove(message["Body"])
    client.close()
    return kept


def audit(cluster, kept):
    for queue, expected in kept.items():
        there = bodies(cluster, queue)
        if not queue.endswith(".fifo"):
            there, expected = sorted(there), sorted(expected)
        assert there == expected, (queue, there)


class LostControl:
    """A fleet of which only the control topic is deleted, when its nodes have been killed."""

    def __init__(self, binary, directory):
        self.binary = binary
        self.directory = directory
        self.meddler = Meddler(binary)

    def cluster(self, name):
        return Cluster(self.binary, self.directory, name, shards=2)

    def lose(self, name):
        topic = f"{name}.control"
        self.meddler.delete(topic)

        def is_gone():
            try:
                return not self.meddler.partitions(topic)
            except RuntimeError:
                return True

        wait_until(f"{topic} is gone", is_gone)

    def refused(self, command, why):
        status, said = command()
        assert status == 1 and why in said and "with another name" in said, (status, said)

    def ranges(self, name):
        return [self.meddler.range(f"{name}.log", shard) for shard in range(2)]


def found(cluster):
    """(exit status, what was said)"""
    done = cluster.fleet("init", "--shards", str(cluster.shards), check=False)
    return done.returncode, done.stdout + done.stderr


def lose_the_control_topic(binary, directory):
    lost = LostControl(binary, directory)
    cluster = lost.cluster("controlled")
    for node in cluster.nodes:
        node.lose_disk()
    cluster.start()
    kept = write_much(cluster, ["plain", "line.fifo", "q1", "q2", "q3"])
    for node in cluster.nodes:
        node.kill()
    copy = shutil.copytree(cluster.nodes[0].data, pathlib.Path(directory) / "controlled-copy",
                           ignore=shutil.ignore_patterns("*.sock"))
    lost.lose("controlled")

    # Its own logs have what was acknowledged since the checkpoints.
    before = lost.ranges("controlled")
    assert all(end > first for first, end in before), before
    in_use = "controlled.log[0] may have acknowledged messages"
    lost.refused(lambda: rebuild(cluster, cluster.nodes), in_use)
    lost.refused(lambda: found(cluster), in_use)
    assert lost.ranges("controlled") == before, (before, lost.ranges("controlled"))

    again = lost.cluster("regained")
    status, said = rebuild(again, again.nodes)
    assert status == 0 and "although its control log is lost" in said, said
    assert "from the old log" in said, said
    assert lost.ranges("controlled") == before, (before, lost.ranges("controlled"))

    # What only the new logs have is not removed, although no node has written there yet.
    lost.lose("regained")
    before = lost.ranges("regained")
    lost.refused(lambda: rebuild(again, again.nodes), "and what is to replace it only those up to")
    assert lost.ranges("regained") == before, (before, lost.ranges("regained"))
    # A rebuilding that has the old logs, as one that was interrupted, may be made again.
    done = again.fleet("rebuild", "--data", str(copy), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    start_whole(again)
    audit(again, kept)
    assert not again.died(), again.died()
    again.stop()

    # A log from which everything was removed may show it again.
    for shard in range(2):
        lost.meddler.trim("controlled.log", shard)
    lost.refused(lambda: found(cluster), "somebody has removed them")


def run(binary):
    try:
        with tempfile.TemporaryDirectory(prefix="stanchion-restored-") as directory:
            check(binary, directory)
    except AssertionError as problem:
        print(problem)
        print("0 passed, 1 failed")
        return 1
    print("1 passed, 0 failed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    return on_kafka(lambda: run(os.path.abspath(options.binary)))


if __name__ == "__main__":
    sys.exit(main())
