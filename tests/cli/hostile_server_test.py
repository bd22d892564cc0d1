#!/usr/bin/env python3
"""The commands that read a server, and a server that means them no good.

    hostile_server_test.py --binary build/release/stanchion [NAME...]

Standard library only. The last line says how many tests passed and failed.
"""
import http.server
import itertools
import json
import socket
import sys
import threading

from case import IN_MEMORY, check, run_tests, tests_of
from signed_client import Client

NOBODY = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
# Commands of a terminal, of 7 and of 8 bits, and what turns the direction of text.
HARMFUL = "\x1b]0;owned\x07 \x7f \u009b2J \u009d0;owned\u009c \u202etxt.exe\u2066 \u2028 \u061c"
# Of these, what SQS accepts in a body.
IN_BODIES = "".join(c for c in HARMFUL if c >= " ")


class Hostile:
    """Answers each call as `answer` says: (status, object) or (status, text)."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                action = self.headers["X-Amz-Target"].split(".")[1]
                self.reply(*answer(action, json.loads(body)))

            def do_GET(self):
                self.reply(*answer("GET", {}))

            def reply(self, status, what):
                text = (what if isinstance(what, str) else json.dumps(what)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def harmless(text):
    """Nothing in it but text and line ends."""
    harm = {c for c in HARMFUL if not c.isascii() or c < " " or c == "\x7f"} - {"\n"}
    return not harm & set(text)


def pages_that_do_not_end_are_given_up(case):
    for period in (1, 2, 7):
        turns = itertools.cycle(f"token {number}" for number in range(period))
        with Hostile(lambda action, body: (200, {"NextToken": next(turns)})) as server:
            queue = server.url + "/000000000000/q"
            for arguments in (["peek", "--queue-url", queue], ["export", "--endpoint", server.url],
                              ["peek", "--queue-url", queue, "--groups"],
                              ["peek", "--queue-url", queue, "--most", "0", "--json"]):
                status, _, errors = case.run(*arguments, environment=NOBODY)
                check(status == 1 and "NextToken for the second time" in errors, errors)


def serve_empty_pages(listening):
    """Answers every request with a new token and nothing else, as fast as can be: http.server would
    take minutes for so many pages."""
    connection, _ = listening.accept()
    with connection:
        page, received = 0, b""
        while part := connection.recv(65536):
            received += part
            head, end, body = received.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) if end else 0
            if not end or len(body) < size:
                continue
            received, page = body[size:], page + 1
            text = b'{"NextToken":"%d"}' % page
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


def pages_with_nothing_on_them_are_given_up(case):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve_empty_pages, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/000000000000/q"
        status, output, errors = case.run("peek", "--queue-url", url, "--search", "x",
                                          environment=NOBODY, timeout=300)
        check(status == 1 and output == "", output)
        check("100000 pages in a row with nothing on them" in errors, errors)


def more_than_was_asked_for_is_not_printed(case):
    message = {"MessageId": "m", "State": "Visible", "EnteredTimestamp": 1, "ExpiresTimestamp": 2,
               "StanchionPosition": "1", "Body": "b", "MD5OfBody": "92eb5ffee6ae2fec3ad71c777531578f",
               "Attributes": {"ApproximateReceiveCount": "0"}}
    with Hostile(lambda action, body: (200, {"Messages": [message] * 50})) as server:
        status, output, errors = case.run("peek", "--queue-url", server.url + "/000000000000/q",
                                          "--json", "--most", "3", environment=NOBODY)
        check(status == 0 and len(output.splitlines()) == 3, (output, errors))


def a_body_gives_a_terminal_no_commands(case):
    with case.serve_config(IN_MEMORY) as server:
        client = Client(server.url)
        queue = client.call("CreateQueue", QueueName="q")["QueueUrl"]
        value = {"DataType": "String", "StringValue": IN_BODIES}
        client.call("SendMessage", QueueUrl=queue, MessageBody=IN_BODIES,
                    MessageAttributes={"a": value})
        status, output, errors = case.run("peek", "--queue-url", queue, environment=NOBODY)
        check(status == 0 and harmless(output) and "\\u009b2J" in output, repr(output + errors))
        status, output, errors = case.run("peek", "--queue-url", queue, "--json",
                                          environment=NOBODY)
        check(status == 0 and harmless(output), repr(output + errors))
        # For a program it is the same text.
        line = json.loads(output)
        check(line["Body"] == IN_BODIES, line)
        check(line["MessageAttributes"]["a"]["StringValue"] == IN_BODIES, line)


def an_error_gives_a_terminal_no_commands(case):
    error = {"__type": "com.amazonaws.sqs#Odd" + HARMFUL, "message": "no: " + HARMFUL + "\nforged"}
    with Hostile(lambda action, body: (400, error)) as server:
        for arguments in (["export", "--endpoint", server.url],
                          ["peek", "--queue-url", server.url + "/000000000000/q"],
                          ["advise", "--endpoint", server.url]):
            status, output, errors = case.run(*arguments, environment=NOBODY)
            check(status == 1 and harmless(output) and harmless(errors), repr(errors))
            check("no: \\x1b]0;owned" in errors and len(errors.splitlines()) == 1, repr(errors))


def what_is_shown_of_a_server_gives_a_terminal_no_commands(case):
    arn = f"arn:aws:sqs:{HARMFUL}:{HARMFUL}:q"
    answers = {
        "ListQueues": {"QueueUrls": ["http://h/000000000000/q"]},
        "GetQueueAttributes": {"Attributes": {"QueueArn": arn, "Policy": HARMFUL}},
        "ListQueueTags": {"Tags": {HARMFUL: HARMFUL}},
        "StanchionAdvice": {"Advice": [{"QueueUrl": HARMFUL, "Kind": HARMFUL, "Text": HARMFUL,
                                        "Command": HARMFUL}]},
        "StanchionGroups": {"Groups": [{"MessageGroupId": HARMFUL, "Waiting": 1, "Delayed": 0,
                                        "InFlight": 0, "Locked": True,
                                        "LockedByMessageId": HARMFUL}]},
        "StanchionPeek": {"Messages": [{"MessageId": HARMFUL, "State": HARMFUL, "Body": "b",
                                        "MD5OfBody": "92eb5ffee6ae2fec3ad71c777531578f",
                                        "EnteredTimestamp": 1, "ExpiresTimestamp": 2,
                                        "StanchionPosition": HARMFUL, "Attributes": {
                                            "ApproximateReceiveCount": HARMFUL,
                                            "MessageGroupId": HARMFUL}}]},
        "GET": HARMFUL + "\nready",
    }
    with Hostile(lambda action, body: (200, answers[action])) as server:
        queue = server.url + "/000000000000/q"
        for arguments in (["export", "--endpoint", server.url], ["health", "--url", server.url],
                          ["advise", "--endpoint", server.url],
                          ["advise", "--endpoint", server.url, "--json"],
                          *(["peek", "--queue-url", queue, *more]
                            for more in ([], ["--json"], ["--groups"], ["--groups", "--json"]))):
            status, output, errors = case.run(*arguments, environment=NOBODY)
            check(status == 0 and output, (arguments, errors))
            check(harmless(output) and harmless(errors), (arguments, output))


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
