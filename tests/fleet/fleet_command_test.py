#!/usr/bin/env python3
"""Runs `stanchion fleet`, and `stanchion inspect` of its logs, on three real brokers, which it starts
and stops.

    fleet_command_test.py --program build/release/stanchion

Where Kafka cannot be had (no Java, no Maven, no way to its repository), the test is skipped, and
counted as skipped.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from cluster import BROKERS, Cluster, insist, on_kafka

from sqs import Client, Doubt, NotSent, Refused  # noqa: E402: the path to it comes with cluster

PATIENCE = 60
ZOMBIES_MAX = 10


class Commands:
    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.name = "orders"

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, "fleet", *arguments, "--name", self.name, "--kafka", BROKERS],
            cwd=self.directory, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def inspect(self, *arguments, name=None):
        done = subprocess.run(
            [self.program, "inspect", *arguments, "--name", name or self.name, "--kafka", BROKERS],
            cwd=self.directory, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr


def a_fleet_that_is_not_there_is_not_shown(fleet):
    status, output, error = fleet.run("status")
    assert (status, output) == (1, ""), (status, output, error)
    assert "stanchion fleet init --name orders" in error, error


def init_makes_what_is_missing_and_says_so(fleet):
    status, output, error = fleet.run("init", "--shards", "6")
    assert status == 0, error
    assert "topic orders.log: made, 6 partitions" in output, output
    assert "topic orders.control: made, 1 partition\n" in output, output
    assert "fleet orders created, with 6 shards" in output, output


def init_again_changes_nothing(fleet):
    before = json.loads(fleet.run("status", "--json")[1])
    status, output, error = fleet.run("init", "--shards", "6")
    assert status == 0, error
    assert "topic orders.log: exists already, 6 partitions" in output, output
    assert "exists already, with 6 shards" in output, output
    assert json.loads(fleet.run("status", "--json")[1])["id"] == before["id"]


def another_number_of_shards_is_refused(fleet):
    status, _, error = fleet.run("init", "--shards", "12")
    assert status == 1 and "has 6 shards" in error, (status, error)


def a_fleet_without_nodes_is_shown_as_one_that_serves_nothing(fleet):
    status, output, error = fleet.run("status")
    assert status == 1, (status, error)
    assert "Fleet orders: 6 shards, 0 nodes" in output, output
    assert "warning: shard 5 has no owner: it was never assigned" in output, output
    report = json.loads(fleet.run("status", "--json")[1])
    assert len(report["shards"]) == 6 and report["nodes"] == [], report


def wishes_about_nodes_that_are_not_there_are_refused(fleet):
    for arguments in (("drain", "n1"), ("forget", "n1"), ("move", "0", "n1")):
        status, _, error = fleet.run(*arguments)
        assert status == 2 and "there is no node n1" in error, (arguments, status, error)
    status, _, error = fleet.run("move", "6", "n1")
    assert status == 2 and "shards are 0 to 5" in error, (status, error)


def settings_of_kafka_that_could_lose_data_are_refused(fleet):
    status, _, error = fleet.run("status", "--kafka-setting", "acks=0")
    assert status == 2 and "acks" in error, (status, error)


def logs_without_entries_can_be_inspected(fleet):
    status, output, error = fleet.inspect("--shard", "5")
    assert status == 0 and "orders.log[5]: empty" in output, (status, output, error)
    status, output, error = fleet.inspect("--control")
    assert status == 0 and "FleetMetadata of orders: 6 shards" in output, (status, output, error)
    status, _, error = fleet.inspect("--shard", "6")
    assert status == 2 and "shards are 0 to 5" in error, (status, error)
    status, output, error = fleet.inspect("--shard", "0", name="bills")
    assert (status, output) == (1, "") and "there is no fleet bills" in error, (status, error)


def patiently(find, action, **parameters):
    """A call that may be repeated, while a shard changes its owner."""
    deadline = time.monotonic() + PATIENCE
    while True:
        client = Client(find)
        try:
            return client.call(action, **parameters)
        except (Refused, NotSent, Doubt):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        finally:
            client.close()


def wait_for_shards(cluster, wanted):
    """What `status` says of the shards, once each of them is served and as it is wanted."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = cluster.fleet("status", "--json", check=False)
        shards = json.loads(shown.stdout)["shards"] if shown.stdout else []
        if shards and all(shard["served"] and wanted(shard) for shard in shards):
            return shards
        assert time.monotonic() < deadline, shown.stdout + shown.stderr
        time.sleep(0.2)


def is_followed_closely(shard):
    return len(shard["standbys"]) == 2 and all(s.get("lag") == 0 for s in shard["standbys"])


def make_a_zombie(cluster, url):
    """Pauses the owner of the only shard until another serves it, with a call that waits for it."""
    shard, = wait_for_shards(cluster, lambda _: True)
    owner = next(n for n in cluster.nodes if n.name == shard["owner"])
    other = next(n for n in cluster.nodes if n is not owner)
    waiting = Client(lambda: ("127.0.0.1", owner.port))
    waiting._connect(60)
    owner.pause()
    try:
        patiently(lambda: ("127.0.0.1", other.port), "SendMessage", QueueUrl=url, MessageBody="after")
        waiting.connection.request(
            "POST", "/", json.dumps({"QueueUrl": url, "MessageBody": "of a zombie"}),
            {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"})
    finally:
        owner.go_on()
    waiting.connection.getresponse().read()
    waiting.close()
    return owner.name, other.name


def a_log_shows_claims_and_what_a_replaced_owner_appended(fleet):
    cluster = Cluster(fleet.program, fleet.directory, "inspected", shards=1, nodes=2)
    try:
        cluster.start()
        url = patiently(cluster.find, "CreateQueue", QueueName="q")["QueueUrl"]
        patiently(cluster.find, "SendMessage", QueueUrl=url, MessageBody="before")
        # The zombie may learn that it was replaced before it takes the call, and on a machine that
        # does other things the shard may have gone on to another node; then once more.
        for _ in range(ZOMBIES_MAX):
            replaced, owner = make_a_zombie(cluster, url)
            log = json.loads(fleet.inspect("--shard", "0", "--json", "--facts", name="inspected")[1])
            void = [e for e in log["entries"] if e["finding"] == "void" and e["node"] == replaced
                    and e["kind"] != "claim"]
            if void and log["last_claim"]["node"] == owner:
                break
        assert log["void"] > 0 and log["sound"] and log["complete"], log
        # The first claim may have been trimmed.
        assert log["last_claim"]["epoch"] > 1, log["last_claim"]
        assert log["last_claim"]["node"] == owner, log["last_claim"]
        entries = log["entries"]
        claim = entries[log["last_claim"]["offset"] - log["first_offset"]]
        assert (claim["kind"], claim["finding"], claim["node"]) == ("claim", "valid", owner), claim
        assert any("the log belongs to epoch" in e["why"] for e in void), entries
        sent = [f["fact"] for e in entries if e["finding"] == "valid" for f in e["facts"]]
        assert any(fact.startswith("MessageSent(") for fact in sent), sent
        status, text, error = fleet.inspect("--shard", "0", "--from",
                                            str(log["last_claim"]["offset"]), "--limit", "1",
                                            name="inspected")
        assert status == 0, (text, error)
        lines = text.splitlines()
        assert f"claim, epoch {log['last_claim']['epoch']}, {owner}: valid" in lines[1], lines
        assert " void" in lines[2] and not lines[2].startswith("  "), lines
        assert any(line.startswith("last claim: epoch") and f"by {owner}," in line
                   for line in lines), lines
        status, text, error = fleet.inspect("--control", name="inspected")
        assert status == 0 and "Assignment" in text and f"Beat {owner}" in text, (text, error)
    finally:
        cluster.stop()


def wait_for_report(cluster, wanted):
    """What `status` says, once it is as it is wanted."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = cluster.fleet("status", "--json", check=False)
        report = json.loads(shown.stdout) if shown.stdout else {"nodes": []}
        if wanted(report, {node["node"]: node for node in report["nodes"]}):
            return report
        assert time.monotonic() < deadline, shown.stdout + shown.stderr
        time.sleep(0.2)


def why_not_ready(node):
    try:
        with urllib.request.urlopen(f"http://{node.host}:{node.port}/health/ready", timeout=10):
            return ""
    except urllib.error.HTTPError as refusal:
        return refusal.read().decode()


def send_to_all(node, urls):
    client = Client(lambda: (node.host, node.port))
    for url in urls:
        client.call("SendMessage", QueueUrl=url, MessageBody="hello")
    client.close()


def a_node_with_another_secret_owns_nothing_until_it_has_that_of_the_others(fleet):
    directory = pathlib.Path(fleet.directory, "secrets")
    directory.mkdir()
    for name in ("one", "other"):
        (directory / name).write_text(f"the {name} secret of this fleet")
    cluster = Cluster(fleet.program, str(directory), "secrets", shards=6, nodes=2)
    first, second = cluster.nodes
    first.arguments += ["--fleet-secret-file", str(directory / "one")]
    of_second = list(second.arguments)
    try:
        cluster.found()
        first.spawn()
        first.wait_until_ready()
        urls = [patiently(lambda: (first.host, first.port), "CreateQueue", QueueName=f"q{i}")["QueueUrl"]
                for i in range(12)]
        second.arguments = of_second + ["--fleet-secret-file", str(directory / "other")]
        second.spawn()
        report = wait_for_report(cluster, lambda _, nodes: "node-2" in nodes
                                 and not nodes["node-2"]["linked"]
                                 and nodes["node-2"]["followed"] == 6)
        assert any("probably the two have different secrets" in warning
                   for warning in report["warnings"]), report["warnings"]
        deadline = time.monotonic() + PATIENCE
        while "not linked with most other nodes" not in (why := why_not_ready(second)):
            assert time.monotonic() < deadline, why
            time.sleep(0.2)
        assert "probably the two have different secrets" in why, why
        assert why_not_ready(first) == ""
        send_to_all(first, urls)
        assert {node["node"]: node["owned"] for node in wait_for_report(
            cluster, lambda *_: True)["nodes"]} == {"node-1": 6, "node-2": 0}
        # As in the first round of a change of the secret.
        assert second.terminate() == 0
        second.arguments = of_second + ["--fleet-secret-file", str(directory / "one"),
                                        "--fleet-accepted-secret-file", str(directory / "other")]
        second.spawn()
        wait_for_report(cluster, lambda _, nodes: nodes["node-2"]["linked"]
                        and nodes["node-2"]["owned"] == 3)
        wait_for_shards(cluster, lambda _: True)
        send_to_all(first, urls)
        send_to_all(second, urls)
    finally:
        cluster.stop()


def an_account_may_have_so_many_queues_in_all_shards(fleet):
    """A node counts what it follows, which is a moment old: so it may be one or two more, even if
    the standbys are waited for."""
    directory = pathlib.Path(fleet.directory, "limited")
    directory.mkdir()
    cluster = Cluster(fleet.program, str(directory), "limited", shards=4,
                      options=["--limits-queues-per-account", "8"])
    cluster.start()
    try:
        client = Client(lambda: ("127.0.0.1", cluster.nodes[0].port))
        insist(client, "ListQueues")
        made, why = 0, ""
        deadline = time.monotonic() + 4 * PATIENCE
        while made < 40 and time.monotonic() < deadline and "limits.queues_per_account" not in why:
            try:
                client.call("CreateQueue", QueueName=f"q{made}")
                made += 1
                if made >= 8:
                    wait_for_shards(cluster, is_followed_closely)
            except (NotSent, Doubt, Refused) as problem:
                why = str(problem)
                time.sleep(0.1)
        assert 8 <= made <= 12 and "limits.queues_per_account" in why, (made, why)
        assert len(insist(client, "ListQueues")["QueueUrls"]) == made
    finally:
        cluster.stop()


TESTS = (a_fleet_that_is_not_there_is_not_shown, init_makes_what_is_missing_and_says_so,
         init_again_changes_nothing, another_number_of_shards_is_refused,
         a_fleet_without_nodes_is_shown_as_one_that_serves_nothing,
         wishes_about_nodes_that_are_not_there_are_refused,
         settings_of_kafka_that_could_lose_data_are_refused, logs_without_entries_can_be_inspected,
         a_log_shows_claims_and_what_a_replaced_owner_appended,
         a_node_with_another_secret_owns_nothing_until_it_has_that_of_the_others,
         an_account_may_have_so_many_queues_in_all_shards)


def run(program):
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        fleet = Commands(program, directory)
        # Brokers that have just begun may refuse to make topics: from then on they do not.
        Cluster(program, directory, "first", shards=1, nodes=0).found()
        for test in TESTS:
            try:
                test(fleet)
            except (AssertionError, ValueError, RuntimeError, OSError, Refused, NotSent, Doubt,
                    subprocess.TimeoutExpired) as problem:
                failed += 1
                print(f"{test.__name__}: {problem!r}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    return on_kafka(lambda: run(str(pathlib.Path(options.program).resolve())))


if __name__ == "__main__":
    sys.exit(main())
