#!/usr/bin/env python3
"""Advice: each kind is given to a client that behaves badly, and none to one that behaves well.

    advice_test.py --binary build/release/stanchion [NAME...]

Visibility timeouts pass at once, because the server's time is moved. The last line says how many
tests passed and failed.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

from case import ACCOUNTS, ALICE, BOB, IN_MEMORY, check, run_tests, tests_of
from signed_client import Client

VIRTUAL = IN_MEMORY + "virtual_time = true\n"


class Busy:
    """Calls on one connection, which is what thousands of them need."""

    def __init__(self, url):
        self.base = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(self.base.netloc, timeout=30)

    def call(self, action, headers=None, **parameters):
        self.connection.request("POST", "/", body=json.dumps(parameters), headers={
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action,
            **(headers or {})})
        answer = self.connection.getresponse()
        text = answer.read()
        check(answer.status in (200, 400), f"{action}: {answer.status} {text}")
        return json.loads(text) if text else {}

    def create(self, name, **attributes):
        return self.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]

    def receive(self, queue, **more):
        return self.call("ReceiveMessage", QueueUrl=queue, **more).get("Messages", [])

    def delete(self, queue, message):
        return self.call("DeleteMessage", QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])

    def send_batches(self, queue, count, **more):
        for _ in range(count // 10):
            self.call("SendMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "MessageBody": "b", **more} for i in range(10)])

    def advance(self, seconds):
        request = urllib.request.Request(
            self.base.geturl() + "/_stanchion/clock", method="POST",
            data=json.dumps({"advanceSeconds": seconds}).encode(),
            headers={"X-Stanchion-Control": "1"})
        urllib.request.urlopen(request).close()

    def advice(self, **headers):
        return {one["Kind"]: one for one in
                self.call("StanchionAdvice", headers).get("Advice", [])}


def serve(case, settings=VIRTUAL):
    return case.serve_config(settings)


def deletes_after_the_timeout_are_a_visibility_loop(case):
    with serve(case) as server:
        client = Busy(server.url)
        slow = client.create("slow", VisibilityTimeout="30")
        for _ in range(6):
            client.call("SendMessage", QueueUrl=slow, MessageBody="a job of 40 s")
            message = client.receive(slow)[0]
            client.advance(40)
            client.delete(slow, message)
        advice = client.advice()["VisibilityLoop"]
        # Real time passes as well.
        held = int(re.search(r"held for (\d+) s", advice["Text"])[1])
        enough = str(held * 3 // 2 + 1)
        check(advice["QueueUrl"] == slow and held >= 40, advice)
        check(f"too short by at least {held - 30} s" in advice["Text"], advice)
        check(advice["Command"].endswith(f"VisibilityTimeout={enough}"), advice)
        # Following it ends it.
        client.call("SetQueueAttributes", QueueUrl=slow, Attributes={"VisibilityTimeout": enough})
        for _ in range(30):
            client.call("SendMessage", QueueUrl=slow, MessageBody="a job of 40 s")
            message = client.receive(slow)[0]
            client.advance(40)
            client.delete(slow, message)
        check("VisibilityLoop" not in client.advice(), client.advice())


def a_message_that_never_succeeds_is_poison_unless_it_can_leave(case):
    with serve(case) as server:
        client = Busy(server.url)
        queue = client.create("work")
        client.call("SendMessage", QueueUrl=queue, MessageBody="poison")
        for _ in range(9):
            check(client.receive(queue, VisibilityTimeout=0))
        advice = client.advice()["PoisonMessage"]
        check(advice["QueueUrl"] == queue and "maxReceiveCount" in advice["Command"], advice)
        client.create("work-dead")
        attributes = json.loads(advice["Command"].split("--attributes ")[1].strip("'"))
        client.call("SetQueueAttributes", QueueUrl=queue, Attributes=attributes)
        check("PoisonMessage" not in client.advice(), "the command did not mend it")


def asking_again_and_again_is_short_polling(case):
    with serve(case) as server:
        client = Busy(server.url)
        queue = client.create("idle")
        for _ in range(60):
            client.receive(queue)
        advice = client.advice()["ShortPolling"]
        check(advice["QueueUrl"] == queue, advice)
        check(advice["Command"].endswith("ReceiveMessageWaitTimeSeconds=20"), advice)


def one_by_one_and_faster_than_it_is_done(case):
    with serve(case) as server:
        client = Busy(server.url)
        queue = client.create("flood")
        # What was sent minutes ago counts for less, and a busy machine may take minutes.
        for _ in range(1100):
            client.call("SendMessage", QueueUrl=queue, MessageBody="one")
        check({"SingleSends", "Backlog"} == set(client.advice()), client.advice())
        client.advance(3600)
        check(client.advice() == {}, f"an hour later: {client.advice()}")


def dead_letters_that_expire_and_order_that_is_lost(case):
    with serve(case) as server:
        client = Busy(server.url)
        region = "arn:aws:sqs:us-east-1:000000000000:"
        client.create("dead", MessageRetentionPeriod="3600")
        policy = json.dumps({"deadLetterTargetArn": region + "dead", "maxReceiveCount": 3})
        client.create("work", RedrivePolicy=policy)
        advice = client.advice()["DeadLetterRetention"]
        check(advice["QueueUrl"].endswith("/dead") and "1209600" in advice["Command"], advice)
        client.create("dead.fifo", FifoQueue="true")
        policy = json.dumps({"deadLetterTargetArn": region + "dead.fifo", "maxReceiveCount": 3})
        client.create("steps.fifo", FifoQueue="true", RedrivePolicy=policy)
        advice = client.advice()["FifoDeadLetters"]
        check(advice["QueueUrl"].endswith("/steps.fifo"), advice)


def messages_in_flight_near_the_limit(case):
    with serve(case) as server:
        client = Busy(server.url)
        queue = client.create("hoarded", VisibilityTimeout="43200")
        client.send_batches(queue, 97_000)
        for _ in range(9_700):
            check(client.receive(queue, MaxNumberOfMessages=10))
        advice = client.advice()["InFlightLimit"]
        check("97000 messages are in flight" in advice["Text"], advice)


def a_good_client_gets_no_advice(case):
    with serve(case) as server:
        client = Busy(server.url)
        client.create("dead", MessageRetentionPeriod="1209600")
        policy = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead",
                             "maxReceiveCount": 5})
        queue = client.create("work", RedrivePolicy=policy, ReceiveMessageWaitTimeSeconds="20")
        client.create("steps.fifo", FifoQueue="true")
        for _ in range(100):
            client.send_batches(queue, 10)
            messages = client.receive(queue, MaxNumberOfMessages=10)
            check(len(messages) == 10)
            client.advance(5)
            client.call("DeleteMessageBatch", QueueUrl=queue, Entries=[
                {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]}
                for i, message in enumerate(messages)])
        # One job that took too long, among a thousand, is no habit.
        client.send_batches(queue, 10)
        message = client.receive(queue)[0]
        client.advance(31)
        client.delete(queue, message)
        check(client.advice() == {}, client.advice())


def advice_is_about_the_caller_s_own_queues(case):
    with case.serve_config(IN_MEMORY + ACCOUNTS) as server:
        alice, bob = Client(server.url, ALICE), Client(server.url, BOB)
        queue = alice.call("CreateQueue", QueueName="idle")["QueueUrl"]
        for _ in range(60):
            alice.call("ReceiveMessage", QueueUrl=queue)
        check(alice.call("StanchionAdvice")["Advice"][0]["Kind"] == "ShortPolling")
        check(bob.call("StanchionAdvice").get("Advice", []) == [])


def the_command_and_the_metric_say_the_same(case):
    with serve(case) as server:
        client = Busy(server.url)
        queue = client.create("idle")
        environment = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
                       "AWS_REGION": "us-east-1"}

        def advise(*arguments):
            status, output, error = case.run("advise", "--endpoint", server.url, *arguments,
                                             environment=environment)
            check(status == 0, error)
            return output

        check("everything looks fine" in advise() and advise("--json") == "")
        for _ in range(60):
            client.receive(queue)
        check("ShortPolling" in advise() and "$ aws sqs set-queue-attributes" in advise(), advise())
        check(json.loads(advise("--json"))["Kind"] == "ShortPolling")
        with urllib.request.urlopen(server.url + "/metrics") as page:
            text = page.read().decode()
        check('stanchion_advice{account="000000000000",region="us-east-1",queue="idle",'
              'kind="ShortPolling"} 1' in text, text[-500:])


def pasted(case, command):
    """The words that `aws` gets when a person pastes the command into a shell."""
    program = case.file("aws", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    os.chmod(program, 0o755)
    done = subprocess.run(["/bin/sh", "-c", command], text=True, capture_output=True, timeout=60,
                          cwd=case.directory, check=True,
                          env={"PATH": f"{case.directory}:{os.environ['PATH']}"})
    return done.stdout.splitlines()


def a_pasted_command_goes_to_the_server_that_gave_it(case):
    with serve(case) as server:
        client = Busy(server.url)
        region = "arn:aws:sqs:us-east-1:000000000000:"
        client.create("dead", MessageRetentionPeriod="3600")
        policy = json.dumps({"deadLetterTargetArn": region + "dead", "maxReceiveCount": 3})
        slow = client.create("slow", RedrivePolicy=policy)
        idle, poison = client.create("idle"), client.create("poison")
        client.create("dead.fifo", FifoQueue="true")
        policy = json.dumps({"deadLetterTargetArn": region + "dead.fifo", "maxReceiveCount": 3})
        client.create("steps.fifo", FifoQueue="true", RedrivePolicy=policy)
        for _ in range(6):
            client.call("SendMessage", QueueUrl=slow, MessageBody="a job of 40 s")
            message = client.receive(slow)[0]
            client.advance(40)
            client.delete(slow, message)
        for _ in range(60):
            client.receive(idle)
        client.call("SendMessage", QueueUrl=poison, MessageBody="poison")
        for _ in range(9):
            check(client.receive(poison, VisibilityTimeout=0))
        given = client.advice()
        check({"VisibilityLoop", "ShortPolling", "PoisonMessage", "DeadLetterRetention",
               "FifoDeadLetters"} <= set(given), given)
        for one in given.values():
            words = pasted(case, one["Command"])
            check(words[:2] == ["sqs", "set-queue-attributes"], words)
            values = dict(zip(words[2::2], words[3::2]))
            check(set(values) == {"--endpoint-url", "--region", "--queue-url", "--attributes"}, words)
            check(values["--endpoint-url"] == server.url, words)
            check(values["--region"] == "us-east-1", words)
            check(values["--queue-url"] == one["QueueUrl"], words)


def a_pasted_command_runs_nothing_that_a_host_header_says(case):
    # Each is a host by the grammar of URLs, and none may be more than a word to a shell.
    hosts = ["queues.example.com", "[::1]:9324", "a$(id)", "a;id", "a'b", "a&b", "a*", "~", "a!b"]
    settings = VIRTUAL + 'trust_forwarded = true\nallowed_hosts = "*"\n'
    with serve(case, settings) as server:
        client = Busy(server.url)
        queue = client.create("idle")
        for _ in range(60):
            client.receive(queue)
        for host in hosts:
            command = client.advice(**{"X-Forwarded-Host": host,
                                       "X-Forwarded-Proto": "https"})["ShortPolling"]["Command"]
            words = pasted(case, command)
            check(words[3] == "https://" + host, words)
            check(words[7] == f"https://{host}/000000000000/idle", words)


if __name__ == "__main__":
    sys.exit(run_tests(tests_of(globals()), __doc__))
