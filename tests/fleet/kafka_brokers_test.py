#!/usr/bin/env python3
"""Runs the tests of Kafka's journal on three real brokers, which it starts and stops.

    kafka_brokers_test.py --program build/release/tests/kafka_brokers_test

Where Kafka cannot be had (no Java, no Maven, no way to its repository), the test is skipped, and
counted as skipped.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from cluster import BROKERS, KAFKA, on_kafka


def run(program, only):
    environment = {**os.environ, "STANCHION_KAFKA_BROKERS": BROKERS,
                   "STANCHION_KAFKA_SCRIPT": str(KAFKA)}
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        outcome = subprocess.run(
            [program, f"--gtest_filter={only}", f"--gtest_output=json:{report.name}"],
            env=environment, timeout=600, capture_output=True, text=True)
        try:
            result = json.loads(pathlib.Path(report.name).read_text())
        except json.JSONDecodeError:
            result = {"tests": 1, "failures": 1}
    bad = result["failures"] or int(outcome.returncode != 0)
    print(outcome.stdout if bad else "\n".join(
        line for line in outcome.stdout.splitlines() if line.startswith("note:")))
    if bad:
        print(outcome.stderr[-5000:])
    print(f"{result['tests'] - bad} passed, {bad} failed")
    return 1 if bad or not result["tests"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", default="*", help="a filter of GoogleTest")
    options = parser.parse_args()
    return on_kafka(lambda: run(options.program, options.only))


if __name__ == "__main__":
    sys.exit(main())
