"""The table of errors, row by row, in both protocols, without any client library between."""
import base64
import json
import os
import pathlib
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import errors_table as table
from support import golden, raw, suite

# Golden errors that no row produces: those of signatures and of a full disk have their own tests,
# and some the server never returns. Malformed requests depend on the protocol.
ELSEWHERE = {"AccessDenied", "ExpiredToken", "IncompleteSignature", "InternalFailure",
             "InvalidClientTokenId", "InvalidSecurity", "MissingAuthenticationToken",
             "RequestThrottled", "ServiceUnavailable", "SignatureDoesNotMatch",
             "A text with every character that is escaped"}

NO_QUEUE = {"json": "The specified queue does not exist.",
            "query": "The specified queue does not exist for this wsdl version.",
            "query_json": "The specified queue does not exist for this wsdl version."}
PROTOCOLS = ("json", "query", "query_json")


class Stage:
    """The queues, receipts and tasks that the rows use."""

    def __init__(self, client):
        self.client = client
        for name, attributes in {table.Q: {}, table.FIFO: {"FifoQueue": "true"}, table.DEAD: {},
                                 table.SMALL: {"MaximumMessageSize": "1024"}}.items():
            self.call("CreateQueue", QueueName=name, Attributes=attributes)
        policy = {"deadLetterTargetArn": table.ARN + table.DEAD, "maxReceiveCount": 1}
        self.call("CreateQueue", QueueName=table.SOURCE,
                  Attributes={"RedrivePolicy": json.dumps(policy)})
        self.call("AddPermission", QueueUrl=table.Q, Label="taken", Actions=["SendMessage"],
                  AWSAccountIds=["111111111111"])
        self.deleted = self.receipt(table.Q)
        self.call("DeleteMessage", QueueUrl=table.Q, ReceiptHandle=self.deleted)
        self.held = self.receipt(table.Q, VisibilityTimeout=600)
        self.lapsed = self.receipt(table.FIFO, VisibilityTimeout=0)
        task = {"taskId": str(uuid.uuid4()), "sourceArn": table.ARN + table.DEAD}
        self.unknown_task = base64.b64encode(json.dumps(task).encode()).decode()
        task["sourceArn"] = table.ARN + table.NOWHERE
        self.task_of_no_queue = base64.b64encode(json.dumps(task).encode()).decode()
        started = self.call("StartMessageMoveTask", SourceArn=table.ARN + table.DEAD)
        self.ended_task = started["TaskHandle"]  # There was nothing to move.

    def call(self, action, **parameters):
        answer = self.client.json(action, parameters)
        assert answer.status == 200, answer.body
        return answer.json()

    def receipt(self, queue, **parameters):
        ids = {"MessageGroupId": "g", "MessageDeduplicationId": "d"} if queue == table.FIFO else {}
        self.call("SendMessage", QueueUrl=queue, MessageBody="x", **ids)
        answer = self.call("ReceiveMessage", QueueUrl=queue, **parameters)
        return answer["Messages"][0]["ReceiptHandle"]

    def resolve(self, given):
        if callable(given):
            return given(self)
        if isinstance(given, dict):
            return {name: self.resolve(inner) for name, inner in given.items()}
        return given


ROWS = {"QUEUES", "ATTRIBUTES", "PERMISSIONS", "MESSAGES", "MESSAGE_ATTRIBUTES", "BATCHES",
        "RECEIVES", "MOVES"}


class Errors(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.client = raw.Client(os.environ["STANCHION_ENDPOINT"])
        cls.stage = Stage(cls.client)

    def check_rows(self, rows):
        for action, parameters, error, words in rows:
            parameters = self.stage.resolve(parameters)
            for protocol in PROTOCOLS:
                answer = getattr(self.client, protocol)(action, parameters)
                with self.subTest(protocol=protocol, action=action, parameters=str(parameters)[:200]):
                    self.check(answer, protocol, error, words)

    def check(self, answer, protocol, error, words):
        kind, code, status = error
        words = NO_QUEUE[protocol] if words is None else self.stage.resolve(words)
        self.assertEqual((answer.status, answer.code, answer.fault, answer.message),
                         (status, code, "Sender", words))
        self.assertEqual(answer.type, kind if protocol == "json" else None)
        uuid.UUID(answer.headers["x-amzn-RequestId"])

    def test_queues(self):
        self.check_rows(table.QUEUES)

    def test_attributes_of_queues(self):
        self.check_rows(table.ATTRIBUTES)

    def test_permissions(self):
        self.check_rows(table.PERMISSIONS)

    def test_messages(self):
        self.check_rows(table.MESSAGES)

    def test_attributes_of_messages(self):
        self.check_rows(table.MESSAGE_ATTRIBUTES)

    def test_batches(self):
        self.check_rows(table.BATCHES)

    def test_receives_and_receipts(self):
        self.check_rows(table.RECEIVES)

    def test_moves(self):
        self.check_rows(table.MOVES)

    def test_entries_of_batches_fail_alone(self):
        for action, entry, code, words in table.ENTRIES:
            parameters = {"QueueUrl": table.Q, "Entries": [{"Id": "a", **entry}]}
            expected = {"Id": "a", "Code": code, "Message": words, "SenderFault": True}
            answer = self.client.json(action, parameters)
            self.assertEqual(answer.json(), {"Failed": [expected]}, answer.body)
            answer = self.client.query(action, parameters)
            found = {name: answer.texts(name) for name in expected}
            self.assertEqual(found, {"Id": ["a"], "Code": [code], "Message": [words],
                                     "SenderFault": ["true"]}, answer.body)
            result = self.client.query_json(action, parameters).json()[action + "Response"]
            self.assertEqual(result[action + "Result"], {"Successful": None, "Failed": [expected]})

    def answers(self, protocol):
        """The answer to every row, compared with the golden files."""
        ask = getattr(self.client, protocol)
        rows = [row for name, rows in vars(table).items() if name.isupper() and name in ROWS
                for row in rows]
        for action, parameters, *_ in rows:
            yield golden.form_of(ask(action, self.stage.resolve(parameters)))
        rests = f"errors-rests-{protocol.replace('_', '-')}"
        self.stage.call("CreateQueue", QueueName=rests)
        self.stage.call("DeleteQueue", QueueUrl=rests)
        self.client.json("PurgeQueue", {"QueueUrl": table.SMALL})
        for action, parameters in (
                ("Foo", {}), ("CreateQueue", {"QueueName": rests}),
                ("PurgeQueue", {"QueueUrl": table.SMALL}),
                ("SendMessage", {"QueueUrl": table.Q, "MessageBody": "x" * (7 << 20)})):
            yield golden.form_of(ask(action, parameters))
        kind = {"json": raw.JSON, "query": raw.FORM,
                "query_json": {**raw.FORM, "Accept": "application/json"}}[protocol]
        yield golden.form_of(self.client.send("POST", "/", kind, b""))
        if protocol == "json":
            yield golden.form_of(ask("SendMessage", {"QueueUrl": table.Q, "MessageBody": []}))

    def test_the_golden_errors_are_what_a_server_says(self):
        for protocol in PROTOCOLS:
            answers = set(self.answers(protocol))
            for name, expected in golden.errors(protocol).items():
                if name not in ELSEWHERE and (protocol == "json" or name != "MalformedInput"):
                    with self.subTest(protocol=protocol, error=name):
                        self.assertIn(expected, answers)

    def test_nothing_was_changed_by_all_this(self):
        queues = self.stage.call("ListQueues", QueueNamePrefix="errors").get("QueueUrls", [])
        self.assertEqual(sorted(url.rsplit("/", 1)[1] for url in queues), sorted(
            [table.Q, table.FIFO, table.SMALL, table.DEAD, table.SOURCE]))
        self.assertEqual(self.stage.call("ListQueueTags", QueueUrl=table.Q), {})
        counts = self.stage.call("GetQueueAttributes", QueueUrl=table.Q, AttributeNames=["All"])
        self.assertEqual(counts["Attributes"]["ApproximateNumberOfMessages"], "0")
        self.assertEqual(counts["Attributes"]["ApproximateNumberOfMessagesNotVisible"], "1")


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
