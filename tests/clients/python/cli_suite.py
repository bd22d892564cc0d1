"""The AWS CLI against the server at STANCHION_ENDPOINT.

Starting `aws` takes most of a second, so most calls run its entry point in a fork of this
process, which has it loaded already; arguments, output and exit status are those of the program.
"""
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import digests, suite
from support.unicode import TEXTS

import awscli.clidriver

ENDPOINT = os.environ["STANCHION_ENDPOINT"]
ACCOUNT = os.environ["STANCHION_ACCOUNT"]
PROGRAM = "/usr/bin/aws"
REFUSED = 254  # The exit status of `aws` when the service refused.

called = set()
# Loaded once, so that each fork starts with the command table and the service's description.
_driver = awscli.clidriver.create_clidriver()
_driver.session.get_service_model("sqs")


class Outcome:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


def run_forked(arguments):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            status = 255
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.argv = [PROGRAM, *arguments]
                status = awscli.clidriver.main()
            except SystemExit as exit_:
                status = exit_.code
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status or 0)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        return Outcome(os.waitstatus_to_exitcode(status), *texts)


def run_program(arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    return Outcome(done.returncode, done.stdout, done.stderr)


def aws(command, *arguments, runner=run_forked):
    called.add(command)
    return runner(["--endpoint-url", ENDPOINT, "sqs", command, *arguments])


class CliTest(unittest.TestCase):
    maxDiff = None

    def aws(self, command, *arguments, runner=run_forked):
        """Runs a command that must succeed; its JSON, or None where it prints nothing."""
        outcome = aws(command, *arguments, runner=runner)
        self.assertEqual((outcome.status, outcome.err), (0, ""), outcome.out)
        return json.loads(outcome.out) if outcome.out else None

    def refused(self, words, command, *arguments):
        """Runs a command that the service must refuse with these words."""
        outcome = aws(command, *arguments)
        self.assertEqual(outcome.status, REFUSED, outcome.err)
        operation = "".join(part.capitalize() for part in command.split("-"))
        self.assertEqual(outcome.err.strip(), words.replace(
            "OPERATION", f"when calling the {operation} operation"))

    def queue(self, fifo=False, **attributes):
        name = f"cli-{uuid.uuid4().hex[:12]}" + (".fifo" if fifo else "")
        if fifo:
            attributes["FifoQueue"] = "true"
        url = self.aws("create-queue", "--queue-name", name, "--attributes",
                       json.dumps(attributes))["QueueUrl"]
        self.assertEqual(url, f"{ENDPOINT}/{ACCOUNT}/{name}")
        return url

    def attributes(self, url, *names):
        return self.aws("get-queue-attributes", "--queue-url", url, "--attribute-names",
                        *names)["Attributes"]

    def receive(self, url, *more, runner=run_forked):
        return self.aws("receive-message", "--queue-url", url, "--wait-time-seconds", "20", *more,
                        runner=runner)["Messages"]


class Queues(CliTest):
    def test_the_program_itself(self):
        name = f"cli-{uuid.uuid4().hex[:12]}"
        url = self.aws("create-queue", "--queue-name", name, runner=run_program)["QueueUrl"]
        self.assertEqual(url, f"{ENDPOINT}/{ACCOUNT}/{name}")

    def test_queue_life(self):
        url = self.queue(VisibilityTimeout="7")
        name = url.rsplit("/", 1)[1]
        self.assertEqual(self.aws("get-queue-url", "--queue-name", name), {"QueueUrl": url})
        found = self.attributes(url, "All")
        self.assertEqual(found["VisibilityTimeout"], "7")
        self.assertEqual(found["QueueArn"], f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
        self.assertIsNone(self.aws("set-queue-attributes", "--queue-url", url, "--attributes",
                                   "DelaySeconds=5,VisibilityTimeout=9"))
        self.assertEqual(self.attributes(url, "DelaySeconds", "VisibilityTimeout"),
                         {"DelaySeconds": "5", "VisibilityTimeout": "9"})
        self.assertIsNone(self.aws("purge-queue", "--queue-url", url))
        self.assertIsNone(self.aws("delete-queue", "--queue-url", url))
        self.refused("An error occurred (AWS.SimpleQueueService.NonExistentQueue) OPERATION: The "
                     "specified queue does not exist for this wsdl version.",
                     "get-queue-url", "--queue-name", name)

    def test_listing_goes_through_all_pages(self):
        prefix = f"page-{uuid.uuid4().hex[:8]}"
        urls = {self.aws("create-queue", "--queue-name", f"{prefix}-{i}")["QueueUrl"]
                for i in range(5)}
        listing = self.aws("list-queues", "--queue-name-prefix", prefix, "--page-size", "2")
        self.assertEqual(set(listing["QueueUrls"]), urls)
        part = self.aws("list-queues", "--queue-name-prefix", prefix, "--max-items", "2")
        self.assertEqual(len(part["QueueUrls"]), 2)
        rest = self.aws("list-queues", "--queue-name-prefix", prefix, "--starting-token",
                        part["NextToken"])
        self.assertEqual(set(part["QueueUrls"]) | set(rest["QueueUrls"]), urls)
        as_text = aws("list-queues", "--queue-name-prefix", prefix, "--output", "text", "--query",
                      "length(QueueUrls)")
        self.assertEqual(as_text.out.strip(), "5")

    def test_tags(self):
        url = self.queue()
        self.aws("tag-queue", "--queue-url", url, "--tags", "team=blue,stage=test")
        self.assertEqual(self.aws("list-queue-tags", "--queue-url", url),
                         {"Tags": {"team": "blue", "stage": "test"}})
        self.aws("untag-queue", "--queue-url", url, "--tag-keys", "team", "stage")
        self.assertIsNone(self.aws("list-queue-tags", "--queue-url", url))

    def test_permissions(self):
        url = self.queue()
        self.aws("add-permission", "--queue-url", url, "--label", "them", "--aws-account-ids",
                 "111111111111", "222222222222", "--actions", "SendMessage", "ReceiveMessage")
        policy = json.loads(self.attributes(url, "Policy")["Policy"])
        statement, = policy["Statement"]
        self.assertEqual(statement["Sid"], "them")
        self.assertEqual(statement["Action"], ["SQS:SendMessage", "SQS:ReceiveMessage"])
        self.aws("remove-permission", "--queue-url", url, "--label", "them")
        self.assertIsNone(self.aws("get-queue-attributes", "--queue-url", url, "--attribute-names",
                                   "Policy"))


class Messages(CliTest):
    def test_a_message_with_everything(self):
        url = self.queue()
        body = TEXTS["XML specials"] + TEXTS["line ends of every kind"] + TEXTS["astral plane"]
        raw = bytes(range(256))
        attributes = {"s": {"DataType": "String.x", "StringValue": body},
                      "n": {"DataType": "Number", "StringValue": "42"},
                      "b": {"DataType": "Binary", "BinaryValue": base64.b64encode(raw).decode()}}
        hashed = {**attributes, "b": {"DataType": "Binary", "BinaryValue": raw}}
        trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "some-trace-id"}}
        sent = self.aws("send-message", "--queue-url", url, "--message-body", body,
                        "--message-attributes", json.dumps(attributes),
                        "--message-system-attributes", json.dumps(trace))
        self.assertEqual(sent, {
            "MessageId": sent["MessageId"], "MD5OfMessageBody": digests.of_text(body),
            "MD5OfMessageAttributes": digests.of_attributes(hashed),
            "MD5OfMessageSystemAttributes": "fdce4f2818803f2f73becc09a54792c0"})
        message, = self.receive(url, "--attribute-names", "All", "--message-attribute-names", "All")
        self.assertEqual(message["MessageId"], sent["MessageId"])
        self.assertEqual(message["Body"], body)
        self.assertEqual(message["MD5OfBody"], digests.of_text(body))
        self.assertEqual(message["MessageAttributes"], attributes)
        self.assertEqual(message["MD5OfMessageAttributes"], digests.of_attributes(hashed))
        self.assertEqual(message["Attributes"]["AWSTraceHeader"], "some-trace-id")
        self.assertEqual(message["Attributes"]["ApproximateReceiveCount"], "1")
        handle = message["ReceiptHandle"]
        self.assertIsNone(self.aws("change-message-visibility", "--queue-url", url,
                                   "--receipt-handle", handle, "--visibility-timeout", "0"))
        again, = self.receive(url)
        self.assertEqual(again["MessageId"], sent["MessageId"])
        self.assertIsNone(self.aws("delete-message", "--queue-url", url, "--receipt-handle",
                                   again["ReceiptHandle"]))
        self.assertIsNone(self.aws("receive-message", "--queue-url", url))

    def test_a_large_body_from_a_file(self):
        url = self.queue()
        body = "é<&\r\n" * (256 * 1024 // 6)
        with tempfile.NamedTemporaryFile("w", newline="", suffix=".txt") as file:
            file.write(body)
            file.flush()
            sent = self.aws("send-message", "--queue-url", url, "--message-body",
                            f"file://{file.name}")
        # Files are read as text, where a line end is a line feed.
        body = body.replace("\r\n", "\n")
        self.assertEqual(sent["MD5OfMessageBody"], digests.of_text(body))
        self.assertTrue(self.receive(url)[0]["Body"] == body)

    def test_batches_fail_in_part(self):
        url = self.queue()
        entries = [{"Id": "a", "MessageBody": "one"}, {"Id": "b", "MessageBody": "two"},
                   {"Id": "c", "MessageBody": "x", "DelaySeconds": 901}]
        answer = self.aws("send-message-batch", "--queue-url", url, "--entries",
                          json.dumps(entries))
        self.assertEqual([(e["Id"], e["MD5OfMessageBody"]) for e in answer["Successful"]],
                         [("a", digests.of_text("one")), ("b", digests.of_text("two"))])
        self.assertEqual(answer["Failed"], [{
            "Id": "c", "Code": "InvalidParameterValue", "SenderFault": True,
            "Message": "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must "
                       "be >= 0 and <= 900."}])
        messages = self.receive(url, "--max-number-of-messages", "10")
        self.assertEqual({m["Body"] for m in messages}, {"one", "two"})
        entries = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 100}
                   for i, m in enumerate(messages)]
        wrong = {"Id": "wrong", "ReceiptHandle": "nonsense", "VisibilityTimeout": 100}
        for command in ("change-message-visibility-batch", "delete-message-batch"):
            answer = self.aws(command, "--queue-url", url, "--entries",
                              json.dumps([*entries, wrong]))
            self.assertEqual(answer["Successful"], [{"Id": "0"}, {"Id": "1"}])
            self.assertEqual([(e["Id"], e["Code"], e["SenderFault"]) for e in answer["Failed"]],
                             [("wrong", "ReceiptHandleIsInvalid", True)])
            for entry in [*entries, wrong]:
                entry.pop("VisibilityTimeout", None)

    def test_fifo(self):
        url = self.queue(fifo=True, ContentBasedDeduplication="true")

        def send(body, *more):
            return self.aws("send-message", "--queue-url", url, "--message-body", body,
                            "--message-group-id", "g", *more)
        first, again = send("one"), send("one")
        second = send("two", "--message-deduplication-id", "own")
        self.assertEqual(again["MessageId"], first["MessageId"])
        self.assertLess(int(first["SequenceNumber"]), int(second["SequenceNumber"]))
        messages = self.receive(url, "--max-number-of-messages", "10", "--attribute-names", "All",
                                "--receive-request-attempt-id", "try-1")
        self.assertEqual([m["Body"] for m in messages], ["one", "two"])
        self.assertEqual(messages[1]["Attributes"]["MessageDeduplicationId"], "own")
        self.assertEqual(messages[1]["Attributes"]["SequenceNumber"], second["SequenceNumber"])
        same = self.receive(url, "--max-number-of-messages", "10", "--receive-request-attempt-id",
                            "try-1")
        self.assertEqual([m["ReceiptHandle"] for m in same], [m["ReceiptHandle"] for m in messages])

    def test_dead_letters(self):
        dead = self.queue()
        arn = self.attributes(dead, "QueueArn")["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
        url = self.queue(RedrivePolicy=policy)
        self.assertEqual(self.aws("list-dead-letter-source-queues", "--queue-url", dead),
                         {"queueUrls": [url]})
        self.aws("send-message", "--queue-url", url, "--message-body", "poison")
        self.receive(url, "--visibility-timeout", "0")
        self.assertIsNone(self.aws("receive-message", "--queue-url", url))
        message, = self.receive(dead, "--attribute-names", "All")
        self.assertEqual(message["Body"], "poison")
        self.assertEqual(message["Attributes"]["DeadLetterQueueSourceArn"],
                         self.attributes(url, "QueueArn")["QueueArn"])

    def test_a_long_poll_ends_with_the_message(self):
        url = self.queue()
        found = []
        waiting = threading.Thread(target=lambda: found.extend(
            self.receive(url, runner=run_program)))
        waiting.start()
        self.aws("send-message", "--queue-url", url, "--message-body", "here", "--delay-seconds",
                 "1")
        waiting.join()
        self.assertEqual([m["Body"] for m in found], ["here"])

    def test_refusals(self):
        url = self.queue()
        self.refused("An error occurred (InvalidParameterValue) OPERATION: Value 11 for parameter "
                     "MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if "
                     "provided.",
                     "receive-message", "--queue-url", url, "--max-number-of-messages", "11")
        self.refused("An error occurred (ReceiptHandleIsInvalid) OPERATION: The input receipt "
                     "handle \"nonsense\" is not a valid receipt handle.",
                     "delete-message", "--queue-url", url, "--receipt-handle", "nonsense")
        self.refused("An error occurred (AWS.SimpleQueueService.BatchEntryIdsNotDistinct) "
                     "OPERATION: Id a repeated.",
                     "send-message-batch", "--queue-url", url, "--entries", json.dumps(
                         [{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "y"}]))
        self.refused("An error occurred (InvalidAttributeName) OPERATION: Unknown Attribute Fancy.",
                     "set-queue-attributes", "--queue-url", url, "--attributes", "Fancy=1")


def every_command_was_exercised():
    model = _driver.session.get_service_model("sqs")
    commands = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in model.operation_names}
    assert not commands - called, f"no test calls {', '.join(sorted(commands - called))}"


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]], every_command_was_exercised))
