"""What was recorded on AWS, in both protocols: as bytes without any client library, and through boto3."""
import base64
import collections
import json
import os
import pathlib
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import botocore.exceptions

from support import models, raw, suite

NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
NO_SOURCE = "The resource that you specified for the SourceArn parameter doesn't exist."


class InJson:
    def __init__(self, endpoint):
        self.client = raw.Client(endpoint)

    def ask(self, action, **parameters):
        return self.client.json(action, parameters)

    def receive(self, answer):
        return [(m["Body"], m["ReceiptHandle"]) for m in answer.json().get("Messages", [])]

    def attributes(self, answer):
        return answer.json().get("Attributes", {})

    def names_of_attributes(self, answer):
        return sorted(answer.json()["Messages"][0].get("MessageAttributes", {}))

    def task(self, answer):
        return answer.json()["TaskHandle"]


class InQuery:
    def __init__(self, endpoint):
        self.client = raw.Client(endpoint)

    def ask(self, action, **parameters):
        return self.client.query(action, parameters)

    def receive(self, answer):
        return list(zip(answer.texts("Body"), answer.texts("ReceiptHandle")))

    def attributes(self, answer):
        return dict(zip(answer.texts("Name"), answer.texts("Value")))

    def names_of_attributes(self, answer):
        return sorted(answer.texts("Name"))

    def task(self, answer):
        return answer.texts("TaskHandle")[0]


class ThroughBoto3:
    """The same questions for boto3, whose answers and exceptions are brought into one form."""
    Answer = collections.namedtuple("Answer", "status code message body")
    protocol = None

    def __init__(self, endpoint):
        self.client = models.client(self.protocol, endpoint)

    def ask(self, action, **parameters):
        try:
            found = models.method(self.client, action)(**parameters)
        except botocore.exceptions.ClientError as refused:
            error = refused.response["Error"]
            return self.Answer(refused.response["ResponseMetadata"]["HTTPStatusCode"],
                               error["Code"], error["Message"], refused.response)
        return self.Answer(found["ResponseMetadata"]["HTTPStatusCode"], None, None, found)

    def receive(self, answer):
        return [(m["Body"], m["ReceiptHandle"]) for m in answer.body.get("Messages", [])]

    def attributes(self, answer):
        return answer.body.get("Attributes", {})

    def names_of_attributes(self, answer):
        return sorted(answer.body["Messages"][0].get("MessageAttributes", {}))

    def task(self, answer):
        return answer.body["TaskHandle"]


class Boto3InJson(ThroughBoto3):
    protocol = "json"


class Boto3InQuery(ThroughBoto3):
    protocol = "query"


class Recorded:
    """One queue per test; `protocol` is what the classes below differ in."""
    protocol = None

    def setUp(self):
        self.wire = self.protocol(os.environ["STANCHION_ENDPOINT"])

    def refused(self, code, words, action, status=400, **parameters):
        answer = self.wire.ask(action, **parameters)
        self.assertEqual((answer.status, answer.code), (status, code), answer.body)
        if words is not None:
            self.assertEqual(answer.message, words)

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
        self.refused("InvalidParameterValue",
                     "The request must contain the parameter MessageGroupId.",
                     "SendMessageBatch", QueueUrl=url, Entries=[
                         {"Id": "a", "MessageBody": "x", "MessageGroupId": "g",
                          "MessageDeduplicationId": "1"},
                         {"Id": "b", "MessageBody": "y", "MessageDeduplicationId": "2"}])
        self.assertEqual(self.visible(url), "0")
        # A single send gives the same text with another code.
        self.refused("MissingParameter", "The request must contain the parameter MessageGroupId.",
                     "SendMessage", QueueUrl=url, MessageBody="x", MessageDeduplicationId="1")

    def test_the_type_of_a_queue_is_not_changed(self):
        standard, fifo = self.queue(), self.fifo()
        for given in ("true", "True", "false", "x"):
            self.refused("InvalidAttributeName", "Unknown Attribute FifoQueue.",
                         "SetQueueAttributes", QueueUrl=standard, Attributes={"FifoQueue": given})
        for given in ("true", "True"):
            self.call("SetQueueAttributes", QueueUrl=fifo, Attributes={"FifoQueue": given})
        for given in ("false", "FALSE"):
            self.refused("InvalidAttributeValue", "Invalid value for the parameter FifoQueue. "
                         "Reason: Modifying queue type is not supported.",
                         "SetQueueAttributes", QueueUrl=fifo, Attributes={"FifoQueue": given})

    def test_two_kinds_of_encryption_in_one_call(self):
        both = {"KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": "True"}
        words = ("You can use one type of server-side encryption (SSE) at one time. You can either "
                 "enable KMS SSE or SQS SSE.")
        url = self.queue()
        self.refused("InvalidAttributeName", words, "SetQueueAttributes", QueueUrl=url,
                     Attributes=both)
        self.refused("InvalidAttributeName", words, "CreateQueue", QueueName="recorded-encrypted",
                     Attributes=both)

    def test_a_label_that_is_not_there(self):
        url = self.queue()
        without = "Value none for parameter Label is invalid. Reason: can't find label"
        self.refused("InvalidParameterValue", without + ".", "RemovePermission", QueueUrl=url,
                     Label="none")
        self.call("AddPermission", QueueUrl=url, Label="one", Actions=["SendMessage"],
                  AWSAccountIds=["111111111111"])
        self.refused("InvalidParameterValue", without + " on existing policy.", "RemovePermission",
                     QueueUrl=url, Label="none")
        self.call("RemovePermission", QueueUrl=url, Label="one")
        self.assertEqual(self.attributes(url, "Policy"), {})
        self.refused("InvalidParameterValue", without + ".", "RemovePermission", QueueUrl=url,
                     Label="none")

    def test_a_star_selects_all_attributes_of_messages(self):
        url = self.queue()
        names = ["attr.1\u00f8\u00df\u00e4", "plain", "\u043a\u043b\u044e\u0447"]
        self.call("SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes={
            name: {"DataType": "String", "StringValue": "v"} for name in names})
        for asked, found in (("*", names), (".*", names), ("All", names), ("attr.*", names[:1]),
                             (names[0], names[:1])):
            answer = self.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=0,
                               MessageAttributeNames=[asked])
            self.assertEqual(self.wire.names_of_attributes(answer), found, asked)

    def test_signs_are_no_letters_in_names_of_attributes(self):
        url = self.queue()
        for sign in "\u00a7!\"(?":
            self.refused("InvalidParameterValue", None, "SendMessage", QueueUrl=url,
                         MessageBody="x", MessageAttributes={
                             "a" + sign: {"DataType": "String", "StringValue": "v"}})

    def test_a_queue_url_without_any_queue_in_it(self):
        for url in ("http://no-such-place", "http://no-such-place/"):
            for action, more in (("PurgeQueue", {}), ("ReceiveMessage", {}),
                                 ("SendMessage", {"MessageBody": "x"}),
                                 ("DeleteMessage", {"ReceiptHandle": "x"})):
                self.refused(NO_QUEUE, None, action, QueueUrl=url, **more)

    def test_a_task_whose_queue_is_gone_cannot_be_cancelled(self):
        dead = self.queue()
        arn = self.attributes(dead, "QueueArn")["QueueArn"]
        self.queue(RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1}))
        task = self.wire.task(self.call("StartMessageMoveTask", SourceArn=arn))
        self.refused("InvalidParameterValue", "Only active tasks can be cancelled.",
                     "CancelMessageMoveTask", TaskHandle=task)
        self.call("DeleteQueue", QueueUrl=dead)
        self.refused("ResourceNotFoundException", NO_SOURCE, "CancelMessageMoveTask", status=404,
                     TaskHandle=task)
        never = json.dumps({"taskId": str(uuid.uuid4()), "sourceArn": arn + "-never"})
        self.refused("ResourceNotFoundException", NO_SOURCE, "CancelMessageMoveTask", status=404,
                     TaskHandle=base64.b64encode(never.encode()).decode())


class RecordedInJson(Recorded, unittest.TestCase):
    protocol = InJson


class RecordedInQuery(Recorded, unittest.TestCase):
    protocol = InQuery


class RecordedThroughBoto3InJson(Recorded, unittest.TestCase):
    protocol = Boto3InJson


@unittest.skipUnless(models.speaks("query"), "this boto3 speaks JSON only")
class RecordedThroughBoto3InQuery(Recorded, unittest.TestCase):
    protocol = Boto3InQuery


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules[__name__]]))
