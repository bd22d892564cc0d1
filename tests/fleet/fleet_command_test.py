#!/usr/bin/env python3
"""Runs `stanchion fleet` on three real brokers, which it starts and stops.

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

from cluster import BROKERS, on_kafka


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


def a_fleet_that_is_not_there_is_not_shown(fleet):
    status, output, error = fleet.run("status")
    assert (status, output) == (1, ""), (status, output, error)
    assert "stanchion fleet init --name orders" in error, error


def init_makes_what_is_missing_and_says_so(fleet):
    status, output, error = fleet.run("init", "--shards", "6")
    assert status == 0, error
    assert "topic orders.log: made, 6 partitions" in output, output
    assert "topic orders.control: made, 1 partition\n" in output, output
    assert "fleet orders: founded, with 6 shards" in output, output


def init_again_changes_nothing(fleet):
    before = json.loads(fleet.run("status", "--json")[1])
    status, output, error = fleet.run("init", "--shards", "6")
    assert status == 0, error
    assert "topic orders.log: exists already, 6 partitions" in output, output
    assert "founded already, with 6 shards" in output, output
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
    assert status == 2 and "there are 0 to 5" in error, (status, error)


def settings_of_kafka_that_could_lose_data_are_refused(fleet):
    status, _, error = fleet.run("status", "--kafka-setting", "acks=0")
    assert status == 2 and "acks" in error, (status, error)


TESTS = (a_fleet_that_is_not_there_is_not_shown, init_makes_what_is_missing_and_says_so,
         init_again_changes_nothing, another_number_of_shards_is_refused,
         a_fleet_without_nodes_is_shown_as_one_that_serves_nothing,
         wishes_about_nodes_that_are_not_there_are_refused,
         settings_of_kafka_that_could_lose_data_are_refused)


def run(program):
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        fleet = Commands(program, directory)
        for test in TESTS:
            try:
                test(fleet)
            except (AssertionError, ValueError, subprocess.TimeoutExpired) as problem:
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
