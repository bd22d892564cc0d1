"""Messages of standard queues: sending, receiving, deleting, batches, attributes, texts, sizes."""
import threading

from kit import ACCOUNT, SqsTest, binary, text
from support import digests
from support.unicode import FORBIDDEN, TEXTS

KIB = 1024
# Attributes of every type, with and without a label of the sender's own.
EVERY_TYPE = {
    "plain": text("World"),
    "Label.ed": text("<b>&\r\n\t😀</b>", "String.html"),
    "count": text("-12.50e3", "Number"),
    "big": text("1234567890123456789012", "Number.bigint"),
    "raw": binary(bytes(range(256))),
    "picture_1": binary(b"\x89PNG\r\n\x1a\n\x00", "Binary.png"),
}


class Messages(SqsTest):
    def test_a_message_is_sent_received_and_deleted(self):
        url = self.queue()
        sent = self.send(url, "hello")
        self.assertEqual(sent["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592")
        self.assertNotIn("SequenceNumber", sent)
        message = self.receive_one(url)
        self.assertEqual(message["MessageId"], sent["MessageId"])
        self.assertEqual(message["Body"], "hello")
        self.assertEqual(set(message), {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"})
        self.assertEqual(self.counts(url), (0, 1, 0))
        self.assert_nothing_to_receive(url)
        self.delete(url, message)
        self.assertEqual(self.counts(url), (0, 0, 0))
        self.delete(url, message)

    def test_system_attributes_are_those_asked_for(self):
        url = self.queue()
        sent = self.send(url, "traced", MessageSystemAttributes={
            "AWSTraceHeader": text("Root=1-abc;Sampled=1")})
        first = self.receive_one(url, AttributeNames=["All"], VisibilityTimeout=0)
        everything = first["Attributes"]
        self.assertEqual(everything["SenderId"], ACCOUNT)
        self.assertEqual(everything["ApproximateReceiveCount"], "1")
        self.assertEqual(everything["AWSTraceHeader"], "Root=1-abc;Sampled=1")
        self.assertRegex(everything["SentTimestamp"], r"^\d{13}$")
        self.assertGreaterEqual(int(everything["ApproximateFirstReceiveTimestamp"]),
                                int(everything["SentTimestamp"]))
        some = self.receive_one(url, VisibilityTimeout=0, AttributeNames=[
            "ApproximateReceiveCount", "SentTimestamp", "SequenceNumber"])
        self.assertEqual(some["MessageId"], sent["MessageId"])
        self.assertEqual(some["Attributes"], {"ApproximateReceiveCount": "2",
                                              "SentTimestamp": everything["SentTimestamp"]})
        self.assertNotIn("Attributes", self.receive_one(url))

    def test_a_trace_header_has_the_documented_digest(self):
        sent = self.send(self.queue(), "x", MessageSystemAttributes={
            "AWSTraceHeader": text("some-trace-id")})
        self.assertEqual(sent["MD5OfMessageSystemAttributes"], "fdce4f2818803f2f73becc09a54792c0")

    def test_a_group_on_a_standard_queue_is_a_tenant(self):
        url = self.queue()
        for tenant in ("a", "b", "a"):
            self.send(url, tenant, MessageGroupId=tenant)
        # No order and no lock: all of them at once, and no sequence numbers.
        messages = self.receive(url, count=3, AttributeNames=["All"])
        self.assertEqual(sorted(m["Attributes"]["MessageGroupId"] for m in messages),
                         ["a", "a", "b"])
        for message in messages:
            self.assertEqual(message["Attributes"]["MessageGroupId"], message["Body"])
            self.assertNotIn("SequenceNumber", message["Attributes"])

    def test_names_of_attributes_are_in_any_script(self):
        url = self.queue()
        attributes = {"attr.1\u00f8\u00df\u00e4": text("x"), "\u043a\u043b\u044e\u0447": text("y")}
        self.send(url, "x", MessageAttributes=attributes)
        message = self.receive_one(url, MessageAttributeNames=["*"])
        self.assertEqual(message["MessageAttributes"], attributes)
        for character in "\u00a7!\"(?":
            with self.subTest(character), self.refused_value():
                self.send(url, "x", MessageAttributes={"a" + character: text("x")})

    def test_a_queue_url_without_a_queue(self):
        for url in ("http://no-such-place", "http://no-such-place/"):
            with self.refused("AWS.SimpleQueueService.NonExistentQueue",
                              exception="QueueDoesNotExist"):
                self.sqs.purge_queue(QueueUrl=url)

    def test_visibility_is_changed(self):
        url = self.queue()
        self.send(url, "x")
        first = self.receive_one(url, VisibilityTimeout=600)
        self.assert_nothing_to_receive(url)
        self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"],
                                           VisibilityTimeout=0)
        second = self.receive_one(url, AttributeNames=["ApproximateReceiveCount"])
        self.assertEqual(second["Attributes"], {"ApproximateReceiveCount": "2"})
        self.assertEqual(second["MessageId"], first["MessageId"])
        self.assertNotEqual(second["ReceiptHandle"], first["ReceiptHandle"])

    def test_visibility_is_changed_with_an_old_receipt_too(self):
        url = self.queue()
        self.send(url, "x")
        old = self.receive_one(url, VisibilityTimeout=0)["ReceiptHandle"]
        self.receive_one(url, VisibilityTimeout=600)
        self.assertEqual(self.counts(url), (0, 1, 0))
        self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=old, VisibilityTimeout=0)
        self.assertEqual(self.counts(url), (1, 0, 0))

    def test_a_delayed_message_comes_later(self):
        url = self.queue()
        self.send(url, "soon", DelaySeconds=1)
        self.send(url, "in a quarter of an hour", DelaySeconds=900)
        self.assertEqual(self.receive_one(url, WaitTimeSeconds=20)["Body"], "soon")
        self.assertEqual(self.counts(url), (0, 1, 1))
        self.assert_nothing_to_receive(url)
        slow = self.queue(DelaySeconds="900")
        self.send(slow, "as the queue says")
        self.send(slow, "at once", DelaySeconds=0)
        self.assertEqual(self.receive_one(slow)["Body"], "at once")
        self.assertEqual(self.counts(slow), (0, 1, 1))

    def test_a_long_poll_ends_with_the_message(self):
        url = self.queue(ReceiveMessageWaitTimeSeconds="20")
        found = []
        waiting = threading.Thread(target=lambda: found.extend(
            self.sqs.receive_message(QueueUrl=url).get("Messages", [])))
        waiting.start()
        self.send(url, "here")
        waiting.join()
        self.assertEqual([m["Body"] for m in found], ["here"])

    def test_a_long_poll_ends_without_messages_too(self):
        self.assertNotIn("Messages", self.sqs.receive_message(QueueUrl=self.queue(),
                                                              WaitTimeSeconds=1))


class Batches(SqsTest):
    WORDS = {
        "ReceiptHandleIsInvalid":
            "The input receipt handle \"no handle\" is not a valid receipt handle.",
        "InvalidParameterValue":
            "Value 43201 for parameter VisibilityTimeout is invalid. Reason: VisibilityTimeout "
            "must be an integer between 0 and 43200."}

    def test_a_batch_fails_in_part(self):
        url = self.queue()
        attributes = {"n": text("1", "Number")}
        trace = {"AWSTraceHeader": text("t")}
        answer = self.sqs.send_message_batch(QueueUrl=url, Entries=[
            {"Id": "good-1", "MessageBody": "one", "MessageAttributes": attributes,
             "MessageSystemAttributes": trace},
            {"Id": "late", "MessageBody": "x", "DelaySeconds": 901},
            {"Id": "bad_characters", "MessageBody": "\u0007"},
            {"Id": "good-2", "MessageBody": "two"}])
        self.assertEqual([entry["Id"] for entry in answer["Successful"]], ["good-1", "good-2"])
        self.check_sent(answer["Successful"][0], "one", {"MessageAttributes": attributes,
                                                         "MessageSystemAttributes": trace})
        self.check_sent(answer["Successful"][1], "two", {})
        self.assertEqual(
            {entry["Id"]: (entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]},
            {"late": ("InvalidParameterValue", True),
             "bad_characters": ("InvalidMessageContents", True)})
        self.assertEqual({e["Id"]: e["Message"] for e in answer["Failed"]}["late"],
                         "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds "
                         "must be >= 0 and <= 900.")
        ids = {entry["MessageId"] for entry in answer["Successful"]}
        self.assertEqual({m["MessageId"] for m in self.receive(url, count=2)}, ids)

    def test_ten_messages_are_sent_received_and_deleted_in_three_calls(self):
        url = self.queue()
        bodies = {f"id-{i}": f"body {i}" for i in range(10)}
        answer = self.sqs.send_message_batch(QueueUrl=url, Entries=[
            {"Id": key, "MessageBody": body} for key, body in bodies.items()])
        self.assertNotIn("Failed", answer)
        for entry in answer["Successful"]:
            self.check_sent(entry, bodies[entry["Id"]], {})
        messages = self.receive(url, count=10)
        self.assertEqual({m["Body"] for m in messages}, set(bodies.values()))
        answer = self.sqs.delete_message_batch(QueueUrl=url, Entries=[
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)])
        self.assertEqual({entry["Id"] for entry in answer["Successful"]},
                         {str(i) for i in range(10)})
        self.assertNotIn("Failed", answer)
        self.assertEqual(self.counts(url), (0, 0, 0))

    def test_deleting_and_changing_fail_in_part(self):
        url = self.queue()
        self.send(url, "x")
        handle = self.receive_one(url)["ReceiptHandle"]
        answer = self.sqs.change_message_visibility_batch(QueueUrl=url, Entries=[
            {"Id": "a", "ReceiptHandle": handle, "VisibilityTimeout": 60},
            {"Id": "b", "ReceiptHandle": "no handle", "VisibilityTimeout": 60},
            {"Id": "c", "ReceiptHandle": handle, "VisibilityTimeout": 43201}])
        self.check_parts(answer, ["a"], {"b": "ReceiptHandleIsInvalid",
                                         "c": "InvalidParameterValue"})
        answer = self.sqs.delete_message_batch(QueueUrl=url, Entries=[
            {"Id": "a", "ReceiptHandle": handle}, {"Id": "b", "ReceiptHandle": "no handle"}])
        self.check_parts(answer, ["a"], {"b": "ReceiptHandleIsInvalid"})
        self.assertEqual(self.counts(url), (0, 0, 0))

    def check_parts(self, answer, good, bad):
        self.assertEqual([entry["Id"] for entry in answer["Successful"]], good)
        self.assertEqual({entry["Id"]: entry["Code"] for entry in answer["Failed"]}, bad)
        for entry in answer["Failed"]:
            self.assertIs(entry["SenderFault"], True)
            self.assertEqual(entry["Message"], self.WORDS[entry["Code"]])

    def test_wrong_batches_are_refused_as_a_whole(self):
        url = self.queue()

        def batch(*ids, size=1):
            return self.sqs.send_message_batch(QueueUrl=url, Entries=[
                {"Id": key, "MessageBody": "x" * size} for key in ids])
        prefix = "AWS.SimpleQueueService."
        with self.refused(prefix + "EmptyBatchRequest",
                          "There should be at least one SendMessageBatchRequestEntry in the "
                          "request.", "EmptyBatchRequest"):
            batch()
        with self.refused(prefix + "TooManyEntriesInBatchRequest",
                          "Maximum number of entries per request are 10. You have sent 11.",
                          "TooManyEntriesInBatchRequest"):
            batch(*(str(i) for i in range(11)))
        with self.refused(prefix + "BatchEntryIdsNotDistinct", "Id a repeated.",
                          "BatchEntryIdsNotDistinct"):
            batch("a", "b", "a")
        with self.refused(prefix + "InvalidBatchEntryId", None, "InvalidBatchEntryId"):
            batch("no spaces")
        with self.refused(prefix + "InvalidBatchEntryId", None, "InvalidBatchEntryId"):
            batch("a" * 81)
        with self.refused(prefix + "BatchRequestTooLong",
                          "Batch requests cannot be longer than 1048576 bytes. You have sent "
                          "1048578 bytes.", "BatchRequestTooLong"):
            batch("a", "b", size=512 * KIB + 1)
        with self.refused(prefix + "EmptyBatchRequest", None, "EmptyBatchRequest"):
            self.sqs.delete_message_batch(QueueUrl=url, Entries=[])
        with self.refused(prefix + "EmptyBatchRequest", None, "EmptyBatchRequest"):
            self.sqs.change_message_visibility_batch(QueueUrl=url, Entries=[])
        self.assertEqual(self.counts(url), (0, 0, 0))


class MessageAttributes(SqsTest):
    def test_every_type_comes_back_as_it_was_sent(self):
        url = self.queue()
        self.send(url, "typed", MessageAttributes=EVERY_TYPE)
        message = self.receive_one(url, MessageAttributeNames=["All"])
        self.assertEqual(message["MessageAttributes"], EVERY_TYPE)

    def test_documented_digests(self):
        url = self.queue()
        for attributes, digest in (
                ({"Hello": text("World")}, "7db7fb1ba7f41366a8ea5eb18220b26d"),
                ({"UserId": text("1234567890123456789012", "Number.bigint")},
                 "797ab158d73dcb5242dedc4412c8e855"),
                ({"data2": text("2", "Number"), "data1": text("1", "Number")},
                 "b53b5acf24e7fd9567705bd8027b1c76"),
                ({"testname": binary(b"123")}, "4969dd151b0a6c8b619ebb802f76e035"),
                ({"a": text("x"), "B": binary(b"\0\1\2", "Binary.png")},
                 "cff135f477a4fd1cf7d625833d1e9e8f")):
            sent = self.send(url, "x", MessageAttributes=attributes)
            self.assertEqual(sent["MD5OfMessageAttributes"], digest)
            message = self.receive_one(url, MessageAttributeNames=[".*"])
            self.assertEqual(message["MessageAttributes"], attributes)
            self.assertEqual(message["MD5OfMessageAttributes"], digest)
            self.delete(url, message)

    def test_only_the_attributes_asked_for_come(self):
        url = self.queue()
        attributes = {name: text(name) for name in ("a", "pre.one", "pre.two", "prefix", "z")}
        self.send(url, "x", MessageAttributes=attributes)
        for names, expected in ((["a"], {"a"}), (["pre.*"], {"pre.one", "pre.two", "prefix"}),
                                (["a", "z", "absent"], {"a", "z"}), (["absent"], set()),
                                ([], set()), (["All"], set(attributes))):
            message = self.receive_one(url, MessageAttributeNames=names, VisibilityTimeout=0)
            self.assertEqual(set(message.get("MessageAttributes", {})), expected)
            self.assertEqual(
                message.get("MD5OfMessageAttributes"),
                digests.of_attributes({n: attributes[n] for n in expected}) if expected else None)

    def test_wrong_attributes_are_refused(self):
        url = self.queue()
        for attributes, words in (
                ({"x": text("v", "Text")},
                 "The type of message (user) attribute 'x' is invalid. You must use only the "
                 "following supported type prefixes: Binary, Number, String."),
                ({"x": text("")},
                 "Message (user) attribute 'x' must contain a non-empty value of type 'String'."),
                ({"x": text("many", "Number")},
                 "Can't cast the value of message (user) attribute 'x' to a number."),
                ({"AWS.x": text("v")},
                 "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These "
                 "strings are reserved for internal use."),
                ({"a b": text("v")}, None), ({".x": text("v")}, None), ({"x..y": text("v")}, None),
                ({f"x{i}": text("v") for i in range(11)},
                 "Number of message attributes [11] exceeds the allowed maximum [10].")):
            with self.subTest(words), self.refused_value(words):
                self.sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
        self.assertEqual(self.counts(url), (0, 0, 0))


class Contents(SqsTest):
    def test_every_text_comes_back_as_it_was_sent(self):
        for name, body in TEXTS.items():
            with self.subTest(name):
                url = self.queue()
                sent = {"text": text(body), "labelled": text(body, "String.x"),
                        "raw": binary(body.encode())}
                self.send(url, body, MessageAttributes=sent)
                message = self.receive_one(url, MessageAttributeNames=["All"])
                self.assertEqual(message["Body"], body)
                self.assertEqual(message["MessageAttributes"], sent)

    def test_forbidden_characters_are_refused(self):
        url = self.queue()
        for name, body in FORBIDDEN.items():
            with self.subTest(name), self.refused("InvalidMessageContents", None,
                                                  "InvalidMessageContents"):
                self.sqs.send_message(QueueUrl=url, MessageBody=body)
            with self.subTest(name), self.refused_value():
                self.sqs.send_message(QueueUrl=url, MessageBody="x",
                                      MessageAttributes={"a": text(body)})

    def test_large_messages(self):
        url = self.queue()
        for body in ("x" * 256 * KIB, "y" * 1024 * KIB, "é" * 512 * KIB, "&" * 1024 * KIB,
                     "\r" * 1024 * KIB, "😀" * 256 * KIB):
            with self.subTest(f"{body[0]!r} × {len(body)}"):
                self.send(url, body)
                message = self.receive_one(url)
                self.assertTrue(message["Body"] == body)
                self.delete(url, message)

    def test_one_byte_too_many_is_refused(self):
        url = self.queue()
        words = ("One or more parameters are invalid. Reason: Message must be shorter than {} "
                 "bytes.")
        with self.refused_value(words.format(1048576)):
            self.sqs.send_message(QueueUrl=url, MessageBody="x" * (1024 * KIB + 1))
        small = self.queue(MaximumMessageSize="1024")
        # Names, types and values of attributes count too.
        attributes = {"name": binary(b"12345")}
        self.send(small, "x" * (KIB - 15), MessageAttributes=attributes)
        with self.refused_value(words.format(1024)):
            self.sqs.send_message(QueueUrl=small, MessageBody="x" * (KIB - 14),
                                  MessageAttributes=attributes)


class WrongInput(SqsTest):
    def test_a_queue_that_does_not_exist(self):
        url = self.queue() + "-not"
        for call in (lambda: self.sqs.send_message(QueueUrl=url, MessageBody="x"),
                     lambda: self.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20),
                     lambda: self.sqs.purge_queue(QueueUrl=url),
                     lambda: self.sqs.list_queue_tags(QueueUrl=url),
                     lambda: self.sqs.list_dead_letter_source_queues(QueueUrl=url),
                     lambda: self.sqs.send_message_batch(
                         QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "x"}])):
            with self.refused("AWS.SimpleQueueService.NonExistentQueue", None, "QueueDoesNotExist"):
                call()

    def test_numbers_out_of_range(self):
        url = self.queue()
        for parameters, words in (
                ({"MaxNumberOfMessages": 11}, "Value 11 for parameter MaxNumberOfMessages is "
                 "invalid. Reason: Must be between 1 and 10, if provided."),
                ({"MaxNumberOfMessages": 0}, None),
                ({"WaitTimeSeconds": 21}, "Value 21 for parameter WaitTimeSeconds is invalid. "
                 "Reason: Must be >= 0 and <= 20, if provided."),
                ({"VisibilityTimeout": -1}, None),
                ({"VisibilityTimeout": 43201}, "Value 43201 for parameter VisibilityTimeout is "
                 "invalid. Reason: Must be >= 0 and <= 43200, if provided.")):
            with self.subTest(parameters), self.refused_value(words):
                self.sqs.receive_message(QueueUrl=url, **parameters)
        with self.refused_value("Value 901 for parameter DelaySeconds is invalid. Reason: "
                                "DelaySeconds must be >= 0 and <= 900."):
            self.sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=901)

    def test_handles_that_are_none(self):
        url, other = self.queue(), self.queue()
        self.send(other, "x")
        foreign = self.receive_one(other)["ReceiptHandle"]
        for handle in ("nonsense", foreign, foreign[:-4] + "AAAA"):
            with self.refused("ReceiptHandleIsInvalid", None, "ReceiptHandleIsInvalid", status=404):
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
            with self.refused("ReceiptHandleIsInvalid", None, "ReceiptHandleIsInvalid", status=404):
                self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle,
                                                   VisibilityTimeout=1)

    def test_visibility_of_a_deleted_message_cannot_change(self):
        url = self.queue()
        self.send(url, "x")
        message = self.receive_one(url)
        self.delete(url, message)
        with self.refused_value():
            self.sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=1)

    def test_fifo_parameters_on_a_standard_queue(self):
        url = self.queue()
        with self.refused_value():
            self.sqs.send_message(QueueUrl=url, MessageBody="x", MessageDeduplicationId="d")

    def test_an_empty_body(self):
        with self.refused("MissingParameter",
                          "The request must contain the parameter MessageBody."):
            self.sqs.send_message(QueueUrl=self.queue(), MessageBody="")
