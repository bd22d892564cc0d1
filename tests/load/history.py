"""What weeks of one active queue's history cost: files, and how long a call waits that reads it all.

    history.py --binary build/release/stanchion [--days 15] [--data DIR]

The clock is moved on minute by minute. After each day the line has the files of the history, their
bytes, the days that were written a second, and how long a call with nine metrics of all minutes so
far took, alone; and at the end, what a small call waited beside one. With --data, the directory
stays.
"""

import argparse
import http.client
import json
import pathlib
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from process import MIB
from server import Server, kill_all
from sqs import Client

QUEUE = "history"
DAY_MINUTES = 1440
METRICS = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted",
           "NumberOfEmptyReceives", "SentMessageSize", "ApproximateNumberOfMessagesVisible",
           "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
           "ApproximateAgeOfOldestMessage")


class Caller:
    """Posts on one connection."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(*address, timeout=600)

    def post(self, path, parameters, **headers):
        self.connection.request("POST", path, json.dumps(parameters), headers)
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {answer[:300]}")
        return json.loads(answer)

    def advance(self, seconds):
        return self.post("/_stanchion/clock", {"advanceSeconds": seconds},
                         **{"X-Stanchion-Control": "1"})

    def metrics(self, end, minutes, names):
        """The values of these metrics, and the seconds until the last of them was there."""
        began, values, token = time.monotonic(), 0, {}
        while True:
            answer = self.post(
                "/", {"StartTime": end - 60 * minutes, "EndTime": end, **token,
                      "MetricDataQueries": [{"Id": f"m{i}", "MetricStat": {
                          "Metric": {"Namespace": "AWS/SQS", "MetricName": name,
                                     "Dimensions": [{"Name": "QueueName", "Value": QUEUE}]},
                          "Period": 60, "Stat": "Average"}} for i, name in enumerate(names)]},
                **{"X-Amz-Target": "GraniteServiceVersion20100801.GetMetricData",
                   "Content-Type": "application/x-amz-json-1.0"})
            values += sum(len(each["Values"]) for each in answer["MetricDataResults"])
            if "NextToken" not in answer:
                return values, time.monotonic() - began
            token = {"NextToken": answer["NextToken"]}


def files_of(data):
    tables = [path.stat().st_size for path in pathlib.Path(data, "metrics").rglob("*.sst")]
    return len(tables), sum(tables)


def beside(address, end, minutes):
    """How long a call that reads one minute of one metric waits while another reads everything."""
    large = threading.Thread(target=lambda: Caller(address).metrics(end, minutes, METRICS))
    large.start()
    small, waited = Caller(address), []
    while large.is_alive():
        waited.append(small.metrics(end, 1, METRICS[:1])[1])
    return max(waited, default=0.0)


def measure(server, days):
    client, caller = Client(server.find), Caller(server.find())
    client.call("CreateQueue", QueueName=QUEUE)
    for day in range(1, days + 1):
        began = time.monotonic()
        for _ in range(DAY_MINUTES):
            client.call("SendMessage", QueueUrl=QUEUE, MessageBody="hello")
            got = client.call("ReceiveMessage", QueueUrl=QUEUE)["Messages"]
            client.call("DeleteMessage", QueueUrl=QUEUE, ReceiptHandle=got[0]["ReceiptHandle"])
            end = caller.advance(60)["nowMillis"] / 1000
        rate = DAY_MINUTES / (time.monotonic() - began)
        files, size = files_of(server.data)
        values, seconds = caller.metrics(end, day * DAY_MINUTES, METRICS)
        print(f"day {day:>2}: {files:>5} files, {size / MIB:6.1f} MiB, {rate:5.0f} minutes a second, "
              f"{values} values in {seconds:.2f} s", flush=True)
    print(f"a small call beside it waited {beside(server.find(), end, days * DAY_MINUTES):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--days", type=int, default=15)
    parser.add_argument("--data")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stanchion-history-") as scratch:
        server = Server(options.binary, options.data or scratch + "/data", ("--virtual-time",))
        try:
            server.start()
            measure(server, options.days)
        finally:
            kill_all()


if __name__ == "__main__":
    main()
