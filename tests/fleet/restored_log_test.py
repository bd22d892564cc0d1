#!/usr/bin/env python3
"""A fleet whose brokers come back with an older copy of their disks: the nodes, whose stores are
ahead of their log, own and follow nothing, say so everywhere, and change nothing on their disks.

    restored_log_test.py --binary build/release/stanchion

Where Kafka cannot be had, the test is skipped, and counted as skipped.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.request

from cluster import ROOT, Cluster, insist, kafka, on_kafka

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


def tables(node):
    """The files of the node's store that never change."""
    store = pathlib.Path(node.data)
    return {str(path): path.stat().st_mtime_ns for path in store.rglob("*.sst")
            if "metrics" not in str(path)}


def stop_all(cluster):
    for node in cluster.nodes:
        node.kill()
    kafka("stop")


def start_all(cluster):
    kafka("start")
    for node in cluster.nodes:
        node.spawn()


def check(binary, directory):
    cluster = Cluster(binary, directory, "restored", shards=1)
    cluster.start()
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
    before = [tables(node) for node in cluster.nodes]

    def all_have_saved():
        # A replica makes a checkpoint when records come.
        insist(client, "SendMessage", QueueUrl="orders", MessageBody="another one")
        return all(tables(node) != made for node, made in zip(cluster.nodes, before))

    wait_until("a checkpoint of each node", all_have_saved)
    client.close()
    stop_all(cluster)
    shutil.rmtree(DATA)
    shutil.copytree(older, DATA)
    kept = [tables(node) for node in cluster.nodes]

    start_all(cluster)
    wait_until("all nodes give the shard up", lambda: all(
        figure(node, "stanchion_fleet_shards_given_up") == 1 for node in cluster.nodes))
    for node in cluster.nodes:
        assert "but Kafka's partition" in node.log_text(), node.log_tail()
        with urllib.request.urlopen(f"http://{node.host}:{node.port}/health/ready") as page:
            ready = json.load(page)
        assert ready["shardsWithoutOwner"] == [0] and ready["shardsGivenUp"][0]["shard"] == 0, ready
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
    assert [tables(node) for node in cluster.nodes] == kept, "a store has changed"
    assert not cluster.died(), cluster.died()
    cluster.stop()


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
