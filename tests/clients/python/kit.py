"""What the tests of boto3 share: clients, fresh queues, and checks of whole answers."""
import contextlib
import json
import os
import pathlib
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import boto3
import botocore.config
import botocore.exceptions

from support import digests

ACCOUNT = os.environ["STANCHION_ACCOUNT"]
REGION = os.environ["AWS_DEFAULT_REGION"]

# The server's address; the test of wrong answers replaces it by its proxy for a while.
endpoint = os.environ["STANCHION_ENDPOINT"]
# How often a test asks again for a message that must come.
patience = 6

# The actions that any test has called, according to the client's own events.
called = set()
_clients = {}


def client():
    if endpoint not in _clients:
        config = botocore.config.Config(read_timeout=60, retries={"max_attempts": 2})
        made = boto3.client("sqs", endpoint_url=endpoint, config=config)
        made.meta.events.register("before-call.sqs",
                                  lambda model, **unused: called.add(model.name))
        _clients[endpoint] = made
    return _clients[endpoint]


def offered():
    return set(client().meta.service_model.operation_names)


def is_json():
    return client().meta.service_model.metadata["protocol"] == "json"


def fresh_name(suffix=""):
    return f"q-{uuid.uuid4().hex[:12]}{suffix}"


def text(value, label="String"):
    return {"DataType": label, "StringValue": value}


def binary(value, label="Binary"):
    return {"DataType": label, "BinaryValue": value}


class SqsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.sqs = client()

    def queue(self, fifo=False, **attributes):
        if fifo:
            attributes["FifoQueue"] = "true"
        name = fresh_name(".fifo" if fifo else "")
        url = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.assertEqual(url, f"{endpoint}/{ACCOUNT}/{name}")
        return url

    def arn(self, url):
        arn = self.attribute(url, "QueueArn")
        self.assertEqual(arn, f"arn:aws:sqs:{REGION}:{ACCOUNT}:{url.rsplit('/', 1)[-1]}")
        return arn

    def queue_with_dead_letters(self, receives=1, fifo=False):
        """A queue and its dead-letter queue, which gets messages received `receives` times."""
        dead = self.queue(fifo=fifo)
        policy = {"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": receives}
        return self.queue(fifo=fifo, RedrivePolicy=json.dumps(policy)), dead

    def attribute(self, url, name):
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        self.assertEqual(list(answer["Attributes"]), [name])
        return answer["Attributes"][name]

    def counts(self, url):
        """How many messages are visible, in flight and delayed."""
        names = ["ApproximateNumberOfMessages" + kind for kind in ("", "NotVisible", "Delayed")]
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return tuple(int(found[name]) for name in names)

    def send(self, url, body, **more):
        answer = self.sqs.send_message(QueueUrl=url, MessageBody=body, **more)
        self.check_sent(answer, body, more)
        return answer

    def check_sent(self, answer, body, sent):
        """What SendMessage answers, and each entry of SendMessageBatch."""
        uuid.UUID(answer["MessageId"])
        self.assertEqual(answer["MD5OfMessageBody"], digests.of_text(body))
        for kind in ("MessageAttributes", "MessageSystemAttributes"):
            expected = digests.of_attributes(sent[kind]) if sent.get(kind) else None
            self.assertEqual(answer.get("MD5Of" + kind), expected)

    def receive(self, url, count=1, **more):
        """The next `count` messages, which must come; receives until they are there."""
        found = []
        for _ in range(patience):
            answer = self.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=min(10, count - len(found)),
                **{"WaitTimeSeconds": 5, **more})
            found += answer.get("Messages", [])
            if len(found) >= count:
                break
        self.assertEqual(len(found), count)
        for message in found:
            self.check_received(message)
        return found

    def receive_one(self, url, **more):
        return self.receive(url, **more)[0]

    def check_received(self, message):
        uuid.UUID(message["MessageId"])
        self.assertEqual(message["MD5OfBody"], digests.of_text(message["Body"]))
        attributes = message.get("MessageAttributes")
        self.assertEqual(message.get("MD5OfMessageAttributes"),
                         digests.of_attributes(attributes) if attributes else None)

    def assert_nothing_to_receive(self, url):
        answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        self.assertNotIn("Messages", answer)

    def eventually(self, look):
        """Repeats `look` until it finds something; long polls pass the time."""
        for _ in range(10 * patience):
            found = look()
            if found:
                return found
            self.sqs.receive_message(QueueUrl=self.queue(), WaitTimeSeconds=1)
        self.fail("it does not come")

    def delete(self, url, message):
        self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    @contextlib.contextmanager
    def refused(self, code, message=None, exception=None, status=400):
        """The client must raise its own exception, with SQS's code and text."""
        kind = getattr(self.sqs.exceptions, exception) if exception else \
            botocore.exceptions.ClientError
        with self.assertRaises(kind) as caught:
            yield
        answer = caught.exception.response
        self.assertEqual(answer["Error"]["Code"], code)
        self.assertEqual(answer["Error"]["Type"], "Sender")
        metadata = answer["ResponseMetadata"]
        self.assertEqual(metadata["HTTPStatusCode"], status)
        uuid.UUID(metadata["RequestId"])
        self.assertEqual(metadata["RequestId"], metadata["HTTPHeaders"]["x-amzn-requestid"])
        if message:
            self.assertEqual(answer["Error"]["Message"], message)

    def refused_value(self, message=None):
        return self.refused("InvalidParameterValue", message)
