"""Dead-letter queues and the way back: moves by count, move tasks, who may use which queue."""
import json

import moves
from kit import SqsTest, text


class DeadLetters(SqsTest):
    def bury(self, url, dead, bodies, **sent):
        """Sends messages and receives them until they are in the dead-letter queue."""
        for i, body in enumerate(bodies):
            fifo = {"MessageGroupId": "g", "MessageDeduplicationId": f"d{i}"} \
                if url.endswith(".fifo") else {}
            self.send(url, body, **fifo, **sent)
        self.receive(url, count=len(bodies), VisibilityTimeout=0)
        # The receive that would be one too many finds nothing: the messages have moved.
        self.assert_nothing_to_receive(url)
        self.eventually(lambda: self.counts(dead) == (len(bodies), 0, 0))
        self.assertEqual(self.counts(url), (0, 0, 0))

    def test_a_message_received_too_often_is_moved(self):
        url, dead = self.queue_with_dead_letters(receives=2)
        sent = self.send(url, "poison", MessageAttributes={"a": text("b")})
        for count in ("1", "2"):
            message = self.receive_one(url, VisibilityTimeout=0, AttributeNames=["All"])
            self.assertEqual(message["Attributes"]["ApproximateReceiveCount"], count)
            self.assertNotIn("DeadLetterQueueSourceArn", message["Attributes"])
        self.assert_nothing_to_receive(url)
        found = self.receive_one(dead, AttributeNames=["All"], MessageAttributeNames=["All"])
        self.assertEqual(found["MessageId"], sent["MessageId"])
        self.assertEqual(found["Body"], "poison")
        self.assertEqual(found["MessageAttributes"], {"a": text("b")})
        attributes = found["Attributes"]
        self.assertEqual(attributes["ApproximateReceiveCount"], "3")
        self.assertEqual(attributes["SentTimestamp"], message["Attributes"]["SentTimestamp"])
        self.assertEqual(attributes["DeadLetterQueueSourceArn"], self.arn(url))

    def test_a_fifo_message_keeps_its_group(self):
        url, dead = self.queue_with_dead_letters(fifo=True)
        sent = self.send(url, "poison", MessageGroupId="g", MessageDeduplicationId="d")
        self.receive_one(url, VisibilityTimeout=0)
        self.assert_nothing_to_receive(url)
        found = self.receive_one(dead, AttributeNames=["All"])
        self.assertEqual(found["MessageId"], sent["MessageId"])
        self.assertEqual(found["Attributes"]["MessageGroupId"], "g")
        self.assertEqual(found["Attributes"]["MessageDeduplicationId"], sent["MessageId"])
        self.assertEqual(found["Attributes"]["DeadLetterQueueSourceArn"], self.arn(url))

    def finished_task(self, source):
        """The newest task of `source` once it has ended."""
        def look():
            task = moves.call("ListMessageMoveTasks", SourceArn=source)["Results"][0]
            return task if task["Status"] not in ("RUNNING", "CANCELLING") else None
        return self.eventually(look)

    def test_messages_go_back_to_where_they_came_from(self):
        for fifo in (False, True):
            with self.subTest(fifo=fifo):
                url, dead = self.queue_with_dead_letters(fifo=fifo)
                self.bury(url, dead, ["one", "two", "three"], MessageAttributes={"a": text("b")})
                handle = moves.call("StartMessageMoveTask", SourceArn=self.arn(dead))["TaskHandle"]
                self.assertTrue(handle)
                # A FIFO group hands out nothing more while its first message is in flight.
                task = self.finished_task(self.arn(dead))
                messages = self.receive(url, count=3, AttributeNames=["All"],
                                        MessageAttributeNames=["All"])
                self.assertEqual(sorted(m["Body"] for m in messages), ["one", "three", "two"])
                for message in messages:
                    self.assertEqual(message["Attributes"]["ApproximateReceiveCount"], "1")
                    self.assertNotIn("DeadLetterQueueSourceArn", message["Attributes"])
                    self.assertEqual(message["MessageAttributes"], {"a": text("b")})
                self.assertEqual(task["Status"], "COMPLETED")
                self.assertEqual(task["SourceArn"], self.arn(dead))
                self.assertEqual(task["ApproximateNumberOfMessagesMoved"], 3)
                self.assertEqual(task["ApproximateNumberOfMessagesToMove"], 3)
                self.assertGreater(task["StartedTimestamp"], 10 ** 12)
                self.assertFalse(set(task) & {"TaskHandle", "DestinationArn", "FailureReason",
                                              "MaxNumberOfMessagesPerSecond"})
                self.assertEqual(self.counts(dead), (0, 0, 0))

    def test_a_task_is_paced_seen_and_cancelled(self):
        url, dead = self.queue_with_dead_letters()
        elsewhere = self.queue()
        bodies = [f"m{i}" for i in range(10)]
        self.bury(url, dead, bodies)
        for extra in range(9):
            self.sqs.send_message_batch(QueueUrl=dead, Entries=[
                {"Id": str(i), "MessageBody": "more"} for i in range(10)])
        source = self.arn(dead)
        started = moves.call("StartMessageMoveTask", SourceArn=source,
                             DestinationArn=self.arn(elsewhere), MaxNumberOfMessagesPerSecond=1)
        task = moves.call("ListMessageMoveTasks", SourceArn=source, MaxResults=10)["Results"][0]
        self.assertEqual(task["Status"], "RUNNING")
        self.assertEqual(task["TaskHandle"], started["TaskHandle"])
        self.assertEqual(task["DestinationArn"], self.arn(elsewhere))
        self.assertEqual(task["MaxNumberOfMessagesPerSecond"], 1)
        self.assertEqual(task["ApproximateNumberOfMessagesToMove"], 100)
        with self.refused_value("There is already a task running. Only one active task is allowed "
                                "for a source queue arn at a given time."):
            moves.call("StartMessageMoveTask", SourceArn=source)
        moved = self.receive_one(elsewhere)
        self.assertIn(moved["Body"], [*bodies, "more"])
        cancelled = moves.call("CancelMessageMoveTask", TaskHandle=started["TaskHandle"])
        self.assertGreaterEqual(cancelled["ApproximateNumberOfMessagesMoved"], 1)

        def all_have_arrived():
            # A message that was on its way arrives after the end.
            task = self.finished_task(source)
            self.assertEqual(task["Status"], "CANCELLED")
            moved = task["ApproximateNumberOfMessagesMoved"]
            self.assertLessEqual(cancelled["ApproximateNumberOfMessagesMoved"], moved)
            return (sum(self.counts(elsewhere)), sum(self.counts(dead))) == (moved, 100 - moved)

        self.eventually(all_have_arrived)
        with self.refused_value("Only active tasks can be cancelled."):
            moves.call("CancelMessageMoveTask", TaskHandle=started["TaskHandle"])

    def test_wrong_move_tasks_are_refused(self):
        url, dead = self.queue_with_dead_letters()
        source = self.arn(dead)
        for words, parameters in (
                ("Source queue must be configured as a Dead Letter Queue.",
                 {"SourceArn": self.arn(url)}),
                ("Source queue arn and destination queue arn cannot be the same.",
                 {"SourceArn": source, "DestinationArn": source}),
                ("You must use this format to specify the SourceArn: "
                 "arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
                 {"SourceArn": "not an arn"}),
                (None, {"SourceArn": source, "MaxNumberOfMessagesPerSecond": 501}),
                ("The source queue and destination queue must be of the same queue type.",
                 {"SourceArn": source, "DestinationArn": self.arn(self.queue(fifo=True))})):
            with self.subTest(words), self.refused_value(words):
                moves.call("StartMessageMoveTask", **parameters)
        with self.refused("ResourceNotFoundException", "The resource that you specified for the "
                          "SourceArn parameter doesn't exist.", status=404):
            moves.call("StartMessageMoveTask", SourceArn=source + "-not")
        with self.refused("ResourceNotFoundException", None, status=404):
            moves.call("StartMessageMoveTask", SourceArn=source, DestinationArn=source + "-not")
        with self.refused_value():
            moves.call("CancelMessageMoveTask", TaskHandle="made up")
        tasks = moves.call("ListMessageMoveTasks", SourceArn=source)
        self.assertEqual(tasks.get("Results", []), [])

    def test_wrong_redrive_policies_are_refused(self):
        url, fifo = self.queue(), self.queue(fifo=True)
        target = self.arn(self.queue())

        def set_policy(policy):
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
        for reason, policy in (
                ("Redrive policy does not contain mandatory attribute: maxReceiveCount.",
                 {"deadLetterTargetArn": target}),
                ("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
                 {"maxReceiveCount": 1}),
                ("Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both "
                 "inclusive.", {"deadLetterTargetArn": target, "maxReceiveCount": 1001}),
                ("Dead letter target does not exist.",
                 {"deadLetterTargetArn": target + "-not", "maxReceiveCount": 1}),
                ("Dead-letter queue must be same type of queue as the source..",
                 {"deadLetterTargetArn": self.arn(fifo), "maxReceiveCount": 1})):
            encoded = json.dumps(policy)
            with self.subTest(reason), self.refused_value(
                    f"Value {encoded} for parameter RedrivePolicy is invalid. Reason: {reason}"):
                set_policy(encoded)
        with self.refused_value():
            set_policy("not json")

    def test_a_queue_may_refuse_to_take_dead_letters(self):
        deny = json.dumps({"redrivePermission": "denyAll"})
        dead = self.queue(RedriveAllowPolicy=deny)
        policy = json.dumps({"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": 1})
        with self.refused_value():
            self.queue(RedrivePolicy=policy)
