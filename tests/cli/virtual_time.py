"""Time that a test may move: what the control call does, and who may not make it."""
import http.client
import json
import threading

from case import ACCOUNTS, ALICE, IN_MEMORY, check, refused
from signed_client import Client

PATH = "/_stanchion/clock"
PROGRAM = {"X-Stanchion-Control": "1"}
VIRTUAL = IN_MEMORY.replace("threads = 1", "threads = 2\nvirtual_time = true")


def ask(url, method="POST", body=b"", headers=None):
    """The status and the answer of the control call."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request(method, PATH, body, PROGRAM if headers is None else headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text.startswith(b"{") else text


def advance(url, seconds):
    status, answer = ask(url, body=json.dumps({"advanceSeconds": seconds}).encode())
    check(status == 200, answer)
    return answer


def whatever_is_due_has_happened_when_the_clock_was_moved(case):
    with case.serve_config(VIRTUAL) as server:
        client = Client(server.url)
        queues = [client.call("CreateQueue", QueueName=f"q{i}")["QueueUrl"] for i in range(8)]
        for url in queues:
            client.call("SendMessage", QueueUrl=url, MessageBody="x", DelaySeconds=900)
            check(client.call("ReceiveMessage", QueueUrl=url) == {})
        # Real time passes as well; a minute of it would spoil the test.
        advance(server.url, 840)
        check(all(client.call("ReceiveMessage", QueueUrl=url) == {} for url in queues))
        advance(server.url, 60)
        for url in queues:
            message = client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=43200)
            check(len(message["Messages"]) == 1, message)
        advance(server.url, 43200)
        for url in queues:
            counts = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
            check(counts["Attributes"]["ApproximateNumberOfMessages"] == "1", counts)
        advance(server.url, 4 * 24 * 3600)
        for url in queues:
            counts = client.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
            check(counts["Attributes"]["ApproximateNumberOfMessages"] == "0", counts)


def a_parked_poll_ends_when_its_time_has_passed(case):
    with case.serve_config(VIRTUAL) as server:
        url = Client(server.url).call("CreateQueue", QueueName="q")["QueueUrl"]
        answers = []
        poll = threading.Thread(target=lambda: answers.append(
            Client(server.url).call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)))
        poll.start()
        # Nothing signals that the poll is parked; the first move of the clock after that ends it.
        moves = 0
        while poll.is_alive() and moves < 10_000:
            advance(server.url, 20)
            moves += 1
            poll.join(0.01)
        check(answers == [{}], answers)


def the_clock_can_be_read_and_never_goes_back(case):
    with case.serve_config(VIRTUAL) as server:
        before = ask(server.url, "GET", None)[1]
        check(before["aheadMillis"] == 0, before)
        status, after = ask(server.url, body=b'{"advanceMillis": 1500}')
        check(status == 200 and after["aheadMillis"] == 1500, after)
        check(after["nowMillis"] >= before["nowMillis"] + 1500, after)
        for body in (b"", b"x", b"[]", b"{}", b'{"advanceSeconds": -1}', b'{"advanceSeconds": 1.5}',
                     b'{"advanceSeconds": "1"}', b'{"advanceSeconds": 1e30}',
                     b'{"advanceSeconds": 9223372036854775807}', b"[" * 100_000,
                     b'{"advanceSeconds": 1, "advanceMillis": 1}'):
            status, answer = ask(server.url, body=body)
            check(status == 400 and "advanceSeconds" in answer["message"], (body[:50], answer))
        check(ask(server.url, "GET", None)[1]["aheadMillis"] == 1500)
        check(ask(server.url, "PUT", b"{}")[0] == 405)


def pages_in_browsers_cannot_move_the_clock(case):
    with case.serve_config(VIRTUAL) as server:
        body = b'{"advanceSeconds": 1}'
        for headers in ({}, {**PROGRAM, "Origin": "https://evil.example"},
                        {**PROGRAM, "Host": "evil.example"},
                        {**PROGRAM, "Host": "127.0.0.1.evil.example"}):
            status, answer = ask(server.url, body=body, headers=headers)
            check(status == 403, answer)
        check(ask(server.url, "GET", None)[1]["aheadMillis"] == 0)


def with_insecure_other_hosts_move_the_clock_too(case):
    with case.serve_config(VIRTUAL, "--insecure") as server:
        headers = {**PROGRAM, "Host": "stanchion:9324"}
        check(ask(server.url, body=b'{"advanceSeconds": 1}', headers=headers)[0] == 200)
        headers["Origin"] = "http://stanchion:9324"
        check(ask(server.url, body=b'{"advanceSeconds": 1}', headers=headers)[0] == 403)


def without_the_setting_there_is_no_such_call(case):
    with case.serve_config(IN_MEMORY) as server:
        status, answer = ask(server.url, body=b'{"advanceSeconds": 1}')
        check((status, answer) == (404, b"<UnknownOperationException/>\n"), answer)


def signatures_go_by_the_real_time(case):
    with case.serve_config(VIRTUAL + ACCOUNTS) as server:
        advance(server.url, 3600)
        Client(server.url, ALICE).call("CreateQueue", QueueName="q")
        check(refused(Client(server.url).call, "ListQueues").status == 403)
