#!/usr/bin/env python3
"""Runs `stanchion bench` against the real server, and against servers that answer wrongly.

    bench_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import contextlib
import hashlib
import http.server
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

from case import Case, check, run_tests, tests_of
from server import Server, clean_environment, run, write
from signed_client import Client, Key

SHORT = ["--warm-up", "0", "--duration", "0.3", "--connections", "8"]
LONGER = ["--warm-up", "0", "--duration", "5", "--connections", "8"]
KEY = Key("AKIABENCH", "bench secret/+=")
ACCOUNTS = f"""[server]
listen = "127.0.0.1:0"
in_memory = true
threads = 1
[[account]]
id = "111111111111"
[[account.key]]
id = "{KEY.id}"
secret = "{KEY.secret}"
"""


class BenchCase(Case):
    def serve(self, *arguments):
        return Server(self.binary, "--listen", "127.0.0.1:0", "--threads", "1", *arguments,
                      cwd=self.directory)

    def bench(self, url, *arguments, **more):
        return run(self.binary, "bench", "--endpoint", url, *arguments, cwd=self.directory, **more)

    def report(self, url, *arguments, **more):
        """The result of a run, after checking that nothing was wrong."""
        # On a busy machine nothing may come to its end in a short time.
        for how_long in (SHORT, LONGER):
            status, output, errors = self.bench(url, "--json", *how_long, *arguments, **more)
            check(status == 0, f"{status}: {output}{errors}")
            report = json.loads(output)
            if report["result"] > 0:
                break
        check(report["right"] and report["result"] > 0, output)
        check(report["errors"]["refused"] == 0 and report["errors"]["broken"] == 0, output)
        return report


@contextlib.contextmanager
def answering(answer):
    """An HTTP server whose answers are made by answer(action, request) -> (status, object)."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            action = self.headers["X-Amz-Target"].split(".")[1]
            status, reply = answer(action, json.loads(body))
            text = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


class FakeQueue:
    """As much of SQS as a bench of one queue needs, with hooks for wrong answers."""

    def __init__(self, lie=None):
        self.lie, self.waiting, self.lock, self.count = lie, [], threading.Lock(), 0

    def __call__(self, action, request):
        with self.lock:
            return 200, getattr(self, action)(request)

    def CreateQueue(self, request):
        return {"QueueUrl": "http://nowhere/1/" + request["QueueName"]}

    def DeleteQueue(self, _):
        return {}

    def SendMessage(self, request):
        self.count += 1
        body = request["MessageBody"]
        if not (self.lie == "lose" and self.count == 5):
            self.waiting.append(body)
        return {"MD5OfMessageBody": md5(body if self.lie != "md5" else body + "x"),
                "SequenceNumber": str(self.count)}

    def ReceiveMessage(self, _):
        messages = self.waiting[:1]
        self.waiting = self.waiting[1:]
        if self.lie == "disorder" and len(self.waiting) > 2:
            messages, self.waiting = self.waiting[2:3], messages + self.waiting[:2] + self.waiting[3:]
        if self.lie == "damage":
            messages = [m[:-1] + "!" for m in messages]
        return {"Messages": [{"Body": m, "MD5OfBody": md5(m), "ReceiptHandle": "r"}
                             for m in messages]}

    def DeleteMessage(self, _):
        return {}


# Right answers.

def every_workload_runs_and_finds_nothing_wrong(case):
    with case.serve("--data", "d") as server:
        for workload in ("send", "receive", "delete", "cycle", "wake-up"):
            for batch in ("1", "10"):
                report = case.report(server.url, "--workload", workload, "--batch", batch,
                                     "--round", "500")
                check(report["checks"]["md5"] > 0, report)
        check(case.report(server.url, "--busy-poll")["client_cpu"] >= 0, "time spent waiting")
        left = Client(server.url).call("ListQueues")
        check(left.get("QueueUrls", []) == [], left)


def cycles_lose_nothing_in_either_protocol_and_kind(case):
    with case.serve("--in-memory") as server:
        for protocol in ("json", "query"):
            for kind in (["--queues", "3"], ["--fifo"], ["--fifo", "--groups", "7"],
                         ["--groups", "5"]):
                report = case.report(server.url, "--protocol", protocol, "--batch", "3", *kind)
                checks = report["checks"]
                check(checks["drained"] and checks["lost"] == 0, report)
                check(checks["received"] == checks["sent"] > 0, report)


def what_was_sent_can_be_drained_and_counted(case):
    with case.serve("--in-memory") as server:
        report = case.report(server.url, "--workload", "send", "--count", "2345", "--batch", "10",
                             "--drain")
        check(report["checks"]["sent"] == report["checks"]["received"] == 2345, report)
        report = case.report(server.url, "--backlog", "1000", "--count", "200", "--drain")
        check(report["checks"]["received"] == report["checks"]["sent"] >= 1200, report)


def queues_are_kept_on_demand(case):
    with case.serve("--in-memory") as server:
        case.report(server.url, "--workload", "send", "--count", "50", "--keep")
        client = Client(server.url)
        [url] = client.call("ListQueues", QueueNamePrefix="bench-")["QueueUrls"]
        counted = client.call("GetQueueAttributes", QueueUrl=url,
                              AttributeNames=["ApproximateNumberOfMessages"])
        check(counted["Attributes"]["ApproximateNumberOfMessages"] == "50", counted)
        case.report(server.url, "--workload", "send", "--count", "50", "--queue", "mine")
        report = case.report(server.url, "--queue", "mine", "--count", "200")
        check(report["checks"]["foreign"] > 0, report)
        # Each of our messages that stays replaces one of theirs that was taken.
        url = client.call("GetQueueUrl", QueueName="mine")["QueueUrl"]
        counted = client.call("GetQueueAttributes", QueueUrl=url,
                              AttributeNames=["ApproximateNumberOfMessages"])["Attributes"]
        check(40 <= int(counted["ApproximateNumberOfMessages"]) <= 60, counted)


def a_fixed_rate_is_kept(case):
    with case.serve("--in-memory") as server:
        # A busy machine may be too slow for the rate now and then, and never too fast.
        for _ in range(5):
            report = case.report(server.url, "--workload", "send", "--rate", "400", "--duration",
                                 "1")
            check(report["result"] <= 420, report)
            if report["result"] >= 360:
                break
        check(report["result"] >= 360, report)


def requests_are_signed_with_the_keys_of_the_environment(case):
    write(case.directory / "s.toml", ACCOUNTS)
    keys = {"AWS_ACCESS_KEY_ID": KEY.id, "AWS_SECRET_ACCESS_KEY": KEY.secret}
    with Server(case.binary, "--config", "s.toml", cwd=case.directory) as server:
        for protocol in ("json", "query"):
            case.report(server.url, "--protocol", protocol, environment=keys)
        for arguments in ([], ["--anonymous"]):
            status, _, errors = case.bench(server.url, *SHORT, *arguments)
            check(status == 1 and "CreateQueue: HTTP 403: " in errors, errors)


def tls_and_unix_sockets_work(case):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                    "-days", "1", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1"], cwd=case.directory, check=True,
                   capture_output=True)
    with case.serve("--in-memory", "--tls-certificate", "cert.pem", "--tls-key",
                    "key.pem") as server:
        case.report(server.url, "--no-verify", "--body-size", "100000")
        case.report(server.url, "--ca", "cert.pem")
        status, _, errors = case.bench(server.url, *SHORT)
        check(status == 1 and "the server's certificate is not trusted: self-signed certificate. "
              "Name the file of its authority with --ca" in errors, errors)
        status, _, errors = case.bench(server.url, "--ca", "nowhere.pem", *SHORT)
        check(status == 1 and "cannot take the certificates in nowhere.pem" in errors, errors)
    with Server(case.binary, "--in-memory", "--threads", "1", "--unix-socket",
                str(case.directory / "s"), cwd=case.directory) as server:
        case.report(server.url)


def the_ceilings_are_measured_too(case):
    report = case.report("http://unused", "--workload", "fdatasync", "--file", ".")
    check(report["ops"]["fdatasync"]["requests"] > 0, report)
    check(list(case.directory.glob("bench-*")) == [])
    with answering(lambda *_: (200, {})) as url:
        case.report(url, "--workload", "http")


def the_table_is_for_people(case):
    with case.serve("--in-memory") as server:
        status, output, errors = case.bench(server.url, *SHORT)
    check(status == 0 and errors == "", errors)
    check("messages/s" in output and "p99.9" in output and "0 lost" in output, output)


def interrupted(case, server, *arguments):
    """The output of a run that is interrupted once it has sent something."""
    process = subprocess.Popen(
        [case.binary, "bench", "--endpoint", server.url, "--duration", "600", "--warm-up", "0",
         *arguments], stdout=subprocess.PIPE, text=True, env=clean_environment(None))
    client = Client(server.url)
    url, end = None, time.time() + 30
    while time.time() < end:
        if url is None:
            url = next(iter(client.call("ListQueues").get("QueueUrls", [])), None)
            continue
        counted = client.call("GetQueueAttributes", QueueUrl=url,
                              AttributeNames=["All"])["Attributes"]
        if counted["ApproximateNumberOfMessages"] != "0":
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    check(process.returncode == 0, output)
    check(client.call("ListQueues").get("QueueUrls", []) == [])
    return output


def an_interrupted_run_cleans_up_and_reports_the_time_that_it_ran(case):
    with case.serve("--in-memory") as server:
        output = interrupted(case, server)
        check("messages/s" in output and " s, then interrupted; the client" in output, output)
        began = time.time()
        report = json.loads(interrupted(case, server, "--workload", "send", "--json"))
        took = time.time() - began
    # On a busy machine the run may have ended before the first send was counted.
    sent = report["ops"].get("send", {"messages": 0})
    check(report["interrupted"] and 0 < report["seconds"] <= took, report)
    check(abs(report["result"] * report["seconds"] - sent["messages"]) < 1, report)


def the_live_line_counts_as_the_table_does_and_has_the_time_left(case):
    with case.serve("--in-memory") as server:
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [case.binary, "bench", "--endpoint", server.url, "--rate", "200", "--duration", "4",
             "--warm-up", "1"], stdout=subprocess.PIPE, stderr=slave, text=True,
            env=clean_environment({"TERM": "xterm"}))
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):
            while piece := os.read(master, 4096):
                said += piece
        os.close(master)
        output, _ = process.communicate(timeout=30)
    check(process.returncode == 0, output)
    lines = re.findall(r"cycle(, warming up)?: ([\d,]+) messages/s(?: · p50 .*? · p99 .*?)?"
                       r" · (\d+) s left", said.decode())
    check(len(lines) >= 2, said)
    # Each line covers a second or more, so together they have at most what the table has.
    rates = [int(rate.replace(",", "")) for _, rate, _ in lines]
    sent = int(re.search(r"checked: ([\d,]+) sent", output)[1].replace(",", ""))
    check(0 < sum(rates) <= sent, (rates, output))
    left = [int(seconds) for _, _, seconds in lines]
    # A second to warm up and four to measure.
    check(left == sorted(left, reverse=True) and left[0] <= 5, lines)


def the_live_line_is_for_terminals_only(case):
    with case.serve("--in-memory") as server:
        for environment in ({"TERM": "dumb"}, {"TERM": ""}):
            master, slave = pty.openpty()
            done = subprocess.run(
                [case.binary, "bench", "--endpoint", server.url, "--duration", "1.5", "--warm-up",
                 "0"], stdout=subprocess.PIPE, stderr=slave, timeout=60, check=True,
                env=clean_environment(environment))
            os.close(slave)
            said = b""
            with contextlib.suppress(OSError):
                said = os.read(master, 4096)
            os.close(master)
            check(said == b"" and b"\x1b" not in done.stdout, said)


def the_clients_share_of_a_core_is_never_negative(case):
    # On a busy machine, a client that never sleeps is often not running.
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
              for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with case.serve("--in-memory") as server:
            for arguments in ([], ["--workload", "delete", "--round", "200"]):
                report = case.report(server.url, "--busy-poll", *arguments)
                check(0 <= report["client_cpu"] <= 1.1, report)
    finally:
        for process in others:
            process.kill()
            process.wait()


# Wrong ones.

def a_server_that_answers_rightly_passes(case):
    with answering(FakeQueue()) as url:
        case.report(url, "--count", "50")


def wrong_answers_are_found(case):
    for lie, words, extra in (("md5", "the MD5 of ", []), ("damage", "is not what was sent", []),
                              ("disorder", "came after", ["--fifo", "--workload", "send",
                                                          "--drain", "--connections", "1"])):
        with answering(FakeQueue(lie)) as url:
            status, output, errors = case.bench(url, *SHORT, "--count", "50", *extra)
            check(status == 1 and "WRONG: " in output and words in output, output + errors)


def refusals_are_shown(case):
    with answering(lambda *_: (400, {"__type": "Nonsense", "message": "not today"})) as url:
        status, output, errors = case.bench(url, *SHORT)
        check(status == 1 and 'HTTP 400: {"__type": "Nonsense", "message": "not today"}' in errors,
              output + errors)
    with answering(lambda *_: (200, "no queue url")) as url:
        status, _, errors = case.bench(url, *SHORT)
        check(status == 1 and "this answer is not one of SQS" in errors, errors)


def nobody_there_is_said_clearly(case):
    with answering(FakeQueue()) as url:
        pass
    status, output, errors = case.bench(url, *SHORT)
    check(status == 1 and output == "" and
          errors == f"stanchion: {url}: cannot connect: Connection refused\n", errors)
    status, _, errors = case.bench("nonsense", *SHORT)
    check(status == 1 and "--endpoint: " in errors, errors)
    status, _, errors = case.bench(url, "--workload", "juggle")
    check(status == 2 and "--workload juggle" in errors, errors)
    status, _, errors = case.bench(url, "--batch", "11", "--connections", "0")
    check(status == 2 and len(errors.splitlines()) == 2, errors)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__, BenchCase))
