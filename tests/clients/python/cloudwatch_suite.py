"""boto3 and the AWS CLI as clients of CloudWatch, of a server whose time can be moved."""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import boto3
import botocore.exceptions

import kit
from support import suite

SENT = "NumberOfMessagesSent"


def clock(body=None):
    """Moves the clock, or only looks; what it shows then."""
    request = urllib.request.Request(
        kit.endpoint + "/_stanchion/clock", data=body and json.dumps(body).encode(),
        headers={"X-Stanchion-Control": "1"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        millis = json.load(answer)["nowMillis"]
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.timezone.utc)


def pass_minute():
    clock({"advanceSeconds": 60})


def queue_with(*minutes):
    """A queue to which so many messages were sent in each minute."""
    name = kit.fresh_name()
    url = kit.client().create_queue(QueueName=name)["QueueUrl"]
    for count in minutes:
        for _ in range(count):
            kit.client().send_message(QueueUrl=url, MessageBody="hello")
        pass_minute()
    return name, url


def dimensions(queue):
    return [{"Name": "QueueName", "Value": queue}]


class Boto3(unittest.TestCase):
    def setUp(self):
        self.watch = boto3.client("cloudwatch", endpoint_url=kit.endpoint)

    def times(self):
        now = clock()
        return {"StartTime": now - datetime.timedelta(hours=1), "EndTime": now}

    def sum(self, queue, metric):
        answer = self.watch.get_metric_statistics(
            Namespace="AWS/SQS", MetricName=metric, Dimensions=dimensions(queue), Period=60,
            Statistics=["Sum", "SampleCount"], **self.times())
        self.assertEqual(answer["Label"], metric)
        return sum(point["Sum"] for point in answer["Datapoints"])

    def test_sums_are_what_was_done(self):
        queue, url = queue_with(5, 6)
        messages = kit.client().receive_message(QueueUrl=url, MaxNumberOfMessages=4)["Messages"]
        for message in messages:
            kit.client().delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        pass_minute()
        self.assertEqual(self.sum(queue, SENT), 11)
        self.assertEqual(self.sum(queue, "SentMessageSize"), 55)
        self.assertEqual(self.sum(queue, "NumberOfMessagesReceived"), len(messages))
        self.assertEqual(self.sum(queue, "NumberOfMessagesDeleted"), len(messages))

    def test_metric_math_and_pages(self):
        queue, _ = queue_with(1, 2, 3)
        stat = {"Metric": {"Namespace": "AWS/SQS", "MetricName": SENT,
                           "Dimensions": dimensions(queue)}, "Period": 60, "Stat": "Sum"}
        pages = self.watch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[{"Id": "m1", "MetricStat": stat, "ReturnData": False},
                               {"Id": "e1", "Expression": "SUM(METRICS()) * 10"}],
            MaxDatapoints=2, ScanBy="TimestampAscending", **self.times())
        values = [value for page in pages for result in page["MetricDataResults"]
                  for value in result["Values"]]
        self.assertEqual(sum(values), 60)
        self.assertGreaterEqual(len(values), 3)

    def test_empty_results_are_lists(self):
        answer = self.watch.get_metric_data(
            MetricDataQueries=[{"Id": "m1", "MetricStat": {
                "Metric": {"Namespace": "AWS/SQS", "MetricName": SENT,
                           "Dimensions": dimensions("no-such-queue")},
                "Period": 60, "Stat": "Sum"}}], **self.times())
        result, = answer["MetricDataResults"]
        self.assertEqual((result["Timestamps"], result["Values"], answer["Messages"]), ([], [], []))
        self.assertEqual(result["StatusCode"], "Complete")

    def test_errors(self):
        with self.assertRaises(self.watch.exceptions.InvalidParameterCombinationException):
            now = clock()
            self.watch.get_metric_statistics(
                Namespace="AWS/SQS", MetricName=SENT, Period=60, Statistics=["Sum"],
                StartTime=now - datetime.timedelta(days=2), EndTime=now)
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            self.watch.put_metric_data(Namespace="Mine", MetricData=[
                {"MetricName": "m", "Value": 1}])
        self.assertIn("PutMetricData is not supported", str(caught.exception))

    def test_list_metrics(self):
        queue, _ = queue_with(1)
        listed = [metric["MetricName"] for page in self.watch.get_paginator("list_metrics").paginate(
            Namespace="AWS/SQS", Dimensions=dimensions(queue)) for metric in page["Metrics"]]
        self.assertEqual(len(listed), 9)


class CommandLine(unittest.TestCase):
    def aws(self, *arguments):
        done = subprocess.run(
            ["/usr/bin/aws", "--endpoint-url", kit.endpoint, "cloudwatch", *arguments],
            capture_output=True, text=True, timeout=120, env=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_get_metric_statistics(self):
        queue, _ = queue_with(2, 3)
        now = clock()
        answer = self.aws(
            "get-metric-statistics", "--namespace", "AWS/SQS", "--metric-name", SENT,
            "--dimensions", f"Name=QueueName,Value={queue}", "--period", "60", "--statistics", "Sum",
            "--start-time", (now - datetime.timedelta(hours=1)).isoformat(),
            "--end-time", now.isoformat())
        self.assertEqual(sum(point["Sum"] for point in answer["Datapoints"]), 5)


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules[__name__]]))
