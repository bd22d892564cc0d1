#!/usr/bin/env python3
"""The figures of the real server: exact sums, who may see them, and Prometheus itself.

    metrics_test.py --binary build/release/stanchion [NAME...]

Needs Debian's package prometheus, which has promtool. The last line says how many tests passed and
failed.
"""
import contextlib
import http.client
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, run_tests, tests_of
from signed_client import Client

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
MONITORING = DOCS / "monitoring"
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
NAME = re.compile(r"\b(?:stanchion|process)_[a-z_]+\b")
TOKEN = "a-token-of-a-test-0123456789"

# What is counted from the same records as the messages.
KEPT = ("sent", "sent_bytes", "received", "deleted", "dead_lettered", "moved_away", "moved_here")

QUEUES = 10_000
PAGE_SECONDS_MAX = 1.0
ROUNDS = 5
ROUNDS_MAX = 10
PATIENCE_SECONDS = 60
# Whole pages for each of them would take gigabytes.
SILENT_READERS = 130
SILENT_BYTES_MAX = 128 << 20
LARGE_PAGE = 20_000_000


def fetch(url, token=None, **headers):
    """(status, body) of a GET."""
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers),
                                    timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Page:
    """What a server shows at this moment."""

    def __init__(self, url, token=None):
        status, self.text = fetch(url + "/metrics", token)
        check(status == 200, f"{status} {self.text[:300]}")
        self.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.text, re.MULTILINE))
        self.samples = {}
        for line in self.text.splitlines():
            if line.startswith("#"):
                continue
            match = SAMPLE.match(line)
            check(match, line)
            key = (match[1], frozenset(LABEL.findall(match[2] or "")))
            check(key not in self.samples, f"twice: {line}")
            self.samples[key] = float(match[3])

    def sum(self, name, **labels):
        wanted = frozenset(labels.items())
        found = [value for (of, have), value in self.samples.items()
                 if of == name and wanted <= have]
        check(found, f"no {name} with {labels}")
        return sum(found)

    def kept(self, queue):
        return {what: self.sum(f"stanchion_messages_{what}_total", queue=queue) for what in KEPT}

    def queues(self):
        return {value for _, have in self.samples for label, value in have if label == "queue"}


def wait_until(what, condition):
    """For what other processes do in their own time."""
    waiting = threading.Event()
    end = time.monotonic() + PATIENCE_SECONDS
    while not (result := condition()):
        check(time.monotonic() < end, f"did not happen: {what}")
        waiting.wait(0.05)
    return result


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def promtool(*arguments, **more):
    done = subprocess.run(["promtool", *arguments], text=True, capture_output=True, timeout=60,
                          **more)
    check(done.returncode == 0, f"promtool {arguments}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Traffic:
    """Calls whose effects are known to the last message."""

    def __init__(self, url, key=None):
        self.client, self.base = Client(url, key), url + "/000000000000/"

    def create(self, name, **attributes):
        self.client.call("CreateQueue", QueueName=name, Attributes=attributes)

    def call(self, action, queue, **parameters):
        return self.client.call(action, QueueUrl=self.base + queue, **parameters)

    def receive(self, queue, timeout):
        return self.call("ReceiveMessage", queue, MaxNumberOfMessages=10,
                         VisibilityTimeout=timeout).get("Messages", [])

    def send_receive_and_delete(self):
        """50 sent with 250 bytes, 50 received, 30 deleted, one of them again."""
        for number in range(20):
            self.call("SendMessage", "orders", MessageBody=f"m{number:04}")
        for _ in range(3):
            entries = [{"Id": str(i), "MessageBody": "batch"} for i in range(10)]
            self.call("SendMessageBatch", "orders", Entries=entries)
        received = []
        while len(received) < 50:
            received += self.receive("orders", 600)
        for message in received[:10]:
            self.call("DeleteMessage", "orders", ReceiptHandle=message["ReceiptHandle"])
        for begin in (10, 20):
            self.call("DeleteMessageBatch", "orders", Entries=[
                {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]}
                for i, m in enumerate(received[begin:begin + 10])])
        self.call("DeleteMessage", "orders", ReceiptHandle=received[0]["ReceiptHandle"])
        check(not self.receive("orders", 600))

    def repeat_sends(self):
        """Two sent, three repetitions dropped."""
        for identity in ("a", "a", "b", "b", "b"):
            self.call("SendMessage", "steps.fifo", MessageBody="x", MessageGroupId="g",
                      MessageDeduplicationId=identity)

    def make_dead_letters(self):
        """Five sent, received once and moved."""
        for _ in range(5):
            self.call("SendMessage", "poison", MessageBody="bad")
        taken = 0
        while taken < 5:
            taken += len(self.receive("poison", 0))
        while self.receive("poison", 0):
            pass


def serve(test, *more):
    return test.serve("--data", str(test.directory / "data"), "--listen", "127.0.0.1:0",
                      "--threads", "2", *more)


def sums_are_exact_and_survive_a_crash(case):
    with serve(case) as server:
        traffic = Traffic(server.url)
        traffic.create("orders")
        traffic.create("dead")
        traffic.create("poison", RedrivePolicy=json.dumps({
            "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead",
            "maxReceiveCount": 1}))
        traffic.create("steps.fifo", FifoQueue="true")
        traffic.send_receive_and_delete()
        traffic.repeat_sends()
        traffic.make_dead_letters()
        page = wait_until("all dead letters are moved", lambda: next(
            (p for p in [Page(server.url)]
             if p.sum("stanchion_messages_dead_lettered_total", queue="poison") == 5), None))
        nothing = dict.fromkeys(KEPT, 0)
        expected = {
            "orders": {**nothing, "sent": 50, "sent_bytes": 250, "received": 50, "deleted": 30},
            "steps.fifo": {**nothing, "sent": 2, "sent_bytes": 2},
            "poison": {**nothing, "sent": 5, "sent_bytes": 15, "received": 5, "dead_lettered": 5},
            "dead": {**nothing, "moved_here": 5}}
        check_kept(page, expected)
        check(page.sum("stanchion_messages_deduplicated_total", queue="steps.fifo") == 3)
        check(page.sum("stanchion_repeated_deletes_total", queue="orders") == 1)
        check(page.sum("stanchion_empty_receives_total", queue="orders") == 1)
        check(page.sum("stanchion_messages_in_flight", queue="orders") == 20)
        check(page.sum("stanchion_messages_visible", queue="dead") == 5)
        check(page.sum("stanchion_request_duration_seconds_count", action="SendMessage") == 30)
        server.process.kill()
        server.process.wait()
    with serve(case) as server:
        check_kept(Page(server.url), expected)
        Traffic(server.url).send_receive_and_delete()
        expected["orders"] = {**nothing, "sent": 100, "sent_bytes": 500, "received": 100,
                              "deleted": 60}
        check_kept(Page(server.url), expected)
    with serve(case) as server:
        check_kept(Page(server.url), expected)


def check_kept(page, expected):
    for queue, numbers in expected.items():
        check(page.kept(queue) == numbers, f"{queue}: {page.kept(queue)}, not {numbers}")


def acknowledged_sends_are_counted_however_often_the_server_is_killed(case):
    acknowledged = 0
    for _ in range(3):
        with serve(case) as server:
            traffic = Traffic(server.url)
            traffic.create("orders")
            enough = threading.Event()
            outcome = []

            def send():
                done = 0
                with contextlib.suppress(OSError, http.client.HTTPException):
                    while True:
                        traffic.call("SendMessage", "orders", MessageBody="x")
                        done += 1
                        if done == 100:
                            enough.set()
                outcome.append(done)

            sender = threading.Thread(target=send)
            sender.start()
            check(enough.wait(PATIENCE_SECONDS))
            seen = Page(server.url).sum("stanchion_messages_sent_total", queue="orders")
            server.process.kill()
            sender.join()
            server.process.wait()
        acknowledged += outcome[0]
        with serve(case) as server:
            sent = Page(server.url).sum("stanchion_messages_sent_total", queue="orders")
            visible = Page(server.url).sum("stanchion_messages_visible", queue="orders")
        # One more may have been written when the server was killed, and not acknowledged.
        check(acknowledged <= sent <= acknowledged + 1, f"{acknowledged} {sent}")
        check(sent == visible, f"{sent} {visible}")
        check(sent >= seen, f"{sent} after {seen} were shown")
        acknowledged = int(sent)


def with_accounts_the_page_needs_a_token_or_a_port_of_its_own(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        status, text = fetch(server.url + "/metrics")
        check(status == 403 and "metrics.token" in text, f"{status} {text}")
    port = free_port()
    own = f"http://127.0.0.1:{port}"
    with case.serve_config(IN_MEMORY + f'[metrics]\nlisten = "127.0.0.1:{port}"\n'
                           + ACCOUNTS) as server:
        Client(server.url, ALICE).call("CreateQueue", QueueName="hers")
        check(fetch(server.url + "/metrics")[0] == 403)
        check("hers" in Page(own).queues())
        check(fetch(own + "/")[0] == 404)
        check(fetch(own + "/health/ready")[0] == 404)
        check(fetch(own + "/metrics", Host="evil.example")[0] == 403)
    with case.serve_config(IN_MEMORY + f'[metrics]\ntoken = "{TOKEN}"\n'
                           f'listen = "127.0.0.1:{port}"\n' + ACCOUNTS) as server:
        for url in (server.url, own):
            status, text = fetch(url + "/metrics")
            check(status == 401 and TOKEN not in text, f"{status} {text}")
            check(fetch(url + "/metrics", TOKEN[:-1])[0] == 401)
            Page(url, TOKEN)


def the_token_is_not_shown(case):
    _, output, errors = case.run("serve", "--print-config", "--metrics-token", TOKEN)
    check("[metrics]" in output and TOKEN not in output + errors, output + errors)
    status, _, errors = case.run("serve", "--metrics-listen", "0.0.0.0:9325", "--in-memory")
    check(status != 0 and "metrics.token" in errors, errors)


def the_page_can_be_limited_to_some_queues(case):
    for setting, expected in (("none", set()), ("orders*", {"orders", "orders-eu"}),
                              ("all", {"orders", "orders-eu", "bills"})):
        with case.serve_config(IN_MEMORY, "--metrics-queues", setting) as server:
            for name in ("orders", "orders-eu", "bills"):
                Traffic(server.url).create(name)
            page = Page(server.url)
            check(page.queues() == expected, f"{setting}: {page.queues()}")
            check(page.sum("stanchion_queues") == 3)


def one_account_does_not_make_the_page_too_long(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS + f'[metrics]\ntoken = "{TOKEN}"\n'
                           "queues_per_account = 2\n") as server:
        for name in ("c", "a", "b", "d"):
            Client(server.url, ALICE).call("CreateQueue", QueueName=name)
        Client(server.url, BOB).call("CreateQueue", QueueName="z")
        page = Page(server.url, TOKEN)
        check(page.queues() == {"a", "b", "z"}, page.queues())
        check(page.sum("stanchion_queues_left_out") == 2)
        check(page.sum("stanchion_queues_left_out", account="111111111111") == 2)
        check(page.sum("stanchion_queues") == 5)
        for name, target in ("ab", "bc", "cd"):
            policy = redrive_to(target).replace("000000000000", "111111111111")
            Client(server.url, ALICE).call("SetQueueAttributes", QueueUrl=name,
                                           Attributes={"RedrivePolicy": policy})
        page = Page(server.url, TOKEN)
        check(page.sum("stanchion_dead_letter_queue", queue="b") == 1)
        check(page.sum("stanchion_dead_letter_queue") == 2)
        check(page.sum("stanchion_dead_letter_queues_left_out", account="111111111111") == 1)


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) << 10


def readers_that_do_not_read_cost_little_and_keep_nobody_from_reading(case):
    with case.serve_config(IN_MEMORY) as server, contextlib.ExitStack() as kept:
        caller = KeptConnection(server.url)
        for number in range(QUEUES):
            caller.call("CreateQueue", QueueName=f"{'long-name-' * 7}{number:05}")
        size = len(Page(server.url).text)
        check(size > LARGE_PAGE, size)
        before = resident_bytes(server)
        at = urllib.parse.urlsplit(server.url)
        silent = []
        for _ in range(SILENT_READERS):
            silent.append(kept.enter_context(socket.create_connection((at.hostname, at.port))))
            silent[-1].sendall(f"GET /metrics HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
        for one in silent:  # Each has begun to get its answer.
            check(one.recv(1) == b"H")
        grown = resident_bytes(server) - before
        for _ in range(3):
            check(len(Page(server.url).queues()) == QUEUES)
        grown = max(grown, resident_bytes(server) - before)
        print(f"note: a page of {size / 1e6:.1f} MB, {SILENT_READERS} silent readers: "
              f"{grown / 2**20:.1f} MiB more")
        check(grown < SILENT_BYTES_MAX, grown)


def redrive_to(name):
    return json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:000000000000:{name}",
                       "maxReceiveCount": 3})


def dead_letter_queues_are_told_from_others_whichever_queues_are_shown(case):
    for setting, expected in (("none", set()), ("all", {"dead"}), ("active", {"dead"}),
                              ("dead*", {"dead"}), ("orders*", set())):
        with case.serve_config(IN_MEMORY, "--metrics-queues", setting) as server:
            traffic = Traffic(server.url)
            for name in ("dead", "plain"):
                traffic.create(name)
            for name in ("orders", "bills"):
                traffic.create(name, RedrivePolicy=redrive_to("dead"))
            marked = [dict(labels) for name, labels in Page(server.url).samples
                      if name == "stanchion_dead_letter_queue"]
            check({one["queue"] for one in marked} == expected, f"{setting}: {marked}")
            for one in marked:
                check(one == {"account": "000000000000", "region": "us-east-1", "queue": "dead"})
            # A policy that is taken back marks nothing.
            for name in ("orders", "bills"):
                traffic.call("SetQueueAttributes", name, Attributes={"RedrivePolicy": ""})
            check(not [name for name, _ in Page(server.url).samples
                       if name == "stanchion_dead_letter_queue"], setting)


def used_server(test):
    """A server whose page shows every metric that there is."""
    server = serve(test)
    traffic = Traffic(server.url)
    traffic.create("dead")
    traffic.create("orders", RedrivePolicy=redrive_to("dead"))
    traffic.call("SendMessage", "orders", MessageBody="x")
    with contextlib.suppress(Exception):
        traffic.call("SendMessage", "no-such-queue", MessageBody="x")
    return server


def promtool_accepts_the_page(case):
    with used_server(case) as server:
        page = Page(server.url)
        said = promtool("check", "metrics", input=page.text)
        check(not said.strip(), said)


def every_metric_is_documented_with_its_type(case):
    # What a node of a fleet has besides is held by the fleet's own test.
    rows = [row for row in re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|",
                                      (DOCS / "metrics.md").read_text(), re.MULTILINE)
            if not row[0].startswith("stanchion_fleet_")]
    with used_server(case) as server:
        types = Page(server.url).types
    check(dict(rows) == types and len(rows) == len(types), set(rows) ^ set(types.items()))


def dashboard_and_rules_name_only_metrics_that_exist(case):
    with used_server(case) as server:
        exist = {name for name, _ in Page(server.url).samples}
    dashboard = json.loads((MONITORING / "stanchion-dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"]
             for target in panel.get("targets", [])]
    check(len(shown) > 20)
    shown += [variable["query"]["query"] for variable in dashboard["templating"]["list"]
              if variable["type"] == "query"]
    rules = (MONITORING / "stanchion-alerts.yml").read_text()
    for text in (*shown, rules):
        # A fleet's test compares those of a node with the documentation.
        unknown = {name for name in set(NAME.findall(text)) - exist
                   if not name.startswith("stanchion_fleet_")}
        check(not unknown, f"{unknown} in {text[:300]}")
    check({panel["id"] for panel in dashboard["panels"]}
          == set(range(1, len(dashboard["panels"]) + 1)))


def alert_rules_are_valid_and_fire_when_they_should(case):
    promtool("check", "rules", str(MONITORING / "stanchion-alerts.yml"))
    promtool("test", "rules", "stanchion-alerts-test.yml", cwd=MONITORING)
    alerts = re.findall(r"- alert: (\w+)", (MONITORING / "stanchion-alerts.yml").read_text())
    tests = (MONITORING / "stanchion-alerts-test.yml").read_text()
    for alert in alerts:
        check(re.search(rf"alertname: {alert}\n\s+exp_alerts:\n", tests), f"{alert} never fires")
        check(re.search(rf"alertname: {alert}\n\s+exp_alerts: \[\]\n", tests),
              f"{alert} always fires")


@contextlib.contextmanager
def prometheus(case, target, token_file):
    """Debian's Prometheus, scraping the target; its URL."""
    configuration = case.file("prometheus.yml", f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{MONITORING / 'stanchion-alerts.yml'}"]
scrape_configs:
  - job_name: stanchion
    authorization: {{credentials_file: "{token_file}"}}
    static_configs: [{{targets: ["{target}"]}}]
""")
    promtool("check", "config", configuration)
    port = free_port()
    with open(case.directory / "prometheus.log", "w") as log, subprocess.Popen(
            ["prometheus", f"--config.file={configuration}",
             f"--storage.tsdb.path={case.directory / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def query(url, expression):
    """The values by their labels; none while Prometheus is not ready."""
    try:
        status, text = fetch(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
    except OSError:
        return []
    return json.loads(text)["data"]["result"] if status == 200 else []


def prometheus_scrapes_the_server(case):
    token_file = case.file("token", TOKEN)
    with serve(case, "--metrics-token", TOKEN) as server:
        traffic = Traffic(server.url)
        traffic.create("orders")
        for _ in range(3):
            traffic.call("SendMessage", "orders", MessageBody="x")
        with prometheus(case, urllib.parse.urlsplit(server.url).netloc, token_file) as url:
            wait_until("Prometheus has seen all sends", lambda: [
                row for row in query(url, 'stanchion_messages_sent_total{queue="orders"}')
                if row["value"][1] == "3"])
            row, = wait_until("Prometheus has seen what is visible", lambda: query(
                url, "stanchion_messages_visible == 3"))
            labels = row["metric"]
            check(labels["account"] == "000000000000" and labels["region"] == "us-east-1"
                  and labels["queue"] == "orders" and row["value"][1] == "3", row)
            wait_until("the server is up for Prometheus", lambda: query(
                url, 'up{job="stanchion"} == 1'))
            rules = wait_until("all rules are evaluated", lambda: rules_of(url))
            check(all(rule["health"] == "ok" for rule in rules), rules)


def rules_of(url):
    """All rules once each was evaluated."""
    groups = json.loads(fetch(url + "/api/v1/rules")[1])["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None


class KeptConnection:
    """Calls over one connection, so that its set-up is not measured."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)

    def call(self, action, **parameters):
        began = time.perf_counter()
        self.connection.request("POST", "/", json.dumps(parameters), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action})
        answer = self.connection.getresponse()
        answer.read()
        check(answer.status == 200, answer.status)
        return time.perf_counter() - began


def page_and_calls(server, call):
    """How long a page takes, and how long each call meanwhile."""
    # Another process reads the page, so that this one has time for calls.
    with subprocess.Popen(["curl", "-sS", "-o", "/dev/null", "-w", "%{time_total}",
                           server.url + "/metrics"], text=True,
                          stdout=subprocess.PIPE) as scraper:
        calls = [call()]
        while scraper.poll() is None:
            calls.append(call())
        return float(scraper.stdout.read()), calls


def ten_thousand_queues_take_less_than_a_second_and_calls_go_on(case):
    with case.serve_config(IN_MEMORY) as server:
        caller = KeptConnection(server.url)
        for number in range(QUEUES):
            caller.call("CreateQueue", QueueName=f"queue-{number}")
        page = Page(server.url)
        check(len(page.queues()) == QUEUES and page.sum("stanchion_queues") == QUEUES)
        url = f"{server.url}/000000000000/queue-0"
        pages, calls, waits = [], [], []
        # Other tests may take the processors for a moment, but not in every round.
        while len(pages) < ROUNDS or len(pages) < ROUNDS_MAX and (
                min(pages) >= PAGE_SECONDS_MAX or min(waits) >= 0.5):
            seconds, meanwhile = page_and_calls(server, lambda: caller.call(
                "SendMessage", QueueUrl=url, MessageBody="x"))
            pages.append(seconds)
            calls += meanwhile
            waits.append(max(meanwhile) / seconds)
        usual = statistics.median(calls)
        late = statistics.quantiles(calls, n=20)[-1]
        print(f"note: {QUEUES} queues: a page of {len(page.text) / 1e6:.1f} MB in "
              f"{min(pages) * 1e3:.0f} ms at best, {max(pages) * 1e3:.0f} at worst; calls "
              f"meanwhile {usual * 1e3:.2f} ms, 95 % below {late * 1e3:.2f}, all below "
              f"{max(calls) * 1e3:.1f}")
        check(min(pages) < PAGE_SECONDS_MAX, pages)
        # A server that makes the page in one go lets a call wait for most of it.
        check(min(waits) < 0.5, waits)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
