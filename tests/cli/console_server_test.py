#!/usr/bin/env python3
"""The server's side of the console, as a program sees it: streams of events, calls, figures.

    console_server_test.py --binary build/release/stanchion [NAME...]

The last line says how many tests passed and failed.
"""
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, run_tests, tests_of
from signed_client import Client
from virtual_time import advance
from virtual_time import ask as ask_clock

PATIENCE_SECONDS = 60
STREAMS_MAX = 200
SESSIONS_PER_ACCOUNT = 100
GUESSES_MAX = 10
KEY_GUESSES_MAX = 50
GUESS_SECONDS = 1
# A server that stops cuts connections off after ten seconds.
STOP_SECONDS_MAX = 9
COMMENT_SECONDS = 15
TRIES = 10_000
ONE_READER_ACCOUNTS = ACCOUNTS[:ACCOUNTS.index('[[account]]\nid = "222222222222"')]


class Stream:
    """A stream of events, as a browser reads it."""

    def __init__(self, url, query="", http_1_0=False, context=None, **headers):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=PATIENCE_SECONDS)
        if context:
            self.socket = context.wrap_socket(self.socket)
        lines = [f"GET /console/events{query} HTTP/1.{0 if http_1_0 else 1}", f"Host: {at.netloc}",
                 *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        self.status = self.answer.status

    def block(self):
        """The next lines up to an empty one; None at the end of the stream."""
        lines = []
        while line := self.answer.readline():
            line = line.decode().rstrip("\n")
            if not line:
                return lines
            lines.append(line)
        return None

    def event(self):
        """The next event; None at the end of the stream."""
        while (lines := self.block()) is not None:
            for line in lines:
                if line.startswith("data: "):
                    return json.loads(line.removeprefix("data: "))
        return None

    def event_with(self, holds):
        """The next event of which `holds` is true."""
        end = time.time() + PATIENCE_SECONDS
        while time.time() < end:
            event = self.event()
            check(event is not None, "the stream has ended")
            if holds(event):
                return event
        raise AssertionError(f"still {event}")

    def close(self):
        self.answer.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def post(url, path, body, cookie=None, address=None, **headers):
    """(status, answer, body) of a call that the console's own page makes, from an address of this
    machine."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc,
                                            timeout=PATIENCE_SECONDS,
                                            source_address=address and (address, 0))
    given = {"Origin": url, "X-Stanchion-Console": "1", "Sec-Fetch-Site": "same-origin",
             "Content-Type": "application/x-amz-json-1.0", **headers}
    if cookie:
        given["Cookie"] = cookie
    connection.request("POST", path, body=json.dumps(body), headers=given)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer, text


def sign_in(url, key):
    """The cookie of a new session."""
    status, answer, text = post(url, "/console/sign-in", {"id": key.id, "secret": key.secret})
    check(status == 200, text)
    return answer.headers.get_all("Set-Cookie")[0].split(";")[0]


def named(event, name):
    return next((queue for queue in event["queues"] if queue["name"] == name), None)


def a_stream_brings_each_change(case):
    with case.serve_config(IN_MEMORY) as server, Stream(server.url) as stream:
        check(stream.answer.getheader("Content-Type") == "text/event-stream")
        check(stream.answer.getheader("Transfer-Encoding") == "chunked")
        check(stream.block() == ["retry: 2000"])
        event = stream.event()
        check(event.pop("now") > 0 and event == {"queues": [], "matching": 0, "total": 0}, event)
        client = Client(server.url)
        client.call("CreateQueue", QueueName="dead")
        client.call("CreateQueue", QueueName="orders", Attributes={
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead",
                                         "maxReceiveCount": 3})})
        client.call("CreateQueue", QueueName="steps.fifo", Attributes={"FifoQueue": "true"})
        event = stream.event_with(lambda event: event["total"] == 3)
        dead = named(event, "dead")
        check(dead["sources"] == ["orders"] and dead["sourceCount"] == 1, dead)
        queue = named(event, "orders")
        check(queue == {"name": "orders", "visible": 0, "inFlight": 0, "delayed": 0, "sent": 0,
                        "received": 0, "deleted": 0, "oldest": None, "fifo": False, "groups": 0,
                        "noisyGroups": 0, "deadLetter": "dead", "sources": [],
                        "sourceCount": 0}, queue)
        for body in "ab":
            client.call("SendMessage", QueueUrl="orders", MessageBody=body)
            client.call("SendMessage", QueueUrl="steps.fifo", MessageBody=body, MessageGroupId=body,
                        MessageDeduplicationId=body)
        client.call("SendMessage", QueueUrl="orders", MessageBody="later", DelaySeconds=900)
        taken = client.call("ReceiveMessage", QueueUrl="orders")["Messages"]
        client.call("DeleteMessage", QueueUrl="orders", ReceiptHandle=taken[0]["ReceiptHandle"])
        event = stream.event_with(lambda event: named(event, "orders")["deleted"] == 1)
        queue = named(event, "orders")
        check(queue["visible"] == 1 and queue["delayed"] == 1 and queue["inFlight"] == 0, queue)
        check(queue["sent"] == 3 and queue["received"] == 1 and queue["oldest"] >= 0, queue)
        steps = named(event, "steps.fifo")
        check(steps["fifo"] and steps["groups"] == 2 and steps["deadLetter"] is None, steps)


def views_differ_by_filter_and_order(case):
    with case.serve_config(IN_MEMORY) as server, contextlib.ExitStack() as streams:
        client = Client(server.url)
        for i in range(300):
            client.call("CreateQueue", QueueName=f"q{i:03}")
        client.call("SendMessage", QueueUrl="q123", MessageBody="x")
        first = {query: streams.enter_context(Stream(server.url, query)).event()
                 for query in ("", "?sort=visible", "?filter=q12", "?sort=nonsense&filter=none",
                               "?filter=q12&only=queue", "?filter=q123&only=queue",
                               "?only=dead-letters")}
        check(first["?filter=q12&only=queue"]["matching"] == 0)
        check(first["?filter=q123&only=queue"]["matching"] == 1)
        check(first["?only=dead-letters"]["matching"] == 0)
        check(first["?sort=visible"]["queues"][0]["name"] == "q123")
        check(first[""]["total"] == 300 and len(first[""]["queues"]) == 200
              and first[""]["queues"][0]["name"] == "q000")
        check(first["?filter=q12"]["matching"] == 10 and first["?filter=q12"]["total"] == 300)
        check(first["?sort=nonsense&filter=none"]["queues"] == [])


def what_has_not_changed_is_not_sent_again(case):
    with case.serve_config(IN_MEMORY) as server:
        began = time.monotonic()
        with Stream(server.url) as stream:
            check(stream.event()["total"] == 0)
            check(stream.block() == [":"])
            check(time.monotonic() - began > COMMENT_SECONDS - 2)
            Client(server.url).call("CreateQueue", QueueName="made")
            check(stream.event()["total"] == 1)


def a_stream_tells_the_servers_time_and_when_it_was_moved(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n") as server, \
            Stream(server.url) as stream:
        before = stream.event()["now"]
        moved = advance(server.url, 3 * 3600)["nowMillis"]
        # There is nothing else to tell of, so that an unmoved clock would have a comment follow.
        told = stream.block()
        check(told != [":"], "the stream did not tell that the clock was moved")
        now = json.loads(told[0].removeprefix("data: "))["now"]
        check(now >= max(moved, before + 3 * 3600 * 1000), now)


def old_clients_and_tls_are_served_too(case):
    certificate, key = case.directory / "cert.pem", case.directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj",
                    "/CN=localhost", "-days", "1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    with case.serve_config(IN_MEMORY) as server, Stream(server.url, http_1_0=True) as stream:
        check(stream.answer.getheader("Transfer-Encoding") is None)
        check(stream.event()["total"] == 0)
        Client(server.url).call("CreateQueue", QueueName="made")
        check(stream.event()["total"] == 1)
    tls = f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    with case.serve_config(IN_MEMORY + tls) as server, \
            Stream(server.url, context=ssl._create_unverified_context()) as stream:
        check(stream.event()["total"] == 0)
        Client(server.url).call("CreateQueue", QueueName="made")
        check(stream.event()["total"] == 1)


def a_stream_ends_with_its_session_and_shows_its_account_only(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        check(Stream(server.url).status == 204)
        Client(server.url, ALICE).call("CreateQueue", QueueName="alices")
        Client(server.url, BOB).call("CreateQueue", QueueName="bobs")
        cookies = {key.id: sign_in(server.url, key) for key in (ALICE, BOB)}
        with Stream(server.url, Cookie=cookies[ALICE.id]) as hers, \
                Stream(server.url, Cookie=cookies[BOB.id]) as his:
            check([queue["name"] for queue in hers.event()["queues"]] == ["alices"])
            check([queue["name"] for queue in his.event()["queues"]] == ["bobs"])
            check(post(server.url, "/console/sign-out", {}, cookies[ALICE.id])[0] == 200)
            check(hers.event() is None)
            check(Stream(server.url, Cookie=cookies[ALICE.id]).status == 204)
            # And with the account itself.
            case.file("s.toml", IN_MEMORY + ONE_READER_ACCOUNTS)
            server.reload("reloaded: 1 accounts")
            check(his.event() is None)


def list_queues(url, cookie):
    """The status of a call as the session."""
    return post(url, "/console/api", {}, cookie, **{"X-Amz-Target": "AmazonSQS.ListQueues"})[0]


def a_session_ends_with_the_secret_and_the_account_of_its_key(case):
    other_secret = ACCOUNTS.replace(ALICE.secret, "another secret of alice")
    swapped = ACCOUNTS.replace("111111111111", "333333333333")
    for changed in (other_secret, swapped):
        with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
            cookie, bobs = sign_in(server.url, ALICE), sign_in(server.url, BOB)
            case.file("s.toml", IN_MEMORY + ACCOUNTS + "# The same.\n")
            server.reload("reloaded: 2 accounts")
            check(list_queues(server.url, cookie) == 200)
            with Stream(server.url, Cookie=cookie) as stream:
                check(stream.event()["total"] == 0)
                case.file("s.toml", IN_MEMORY + changed)
                server.reload("reloaded: 2 accounts")
                check(stream.event() is None)
            check(list_queues(server.url, cookie) == 401)
            check(Stream(server.url, Cookie=cookie).status == 204)
            check(list_queues(server.url, bobs) == 200)
            # It is forgotten, also if the key becomes what it was.
            case.file("s.toml", IN_MEMORY + ACCOUNTS)
            server.reload("reloaded: 2 accounts")
            check(list_queues(server.url, cookie) == 401)
            check(list_queues(server.url, sign_in(server.url, ALICE)) == 200)


def sessions_of_one_account_do_not_end_those_of_another(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        bobs = sign_in(server.url, BOB)
        first = sign_in(server.url, ALICE)
        hers = [sign_in(server.url, ALICE) for _ in range(SESSIONS_PER_ACCOUNT)]
        check(list_queues(server.url, bobs) == 200)
        check(list_queues(server.url, first) == 401)
        check(list_queues(server.url, hers[0]) == 200 and list_queues(server.url, hers[-1]) == 200)


def streams_of_one_account_leave_room_for_those_of_another(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server, contextlib.ExitStack() as kept:
        hers, his = sign_in(server.url, ALICE), sign_in(server.url, BOB)
        for _ in range(STREAMS_MAX):
            check(kept.enter_context(Stream(server.url, Cookie=hers)).status == 200)
        check(kept.enter_context(Stream(server.url, Cookie=hers)).status == 503)
        with Stream(server.url, Cookie=his) as stream:
            check(stream.status == 200 and stream.event()["total"] == 0)


def guess(url, key_id, address, count):
    """The answers to so many wrong sign-ins at once."""
    answers = []

    def one(number):
        answers.append(post(url, "/console/sign-in", {"id": key_id, "secret": f"guess {number}"},
                            address=address))

    guesses = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in guesses:
        thread.start()
    for thread in guesses:
        thread.join()
    return answers


def who_guesses_secrets_waits_and_is_written_down(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        began = time.monotonic()
        answers = guess(server.url, ALICE.id, "127.0.0.2", GUESSES_MAX - 1)
        check([status for status, _, _ in answers] == [403] * (GUESSES_MAX - 1), answers)
        check(time.monotonic() - began >= GUESS_SECONDS)
        line = server.wait_for_log("sign-in")
        check("from 127.0.0.2" in line and ALICE.id in line and "guess" not in line, line)
        # What is no key at all might be a secret in the wrong field.
        check(guess(server.url, "what-may-be-a-secret", "127.0.0.2", 1)[0][0] == 403)
        line = server.wait_for_log("does not exist")
        check("the next one is accepted in" in line and "what-may-be" not in line, line)
        # Now even what is right is not heard, but from elsewhere it is.
        right = {"id": ALICE.id, "secret": ALICE.secret}
        for _ in range(100):
            status, answer, text = post(server.url, "/console/sign-in", right, address="127.0.0.2")
            check(status == 429 and 0 < int(answer.getheader("Retry-After")) <= 30, text)
        check(post(server.url, "/console/sign-in", right, address="127.0.0.3")[0] == 200)
        check(server.stop()[1].count("sign-in") == GUESSES_MAX)


def behind_a_proxy_its_clients_are_told_apart(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS, "--trust-forwarded") as server:
        def sign_in_from(address, secret):
            return post(server.url, "/console/sign-in", {"id": ALICE.id, "secret": secret},
                        **{"X-Forwarded-For": f"9.9.9.9, {address}"})[0]

        tries = [threading.Thread(target=sign_in_from, args=("192.0.2.7", "wrong"))
                 for _ in range(GUESSES_MAX)]
        for thread in tries:
            thread.start()
        for thread in tries:
            thread.join()
        check("from 192.0.2.7" in server.wait_for_log("sign-in"))
        check(sign_in_from("192.0.2.7", ALICE.secret) == 429)
        check(sign_in_from("192.0.2.8", ALICE.secret) == 200)


def whoever_fails_with_a_key_does_not_lock_out_its_owner(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS, "--trust-forwarded") as server:
        def sign_in_from(address, secret):
            return post(server.url, "/console/sign-in", {"id": ALICE.id, "secret": secret},
                        **{"X-Forwarded-For": address})[0]

        # No address reaches its own limit, so what is refused is so by that of the key.
        addresses = [f"198.51.100.{i % 20}" for i in range(3 * KEY_GUESSES_MAX)]
        check(addresses.count(addresses[0]) < GUESSES_MAX)
        with ThreadPoolExecutor(KEY_GUESSES_MAX) as pool:
            tries = list(pool.map(lambda address: sign_in_from(address, "wrong"), addresses))
        check(tries.count(403) >= KEY_GUESSES_MAX and 429 in tries, tries)
        check(sign_in_from("192.0.2.7", ALICE.secret) == 200)


def a_sign_in_is_small(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        right = {"id": ALICE.id, "secret": ALICE.secret}
        status, _, text = post(server.url, "/console/sign-in", {**right, "more": "x" * 4096})
        check(status == 413 and b"only" in text, text)
        status, _, _ = post(server.url, "/console/sign-in", [[]] * 1_000_000)
        check(status == 413)
        check(post(server.url, "/console/sign-in", {**right, "more": "x" * 2048})[0] == 200)


def streams_without_accounts_end_when_there_are_some(case):
    with case.serve_config(IN_MEMORY) as server, Stream(server.url) as stream:
        check(stream.event()["total"] == 0)
        case.file("s.toml", IN_MEMORY + ACCOUNTS)
        server.reload("reloaded: 2 accounts")
        check(stream.event() is None)


def there_are_only_so_many_streams(case):
    with case.serve_config(IN_MEMORY) as server, contextlib.ExitStack() as kept:
        streams = [kept.enter_context(Stream(server.url)) for _ in range(STREAMS_MAX)]
        check(all(stream.event()["total"] == 0 for stream in streams))
        for _ in range(TRIES):
            with Stream(server.url) as refused:
                check(refused.status == 503)
        with Stream(server.url) as refused:
            check("close some" in json.loads(refused.answer.read())["message"])
        Client(server.url).call("CreateQueue", QueueName="made")
        for stream in streams:
            check(stream.event()["total"] == 1)
        # A place is free as soon as a client has left, also if it closed only its own side.
        streams[0].close()
        streams[1].socket.shutdown(socket.SHUT_WR)
        check(streams[1].event() is None)
        end = time.time() + PATIENCE_SECONDS
        taken = []
        while len(taken) < 2 and time.time() < end:
            stream = Stream(server.url)
            if stream.status == 200:
                taken.append(kept.enter_context(stream))
        check(len(taken) == 2)
        check(all(stream.event()["total"] == 1 for stream in taken))


def streams_do_not_delay_a_stop(case):
    with case.serve_config(IN_MEMORY) as server, contextlib.ExitStack() as kept:
        streams = [kept.enter_context(Stream(server.url)) for _ in range(20)]
        for stream in streams:
            stream.event()
        began = time.monotonic()
        status, log = server.stop()
        check(status == 0, log)
        check(time.monotonic() - began < STOP_SECONDS_MAX)
        for stream in streams:
            check(stream.event() is None)


def get(url, path, cookie=None, **headers):
    """(status, answer, object) of what the console's page asks for."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc,
                                            timeout=PATIENCE_SECONDS)
    connection.request("GET", path,
                       headers={**headers, **({"Cookie": cookie} if cookie else {})})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer, json.loads(text) if answer.status == 200 else {}


def every_answer_tells_the_servers_time(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n") as server:
        targets = {"ListQueues": "AmazonSQS", "Nonsense": "AmazonSQS",
                   "ListMetrics": "GraniteServiceVersion20100801"}

        def times():
            answers = [post(server.url, "/console/api", {}, **{"X-Amz-Target": f"{target}.{action}"})
                       for action, target in targets.items()]
            answers.append(get(server.url, "/console/here"))
            return [int(answer.getheader("X-Stanchion-Time")) for _, answer, _ in answers]

        before = ask_clock(server.url, "GET", None)[1]["nowMillis"]
        check(min(times()) >= before)
        moved = advance(server.url, 3 * 3600)["nowMillis"]
        check(min(times()) >= moved)
        # Programs that sign get what SQS answers, and no more.
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc)
        connection.request("POST", "/", "{}", {"X-Amz-Target": "AmazonSQS.ListQueues",
                                               "Content-Type": "application/x-amz-json-1.0"})
        check(connection.getresponse().getheader("X-Stanchion-Time") is None)
        connection.close()


def the_console_knows_where_it_is(case):
    settings = IN_MEMORY + 'account = "123456789012"\nregion = "eu-west-3"\n'
    with case.serve_config(settings) as server:
        status, _, here = get(server.url, "/console/here")
        check(status == 200 and here == {"account": "123456789012", "region": "eu-west-3",
                                         "machine": socket.gethostname()}, here)
        check(get(server.url, "/console/here", Host="evil.example")[0] == 403)
        check(get(server.url, "/console/here", **{"Sec-Fetch-Site": "cross-site"})[0] == 403)
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        check(get(server.url, "/console/here")[0] == 401)
        here = get(server.url, "/console/here", sign_in(server.url, ALICE))[2]
        check(here["accessKeyId"] == ALICE.id and here["account"] == "111111111111"
              and ALICE.secret not in json.dumps(here), here)


def cloudwatch(url, action, parameters, cookie=None):
    """The reply to a call of CloudWatch that the console makes; or the status of a refusal."""
    status, _, text = post(url, "/console/api", parameters, cookie,
                           **{"X-Amz-Target": "GraniteServiceVersion20100801." + action})
    return json.loads(text) if status == 200 else status


def statistics_of(url, queue, cookie=None):
    """What CloudWatch has of the messages sent to the queue."""
    return cloudwatch(url, "GetMetricStatistics", {
        "Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent", "Statistics": ["Sum"],
        "Dimensions": [{"Name": "QueueName", "Value": queue}], "Period": 60,
        "StartTime": time.time() - 3600, "EndTime": time.time() + 3600}, cookie)


def the_console_asks_cloudwatch_as_its_session(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n") as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        client.call("SendMessage", QueueUrl="orders", MessageBody="x")
        advance(server.url, 60)
        # A minute may have ended before the message was sent, too.
        points = statistics_of(server.url, "orders")["Datapoints"]
        check(sum(point["Sum"] for point in points) == 1, points)
        listed = cloudwatch(server.url, "ListMetrics", {"Namespace": "AWS/SQS"})
        check(len(listed["Metrics"]) == 9, listed)
        data = cloudwatch(server.url, "GetMetricData", {
            "MetricDataQueries": [{"Id": "sent", "MetricStat": {"Period": 60, "Stat": "Sum", "Metric": {
                "Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent",
                "Dimensions": [{"Name": "QueueName", "Value": "orders"}]}}}],
            "StartTime": time.time() - 3600, "EndTime": time.time() + 3600})
        check(sum(data["MetricDataResults"][0]["Values"]) == 1, data)


def cloudwatch_shows_a_session_its_own_account_only(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n" + ACCOUNTS) as server:
        for key, name in ((ALICE, "alices"), (BOB, "bobs")):
            Client(server.url, key).call("CreateQueue", QueueName=name)
            Client(server.url, key).call("SendMessage", QueueUrl=name, MessageBody="x")
        advance(server.url, 60)
        cookie = sign_in(server.url, ALICE)
        check(statistics_of(server.url, "alices") == 401)
        check(statistics_of(server.url, "alices", cookie)["Datapoints"])
        check(not statistics_of(server.url, "bobs", cookie)["Datapoints"])
        listed = cloudwatch(server.url, "ListMetrics", {"Namespace": "AWS/SQS"}, cookie)
        check({metric["Dimensions"][0]["Value"] for metric in listed["Metrics"]} == {"alices"})


def server_page(url, cookie=None, **headers):
    """(status, sections): {title: {name: value}}."""
    status, _, told = get(url, "/console/server", cookie, **headers)
    return status, {section["title"]: {row["name"]: row["value"] for row in section["rows"]}
                    for section in told.get("sections", [])}


def the_server_tells_of_itself(case):
    token = "a-token-of-a-test-0123456789"
    settings = f'[server]\nlisten = "127.0.0.1:0"\ndata = "data"\n[metrics]\ntoken = "{token}"\n'
    with case.serve_config(settings) as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="orders")
        client.call("SendMessage", QueueUrl="orders", MessageBody="x")
        status, told = server_page(server.url)
        check(status == 200)
        check(list(told) == ["Server", "Journal", "Disk", "Memory", "Connections", "Settings"])
        check(told["Server"]["Queues"] == "1" and told["Server"]["Health"] == "well")
        check(told["Server"]["Version"] in case.run("--version")[1])
        check(int(told["Journal"]["Commits"]) >= 2 and told["Disk"]["Damaged queues"] == "none")
        check(int(told["Connections"]["Open"]) >= 1)
        check(told["Settings"]["server.data"] == '"data"', told["Settings"])
        check(told["Settings"]["metrics.token"] == "(hidden)")
        check(token not in json.dumps(told))
        check(server_page(server.url, Host="evil.example")[0] == 403)
        check(server_page(server.url, **{"Sec-Fetch-Site": "cross-site"})[0] == 403)


def a_clock_that_was_moved_is_said_to_be_ahead(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n") as server:
        advance(server.url, 10_396)
        told = server_page(server.url)[1]["Server"]["Ahead of the wall clock"]
        ahead = {"the page": float(told.removesuffix(" s")),
                 "/health": get(server.url, "/health")[2]["aheadOfWallClockMillis"] / 1000}
        # The wall clock of this machine may be corrected meanwhile.
        check(all(abs(seconds - 10_396) < 60 for seconds in ahead.values()), ahead)


def an_account_sees_the_figures_of_the_server_and_not_its_settings(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        check(server_page(server.url)[0] == 401)
        status, told = server_page(server.url, sign_in(server.url, ALICE))
        check(status == 200 and "Journal" in told and "Settings" not in told, told)
        check(ALICE.secret not in json.dumps(told) and BOB.id not in json.dumps(told))


def a_look_tells_what_is_known_of_a_dead_letter(case):
    with case.serve_config(IN_MEMORY + "virtual_time = true\n") as server:
        client = Client(server.url)
        client.call("CreateQueue", QueueName="dead")
        client.call("CreateQueue", QueueName="orders", Attributes={
            "VisibilityTimeout": "30", "RedrivePolicy": json.dumps(
                {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": 2})})
        client.call("SendMessage", QueueUrl="orders", MessageBody="poison")

        def look(queue):
            return client.call("StanchionPeek", QueueUrl=queue)["Messages"][0]

        received = []
        for _ in range(2):
            check(client.call("ReceiveMessage", QueueUrl="orders")["Messages"])
            received.append(look("orders")["LastReceiveTimestamp"])
            advance(server.url, 100)
        check(received[1] - received[0] >= 100_000, received)
        waiting = look("orders")
        check(waiting["State"] == "Visible" and waiting["LastReceiveTimestamp"] == received[1], waiting)
        check(not client.call("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=1).get("Messages"))
        dead = look("dead")
        check(dead["Attributes"]["ApproximateReceiveCount"] == "2", dead)
        check(int(dead["Attributes"]["ApproximateFirstReceiveTimestamp"]) == received[0], dead)
        check(dead["Attributes"]["DeadLetterQueueSourceArn"].endswith(":orders"), dead)
        check(dead["EnteredTimestamp"] - received[1] >= 100_000, dead)
        check(dead["LastReceiveTimestamp"] == received[1], dead)
        check(client.call("ReceiveMessage", QueueUrl="dead", VisibilityTimeout=5)["Messages"])
        advance(server.url, 10)
        again = look("dead")
        check(again["State"] == "Visible", again)
        check(again["LastReceiveTimestamp"] >= dead["EnteredTimestamp"], again)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
