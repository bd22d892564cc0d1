#!/usr/bin/env python3
"""CloudWatch of the real server: sums that are exact over crashes, in three protocols, for two
weeks and then coarser, and a history that may break without harm.

    cloudwatch_test.py --binary build/release/stanchion [NAME...]

Time is virtual: minutes pass when the test says so. The last line says how many tests passed and
failed.
"""
import concurrent.futures
import datetime
import http.client
import json
import select
import statistics
import sys
import time
import urllib.parse
import xml.etree.ElementTree

import cbor
from case import ACCOUNTS, ALICE, BOB, check, run_tests, tests_of
from signed_client import Client, sign
from small_disk import fill, mounted
from virtual_time import advance, ask

TARGET = "GraniteServiceVersion20100801"
XML = "{http://monitoring.amazonaws.com/doc/2010-08-01/}"
SQS = "AWS/SQS"
SENT, RECEIVED, DELETED = (f"NumberOfMessages{what}" for what in ("Sent", "Received", "Deleted"))
VISIBLE = "ApproximateNumberOfMessagesVisible"
DAY = 24 * 3600
QUEUES = 10_000
MANY_MINUTES = 100
FILES_MAX = 90
LONG_CALLS = 60
QUERIES = 500
CREATORS = 8
HISTORY_DISK_MIB = 4
ROUNDS = 3
ROUNDS_MAX = 10


class Refused(Exception):
    def __init__(self, status, code, message, headers):
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.headers = status, code, message, headers


class Cloudwatch:
    """A client that speaks one of the three protocols."""

    def __init__(self, url, protocol="json", key=None, indefinite=False):
        self.host = url.removeprefix("http://")
        self.protocol, self.key, self.indefinite = protocol, key, indefinite

    def call(self, action, **parameters):
        path, headers, body = getattr(self, "ask_" + self.protocol)(action, parameters)
        if self.key:
            now = datetime.datetime.now(datetime.timezone.utc)
            headers = sign(self.key, "us-east-1", self.host, path, headers, body, now,
                           service="monitoring")
        connection = http.client.HTTPConnection(self.host, timeout=30)
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return getattr(self, "read_" + self.protocol)(action, response, data)

    def ask_json(self, action, parameters):
        return "/", {"Content-Type": "application/x-amz-json-1.0",
                     "X-Amz-Target": f"{TARGET}.{action}"}, json.dumps(
                         parameters, default=lambda at: at.timestamp()).encode()

    def ask_cbor(self, action, parameters):
        return (f"/service/{TARGET}/operation/{action}",
                {"Content-Type": "application/cbor", "Accept": "application/cbor",
                 "smithy-protocol": "rpc-v2-cbor"}, cbor.encode(parameters, self.indefinite))

    def ask_query(self, action, parameters):
        pairs = [("Action", action), ("Version", "2010-08-01")]

        def add(name, value):
            if isinstance(value, dict):
                for key, one in value.items():
                    add(f"{name}.{key}" if name else key, one)
            elif isinstance(value, list):
                for number, one in enumerate(value, 1):
                    add(f"{name}.member.{number}", one)
            elif isinstance(value, datetime.datetime):
                pairs.append((name, value.strftime("%Y-%m-%dT%H:%M:%SZ")))
            else:
                pairs.append((name, str(value).lower() if isinstance(value, bool) else value))

        add("", parameters)
        return "/", {"Content-Type": "application/x-www-form-urlencoded"}, \
            urllib.parse.urlencode(pairs).encode()

    def read_json(self, action, response, data):
        answer = json.loads(data)
        if response.status != 200:
            raise Refused(response.status, answer["__type"].split("#")[1], answer["message"],
                          response.headers)
        return answer

    def read_cbor(self, action, response, data):
        check(response.headers["smithy-protocol"] == "rpc-v2-cbor", response.headers)
        check(response.headers["Content-Type"] == "application/cbor", response.headers)
        answer = cbor.decode(data)
        if response.status != 200:
            raise Refused(response.status, answer["__type"].split("#")[1], answer["message"],
                          response.headers)
        return answer

    def read_query(self, action, response, data):
        root = xml.etree.ElementTree.fromstring(data)
        if response.status != 200:
            error = root.find(XML + "Error")
            raise Refused(response.status, error.findtext(XML + "Code"),
                          error.findtext(XML + "Message"), response.headers)
        check(root.tag == f"{XML}{action}Response", root.tag)
        check(root.findtext(f"{XML}ResponseMetadata/{XML}RequestId"))
        return self.plain(root.find(f"{XML}{action}Result"))

    def plain(self, element):
        """An element as the other protocols would show it."""
        children = list(element)
        name = element.tag.removeprefix(XML)
        if name in ("MetricDataResults", "Timestamps", "Values", "Datapoints", "Metrics",
                    "Dimensions", "Messages"):
            return [self.plain(child) for child in children]
        if name == "ExtendedStatistics":
            return {entry.findtext(XML + "key"): float(entry.findtext(XML + "value"))
                    for entry in children}
        if children:
            return {child.tag.removeprefix(XML): self.plain(child) for child in children}
        text = element.text or ""
        try:
            return float(text)
        except ValueError:
            return text


class Watched:
    """A server with virtual time, whose queues and figures a test looks at."""

    def __init__(self, server, key=None):
        self.server, self.sqs, self.key = server, Client(server.url, key), key
        self.watch = Cloudwatch(server.url, key=key)
        self.account = "111111111111" if key is ALICE else "000000000000"

    def url(self, queue):
        return f"{self.server.url}/{self.account}/{queue}"

    def create(self, name, **attributes):
        self.sqs.call("CreateQueue", QueueName=name, Attributes=attributes)

    def send(self, queue, count, body="x", **more):
        for _ in range(count):
            self.sqs.call("SendMessage", QueueUrl=self.url(queue), MessageBody=body, **more)

    def receive(self, queue, count, timeout=600):
        found = []
        while len(found) < count:
            found += self.sqs.call("ReceiveMessage", QueueUrl=self.url(queue),
                                   MaxNumberOfMessages=min(10, count - len(found)),
                                   VisibilityTimeout=timeout)["Messages"]
        return found

    def receive_nothing(self, queue):
        check(self.sqs.call("ReceiveMessage", QueueUrl=self.url(queue)) == {})

    def delete(self, queue, messages):
        for message in messages:
            self.sqs.call("DeleteMessage", QueueUrl=self.url(queue),
                          ReceiptHandle=message["ReceiptHandle"])

    def advance(self, seconds=60):
        advance(self.server.url, seconds)

    def now(self):
        millis = ask(self.server.url, "GET", None)[1]["nowMillis"]
        return datetime.datetime.fromtimestamp(millis // 1000, datetime.timezone.utc)

    def points(self, queue, metric, *statistics, seconds=3600, period=60, watch=None):
        now = self.now()
        answer = (watch or self.watch).call(
            "GetMetricStatistics", Namespace=SQS, MetricName=metric,
            Dimensions=[{"Name": "QueueName", "Value": queue}], Period=period,
            StartTime=now - datetime.timedelta(seconds=seconds),
            EndTime=now + datetime.timedelta(minutes=1), Statistics=list(statistics) or ["Sum"])
        check(answer["Label"] == metric, answer)
        return sorted(answer["Datapoints"], key=lambda point: str(point["Timestamp"]))

    def sum(self, queue, metric, **more):
        return sum(point["Sum"] for point in self.points(queue, metric, **more))

    def total(self, queue, metric):
        """All that happened, or what is there now."""
        points = self.points(queue, metric)
        return points[-1]["Sum"] if metric.startswith("Approx") else self.sum(queue, metric)


def serve(test, *more):
    return test.serve("--data", str(test.directory / "data"), "--listen", "127.0.0.1:0",
                      "--threads", "2", "--virtual-time", *more)


def kill(server):
    server.process.kill()
    server.process.wait()


def sums_are_exact_over_crashes_and_stops(case):
    expected = {SENT: 0, RECEIVED: 0, DELETED: 0}
    for number in range(4):
        with serve(case) as server:
            seen = Watched(server)
            if number == 0:
                seen.create("jobs")
            check({metric: seen.sum("jobs", metric, seconds=7200) for metric in expected}
                  == expected, number)
            for _ in range(2):
                seen.send("jobs", 7)
                seen.delete("jobs", seen.receive("jobs", 5)[:3])
                expected = {SENT: expected[SENT] + 7, RECEIVED: expected[RECEIVED] + 5,
                            DELETED: expected[DELETED] + 3}
                seen.advance()
            # Of these no minute ends before the process does.
            seen.send("jobs", 2)
            seen.delete("jobs", seen.receive("jobs", 1))
            expected = {SENT: expected[SENT] + 2, RECEIVED: expected[RECEIVED] + 1,
                        DELETED: expected[DELETED] + 1}
            if number % 2 == 0:
                kill(server)
        with serve(case) as server:
            Watched(server).advance()
    with serve(case) as server:
        seen = Watched(server)
        check({metric: seen.sum("jobs", metric, seconds=7200) for metric in expected} == expected)
        check(seen.sum("jobs", "SentMessageSize", seconds=7200) == expected[SENT], "one byte each")


def every_metric_has_its_value(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        seen.create("steps.fifo", FifoQueue="true")
        seen.create("tenants")
        seen.send("jobs", 3, body="x" * 100)
        seen.send("jobs", 1, body="x" * 1000)
        seen.send("jobs", 2, DelaySeconds=900)
        taken = seen.receive("jobs", 2)
        seen.delete("jobs", [taken[0], taken[0]])
        for group in "abb":
            seen.send("steps.fifo", 1, MessageGroupId=group, MessageDeduplicationId="same" + group)
        seen.receive("steps.fifo", 2)
        for group in range(4):
            seen.send("tenants", 40 if group == 0 else 1, MessageGroupId=f"tenant-{group}")
        seen.receive("tenants", 40)
        seen.receive_nothing("steps.fifo")
        seen.advance()
        once = {metric: value for metric, value in (
            (SENT, 6), (RECEIVED, 2), (DELETED, 2), ("NumberOfEmptyReceives", 0), (VISIBLE, 2),
            ("ApproximateNumberOfMessagesNotVisible", 1),
            ("ApproximateNumberOfMessagesDelayed", 2), ("SentMessageSize", 1302))}
        for metric, value in once.items():
            check(seen.total("jobs", metric) == value, (metric, seen.points("jobs", metric)))
        sizes, = seen.points("jobs", "SentMessageSize", "Minimum", "Maximum", "SampleCount",
                             "Average", period=7200)
        check((sizes["Minimum"], sizes["Maximum"], sizes["SampleCount"], sizes["Average"],
               sizes["Unit"]) == (1, 1000, 6, 217, "Bytes"), sizes)
        for metric, value in ((SENT, 2), ("NumberOfDeduplicatedSentMessages", 1),
                              ("NumberOfEmptyReceives", 1),
                              ("ApproximateNumberOfGroupsWithInflightMessages", 2)):
            check(seen.total("steps.fifo", metric) == value, metric)
        for metric, value in (
                ("ApproximateNumberOfNoisyGroups", 1),
                ("ApproximateNumberOfMessagesNotVisible", 40)):
            check(seen.total("tenants", metric) == value, metric)
        quiet = (seen.total("tenants", "ApproximateNumberOfMessagesVisibleInQuietGroups"),
                 seen.total("tenants", "ApproximateNumberOfMessagesNotVisibleInQuietGroups"))
        check(sum(quiet) == 3, quiet)
        check(not seen.points("jobs", "ApproximateNumberOfNoisyGroups"), "it has no groups")
        seen.advance(120)
        age = max(point["Sum"] for point in seen.points("jobs", "ApproximateAgeOfOldestMessage"))
        check(120 <= age <= 600, age)
        listed = {(metric["MetricName"], metric["Dimensions"][0]["Value"])
                  for metric in seen.watch.call("ListMetrics", Namespace=SQS)["Metrics"]}
        check(len([one for one in listed if one[1] == "jobs"]) == 9, listed)
        check(len([one for one in listed if one[1] == "steps.fifo"]) == 11, listed)
        check(len([one for one in listed if one[1] == "tenants"]) == 14, listed)


def a_message_that_nobody_manages_does_not_hide_the_age_of_the_others(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        seen.send("jobs", 1)
        for _ in range(4):
            seen.receive("jobs", 1, timeout=0)
        seen.advance(600)
        seen.send("jobs", 1)
        seen.advance(60)
        last = seen.points("jobs", "ApproximateAgeOfOldestMessage")[-1]
        check(last["Sum"] < 600, last)


def three_protocols_give_the_same_answers(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        for count in (1, 2, 3):
            # With one call, so that no minute ends between them.
            seen.sqs.call("SendMessageBatch", QueueUrl=seen.url("jobs"), Entries=[
                {"Id": str(i), "MessageBody": "x"} for i in range(count)])
            seen.advance()
        now = seen.now()
        answers = []
        for protocol in ("json", "cbor", "query", "cbor indefinite"):
            watch = Cloudwatch(server.url, protocol.split()[0], indefinite=" " in protocol)
            data = watch.call(
                "GetMetricData", ScanBy="TimestampAscending",
                StartTime=now - datetime.timedelta(hours=1), EndTime=now,
                MetricDataQueries=[
                    {"Id": "m1", "ReturnData": False, "MetricStat": {
                        "Metric": {"Namespace": SQS, "MetricName": SENT, "Dimensions": [
                            {"Name": "QueueName", "Value": "jobs"}]},
                        "Period": 60, "Stat": "Sum"}},
                    {"Id": "e1", "Expression": "m1 / 2", "Label": "per worker"}])
            check(data["Messages"] == [], data)
            result, = data["MetricDataResults"]
            check((result["Id"], result["Label"], result["StatusCode"], sum(result["Values"]))
                  == ("e1", "per worker", "Complete", 3), (protocol, result))
            check(len(result["Timestamps"]) == len(result["Values"]) >= 3, result)
            points = seen.points("jobs", SENT, "Sum", "Maximum", period=7200, watch=watch)
            check([(point["Sum"], point["Maximum"], point["Unit"]) for point in points]
                  == [(6, 3, "Count")], points)
            spread = watch.call(
                "GetMetricStatistics", Namespace=SQS, MetricName="SentMessageSize", Period=3600,
                Dimensions=[{"Name": "QueueName", "Value": "jobs"}], EndTime=now,
                StartTime=now - datetime.timedelta(hours=1), ExtendedStatistics=["p50", "p99.9"])
            check(spread["Datapoints"][0]["ExtendedStatistics"] == {"p50": 1, "p99.9": 1}, spread)
            answers.append(watch.call("ListMetrics", Namespace=SQS, MetricName=SENT)["Metrics"])
            refusals = []
            for action, parameters in (
                    ("PutMetricData", {"Namespace": "Mine"}),
                    ("GetMetricStatistics", {"Namespace": SQS}),
                    ("ListMetrics", {"NextToken": "nonsense"})):
                try:
                    watch.call(action, **parameters)
                except Refused as error:
                    refusals.append((error.status, error.code))
                    if protocol != "query":
                        check(error.headers["x-amzn-query-error"].endswith(";Sender"))
            codes = (["InvalidAction", "MissingParameter", "InvalidNextToken"]
                     if protocol == "query" else
                     ["UnknownOperationException", "MissingRequiredParameterException",
                      "InvalidNextToken"])
            check(refusals == [(400, code) for code in codes], refusals)
        check(all(answer == answers[0] and answer for answer in answers), answers)


def accounts_see_their_own_queues_and_signatures_are_checked(case):
    case.file("s.toml", ACCOUNTS)
    with serve(case, "--config", "s.toml") as server:
        seen = Watched(server, ALICE)
        seen.create("jobs")
        seen.send("jobs", 3)
        seen.advance()
        for protocol in ("json", "cbor", "query"):
            watch = Cloudwatch(server.url, protocol, key=ALICE)
            check(sum(p["Sum"] for p in seen.points("jobs", SENT, watch=watch)) == 3)
            check(watch.call("ListMetrics")["Metrics"])
            other = Cloudwatch(server.url, protocol, key=BOB)
            check(not seen.points("jobs", SENT, watch=other), "another account's queue")
            check(not other.call("ListMetrics")["Metrics"])
            for key in (None, type(ALICE)(ALICE.id, "wrong"), type(ALICE)("AKIANOBODY", "x")):
                try:
                    Cloudwatch(server.url, protocol, key=key).call("ListMetrics")
                except Refused as error:
                    check(error.status == 403, error)
                else:
                    raise AssertionError("it was let in")


def minutes_become_five_minutes_and_are_gone_after_two_months(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs", MessageRetentionPeriod=str(14 * DAY))
        for _ in range(12):
            seen.send("jobs", 1)
            seen.advance()
        seen.advance(13 * DAY)
        check(seen.sum("jobs", SENT, seconds=13 * DAY + 1800, period=900) == 12)
        check(seen.watch.call("ListMetrics", RecentlyActive="PT3H")["Metrics"], "it holds messages")
        seen.advance(4 * DAY)
        for period, expected in ((60, 0), (900, 12), (3600, 12)):
            check(old(seen, period) == expected, (period, old(seen, period)))
        kill(server)
    with serve(case) as server:
        seen = Watched(server)
        check(old(seen, 900) == 12, "also after a crash")
        seen.advance(50 * DAY)
        check(seen.sum("jobs", SENT, seconds=70 * DAY, period=DAY) == 0)


def old(seen, period):
    """What was sent in the hour that is 17 days old."""
    end = seen.now() - datetime.timedelta(days=17) + datetime.timedelta(minutes=1)
    answer = seen.watch.call(
        "GetMetricStatistics", Namespace=SQS, MetricName=SENT, Statistics=["Sum"], Period=period,
        Dimensions=[{"Name": "QueueName", "Value": "jobs"}],
        StartTime=(end - datetime.timedelta(hours=1)).replace(minute=0, second=0), EndTime=end)
    return sum(point["Sum"] for point in answer["Datapoints"])


def what_a_deleted_queue_did_last_is_kept(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        seen.send("jobs", 4)
        seen.sqs.call("DeleteQueue", QueueUrl=seen.url("jobs"))
        seen.create("jobs")
        seen.send("jobs", 3)
        seen.advance()
        check(seen.sum("jobs", SENT) == 7, seen.points("jobs", SENT))
        check(seen.points("jobs", VISIBLE)[-1]["Sum"] == 3)


def a_damaged_history_is_set_aside_and_harms_nothing(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        seen.send("jobs", 2)
        seen.advance(600)
    metrics = case.directory / "data" / "metrics"
    tables = sorted(metrics.glob("*.sst"))
    check(tables, list(metrics.iterdir()))
    for table in tables:
        table.write_bytes(b"\x00" * table.stat().st_size)
    with serve(case) as server:
        seen = Watched(server)
        server.wait_for_log("Queues and messages are not affected")
        check((case.directory / "data" / "metrics.damaged").is_dir())
        seen.send("jobs", 5)
        check(len(seen.receive("jobs", 7)) == 7, "all messages are there")
        seen.advance()
        check(seen.sum("jobs", SENT) == 5, "the history has begun anew")
    (metrics / "CURRENT").unlink()
    with serve(case) as server:
        Watched(server).send("jobs", 1)
        server.wait_for_log("Queues and messages are not affected")


def while_the_disk_is_full_points_wait_and_queues_go_on(case):
    metrics = case.directory / "data" / "metrics"
    with mounted(metrics, HISTORY_DISK_MIB) as is_mounted:
        if not is_mounted:
            print("note: without the right to mount, no full disk is tried")
            return
        with serve(case) as server:
            seen = Watched(server)
            seen.create("jobs")
            seen.send("jobs", 2)
            seen.advance()
            check(seen.sum("jobs", SENT) == 2)
            fill(metrics / "junk")
            seen.send("jobs", 3)
            seen.advance()
            server.wait_for_log("the history of the queues waits for space on the disk")
            # Of the queues nothing is touched, and what was written before can be read.
            taken = seen.receive("jobs", 5)
            seen.delete("jobs", taken)
            seen.advance()
            check(seen.sum("jobs", SENT) == 2, seen.points("jobs", SENT))
            check(not list(metrics.parent.glob("metrics.damaged")))
            (metrics / "junk").unlink()
            seen.send("jobs", 1)
            seen.advance()
            seen.advance()
            check(seen.sum("jobs", SENT) == 6, seen.points("jobs", SENT))
            check(seen.sum("jobs", DELETED) == 5, seen.points("jobs", DELETED))
            # Full when it stops, and when it starts.
            fill(metrics / "junk")
            seen.send("jobs", 1)
        with serve(case) as server:
            seen = Watched(server)
            seen.send("jobs", 1)
            check(len(seen.receive("jobs", 3)) == 3)
            (metrics / "junk").unlink()
            seen.advance()
            seen.advance()
            check(seen.sum("jobs", SENT) == 8, seen.points("jobs", SENT))
            check(not list(metrics.parent.glob("metrics.damaged")), server.log)


def any_number_of_minutes_is_in_few_files(case):
    with serve(case) as server:
        seen = Watched(server)
        seen.create("jobs")
        for _ in range(MANY_MINUTES):
            seen.advance()
        metrics = case.directory / "data" / "metrics"
        # They are merged in the background, some time after the last minute.
        latest = time.monotonic() + 60
        while len(list(metrics.glob("*.sst"))) > FILES_MAX and time.monotonic() < latest:
            time.sleep(0.1)  # Each minute makes a file more: merging must come to its turn.
            seen.advance()
        files = len(list(metrics.glob("*.sst")))
        check(files <= FILES_MAX, files)
        check(len(seen.points("jobs", VISIBLE, seconds=DAY // 2)) >= MANY_MINUTES)


def long_call(server, key, end):
    """A connection over which somebody asks for a lot, without waiting for the answer."""
    path, headers, body = Cloudwatch(server.url).ask_json("GetMetricData", {
        "StartTime": end - datetime.timedelta(days=15), "EndTime": end, "MetricDataQueries": [
            {"Id": f"m{number}", "MetricStat": {
                "Metric": {"Namespace": SQS, "MetricName": VISIBLE, "Dimensions": [
                    {"Name": "QueueName", "Value": "jobs"}]},
                "Period": 3600, "Stat": "Sum"}} for number in range(QUERIES)]})
    host = server.url.removeprefix("http://")
    now = datetime.datetime.now(datetime.timezone.utc)
    headers = sign(key, "us-east-1", host, path, headers, body, now, service="monitoring")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", path, body, headers)
    return connection


def nobody_waits_for_all_that_another_account_asks_and_neither_does_a_stop(case):
    case.file("s.toml", ACCOUNTS)
    with serve(case, "--config", "s.toml") as server:
        seen = Watched(server, ALICE)
        seen.create("jobs")
        for _ in range(20):
            seen.advance()
        end = seen.now()
        calls = [long_call(server, ALICE, end) for _ in range(LONG_CALLS)]
        check(Cloudwatch(server.url, key=BOB).call("ListMetrics")["Metrics"] == [])
        answered = select.select([call.sock for call in calls], [], [], 0)[0]
        check(len(answered) < LONG_CALLS, "another account waited for all of them")
        server.process.terminate()
        check(server.process.wait(timeout=10) == 0, "it stopped in order")
        statuses = [call.getresponse().status for call in calls]
        check(set(statuses) <= {200, 503}, statuses)
        print(f"note: {LONG_CALLS} long calls, {len(answered)} answered before that of another "
              f"account, {statuses.count(503)} turned away by the stop")


class KeptConnection:
    """Calls of SQS over one connection, which takes a fraction of one each."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def call(self, action, **parameters):
        """How long it took."""
        began = time.monotonic()
        self.connection.request("POST", "/", json.dumps(parameters), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action})
        answer = self.connection.getresponse()
        check(answer.status == 200, answer.read())
        answer.read()
        return time.monotonic() - began


def create_queues(url, numbers):
    creator = KeptConnection(url)
    for number in numbers:
        creator.call("CreateQueue", QueueName=f"q{number}")


def minute_and_calls(seen, call):
    """How long a minute takes to be written, and how long each call meanwhile."""
    began = time.monotonic()
    mover = http.client.HTTPConnection(seen.watch.host, timeout=60)
    mover.request("POST", "/_stanchion/clock", b'{"advanceSeconds": 60}',
                  {"X-Stanchion-Control": "1"})
    calls = [call()]
    while not select.select([mover.sock], [], [], 0)[0]:
        calls.append(call())
    seconds = time.monotonic() - began
    check(mover.getresponse().status == 200)
    mover.close()
    return seconds, calls


def ten_thousand_queues_are_recorded_while_calls_are_answered(case):
    with serve(case) as server:
        seen = Watched(server)
        caller = KeptConnection(server.url)
        with concurrent.futures.ThreadPoolExecutor(CREATORS) as pool:
            for part in range(CREATORS):
                pool.submit(create_queues, server.url, range(part, QUEUES, CREATORS))
        calls, minutes, waits = [], [], []
        # Other tests may take the processors for a moment, but not in every round.
        while len(minutes) < ROUNDS or len(minutes) < ROUNDS_MAX and min(waits) >= 0.5:
            seconds, meanwhile = minute_and_calls(seen, lambda: caller.call(
                "SendMessage", QueueUrl=seen.url("q1"), MessageBody="x"))
            minutes.append(seconds)
            calls += meanwhile
            waits.append(max(meanwhile) / seconds)
        size = sum(file.stat().st_size for file in (case.directory / "data/metrics").rglob("*")
                   if file.is_file())
        late = statistics.quantiles(calls, n=20)[-1]
        print(f"note: a minute of {QUEUES} queues is written in {min(minutes) * 1e3:.0f} ms at "
              f"best; calls meanwhile {statistics.median(calls) * 1e3:.2f} ms, 95 % below "
              f"{late * 1e3:.2f}, all below {max(calls) * 1e3:.1f}; {size >> 10} KiB after "
              f"{len(minutes)}")
        # A server that writes the minute in one go lets a call wait for most of it.
        check(min(waits) < 0.5, waits)
        check(size < len(minutes) * QUEUES * 400, size)
        names = set()
        token = {}
        while token is not None:
            page = seen.watch.call("ListMetrics", Namespace=SQS, MetricName=SENT, **token)
            names |= {metric["Dimensions"][0]["Value"] for metric in page["Metrics"]}
            token = {"NextToken": page["NextToken"]} if "NextToken" in page else None
        check(len(names) == QUEUES, len(names))


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
