"""The life of queues: creating, finding, configuring, tagging, sharing, purging, deleting."""
import json

from kit import ACCOUNT, SqsTest, fresh_name


class Queues(SqsTest):
    def test_a_created_queue_is_found_by_its_name(self):
        url = self.queue()
        name = url.rsplit("/", 1)[1]
        self.assertEqual(self.sqs.get_queue_url(QueueName=name)["QueueUrl"], url)
        answer = self.sqs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=ACCOUNT)
        self.assertEqual(answer["QueueUrl"], url)
        self.assertEqual(answer["ResponseMetadata"]["HTTPStatusCode"], 200)
        self.assertEqual(len(answer["ResponseMetadata"]["RequestId"]), 36)

    def test_creating_again_with_the_same_attributes_gives_the_same_queue(self):
        url = self.queue(VisibilityTimeout="45")
        name = url.rsplit("/", 1)[1]
        again = self.sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "45"})
        self.assertEqual(again["QueueUrl"], url)
        self.assertEqual(self.sqs.create_queue(QueueName=name)["QueueUrl"], url)
        with self.refused("QueueAlreadyExists",
                          "A queue already exists with the same name and a different value for "
                          "attribute VisibilityTimeout", "QueueNameExists"):
            self.sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "46"})

    def test_a_deleted_queue_is_gone(self):
        url = self.queue()
        self.send(url, "lost")
        self.sqs.delete_queue(QueueUrl=url)
        for call in (lambda: self.sqs.get_queue_url(QueueName=url.rsplit("/", 1)[1]),
                     lambda: self.sqs.send_message(QueueUrl=url, MessageBody="x"),
                     lambda: self.sqs.delete_queue(QueueUrl=url)):
            with self.refused("AWS.SimpleQueueService.NonExistentQueue", None,
                              "QueueDoesNotExist"):
                call()

    def test_a_purged_queue_is_empty(self):
        url = self.queue()
        for body in ("ready", "in flight"):
            self.send(url, body)
        self.receive_one(url)
        self.send(url, "delayed", DelaySeconds=900)
        self.assertEqual(self.counts(url), (1, 1, 1))
        self.sqs.purge_queue(QueueUrl=url)
        self.assertEqual(self.counts(url), (0, 0, 0))
        self.assert_nothing_to_receive(url)

    def test_names_that_sqs_refuses(self):
        words = ("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in "
                 "length")
        for name in ("with space", "a" * 81, "dot.ted", "fifo.fifo", "ünïcode"):
            with self.subTest(name), self.refused_value(words):
                self.sqs.create_queue(QueueName=name)
        self.assertIn("a" * 80, self.sqs.create_queue(QueueName="a" * 80)["QueueUrl"])


class Listing(SqsTest):
    def test_lists_by_prefix(self):
        prefix = fresh_name()
        self.assertNotIn("QueueUrls", self.sqs.list_queues(QueueNamePrefix=prefix))
        urls = {self.sqs.create_queue(QueueName=f"{prefix}-{i}")["QueueUrl"] for i in range(3)}
        self.queue()
        answer = self.sqs.list_queues(QueueNamePrefix=prefix)
        self.assertEqual(set(answer["QueueUrls"]), urls)
        self.assertNotIn("NextToken", answer)
        self.assertGreater(len(self.sqs.list_queues()["QueueUrls"]), 3)

    def test_pages_are_complete_and_disjoint(self):
        prefix = fresh_name()
        urls = {self.sqs.create_queue(QueueName=f"{prefix}-{i}")["QueueUrl"] for i in range(7)}
        first = self.sqs.list_queues(QueueNamePrefix=prefix, MaxResults=3)
        self.assertEqual(len(first["QueueUrls"]), 3)
        self.assertTrue(first["NextToken"])
        pages = list(self.sqs.get_paginator("list_queues").paginate(
            QueueNamePrefix=prefix, PaginationConfig={"PageSize": 3}))
        self.assertEqual([len(page["QueueUrls"]) for page in pages], [3, 3, 1])
        found = [url for page in pages for url in page["QueueUrls"]]
        self.assertEqual(len(found), 7)
        self.assertEqual(set(found), urls)

    def test_dead_letter_sources_come_in_pages(self):
        dead = self.queue()
        policy = json.dumps({"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": 2})
        sources = {self.queue(RedrivePolicy=policy) for _ in range(3)}
        answer = self.sqs.list_dead_letter_source_queues(QueueUrl=dead)
        self.assertEqual(set(answer["queueUrls"]), sources)
        pages = list(self.sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=dead, PaginationConfig={"PageSize": 2}))
        self.assertEqual([len(page["queueUrls"]) for page in pages], [2, 1])
        self.assertEqual({url for page in pages for url in page["queueUrls"]}, sources)
        self.assertEqual(self.sqs.list_dead_letter_source_queues(
            QueueUrl=self.queue()).get("queueUrls", []), [])

    def test_wrong_pages_are_refused(self):
        with self.refused_value():
            self.sqs.list_queues(MaxResults=1001)
        with self.refused_value("Invalid or expired next token."):
            self.sqs.list_queues(MaxResults=1, NextToken="made up")


class Attributes(SqsTest):
    DEFAULTS = {"VisibilityTimeout": "30", "DelaySeconds": "0", "MaximumMessageSize": "1048576",
                "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0",
                "SqsManagedSseEnabled": "true", "ApproximateNumberOfMessages": "0",
                "ApproximateNumberOfMessagesNotVisible": "0",
                "ApproximateNumberOfMessagesDelayed": "0"}
    FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "false",
            "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}

    def all_of(self, url):
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        found = answer["Attributes"]
        self.assertEqual(found.pop("QueueArn"), self.arn(url))
        created, modified = found.pop("CreatedTimestamp"), found.pop("LastModifiedTimestamp")
        self.assertRegex(created, r"^\d{10}$")
        self.assertGreaterEqual(int(modified), int(created))
        return found

    def test_a_new_queue_has_the_documented_defaults(self):
        self.assertEqual(self.all_of(self.queue()), self.DEFAULTS)
        self.assertEqual(self.all_of(self.queue(fifo=True)), {**self.DEFAULTS, **self.FIFO})

    def test_attributes_that_were_set_are_read_back(self):
        changes = {"VisibilityTimeout": "0", "DelaySeconds": "900", "MaximumMessageSize": "1024",
                   "MessageRetentionPeriod": "60", "ReceiveMessageWaitTimeSeconds": "20"}
        created, changed = self.queue(**changes), self.queue()
        self.sqs.set_queue_attributes(QueueUrl=changed, Attributes=changes)
        for url in (created, changed):
            self.assertEqual(self.all_of(url), {**self.DEFAULTS, **changes})

    def test_fifo_attributes_are_read_back(self):
        url = self.queue(fifo=True, ContentBasedDeduplication="true",
                         DeduplicationScope="messageGroup",
                         FifoThroughputLimit="perMessageGroupId")
        self.assertEqual(self.attribute(url, "ContentBasedDeduplication"), "true")
        self.assertEqual(self.attribute(url, "DeduplicationScope"), "messageGroup")
        self.assertEqual(self.attribute(url, "FifoThroughputLimit"), "perMessageGroupId")

    def test_json_attributes_are_read_back_and_removed_by_an_empty_text(self):
        url, dead = self.queue_with_dead_letters(receives=7)
        redrive = json.loads(self.attribute(url, "RedrivePolicy"))
        self.assertEqual(redrive, {"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": 7})
        policy = json.dumps({"Version": "2012-10-17", "Statement": {
            "Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage",
            "Resource": self.arn(url)}})
        allow = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [self.arn(url)]})
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        self.sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": allow})
        self.assertEqual(json.loads(self.attribute(url, "Policy")), json.loads(policy))
        self.assertEqual(json.loads(self.attribute(dead, "RedriveAllowPolicy")), json.loads(allow))
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": "", "RedrivePolicy": ""})
        self.assertEqual(self.all_of(url), self.DEFAULTS)

    def test_booleans_may_be_written_as_python_does(self):
        url = self.queue(fifo=True, ContentBasedDeduplication=str(True))
        self.assertEqual(self.attribute(url, "ContentBasedDeduplication"), "true")
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={
            "ContentBasedDeduplication": str(False), "FifoQueue": str(True)})
        self.assertEqual(self.attribute(url, "ContentBasedDeduplication"), "false")
        self.assertEqual(self.attribute(url, "FifoQueue"), "true")
        with self.refused("InvalidAttributeValue", "Invalid value for the parameter FifoQueue. "
                          "Reason: Modifying queue type is not supported."):
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"FifoQueue": str(False)})
        with self.refused("InvalidAttributeName", "Unknown Attribute FifoQueue."):
            self.sqs.set_queue_attributes(QueueUrl=self.queue(), Attributes={"FifoQueue": "true"})
        with self.refused("InvalidAttributeName"):
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={
                "KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": "True"})

    def test_no_names_give_no_attributes(self):
        self.assertNotIn("Attributes", self.sqs.get_queue_attributes(QueueUrl=self.queue()))

    def test_a_kms_key_takes_the_place_of_managed_encryption(self):
        url = self.queue(KmsMasterKeyId="alias/aws/sqs", KmsDataKeyReusePeriodSeconds="600")
        self.assertEqual(self.attribute(url, "KmsMasterKeyId"), "alias/aws/sqs")
        self.assertEqual(self.attribute(url, "KmsDataKeyReusePeriodSeconds"), "600")
        self.assertEqual(self.attribute(url, "SqsManagedSseEnabled"), "false")

    def test_wrong_attributes_are_refused(self):
        url = self.queue()
        for name, value in (("VisibilityTimeout", "43201"), ("DelaySeconds", "-1"),
                            ("MaximumMessageSize", "1023"), ("MessageRetentionPeriod", "1.5"),
                            ("ReceiveMessageWaitTimeSeconds", "21")):
            with self.subTest(name), self.refused(
                    "InvalidAttributeValue", f"Invalid value for the parameter {name}."):
                self.sqs.set_queue_attributes(QueueUrl=url, Attributes={name: value})
        with self.refused("InvalidAttributeValue"):  # With a reason, whose text is not fixed.
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": "{"})
        for name in ("Fancy", "QueueArn", "ApproximateNumberOfMessages"):
            with self.subTest(name), self.refused(
                    "InvalidAttributeName", f"Unknown Attribute {name}.", "InvalidAttributeName"):
                self.sqs.set_queue_attributes(QueueUrl=url, Attributes={name: "1"})
        with self.refused("InvalidAttributeName", "Unknown Attribute Fancy.",
                          "InvalidAttributeName"):
            self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Fancy"])


class Tags(SqsTest):
    def test_tags_are_added_replaced_and_removed(self):
        name = fresh_name()
        url = self.sqs.create_queue(QueueName=name, tags={"team": "blue", "Ключ": "значение 1"})[
            "QueueUrl"]
        self.assertEqual(self.sqs.list_queue_tags(QueueUrl=url)["Tags"],
                         {"team": "blue", "Ключ": "значение 1"})
        self.sqs.tag_queue(QueueUrl=url,
                           Tags={"team": "red", "cost/centre": "a=b+c@d", "empty": ""})
        self.assertEqual(self.sqs.list_queue_tags(QueueUrl=url)["Tags"],
                         {"team": "red", "Ключ": "значение 1", "cost/centre": "a=b+c@d",
                          "empty": ""})
        self.sqs.untag_queue(QueueUrl=url, TagKeys=["team", "Ключ", "absent"])
        self.assertEqual(set(self.sqs.list_queue_tags(QueueUrl=url)["Tags"]),
                         {"cost/centre", "empty"})
        self.sqs.untag_queue(QueueUrl=url, TagKeys=["cost/centre", "empty"])
        self.assertNotIn("Tags", self.sqs.list_queue_tags(QueueUrl=url))

    def test_lengths_of_tags_are_counted_in_characters(self):
        url, tags = self.queue(), {"\u00e9" * 128: "\U0001f600" * 256}
        self.sqs.tag_queue(QueueUrl=url, Tags=tags)
        self.assertEqual(self.sqs.list_queue_tags(QueueUrl=url)["Tags"], tags)
        with self.refused_value():
            self.sqs.tag_queue(QueueUrl=url, Tags={"\u00e9" * 129: "v"})

    def test_wrong_tags_are_refused(self):
        url = self.queue()
        with self.refused_value():
            self.sqs.tag_queue(QueueUrl=url, Tags={"k" * 129: "v"})
        with self.refused_value():
            self.sqs.tag_queue(QueueUrl=url, Tags={"k": "v" * 257})
        with self.refused_value():
            self.sqs.tag_queue(QueueUrl=url, Tags={f"k{i}": "v" for i in range(51)})
        self.assertNotIn("Tags", self.sqs.list_queue_tags(QueueUrl=url))


class Permissions(SqsTest):
    def policy(self, url):
        return json.loads(self.attribute(url, "Policy"))

    def test_a_permission_becomes_a_statement_of_the_policy(self):
        url = self.queue()
        self.sqs.add_permission(QueueUrl=url, Label="one", AWSAccountIds=["111111111111"],
                                Actions=["SendMessage"])
        self.sqs.add_permission(QueueUrl=url, Label="two",
                                AWSAccountIds=["111111111111", "222222222222"],
                                Actions=["ReceiveMessage", "DeleteMessage"])
        policy = self.policy(url)
        self.assertEqual(policy["Version"], "2008-10-17")
        self.assertEqual(policy["Id"], f"{self.arn(url)}/SQSDefaultPolicy")
        self.assertEqual(policy["Statement"], [
            {"Sid": "one", "Effect": "Allow",
             "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
             "Action": "SQS:SendMessage", "Resource": self.arn(url)},
            {"Sid": "two", "Effect": "Allow",
             "Principal": {"AWS": ["arn:aws:iam::111111111111:root",
                                   "arn:aws:iam::222222222222:root"]},
             "Action": ["SQS:ReceiveMessage", "SQS:DeleteMessage"], "Resource": self.arn(url)}])
        self.sqs.remove_permission(QueueUrl=url, Label="one")
        self.assertEqual([s["Sid"] for s in self.policy(url)["Statement"]], ["two"])
        self.sqs.remove_permission(QueueUrl=url, Label="two")
        self.assertNotIn("Attributes", self.sqs.get_queue_attributes(
            QueueUrl=url, AttributeNames=["Policy"]))
        with self.refused_value("Value two for parameter Label is invalid. Reason: can't find "
                                "label."):
            self.sqs.remove_permission(QueueUrl=url, Label="two")

    def test_wrong_permissions_are_refused(self):
        url = self.queue()

        def add(label="l", accounts=("111111111111",), actions=("SendMessage",)):
            self.sqs.add_permission(QueueUrl=url, Label=label, AWSAccountIds=list(accounts),
                                    Actions=list(actions))
        add()
        with self.refused_value("Value l for parameter Label is invalid. Reason: Already exists."):
            add(actions=["ReceiveMessage"])
        with self.refused_value("Value SQS:CreateQueue for parameter ActionName is invalid. "
                                "Reason: Only the queue owner is allowed to invoke this action."):
            add(label="m", actions=["CreateQueue"])
        with self.refused_value():
            add(label="m", accounts=["somebody"])
        with self.refused("OverLimit", "8 Actions were found, maximum allowed is 7.", "OverLimit",
                          status=403):
            add(label="m", actions=["SendMessage", "ReceiveMessage", "DeleteMessage",
                                    "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl",
                                    "ListDeadLetterSourceQueues", "PurgeQueue"])
        with self.refused_value("Value m for parameter Label is invalid. Reason: can't find label "
                                "on existing policy."):
            self.sqs.remove_permission(QueueUrl=url, Label="m")


class Addresses(SqsTest):
    def test_only_the_end_of_a_queue_url_counts(self):
        url = self.queue()
        name = url.rsplit("/", 1)[1]
        for address in (f"https://queue.example.com/{ACCOUNT}/{name}",
                        f"http://localhost:1/{ACCOUNT}/{name}", name):
            with self.subTest(address):
                self.assertEqual(self.arn(address), self.arn(url))
