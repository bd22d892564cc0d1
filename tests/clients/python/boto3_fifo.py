"""FIFO queues: order, groups, deduplication, receive attempts."""
import hashlib

from kit import SqsTest


class Fifo(SqsTest):
    def put(self, url, body, group, deduplication=None, **more):
        if deduplication is not None:
            more["MessageDeduplicationId"] = deduplication
        return self.send(url, body, MessageGroupId=group, **more)

    def test_a_group_keeps_its_order(self):
        url = self.queue(fifo=True)
        sent = [self.put(url, f"m{i}", "g", f"d{i}") for i in range(12)]
        numbers = [int(answer["SequenceNumber"]) for answer in sent]
        self.assertEqual(numbers, sorted(set(numbers)))
        for answer in sent:
            self.assertRegex(answer["SequenceNumber"], r"^\d{20}$")
        messages = self.receive(url, count=10, AttributeNames=["All"])
        self.assertEqual([m["Body"] for m in messages], [f"m{i}" for i in range(10)])
        for i, message in enumerate(messages):
            attributes = message["Attributes"]
            self.assertEqual(attributes["SequenceNumber"], sent[i]["SequenceNumber"])
            self.assertEqual(attributes["MessageGroupId"], "g")
            self.assertEqual(attributes["MessageDeduplicationId"], f"d{i}")
        # Later messages wait until all of these are settled.
        self.assert_nothing_to_receive(url)
        for message in messages:
            self.delete(url, message)
        self.assertEqual([m["Body"] for m in self.receive(url, count=2)], ["m10", "m11"])

    def test_groups_do_not_wait_for_each_other(self):
        url = self.queue(fifo=True)
        for i, group in enumerate("aabb"):
            self.put(url, f"{group}{i}", group, str(i))
        first = self.receive_one(url)
        self.assertEqual(first["Body"], "a0")
        rest = self.receive(url, count=2)
        self.assertEqual([m["Body"] for m in rest], ["b2", "b3"])
        self.assert_nothing_to_receive(url)

    def test_a_message_that_returns_is_first_again(self):
        url = self.queue(fifo=True)
        self.put(url, "first", "g", "1")
        self.put(url, "second", "g", "2")
        message = self.receive_one(url)
        self.assert_nothing_to_receive(url)
        self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"],
                                           VisibilityTimeout=0)
        self.assertEqual([m["Body"] for m in self.receive(url, count=2)], ["first", "second"])

    def test_a_message_waits_for_earlier_ones_of_its_group_only(self):
        url = self.queue(fifo=True)
        for i in range(3):
            self.put(url, f"m{i}", "g", str(i))
        first, second = self.receive(url, count=2)
        self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"],
                                           VisibilityTimeout=0)
        again = self.receive_one(url)
        self.assertEqual(again["Body"], "m0")
        self.delete(url, again)
        self.assert_nothing_to_receive(url)
        self.delete(url, second)
        self.assertEqual(self.receive_one(url)["Body"], "m2")

    def test_groups_stand_in_a_line(self):
        url = self.queue(fifo=True)
        for i, (body, group) in enumerate((("g1a", "1"), ("g2a", "2"), ("g2b", "2"), ("g3a", "3"),
                                           ("g1b", "1"))):
            self.put(url, body, group, str(i))

        def receive(most, timeout):
            answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=most,
                                              VisibilityTimeout=timeout)
            return [message["Body"] for message in answer["Messages"]]
        self.assertEqual(receive(3, 0), ["g1a", "g1b", "g2a"])
        self.assertEqual(receive(10, 60), ["g3a", "g1a", "g1b", "g2a", "g2b"])

    def test_a_duplicate_is_accepted_and_dropped(self):
        url = self.queue(fifo=True)
        first = self.put(url, "original", "g", "same")
        again = self.put(url, "copy", "h", "same")
        self.assertEqual(again["MessageId"], first["MessageId"])
        self.assertEqual(again["SequenceNumber"], first["SequenceNumber"])
        message = self.receive_one(url)
        self.assertEqual(message["Body"], "original")
        self.delete(url, message)
        self.put(url, "after the delete", "g", "same")
        self.assertEqual(self.counts(url), (0, 0, 0))

    def test_duplicates_are_told_apart_by_group_if_asked(self):
        url = self.queue(fifo=True, DeduplicationScope="messageGroup")
        for group in ("g", "h", "g"):
            self.put(url, group, group, "same")
        self.assertEqual(self.counts(url), (2, 0, 0))

    def test_content_is_the_deduplication_id_if_asked(self):
        url = self.queue(fifo=True, ContentBasedDeduplication="true")
        first = self.put(url, "same words", "g")
        self.assertEqual(self.put(url, "same words", "g")["MessageId"], first["MessageId"])
        self.put(url, "other words", "g")
        self.put(url, "same words", "g", "an-id-of-its-own")
        messages = self.receive(url, count=3, AttributeNames=["MessageDeduplicationId"])
        self.assertEqual([m["Body"] for m in messages], ["same words", "other words", "same words"])
        self.assertEqual(messages[0]["Attributes"]["MessageDeduplicationId"],
                         hashlib.sha256(b"same words").hexdigest())

    def test_a_batch_keeps_its_order(self):
        url = self.queue(fifo=True, ContentBasedDeduplication="true")
        answer = self.sqs.send_message_batch(QueueUrl=url, Entries=[
            {"Id": str(i), "MessageBody": f"m{i}", "MessageGroupId": "g"} for i in range(10)])
        self.assertEqual([entry["Id"] for entry in answer["Successful"]],
                         [str(i) for i in range(10)])
        numbers = [int(entry["SequenceNumber"]) for entry in answer["Successful"]]
        self.assertEqual(numbers, sorted(set(numbers)))
        messages = self.receive(url, count=10, AttributeNames=["SequenceNumber"])
        self.assertEqual([m["Body"] for m in messages], [f"m{i}" for i in range(10)])
        self.assertEqual([int(m["Attributes"]["SequenceNumber"]) for m in messages], numbers)

    def test_the_same_attempt_gets_the_same_messages(self):
        url = self.queue(fifo=True)
        for i in range(3):
            self.put(url, f"m{i}", "g", str(i))
        first = self.receive(url, count=2, ReceiveRequestAttemptId="attempt-1")
        again = self.receive(url, count=2, ReceiveRequestAttemptId="attempt-1")
        self.assertEqual([m["ReceiptHandle"] for m in again], [m["ReceiptHandle"] for m in first])
        self.assertEqual([m["Body"] for m in again], ["m0", "m1"])
        self.assertNotIn("Messages", self.sqs.receive_message(
            QueueUrl=url, ReceiveRequestAttemptId="attempt-2"))

    def test_a_handle_is_void_once_the_message_came_back(self):
        url = self.queue(fifo=True)
        self.put(url, "x", "g", "1")
        old = self.receive_one(url, VisibilityTimeout=0)["ReceiptHandle"]
        new = self.receive_one(url)["ReceiptHandle"]
        with self.refused_value(f"Value {old} for parameter ReceiptHandle is invalid. Reason: The "
                                "receipt handle has expired."):
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=old)
        self.sqs.delete_message(QueueUrl=url, ReceiptHandle=new)
        self.assertEqual(self.counts(url), (0, 0, 0))

    def test_what_a_fifo_queue_requires(self):
        url = self.queue(fifo=True)
        with self.refused("MissingParameter",
                          "The request must contain the parameter MessageGroupId."):
            self.sqs.send_message(QueueUrl=url, MessageBody="x", MessageDeduplicationId="d")
        with self.refused_value("The request must contain the parameter MessageGroupId."):
            self.sqs.send_message_batch(QueueUrl=url, Entries=[
                {"Id": "a", "MessageBody": "x", "MessageDeduplicationId": "d"}])
        with self.refused_value("The queue should either have ContentBasedDeduplication enabled or "
                                "MessageDeduplicationId provided explicitly"):
            self.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
        with self.refused_value("Value 60 for parameter DelaySeconds is invalid. Reason: The "
                                "request include parameter that is not valid for this queue type."):
            self.put(url, "x", "g", "d", DelaySeconds=60)
        for wrong in ("with space", "ü", "x" * 129):
            with self.refused_value():
                self.put(url, "x", wrong, "d")
            with self.refused_value():
                self.put(url, "x", "g", wrong)
        with self.refused_value("The name of a FIFO queue can only include alphanumeric "
                                "characters, hyphens, or underscores, must end with .fifo suffix "
                                "and be 1 to 80 in length."):
            self.sqs.create_queue(QueueName="no-suffix", Attributes={"FifoQueue": "true"})
        self.assertEqual(self.counts(url), (0, 0, 0))
