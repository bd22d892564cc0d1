#!/usr/bin/env python3
"""Brings a server's data directory into a fleet, and lets the others copy from its first node.

    import_test.py --binary build/release/stanchion

Where Kafka cannot be had, the test is skipped, and counted as skipped.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import BROKERS, Cluster, insist, on_kafka

from server import Server  # noqa: E402
from sqs import Client  # noqa: E402

SAVED = 400  # Messages of which a checkpoint is made,
LATER = 200  # and those that are only in the journal.
PATIENCE = 60


def send(client, first, count):
    for start in range(first, first + count, 10):
        numbers = range(start, start + 10)
        client.call("SendMessageBatch", QueueUrl="plain", Entries=[
            {"Id": str(n), "MessageBody": f"m{n}"} for n in numbers])
        client.call("SendMessageBatch", QueueUrl="ordered.fifo", Entries=[
            {"Id": str(n), "MessageBody": f"o{n}", "MessageGroupId": f"g{n % 3}",
             "MessageDeduplicationId": str(n)} for n in numbers])


def fill(server):
    """What is in the server when it is killed: (a receipt that is still good, its body)."""
    client = Client(server.find)
    client.call("CreateQueue", QueueName="plain")
    client.call("CreateQueue", QueueName="ordered.fifo", Attributes={"FifoQueue": "true"})
    send(client, 0, SAVED)
    subprocess.run([server.binary, "backup", "--data", server.data, "--to",
                    server.data + ".backup"], check=True,
                   capture_output=True)
    send(client, SAVED, LATER)
    taken = client.call("ReceiveMessage", QueueUrl="plain", VisibilityTimeout=3600)["Messages"][0]
    client.close()
    server.kill()
    return taken["ReceiptHandle"], taken["Body"]


def run_import(binary, directory, name):
    done = subprocess.run([binary, "fleet", "import", directory, "--kafka", BROKERS, "--name", name],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def refuse_without_logs(binary, directory):
    """The directory of a node whose fleet's topics are gone: its stores would be ahead of empty logs."""
    lost = shutil.copytree(directory, directory + ".lost", ignore=shutil.ignore_patterns("*.sock"))
    meta = pathlib.Path(lost, "stanchion.meta")
    meta.write_text(meta.read_text().replace("fleet imported\n", "fleet lost\n"))
    status, said = run_import(binary, lost, "lost")
    assert status != 0 and "cannot be imported" in said, said


def wait_until_followed(cluster):
    """Until every shard has two standbys that have caught up."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = cluster.fleet("status", check=False)
        rows = [line.split() for line in shown.stdout.splitlines() if line[:6].strip().isdigit()]
        if len(rows) == 3 and all(line.count("(0)") == 2 for line in shown.stdout.splitlines()
                                  if line[:6].strip().isdigit()):
            return
        assert time.monotonic() < deadline, shown.stdout + shown.stderr
        time.sleep(0.5)


def take_all(client, queue, expected):
    """Receives and deletes until all are there; their bodies in the order of their arrival."""
    bodies = []
    deadline = time.monotonic() + PATIENCE
    while len(bodies) < expected and time.monotonic() < deadline:
        found = insist(client, "ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10,
                       WaitTimeSeconds=1).get("Messages", [])
        bodies += [message["Body"] for message in found]
        if found:
            insist(client, "DeleteMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(found)])
    return bodies


def check(binary, directory):
    # Brokers that have just begun may refuse to make topics: from then on they do not.
    Cluster(binary, directory, "first", shards=1, nodes=0).found()
    cluster = Cluster(binary, directory, "imported", shards=3)
    first = cluster.nodes[0]
    server = Server(binary, first.data, ["--shards", "3"])
    server.start()
    receipt, in_flight = fill(server)

    status, said = run_import(binary, first.data, "imported")
    assert status == 0 and "is now the data directory of the first node" in said, said
    status, said = run_import(binary, first.data, "imported")
    assert status != 0 and "already" in said, said
    refused = subprocess.run([binary, "serve", "--data", first.data, "--listen", "127.0.0.1:0"],
                             capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode != 0 and "--fleet imported" in refused.stderr, refused.stderr

    refuse_without_logs(binary, first.data)
    first.spawn()
    first.wait_until_ready()
    client = Client(lambda: ("127.0.0.1", first.port))
    insist(client, "DeleteMessage", QueueUrl="plain", ReceiptHandle=receipt)
    for node in cluster.nodes[1:]:
        node.spawn()
        node.wait_until_ready()
    wait_until_followed(cluster)
    copied = sum(int(float(line.split()[1])) for node in cluster.nodes[1:]
                 for line in node.metrics().splitlines()
                 if line.startswith("stanchion_fleet_store_copies_total "))
    assert copied == 6, f"two nodes copy three stores each, and they copied {copied}"

    first.kill()
    client = Client(lambda: ("127.0.0.1", cluster.nodes[1].port))
    plain = take_all(client, "plain", SAVED + LATER - 1)
    expected = {f"m{n}" for n in range(SAVED + LATER)} - {in_flight}
    assert sorted(plain) == sorted(expected), f"{len(plain)} of {len(expected)}"
    ordered = take_all(client, "ordered.fifo", SAVED + LATER)
    for group in range(3):
        numbers = [int(body[1:]) for body in ordered if int(body[1:]) % 3 == group]
        assert numbers == list(range(group, SAVED + LATER, 3)), f"group {group}: {numbers[:20]}…"
    cluster.stop()


def run(binary):
    try:
        with tempfile.TemporaryDirectory(prefix="stanchion-import-") as directory:
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
