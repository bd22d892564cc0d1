#!/usr/bin/env python3
"""Runs `stanchion work --http` and `--lambda` against the real server and endpoints of their own.

    work_endpoint_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import collections
import contextlib
import datetime
import hmac
import http.server
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import urllib.request

from case import check, run_tests, tests_of
from work_kit import PATIENCE, WorkCase

INVOCATIONS = "/2015-03-31/functions/function/invocations"
Call = collections.namedtuple("Call", "path headers body")


class Endpoint:
    """An HTTP server that answers each POST as `answer` says: (status, body), or None for nothing at
    all. Calls can be waited for."""

    def __init__(self, answer):
        self.calls, self.now, self.most, self.lock = queue.Queue(), 0, 0, threading.Lock()
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                call = Call(self.path, self.headers, body)
                with endpoint.lock:
                    endpoint.now += 1
                    endpoint.most = max(endpoint.most, endpoint.now)
                endpoint.calls.put(call)
                answer_now = answer(call)
                with endpoint.lock:
                    endpoint.now -= 1
                if answer_now is None:
                    self.close_connection = True
                    return
                status, text = answer_now
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A worker that has given up a call does not read its answer.
        self.server.handle_error = lambda *_: None
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self, patience=PATIENCE):
        return self.calls.get(timeout=patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def records_of(call):
    return json.loads(call.body)["Records"]


def bodies_of(call):
    return [record["body"] for record in records_of(call)]


def failures_of(call, bodies):
    """A partial batch response that names the messages with these bodies."""
    ids = [record["messageId"] for record in records_of(call) if record["body"] in bodies]
    return 200, json.dumps({"batchItemFailures": [{"itemIdentifier": each} for each in ids]})


# ---- --http


def a_message_is_posted_as_sqsd_does(case):
    with case.served(), Endpoint(lambda call: (200, "fine")) as endpoint:
        url = case.queue("jobs")
        attributes = {"kind": {"DataType": "String", "StringValue": "a\nb: c"},
                      "size": {"DataType": "Number", "StringValue": "7"},
                      "blob": {"DataType": "Binary", "BinaryValue": "AAAA"}}
        sent = case.client.call("SendMessage", QueueUrl=url, MessageBody='{"a":"ü"}',
                                MessageAttributes=attributes)
        with case.work(url, "--http", endpoint.url + "/work") as worker:
            call = endpoint.next()
            worker.finish()
        headers = dict(call.headers)
        check(call.path == "/work" and call.body == '{"a":"ü"}', call)
        check(headers["User-Agent"].startswith("aws-sqsd/"), headers)
        check(headers["Content-Type"] == "application/json", headers)
        check(headers["X-Aws-Sqsd-Msgid"] == sent["MessageId"], headers)
        check(headers["X-Aws-Sqsd-Queue"] == "jobs", headers)
        check(headers["X-Aws-Sqsd-Receive-Count"] == "1", headers)
        check(headers["X-Aws-Sqsd-First-Received-At"].endswith("Z"), headers)
        check(headers["X-Aws-Sqsd-Sender-Id"], headers)
        check(headers["X-Aws-Sqsd-Attr-kind"] == "a b: c", headers)
        check(headers["X-Aws-Sqsd-Attr-size"] == "7", headers)
        check("X-Aws-Sqsd-Attr-blob" not in headers, headers)
        check(case.left(url) == [0, 0], case.left(url))


def only_status_200_deletes_and_the_reject_code_rejects(case):
    tries = collections.Counter()

    def answer(call):
        tries[call.body] += 1
        if call.body == "odd":
            return 422, ""
        return [(201, ""), None, (500, "out of paper"), (200, "")][tries[call.body] - 1]

    with case.served(), Endpoint(answer) as endpoint:
        url, other = case.queue("main"), case.queue("rejected")
        case.send(url, "job", "odd")
        with case.work(url, "--http", endpoint.url, "--error-visibility", "0", "--reject-code", "422",
                       "--reject-to", other) as worker:
            for _ in range(5):
                endpoint.next()
            log = worker.finish()
            check("the endpoint answered 201 Created; the message is retried" in log, log)
            check("answered 500 Internal Server Error: out of paper; the message" in log, log)
            check(log.count("the message is retried") == 3, log)
        check(case.left(url) == [0, 0] and case.left(other) == [1, 0], log)


def an_endpoint_that_hangs_or_is_not_there_loses_nothing(case):
    release = threading.Event()
    with case.served(), Endpoint(lambda call: release.wait(PATIENCE) and (200, "")) as endpoint:
        url = case.queue("main")
        case.send(url, "job")
        with case.work(url, "--http", endpoint.url, "--timeout", "1",
                       "--error-visibility", "0") as worker:
            worker.log.find("the message is retried")
            worker.signal(signal.SIGTERM)
            worker.log.find("stopping")
            worker.end(signal.SIGTERM)
        release.set()
        check(sum(case.left(url)) == 1, case.left(url))
        with case.work(url, "--http", "http://127.0.0.1:1", "--error-visibility", "0") as worker:
            check("refused" in worker.log.find("the message is retried"))
            worker.end(signal.SIGTERM)
        check(case.left(url) == [1, 0], case.left(url))


def a_periodic_task_is_posted_once_however_many_workers_there_are(case):
    cron = case.file("cron.yaml", """version: 1
cron:
 - name: "tick"
   url: "/tick"
   schedule: "* * * * *"
 - name: "yearly"
   url: "/yearly"
   schedule: "0 0 29 2 *"
""")
    with case.served(), Endpoint(lambda call: (200, "")) as endpoint:
        url, ticks = case.queue("main"), case.queue("ticks.fifo", FifoQueue="true")
        environment = case.with_clock_off_by(0)
        # A few seconds before the next minute.
        case.set_clock(60 - int(time.time()) % 60 - 3)
        flags = ["--http", endpoint.url + "/work", "--cron", cron, "--cron-queue-url", ticks]
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(case.work(url, *flags, environment=environment))
                       for _ in range(3)]
            # If the workers have missed that minute, there is another one.
            call = endpoint.next(2 * PATIENCE)
            # Every one of them has sent its message by then, or was not fast enough to count.
            for worker in workers:
                worker.finish()
        check(call.path == "/tick" and call.headers["X-Aws-Sqsd-Taskname"] == "tick", call)
        check(call.headers["X-Aws-Sqsd-Scheduled-At"].endswith(":00Z"), call.headers)
        check(call.headers["X-Aws-Sqsd-Queue"] == "ticks.fifo", call.headers)
        check(endpoint.calls.empty(), "posted twice")
        check(case.left(ticks) == [0, 0], case.left(ticks))


CRON_KEY = "a key that the workers have in common"
NEVER = """version: 1
cron:
 - name: "{}"
   url: "/{}"
   schedule: "0 0 29 2 *"
"""


def a_minute():
    """A time at which a task may have been due a moment ago."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:00Z")


def signature_of(queue, task, time, key=CRON_KEY):
    """As docs/work.md describes it."""
    key = hmac.digest(key.encode(), b"stanchion work: periodic tasks", "sha256")
    text = "".join(f"{len(part)}:{part}" for part in (queue, task, time))
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def send_task(case, url, task, time, path, signature):
    attributes = {"beanstalk.sqsd.task_name": task, "beanstalk.sqsd.path": path,
                  "beanstalk.sqsd.scheduled_time": time, "stanchion.signature": signature}
    case.client.call(
        "SendMessage", QueueUrl=url, MessageBody="job", MessageGroupId=task,
        MessageDeduplicationId=f"{task}-{time}-{signature}"[:128], MessageAttributes={
            name: {"DataType": "String", "StringValue": value}
            for name, value in attributes.items() if value})


def only_periodic_tasks_that_a_worker_signed_are_posted_and_to_their_own_path(case):
    cron, key = case.file("cron.yaml", NEVER.format("tick", "tick")), case.file("key", CRON_KEY)
    noon, before = a_minute(), "2020-01-01T12:00:00Z"
    forged = [("tick", noon, ""), ("tick", noon, "0" * 64),
              ("tick", noon, signature_of("ticks.fifo", "tick", noon, "a guess of some length")),
              ("tick", noon, signature_of("ticks.fifo", "tock", noon)),
              ("tick", "2026-11-16T12:01:00Z", signature_of("ticks.fifo", "tick", noon)),
              ("tick", noon, signature_of("others.fifo", "tick", noon)),
              # A worker has signed it, and somebody has sent it again.
              ("tick", before, signature_of("ticks.fifo", "tick", before))]
    with case.served(), Endpoint(lambda call: (200, "")) as endpoint:
        url, ticks = case.queue("main"), case.queue("ticks.fifo", FifoQueue="true")
        for task, time_of, signature in forged:
            send_task(case, ticks, task, time_of, "/admin", signature)
        flags = ["--http", endpoint.url + "/work", "--cron", cron, "--cron-queue-url", ticks,
                 "--cron-key", key]
        with case.work(url, *flags) as worker:
            case.wait_until_empty(ticks)
            send_task(case, ticks, "tick", noon, "/admin", signature_of("ticks.fifo", "tick", noon))
            call = endpoint.next()
            log = worker.finish()
        check(call.path == "/tick" and call.headers["X-Aws-Sqsd-Taskname"] == "tick", call)
        check(call.headers["X-Aws-Sqsd-Scheduled-At"] == noon, call.headers)
        check(call.body == "elasticbeanstalk scheduled job", call)
        check(endpoint.calls.empty(), "a forged one was posted")
        check(case.left(ticks) == [0, 0], case.left(ticks))
        # Whoever sends them must not fill the log.
        check(log.count("is not signed") == 1, log)
        told = re.findall(r"(\d+) more messages that no worker has signed, or sent", log)
        check(sum(int(count) for count in told) == len(forged) - 1, log)
        # What they were can be looked at.
        kept = case.queue("kept.fifo", FifoQueue="true")
        send_task(case, ticks, "tick", "never", "/admin", "")
        with case.work(url, *flags, "--reject-code", "422", "--reject-to", kept) as worker:
            case.wait_until_empty(ticks)
            check("sent to --reject-to" in worker.finish())
        check(case.left(kept) == [1, 0] and endpoint.calls.empty(), case.left(kept))


def a_signed_task_of_another_file_waits_for_a_worker_that_has_it(case):
    old, new = (case.file(f"{name}.yaml", NEVER.format(name, name)) for name in ("old", "new"))
    key, noon = case.file("key", CRON_KEY + "\n"), a_minute()
    with case.served(), Endpoint(lambda call: (200, "")) as endpoint:
        url, ticks = case.queue("main"), case.queue("ticks.fifo", FifoQueue="true")
        flags = ["--http", endpoint.url, "--cron-queue-url", ticks, "--cron-key", key, "--cron"]
        with case.work(url, *flags, old) as worker:
            send_task(case, ticks, "new", noon, "/new", signature_of("ticks.fifo", "new", noon))
            worker.log.find('the periodic task \\"new\\" is not in')
            with case.work(url, *flags, new) as other:
                check(endpoint.next().path == "/new")
                other.finish()
            worker.finish()
        check(case.left(ticks) == [0, 0], case.left(ticks))


def the_key_of_periodic_tasks_comes_from_a_file_or_a_secret_that_lasts(case):
    cron, noon = case.file("cron.yaml", NEVER.format("tick", "tick")), a_minute()
    keys = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "the secret of all workers"}
    with case.served(), Endpoint(lambda call: (200, "")) as endpoint:
        url, ticks = case.queue("main"), case.queue("ticks.fifo", FifoQueue="true")
        flags = ["--http", endpoint.url, "--cron", cron, "--cron-queue-url", ticks]
        send_task(case, ticks, "tick", noon, "",
                  signature_of("ticks.fifo", "tick", noon, keys["AWS_SECRET_ACCESS_KEY"]))
        with case.work(url, *flags, environment=keys) as worker:
            check(endpoint.next().path == "/tick")
            check("there are no credentials" not in worker.finish())
        with case.work(url, *flags) as worker:
            check("there are no credentials to derive a key from" in worker.finish())
        os.mkfifo(case.directory / "pipe")
        for more, environment, words in [
                ([], {**keys, "AWS_SESSION_TOKEN": "t"}, "the credentials are temporary"),
                (["--cron-key", "none"], keys, "--cron-key: there is no none"),
                (["--cron-key", "pipe"], keys, "a named pipe"),
                (["--cron-key", case.file("short", "short\n")], keys, "must have 16 at least"),
                (["--cron-key", case.file("empty", "\n")], keys, "holds no key")]:
            status, _, errors = case.run("work", "--queue-url", url, *flags, *more,
                                         environment=environment)
            check(status == 2 and words in errors, errors)
        status, _, errors = case.run("work", "--queue-url", url, "--exec", "true", "--cron-key", "x")
        check(status == 2 and "--cron is for --http" in errors, errors)


def mistakes_about_cron_are_said(case):
    with case.served():
        url, plain, ticks = case.queue("main"), case.queue("plain"), case.queue("t.fifo",
                                                                               FifoQueue="true")
        bad = case.file("cron.yaml", "version: 1\ncron:\n - name: a\n   url: /a\n   schedule: 61\n")
        for flags, words in [
                (["--cron", bad], "--cron and --cron-queue-url need each other"),
                (["--cron", bad, "--cron-queue-url", plain], "must be a FIFO queue"),
                (["--cron", bad, "--cron-queue-url", ticks], "line 5: task \"a\": the schedule"),
                (["--cron", "none.yaml", "--cron-queue-url", ticks], "none.yaml cannot be read")]:
            status, _, errors = case.run("work", "--queue-url", url, "--http", "http://h", *flags)
            check(status == 2 and words in errors, errors)


# ---- --lambda


def a_function_gets_batches_as_lambda_gives_them(case):
    with case.served(), Endpoint(lambda call: (200, "null")) as endpoint:
        url = case.queue("jobs")
        case.send(url, "plain")
        case.client.call("SendMessage", QueueUrl=url, MessageBody='{"a":1}', MessageAttributes={
            "kind": {"DataType": "String", "StringValue": "x"},
            "blob": {"DataType": "Binary", "BinaryValue": "AAAA"}})
        with case.work(url, "--lambda", endpoint.url, "--batch-size", "2",
                       "--batch-window", "60") as worker:
            call = endpoint.next()
            worker.finish()
        check(call.path == INVOCATIONS, call.path)
        records = {record["body"]: record for record in records_of(call)}
        check(set(records) == {"plain", '{"a":1}'}, call.body)
        record = records['{"a":1}']
        check(record["eventSource"] == "aws:sqs", record)
        check(record["eventSourceARN"].endswith(":jobs"), record)
        check(record["awsRegion"] == record["eventSourceARN"].split(":")[3], record)
        check(record["attributes"]["ApproximateReceiveCount"] == "1", record)
        check({"SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"}
              <= set(record["attributes"]), record)
        check(record["messageAttributes"]["blob"] == {
            "binaryValue": "AAAA", "stringListValues": [], "binaryListValues": [],
            "dataType": "Binary"}, record)
        check(record["messageId"] and record["receiptHandle"] and record["md5OfBody"], record)
        check("md5OfMessageAttributes" in record, record)
        check("md5OfMessageAttributes" not in records["plain"], records)
        check(case.left(url) == [0, 0], case.left(url))


def the_messages_that_a_function_names_are_retried_and_the_others_deleted(case):
    def answer(call):
        again = any(int(r["attributes"]["ApproximateReceiveCount"]) > 1 for r in records_of(call))
        return (200, "{}") if again else failures_of(call, ["bad"])

    with case.served(), Endpoint(answer) as endpoint:
        url = case.queue("jobs")
        case.send(url, "good", "bad", "fine")
        with case.work(url, "--lambda", endpoint.url + "/fn", "--batch-size", "3",
                       "--batch-window", "60") as worker:
            check(sorted(bodies_of(endpoint.next())) == ["bad", "fine", "good"])
            worker.log.find("the function failed for 1 of 3 messages, which are retried")
            worker.signal(signal.SIGTERM)
            worker.end()
        # What was retried is back, and a next worker gets it alone.
        with case.work(url, "--lambda", endpoint.url + "/fn") as worker:
            call = endpoint.next()
            check(bodies_of(call) == ["bad"] and call.path == "/fn", call)
            worker.finish()
        check(case.left(url) == [0, 0], case.left(url))


def a_function_that_answers_nonsense_loses_nothing(case):
    nonsense = {"text": (200, "all good!"),
                "stranger": (200, '{"batchItemFailures":[{"itemIdentifier":"x"}]}'),
                "error": (200, '{"errorType":"Error","errorMessage":"boom"}'),
                "gateway": (502, "bad gateway"), "silence": None}
    expected = ["answered what is not JSON: all good!",
                "names a message that was not in the batch: x", "the function failed: {",
                "answered 502 Bad Gateway: bad gateway"]

    def answer(call):
        record, = records_of(call)
        first = record["attributes"]["ApproximateReceiveCount"] == "1"
        return nonsense[record["body"]] if first else (200, "{}")

    with case.served(), Endpoint(answer) as endpoint:
        url = case.queue("jobs")
        case.send(url, *nonsense)
        with case.work(url, "--lambda", endpoint.url, "--batch-size", "1") as worker:
            case.wait_until_empty(url)
            log = worker.finish()
        check(log.count("the 1 messages of the batch are retried") == len(nonsense), log)
        check(all(words in log for words in expected), log)


def no_more_invocations_than_allowed_and_full_batches_while_they_wait(case):
    ended = threading.Semaphore(0)
    with case.served(), Endpoint(lambda call: ended.acquire(timeout=PATIENCE) and (200, "")) as endpoint:
        url = case.queue("jobs")
        case.send(url, *[str(i) for i in range(40)])
        with case.work(url, "--lambda", endpoint.url, "--concurrency", "2", "--batch-size", "10",
                       "--batch-window", "60") as worker:
            calls = [endpoint.next(), endpoint.next()]
            for _ in range(4):
                ended.release()
            calls += [endpoint.next(), endpoint.next()]
            check([len(records_of(call)) for call in calls] == [10] * 4, calls)
            worker.finish()
        check(endpoint.most == 2, endpoint.most)
        check(sorted(sum(map(bodies_of, calls), []), key=int) == [str(i) for i in range(40)])
        check(case.left(url) == [0, 0], case.left(url))


def lines_at(address):
    with urllib.request.urlopen(address, timeout=PATIENCE) as page:
        return page.read().decode().splitlines()


def messages_that_no_pattern_matches_are_deleted(case):
    with case.served(), Endpoint(lambda call: (200, "")) as endpoint:
        url = case.queue("jobs")
        case.send(url, '{"kind":"order","total":150}', '{"kind":"order","total":5}', "plain", "skip")
        with case.work(url, "--lambda", endpoint.url, "--batch-size", "2", "--batch-window", "60",
                       "--filter", '{"body":{"kind":["order"],"total":[{"numeric":[">",100]}]}}',
                       "--filter", '{"body":["plain"]}', "--metrics", "127.0.0.1:0") as worker:
            check(sorted(bodies_of(endpoint.next())) == ["plain", '{"kind":"order","total":150}'])
            address = json.loads(worker.log.find("metrics at"))["message"].split()[-1]
            # Some messages may be on their way yet, and so may the answer to the invocation.
            deadline = time.monotonic() + PATIENCE
            expected = {"stanchion_work_filtered_total 2", "stanchion_work_invocations_total 1"}
            while not expected <= set(lines := lines_at(address)):
                check(time.monotonic() < deadline, lines)
                time.sleep(0.05)
            worker.finish()
        check(case.left(url) == [0, 0], case.left(url))
        status, _, errors = case.run("work", "--queue-url", url, "--lambda", endpoint.url,
                                     "--filter", '{"body":[{"prefx":"a"}]}')
        check(status == 2 and 'no operator "prefx"' in errors, errors)


def a_fifo_group_stays_in_order_when_a_function_fails(case):
    """The function fails for "b" twice: nothing of its group may be done before it."""
    done, failures = [], collections.Counter()

    def answer(call):
        bodies = bodies_of(call)
        if "b" in bodies and failures["b"] < 2:
            failures["b"] += 1
            done.extend(body for body in bodies[:bodies.index("b")] if body not in "cde")
            # Only "b" is named: the worker knows that what comes after it must wait.
            return failures_of(call, ["b"])
        done.extend(bodies)
        return 200, "{}"

    with case.served(), Endpoint(answer) as endpoint:
        url = case.queue("jobs.fifo", FifoQueue="true")
        case.send_fifo(url, "g", "a", "b", "c", "d", "e")
        with case.work(url, "--lambda", endpoint.url, "--batch-size", "4") as worker:
            case.wait_until_empty(url)
            worker.finish()
        check(done == ["a", "b", "c", "d", "e"], done)
        check(case.left(url) == [0, 0], case.left(url))


def the_concurrency_goes_down_while_a_function_fails(case):
    """After ten batches of failures there is room for half as many messages, and so on."""
    bad = threading.Event()
    bad.set()
    with case.served(), Endpoint(lambda call: (500, "") if bad.is_set() else (200, "")) as endpoint:
        url = case.queue("jobs")
        case.send(url, *[str(i) for i in range(60)])
        with case.work(url, "--lambda", endpoint.url, "--concurrency", "2", "--batch-size", "4",
                       "--visibility", "60") as worker:
            sizes = []
            while len(sizes) < 3 or max(sizes[-3:]) > 2:
                sizes.append(len(records_of(endpoint.next())))
                check(len(sizes) < 500, sizes)
            bad.clear()
            case.wait_until_empty(url)
            worker.finish()
        check(max(sizes[:3]) == 4, sizes)


def mistakes_about_batches_are_said(case):
    with case.served():
        url, fifo = case.queue("main"), case.queue("m.fifo", FifoQueue="true")
        for queue_url, flags, words in [
                (url, ["--batch-size", "11"], "above 10 needs a --batch-window"),
                (fifo, ["--batch-window", "1"], "--batch-window is not for FIFO queues"),
                (url, ["--batch-size", "5000", "--batch-window", "1"], "is 50000, and 10000 messages"),
                (url, ["--reject-to", url], "--reject-to needs --reject-code"),
                (url, ["--cron", "x"], "--cron is for --http")]:
            status, _, errors = case.run("work", "--queue-url", queue_url, "--lambda", "http://h", *flags)
            check(status == 2 and words in errors, errors)
        status, _, errors = case.run("work", "--queue-url", url, "--lambda", "ftp://h")
        check(status == 2 and "--lambda: " in errors, errors)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, WorkCase))
