#!/usr/bin/env python3
"""Looking at messages without receiving them, with the real server.

    peek_test.py --binary build/release/stanchion [NAME...]

The last line says how many tests passed and failed.
"""
import json
import sys
import urllib.parse
import urllib.request

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, refused, run_tests, tests_of
from signed_client import Client

NOBODY = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
          "ApproximateNumberOfMessagesDelayed")


class Queue:
    """A queue of a server, and what a test does with it."""

    def __init__(self, url, name="q", key=None, **attributes):
        self.client = Client(url, key)
        self.url = self.client.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]

    def call(self, action, **parameters):
        return self.client.call(action, QueueUrl=self.url, **parameters)

    def send(self, bodies, **more):
        for first in range(0, len(bodies), 10):
            entries = [{"Id": str(i), "MessageBody": body, **more}
                       for i, body in enumerate(bodies[first:first + 10])]
            check(len(self.call("SendMessageBatch", Entries=entries)["Successful"]) == len(entries))

    def receive(self, **more):
        return self.call("ReceiveMessage", **more).get("Messages", [])

    def pages(self, **parameters):
        while True:
            page = self.call("StanchionPeek", **parameters)
            yield page.get("Messages", [])
            if "NextToken" not in page:
                return
            parameters["NextToken"] = page["NextToken"]

    def peek(self, **parameters):
        return [message for page in self.pages(**parameters) for message in page]

    def bodies(self, **parameters):
        return [message["Body"] for message in self.peek(**parameters)]

    def counts(self):
        found = self.call("GetQueueAttributes", AttributeNames=["All"])["Attributes"]
        return [int(found[name]) for name in COUNTS]


def a_look_shows_every_state_and_changes_nothing(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url, VisibilityTimeout="600")
        queue.send(["first", "second"], MessageAttributes={
            "kind": {"DataType": "String", "StringValue": "order"}})
        queue.call("SendMessage", MessageBody="later", DelaySeconds=900)
        received = queue.receive()[0]
        before = queue.counts()
        seen = {message["Body"]: message for message in queue.peek()}
        check(set(seen) == {"first", "second", "later"}, seen)
        check(seen[received["Body"]]["State"] == "InFlight")
        check(seen["later"]["State"] == "Delayed" and seen["later"]["VisibleTimestamp"]
              - seen["later"]["EnteredTimestamp"] == 900_000)
        waiting = next(m for m in seen.values() if m["State"] == "Visible")
        check(waiting["Attributes"]["ApproximateReceiveCount"] == "0"
              and "ApproximateFirstReceiveTimestamp" not in waiting["Attributes"]
              and waiting["MessageAttributes"]["kind"]["StringValue"] == "order", waiting)
        flying = seen[received["Body"]]
        check(flying["MessageId"] == received["MessageId"] and flying["MD5OfBody"]
              == received["MD5OfBody"] and "ReceiptHandle" not in flying, flying)
        check(flying["VisibleTimestamp"] - flying["LastReceiveTimestamp"] == 600_000, flying)
        for _ in range(20):
            queue.peek()
        check(queue.counts() == before, f"{before} became {queue.counts()}")
        again = queue.receive(MessageSystemAttributeNames=["All"])[0]
        check(again["Attributes"]["ApproximateReceiveCount"] == "1", again)
        queue.call("DeleteMessage", ReceiptHandle=received["ReceiptHandle"])
        check(len(queue.peek()) == 2)


def pages_states_groups_and_searches(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url)
        queue.send([f"body {i}" for i in range(100)])
        check(queue.bodies(MaxResults=7) == [f"body {i}" for i in range(100)])
        check(max(len(page) for page in queue.pages(MaxResults=7)) == 7)
        queue.receive(MaxNumberOfMessages=10)
        check(len(queue.bodies(States=["InFlight"])) == 10)
        check(len(queue.bodies(States=["Visible"])) == 90)
        check(queue.bodies(States=["Delayed"]) == [])
        check(queue.bodies(Search="dy 42") == ["body 42"])
        queue.send(["with an attribute"], MessageAttributes={
            "color": {"DataType": "String", "StringValue": "ultramarine"},
            "blob": {"DataType": "Binary", "BinaryValue": "AAECAw=="}})
        for text in ("ultramar", "colo", "an attribute"):
            check(queue.bodies(Search=text) == ["with an attribute"], text)
        check(queue.bodies(Search="nowhere") == [])
        queue.send(["grouped"], MessageGroupId="tenant")
        check(queue.bodies(MessageGroupId="tenant") == ["grouped"])
        wrong = {"States": ["Gone"]}, {"MaxResults": 0}, {"MaxResults": 101}, {"NextToken": "x"}, \
            {"Search": "x" * 257}, {"NextToken": "MS4yLjMuNA=="}
        for parameters in wrong:
            check(refused(queue.call, "StanchionPeek", **parameters).code
                  == "InvalidParameterValueException", parameters)


def a_cursor_survives_what_consumers_do(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url)
        queue.send([f"{i:03}" for i in range(60)])
        seen = []
        for page in queue.pages(MaxResults=5):
            seen += [message["Body"] for message in page]
            for message in queue.receive(MaxNumberOfMessages=3):
                if int(message["Body"]) % 2:
                    queue.call("DeleteMessage", ReceiptHandle=message["ReceiptHandle"])
            if len(seen) < 40:
                queue.send([f"9{len(seen):02}"])
        left = {body for body in queue.bodies() if body < "900"}
        check(len(seen) == len(set(seen)), "something was seen twice")
        check(left <= set(seen), f"left out: {sorted(left - set(seen))}")


def messages_on_disk_are_seen_and_stay_there(case):
    with case.serve("--listen", "127.0.0.1:0", "--data", "data", "--threads", "1",
                    "--memory", "64MiB") as server:
        queue, busy = Queue(server.url), Queue(server.url, "busy")
        body = "x" * 8000
        queue.send([f"{i:05} {body}" for i in range(12_000)])
        check(queue.bodies(MaxResults=100)[0].startswith("00000 "))
        seen = queue.bodies(MaxResults=100)
        check([text[:5] for text in seen] == [f"{i:05}" for i in range(12_000)], len(seen))
        check([text[:5] for text in queue.bodies(Search="07777 x")] == ["07777"])
        busy.send(["hot"])
        check(busy.receive()[0]["Body"] == "hot")
        check(queue.counts() == [12_000, 0, 0], queue.counts())
        with urllib.request.urlopen(server.url + "/metrics") as page:
            reads = [line for line in page.read().decode().splitlines()
                     if line.startswith("stanchion_cold_reads_total")]
        check(float(reads[0].split()[-1]) > 100, f"nothing was on disk: {reads}")
    with case.serve("--listen", "127.0.0.1:0", "--data", "data", "--threads", "1") as server:
        queue = Queue(server.url)
        check(len(queue.peek(MaxResults=100)) == 12_000, "after a restart")


def fifo_groups_show_who_locks_them(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true",
                      VisibilityTimeout="600")
        for group in ("a", "b"):
            queue.send([f"{group}{i}" for i in range(3)], MessageGroupId=group)
        received = queue.receive()[0]
        groups = {g["MessageGroupId"]: g for g in queue.call("StanchionGroups")["Groups"]}
        check(groups["b"]["Waiting"] == 3 and not groups["b"]["Locked"], groups)
        locked = groups["a"]
        check(locked["Locked"] and locked["LockedByMessageId"] == received["MessageId"]
              and locked["InFlight"] == 1 and locked["Waiting"] == 2
              and locked["LockedUntilTimestamp"] - locked["LockedSinceTimestamp"] == 600_000, locked)
        check(queue.bodies() == ["a0", "a1", "a2", "b0", "b1", "b2"])
        first = queue.call("StanchionGroups", MaxResults=1)
        second = queue.call("StanchionGroups", MaxResults=1, NextToken=first["NextToken"])
        check([g["MessageGroupId"] for g in first["Groups"] + second["Groups"]] == ["a", "b"]
              and "NextToken" not in second)


def tenants_show_their_share(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url)
        queue.send([f"n{i}" for i in range(80)], MessageGroupId="noisy")
        for _ in range(6):
            queue.receive(MaxNumberOfMessages=10)
        queue.send(["q"], MessageGroupId="quiet")
        groups = {g["MessageGroupId"]: g for g in queue.call("StanchionGroups")["Groups"]}
        check(groups["noisy"]["Noisy"] and groups["noisy"]["InFlightPercent"] == 100, groups)
        check(not groups["quiet"]["Noisy"] and groups["quiet"]["Waiting"] == 1, groups)


def both_protocols_and_not_a_strict_server(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url)
        queue.send(["hello"])
        form = urllib.parse.urlencode({"Action": "StanchionPeek", "QueueUrl": queue.url,
                                       "State.1": "Visible"}).encode()
        with urllib.request.urlopen(server.url, data=form) as answer:
            text = answer.read().decode()
        check("<StanchionPeekResult><Message><MessageId>" in text and "<Body>hello</Body>" in text,
              text)
    with case.serve_config(IN_MEMORY + "strict = true\n") as server:
        queue = Queue(server.url)
        for action in ("StanchionPeek", "StanchionGroups"):
            error = refused(queue.call, action)
            unknown = refused(queue.call, "NoSuchAction")
            check(error.code == unknown.code == "UnknownOperationException", error)


def chosen_messages_are_received_and_no_others(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url, VisibilityTimeout="600")
        queue.send([f"body {i}" for i in range(30)])
        check(chosen_bodies(queue, ["body 20", "body 7"]) == ["body 7", "body 20"])
        check(queue.counts() == [28, 2, 0], queue.counts())
        check(chosen_bodies(queue, ["body 7", "body 8"]) == ["body 8"], "one was in flight")
        received = queue.receive(StanchionPositions=[position_of(queue, "body 9")],
                                 VisibilityTimeout=0, MessageSystemAttributeNames=["All"])[0]
        check(received["Attributes"]["ApproximateReceiveCount"] == "1", received)
        gone = position_of(queue, "body 9")
        again = queue.receive(StanchionPositions=[gone])[0]
        queue.call("DeleteMessage", ReceiptHandle=again["ReceiptHandle"])
        check(queue.receive(StanchionPositions=[gone]) == [], "it was deleted")
        check(queue.receive()[0]["Body"] == "body 0", "the others are in order")
        # The Query protocol.
        form = {"Action": "ReceiveMessage", "QueueUrl": queue.url,
                "StanchionPosition.1": position_of(queue, "body 15"),
                "StanchionPosition.2": position_of(queue, "body 12")}
        request = urllib.request.Request(server.url, urllib.parse.urlencode(form).encode(),
                                         {"X-Stanchion-Control": "1"})
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
        check(text.index("<Body>body 12</Body>") < text.index("<Body>body 15</Body>")
              and text.count("<Message>") == 2, text)


def position_of(queue, body):
    return next(m["StanchionPosition"] for m in queue.peek(MaxResults=100) if m["Body"] == body)


def chosen_bodies(queue, bodies):
    return [message["Body"] for message in queue.receive(
        StanchionPositions=[position_of(queue, body) for body in bodies])]


def choices_have_limits(case):
    with case.serve_config(IN_MEMORY) as server:
        queue, other = Queue(server.url), Queue(server.url, "other")
        queue.send(["a"])
        other.send(["b"])
        own = position_of(queue, "a")
        for wrong in ([own] * 11, ["garbage"], [""], [own[:-4] + "AAA="], ["x" * 100_000],
                      [position_of(other, "b")]):
            error = refused(queue.call, "ReceiveMessage", StanchionPositions=wrong)
            check(error.code == "InvalidParameterValueException"
                  and "StanchionPositions" in error.message, f"{wrong}: {error}")
        check([m["Body"] for m in queue.receive(StanchionPositions=[own] * 10)] == ["a"], "once")
        queue.call("DeleteQueue")
        queue = Queue(server.url)
        check(refused(queue.call, "ReceiveMessage", StanchionPositions=[own]).code
              == "InvalidParameterValueException", "the queue is another")
    with case.serve_config(IN_MEMORY + "strict = true\n") as server:
        queue = Queue(server.url)
        queue.send(["a"])
        error = refused(queue.call, "ReceiveMessage", StanchionPositions=[own])
        check(error.code == "InvalidParameterValueException" and "--strict" in error.message, error)
        check(queue.counts() == [1, 0, 0])


def choices_of_a_fifo_queue_keep_its_order(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
        for group in ("a", "b"):
            queue.send([f"{group}{i}" for i in range(3)], MessageGroupId=group)
        check(chosen_bodies(queue, ["a1", "b2"]) == [], "others of their groups come first")
        check(chosen_bodies(queue, ["a1", "a0", "b0"]) == ["a0", "a1", "b0"])
        check(chosen_bodies(queue, ["a2", "b1"]) == [], "their groups are locked")


def messages_on_disk_can_be_chosen(case):
    arguments = ("--listen", "127.0.0.1:0", "--data", "data", "--threads", "1",
                 "--memory", "64MiB")
    with case.serve(*arguments) as server:
        queue = Queue(server.url, VisibilityTimeout="600")
        body = "x" * 8000
        queue.send([f"{i:05} {body}" for i in range(12_000)])
        positions = {m["Body"][:5]: m["StanchionPosition"] for m in queue.peek(MaxResults=100)}
        wanted = [f"{i:05}" for i in range(600, 12_000, 1_200)]
        got = queue.receive(StanchionPositions=[positions[text] for text in wanted])
        check([message["Body"][:5] for message in got] == wanted, [m["Body"][:5] for m in got])
        for message in got[::2]:
            queue.call("DeleteMessage", ReceiptHandle=message["ReceiptHandle"])
        check(queue.counts() == [11_990, 5, 0], queue.counts())
        server.process.kill()
    with case.serve(*arguments) as server:
        queue = Queue(server.url, VisibilityTimeout="600")
        check(queue.counts() == [11_990, 5, 0], f"after a crash: {queue.counts()}")
        got = queue.receive(StanchionPositions=[positions[text] for text in wanted])
        check(got == [], "what was received is in flight or deleted")
        got = queue.receive(StanchionPositions=[positions["05000"], positions["11999"]])
        check([m["Body"][:5] for m in got] == ["05000", "11999"], "positions survive")
        gone = {wanted[at] for at in range(0, len(wanted), 2)}
        left = [text[:5] for text in queue.bodies(MaxResults=100)]
        check(left == [f"{i:05}" for i in range(12_000) if f"{i:05}" not in gone], len(left))


def who_may_receive_may_look(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        queue = Queue(server.url, key=ALICE)
        queue.send(["secret"])
        bob = Client(server.url, BOB)
        look = {"QueueUrl": queue.url}
        check(refused(bob.call, "StanchionPeek", **look).code == "AccessDeniedException")
        check(refused(Client(server.url).call, "StanchionPeek", **look).status == 403)
        queue.call("AddPermission", Label="bob", AWSAccountIds=["222222222222"],
                   Actions=["ReceiveMessage"])
        check(bob.call("StanchionPeek", **look)["Messages"][0]["Body"] == "secret")
        check(bob.call("StanchionGroups", **look)["Groups"][0]["Waiting"] == 1)


def the_command_prints_text_and_json(case):
    with case.serve_config(IN_MEMORY) as server:
        queue = Queue(server.url, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
        queue.send(["one", "two\u001f"[:3], "three"], MessageGroupId="g")
        queue.receive()

        def peek(*arguments):
            status, output, error = case.run("peek", "--queue-url", queue.url, *arguments,
                                             environment=NOBODY)
            check(status == 0, error)
            return output

        text = peek()
        check("InFlight" in text and "received 1x" in text and "    three" in text, text)
        lines = [json.loads(line) for line in peek("--json", "--state", "Visible").splitlines()]
        check([line["Body"] for line in lines] == ["two", "three"], lines)
        check(lines[0]["StanchionPosition"] == position_of(queue, "two"), lines[0])
        check(len(peek("--json", "--most", "1").splitlines()) == 1)
        check("--most 0" in peek("--most", "1"))
        check(peek("--search", "nothing like it") == "")
        check("locked by" in peek("--groups"), peek("--groups"))
        check(json.loads(peek("--groups", "--json"))["Locked"] is True)
        status, _, error = case.run("peek", "--queue-url", queue.url + "x", environment=NOBODY)
        check(status == 1 and "QueueDoesNotExist" in error, error)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
