"""What was recorded on AWS, in both protocols, without any client library between."""
import json
import os
import pathlib
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import raw, suite


class InJson:
    def __init__(self, client):
        self.client = client

    def ask(self, action, **parameters):
        return self.client.json(action, parameters)

    def receive(self, answer):
        return [(m["Body"], m["ReceiptHandle"]) for m in answer.json().get("Messages", [])]

    def attributes(self, answer):
        return answer.json().get("Attributes", {})


class InQuery:
    def __init__(self, client):
        self.client = client

    def ask(self, action, **parameters):
        return self.client.query(action, parameters)

    def receive(self, answer):
        return list(zip(answer.texts("Body"), answer.texts("ReceiptHandle")))

    def attributes(self, answer):
        return dict(zip(answer.texts("Name"), answer.texts("Value")))


class Recorded:
    """One queue per test; `protocol` is what the two classes below differ in."""
    protocol = None

    def setUp(self):
        self.wire = self.protocol(raw.Client(os.environ["STANCHION_ENDPOINT"]))

    def call(self, action, **parameters):
        answer = self.wire.ask(action, **parameters)
        self.assertEqual(answer.status, 200, answer.body)
        return answer

    def queue(self, suffix="", **attributes):
        name = f"recorded-{uuid.uuid4().hex[:12]}{suffix}"
        self.call("CreateQueue", QueueName=name, Attributes=attributes)
        return name

    def fifo(self, *bodies, **attributes):
        """A FIFO queue with these messages, in groups named by all but their last letter."""
        url = self.queue(".fifo", FifoQueue="true", **attributes)
        for i, body in enumerate(bodies):
            self.call("SendMessage", QueueUrl=url, MessageBody=body, MessageGroupId=body[:-1],
                      MessageDeduplicationId=str(i))
        return url

    def receive(self, url, count=10, timeout=600):
        answer = self.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=count,
                           VisibilityTimeout=timeout)
        found = self.wire.receive(answer)
        self.handles = {body: handle for body, handle in found}
        return [body for body, handle in found]

    def change(self, url, handle, timeout):
        self.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle,
                  VisibilityTimeout=timeout)

    def delete(self, url, handle):
        self.call("DeleteMessage", QueueUrl=url, ReceiptHandle=handle)

    def attributes(self, url, *names):
        return self.wire.attributes(
            self.call("GetQueueAttributes", QueueUrl=url, AttributeNames=list(names)))

    def visible(self, url):
        return self.attributes(url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"]

    def test_a_message_comes_back_while_a_later_one_is_in_flight(self):
        url = self.fifo("g1", "g2", "g3")
        self.assertEqual(self.receive(url, 2), ["g1", "g2"])
        self.change(url, self.handles["g1"], 0)
        self.assertEqual(self.receive(url), ["g1"])
        self.assertEqual(self.receive(url), [])

    def test_a_message_that_is_extended_holds_back_later_ones_only(self):
        url = self.fifo("g1", "g2", "g3")
        self.assertEqual(self.receive(url), ["g1", "g2", "g3"])
        held = self.handles
        self.change(url, held["g2"], 300)
        self.change(url, held["g3"], 0)
        self.assertEqual(self.receive(url), [])
        self.change(url, held["g1"], 0)
        self.assertEqual(self.receive(url), ["g1"])

    def test_the_third_waits_for_the_second_when_the_first_is_deleted(self):
        url = self.fifo("g1", "g2", "g3")
        self.receive(url, 2)
        held = self.handles
        self.delete(url, held["g1"])
        self.assertEqual(self.receive(url), [])
        self.delete(url, held["g2"])
        self.assertEqual(self.receive(url), ["g3"])

    def test_messages_of_a_batch_are_deleted_in_any_order(self):
        url = self.fifo("g1", "g2", "g3", "g4")
        self.receive(url, 3)
        held = self.handles
        for body in ("g3", "g1", "g2"):
            self.assertEqual(self.receive(url), [])
            self.delete(url, held[body])
        self.assertEqual(self.receive(url), ["g4"])

    def test_groups_that_were_received_from_go_to_the_back_of_the_line(self):
        url = self.fifo("g1a", "g2a", "g2b", "g3a", "g1b")
        self.assertEqual(self.receive(url, 3, timeout=0), ["g1a", "g1b", "g2a"])
        self.assertEqual(self.receive(url), ["g3a", "g1a", "g1b", "g2a", "g2b"])

    def test_a_group_goes_to_the_back_when_its_message_is_deleted(self):
        url = self.fifo("a1", "a2", "b1")
        self.receive(url, 1)
        self.delete(url, self.handles["a1"])
        self.assertEqual(self.receive(url, 1), ["b1"])
        self.assertEqual(self.receive(url, 1), ["a2"])

    def test_a_timeout_of_zero_yields_no_message_twice(self):
        url = self.fifo("g1", "g2")
        for _ in range(2):
            self.assertEqual(self.receive(url, timeout=0), ["g1", "g2"])

    def test_an_old_receipt_changes_the_visibility_of_a_standard_message(self):
        url = self.queue()
        self.call("SendMessage", QueueUrl=url, MessageBody="x")
        self.receive(url, timeout=0)
        old = self.handles["x"]
        self.receive(url)
        self.assertEqual(self.visible(url), "0")
        self.change(url, old, 0)
        self.assertEqual(self.visible(url), "1")
        self.receive(url, timeout=600)
        self.change(url, old, 100)
        self.assertEqual(self.visible(url), "0")

    def test_an_old_receipt_of_a_visible_message_succeeds(self):
        url = self.queue()
        self.call("SendMessage", QueueUrl=url, MessageBody="x")
        self.receive(url, timeout=0)
        self.change(url, self.handles["x"], 100)
        self.assertEqual(self.receive(url), ["x"])

    def test_booleans_are_read_in_any_case(self):
        url = self.queue(".fifo", FifoQueue="True", ContentBasedDeduplication="TRUE",
                         SqsManagedSseEnabled="False")
        names = ("FifoQueue", "ContentBasedDeduplication", "SqsManagedSseEnabled")
        self.assertEqual(self.attributes(url, *names), dict(zip(names, ("true", "true", "false"))))
        self.call("SetQueueAttributes", QueueUrl=url,
                  Attributes={"FifoQueue": "True", "ContentBasedDeduplication": "fAlse"})
        self.assertEqual(self.attributes(url, *names), dict(zip(names, ("true", "false", "false"))))

    def test_a_new_policy_is_of_the_old_version(self):
        url = self.queue()
        self.call("AddPermission", QueueUrl=url, Label="one", Actions=["SendMessage"],
                  AWSAccountIds=["111111111111"])
        found = self.attributes(url, "Policy", "QueueArn")
        policy = json.loads(found["Policy"])
        self.assertEqual(list(policy), ["Version", "Id", "Statement"])
        self.assertEqual(policy["Version"], "2008-10-17")
        self.assertEqual(policy["Id"], found["QueueArn"] + "/SQSDefaultPolicy")

    def test_a_batch_without_a_group_sends_nothing(self):
        url = self.fifo()
        answer = self.wire.ask("SendMessageBatch", QueueUrl=url, Entries=[
            {"Id": "a", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1"},
            {"Id": "b", "MessageBody": "y", "MessageDeduplicationId": "2"}])
        self.assertEqual((answer.status, answer.code, answer.message),
                         (400, "InvalidParameterValue",
                          "The request must contain the parameter MessageGroupId."))
        self.assertEqual(self.visible(url), "0")


class RecordedInJson(Recorded, unittest.TestCase):
    protocol = InJson


class RecordedInQuery(Recorded, unittest.TestCase):
    protocol = InQuery


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules[__name__]]))
