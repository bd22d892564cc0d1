#!/usr/bin/env python3
"""Opens data directories with a history of earlier releases and reads every point of it.

    history_test.py --binary build/release/stanchion
    history_test.py --binary build/release/stanchion --make v2

Each v<number>/ beside this file is a data directory as its release left it, with what clients did
in it, and v<number>.json is what CloudWatch must answer. --make writes another one, for a release
whose histories differ; those that are there are never made again. They were made in the year 2076,
and a server does not go back in time, so their points do not become too old.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "cli"))

import virtual_time
from server import Server
from signed_client import Client

YEAR = 365 * 24 * 3600
YEARS = 50
DAY = 24 * 3600
# Between two times of work: so long that minutes have become five minutes.
IDLE_DAYS = 20
# What has no points of late is not listed, but can be read.
NOT_LISTED = [("gone", "NumberOfEmptyReceives")]
STATISTICS = ["SampleCount", "Sum", "Minimum", "Maximum", "Average"]
TARGET = "GraniteServiceVersion20100801"
# What the history must know of a queue after the directory was opened: this much more is sent.
MORE = {"jobs": 3, "steps.fifo": 1}
# Without these a server starts as after a power failure.
REMOVED = ("next", "reserve", "LOCK", "LOG*", "*.control")


class Cloudwatch(Client):
    def ask(self, action, **parameters):
        def retarget(headers, body):
            return {**headers, "X-Amz-Target": f"{TARGET}.{action}"}, body

        return self.call(action, tamper=retarget, **parameters)

    def all_metrics(self):
        """Every metric of every queue, as (queue, metric)."""
        found, token = [], {}
        while token is not None:
            page = self.ask("ListMetrics", Namespace="AWS/SQS", **token)
            found += [(metric["Dimensions"][0]["Value"], metric["MetricName"])
                      for metric in page["Metrics"]]
            token = {"NextToken": page["NextToken"]} if "NextToken" in page else None
        return sorted(found)

    def points(self, queue, metric, period, since, until):
        """[[time, statistic ...], ...] in order of time."""
        answer = self.ask("GetMetricStatistics", Namespace="AWS/SQS", MetricName=metric,
                          Dimensions=[{"Name": "QueueName", "Value": queue}], Period=period,
                          StartTime=since, EndTime=until, Statistics=STATISTICS)
        return sorted([point["Timestamp"], *(point[name] for name in STATISTICS)]
                      for point in answer["Datapoints"])

    def everything(self, made):
        """All points: of minutes near the end, of five minutes before."""
        shown = {}
        for queue, metric in [*self.all_metrics(), *NOT_LISTED]:
            shown[f"{queue} {metric}"] = (
                self.points(queue, metric, 300, made - (IDLE_DAYS + 2) * DAY,
                            made - (IDLE_DAYS - 2) * DAY)
                + self.points(queue, metric, 60, made - DAY, made))
        return shown


class Opened:
    def __init__(self, binary, data):
        self.server = Server(binary, "--listen", "127.0.0.1:0", "--data", str(data), "--threads",
                             "1", "--virtual-time")
        self.client = Cloudwatch(self.server.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()

    def now(self):
        return virtual_time.ask(self.server.url, "GET", None)[1]["nowMillis"] // 1000

    def advance(self, seconds):
        virtual_time.advance(self.server.url, seconds)

    def send(self, queue, count):
        for i in range(count):
            more = {"MessageGroupId": f"g{i % 2}"} if queue in ("steps.fifo", "tenants") else {}
            if queue.endswith(".fifo"):
                more["MessageDeduplicationId"] = f"{self.now()}-{i}"
            self.client.call("SendMessage", QueueUrl=queue, MessageBody="x" * (10 << i), **more)

    def receive(self, queue, count):
        return self.client.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=count,
                                VisibilityTimeout=43200).get("Messages", [])


def work(opened):
    """A few minutes of every kind of metric."""
    for queue in ("jobs", "steps.fifo", "tenants"):
        opened.send(queue, 5)
        for message in opened.receive(queue, 2)[:1]:
            opened.client.call("DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    opened.client.call("SendMessage", QueueUrl="jobs", MessageBody="later", DelaySeconds=900)
    opened.advance(60)
    opened.receive("jobs", 1)
    opened.advance(120)


def make(binary, golden):
    if golden.exists():
        raise SystemExit(f"{golden} exists, and is never made again")
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        with Opened(binary, data) as opened:
            for _ in range(YEARS):
                opened.advance(YEAR)
            for queue in ("jobs", "tenants", "gone"):
                opened.client.call("CreateQueue", QueueName=queue)
            opened.client.call("CreateQueue", QueueName="steps.fifo", Attributes={"FifoQueue": "true"})
            opened.receive("gone", 1)
            work(opened)
            opened.client.call("DeleteQueue", QueueUrl="gone")
            for _ in range(IDLE_DAYS):
                opened.advance(DAY)
            work(opened)
            made = opened.now() // 60 * 60
            listing = {"made": made, "points": opened.client.everything(made)}
        for pattern in REMOVED:
            for file in data.rglob(pattern):
                file.unlink()
        shutil.copytree(data, golden)
    golden.with_suffix(".json").write_text(json.dumps(listing, indent=1, sort_keys=True) + "\n")


def sum_of(points):
    return sum(point[2] for point in points)


def check(binary, golden):
    expected = json.loads(golden.with_suffix(".json").read_text())
    made = expected["made"]
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data"
        shutil.copytree(golden, data)
        with Opened(binary, data) as opened:
            if any("history" in line for line in opened.server.log):
                raise AssertionError("".join(opened.server.log))
            seen = opened.client.everything(made)
            for name in sorted(expected["points"].keys() | seen.keys()):
                if expected["points"].get(name) != seen.get(name):
                    raise AssertionError(f"{name}: expected {expected['points'].get(name)}, "
                                         f"found {seen.get(name)}")
            # What was counted before is not counted again, and what comes now is.
            for queue, count in MORE.items():
                opened.send(queue, count)
            opened.advance(60)
            for queue, count in MORE.items():
                points = opened.client.points(queue, "NumberOfMessagesSent", 60, made,
                                              opened.now() + 60)
                if sum_of(points) != count:
                    raise AssertionError(f"{queue}: {count} were sent, {points}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--make", metavar="NAME")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    if options.make:
        make(binary, HERE / options.make)
        return 0
    passed = failed = 0
    for golden in sorted(path for path in HERE.glob("v*") if path.is_dir()):
        try:
            check(binary, golden)
            passed += 1
        except Exception:  # Whatever failed, the other directories are checked too.
            failed += 1
            print(f"FAILED: {golden.name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
