"""boto3 with right, wrong and other people's credentials against a server with accounts."""
import concurrent.futures
import datetime
import json
import sys
import unittest
import unittest.mock

import boto3
import botocore
import botocore.auth
import botocore.config

import kit
import moves
from support import golden, models, raw, suite, target

INVALID = "The security token included in the request is invalid."


def client_of(key, secret, token=None):
    return boto3.client("sqs", endpoint_url=kit.endpoint, aws_access_key_id=key,
                        aws_secret_access_key=secret, aws_session_token=token)


class Credentials(kit.SqsTest):
    def refused_to(self, client, code, message=None, status=403):
        self.sqs = client
        with self.refused(code, message, status=status):
            client.list_queues()

    def test_a_wrong_secret(self):
        self.refused_to(client_of(target.ACCESS_KEY, "guessed"), "SignatureDoesNotMatch",
                        "The request signature we calculated does not match the signature you "
                        "provided. Check your AWS Secret Access Key and signing method. Consult "
                        "the service documentation for details.")

    def test_an_unknown_key(self):
        self.refused_to(client_of("AKIANOBODY", "guessed"), "InvalidClientTokenId", INVALID)

    def test_no_credentials(self):
        config = botocore.config.Config(signature_version=botocore.UNSIGNED)
        self.refused_to(boto3.client("sqs", endpoint_url=kit.endpoint, config=config),
                        "MissingAuthenticationToken", "Request is missing Authentication Token")

    def test_the_golden_errors_are_what_a_server_says(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        date = {"X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ")}

        def signed_by(key):
            scope = f"{now:%Y%m%d}/us-east-1/sqs/aws4_request"
            return {**date, "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, "
                    f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}"}
        attempts = {
            "MissingAuthenticationToken": {},
            "IncompleteSignature": {**date, "Authorization": "AWS4-HMAC-SHA256 "
                                    "SignedHeaders=host, Signature=00"},
            "InvalidClientTokenId": signed_by("AKIANOBODY"),
            "SignatureDoesNotMatch": signed_by(target.ACCESS_KEY),
        }
        client = raw.Client(kit.endpoint)
        for name, headers in attempts.items():
            for protocol in ("json", "query", "query_json"):
                with self.subTest(error=name, protocol=protocol):
                    headers.setdefault("X-Amz-Target", "AmazonSQS.ListQueues")
                    ask = getattr(client, protocol)
                    self.assertEqual(golden.form_of(ask("ListQueues", {}, **headers)),
                                     golden.errors(protocol)[name])

    def test_a_session_token(self):
        key, secret, token = target.SESSION_ACCESS_KEY, target.SECRET_KEY, target.SESSION_TOKEN
        client_of(key, secret, token).list_queues()
        self.refused_to(client_of(key, secret), "InvalidClientTokenId")
        self.refused_to(client_of(key, secret, "another"), "InvalidClientTokenId")

    @unittest.skipUnless(models.speaks("query"), "this boto3 speaks JSON only")
    def test_a_presigned_call_is_answered_in_json_if_asked(self):
        url = self.queue()
        signed = models.client("query", kit.endpoint).generate_presigned_url(
            "get_queue_attributes", {"QueueUrl": url, "AttributeNames": ["VisibilityTimeout"]},
            HttpMethod="GET")
        path = signed[len(kit.endpoint):]
        client = raw.Client(kit.endpoint)
        answer = client.send("GET", path, {"Accept": "application/json"}, None)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json()["GetQueueAttributesResponse"], {
            "GetQueueAttributesResult": {
                "Attributes": [{"Name": "VisibilityTimeout", "Value": "30"}]},
            "ResponseMetadata": {"RequestId": answer.headers["x-amzn-RequestId"]}})
        # The parameter would have to be signed, the header need not be.
        answer = client.send("GET", path + "&ContentType=JSON", {}, None)
        self.assertEqual((answer.status, answer.code), (403, "SignatureDoesNotMatch"))
        self.assertEqual(answer.headers["Content-Type"], "application/json")

    def test_a_clock_that_is_off(self):
        # Later versions of botocore read the time in a place with another name.
        name = "get_current_datetime" if hasattr(botocore.auth, "get_current_datetime") \
            else "datetime"
        for minutes, words in ((-16, b"Signature expired: "), (16, b"Signature not yet current: ")):
            with unittest.mock.patch(f"botocore.auth.{name}") as fake:
                moved = datetime.datetime.utcnow() + datetime.timedelta(minutes=minutes)
                fake.return_value = fake.datetime.utcnow.return_value = moved
                answer = moves.post(self.sqs, {"Action": "ListQueues", "Version": "2012-11-05"})
            self.assertEqual(answer.status_code, 403)
            self.assertIn(b"<Code>SignatureDoesNotMatch</Code><Message>" + words, answer.content)


class Accounts(kit.SqsTest):
    def setUp(self):
        super().setUp()
        self.owner = self.sqs
        self.other = client_of(target.OTHER_ACCESS_KEY, target.OTHER_SECRET_KEY)

    def test_each_account_has_its_own_queues(self):
        url = self.queue()
        name = url.rsplit("/", 1)[1]
        theirs = self.other.create_queue(QueueName=name)["QueueUrl"]
        self.assertEqual(theirs, f"{kit.endpoint}/{target.OTHER_ACCOUNT}/{name}")
        self.assertEqual(self.other.list_queues(QueueNamePrefix=name)["QueueUrls"], [theirs])
        self.assertEqual(self.owner.list_queues(QueueNamePrefix=name)["QueueUrls"], [url])
        self.other.send_message(QueueUrl=theirs, MessageBody="mine")
        self.assert_nothing_to_receive(url)

    def test_a_queue_of_others_needs_their_permission(self):
        url = self.queue()
        arn = self.arn(url)

        def attempt():
            self.other.send_message(QueueUrl=url, MessageBody="hello, neighbour")
        self.sqs = self.other
        with self.refused("AccessDenied", status=403):
            attempt()
        self.owner.add_permission(QueueUrl=url, Label="them", Actions=["SendMessage"],
                                  AWSAccountIds=[target.OTHER_ACCOUNT])
        attempt()
        with self.refused("AccessDenied", status=403):
            self.other.receive_message(QueueUrl=url)
        with self.refused("AccessDenied", status=403):
            self.other.delete_queue(QueueUrl=url)
        with self.refused("AccessDenied", status=403):  # Reported before other mistakes.
            self.other.set_queue_attributes(QueueUrl=url, Attributes={"Policy": "x"})
        self.owner.remove_permission(QueueUrl=url, Label="them")
        with self.refused("AccessDenied", status=403):
            attempt()
        self.sqs = self.owner
        message = self.receive_one(url, AttributeNames=["SenderId"])
        self.assertEqual(message["Body"], "hello, neighbour")
        self.assertEqual(message["Attributes"], {"SenderId": target.OTHER_ACCOUNT})
        self.assertIn(target.ACCOUNT, arn)

    def allow(self, url, **more):
        """A policy that lets the others receive, with more or other elements in its statement."""
        statement = {"Effect": "Allow", "Principal": {"AWS": target.OTHER_ACCOUNT},
                     "Action": "sqs:ReceiveMessage", "Resource": self.arn(url), **more}
        statement = {name: value for name, value in statement.items() if value is not None}
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

    def set_policy(self, url, policy):
        self.owner.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})

    def test_a_poll_that_waits_is_refused_when_its_right_is_gone(self):
        url = self.queue()
        self.set_policy(url, self.allow(url))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            poll = pool.submit(self.other.receive_message, QueueUrl=url, WaitTimeSeconds=20)
            # Whether a poll is parked when its permission ends cannot be seen from here: either way
            # it must not get the message. The shard's own tests cover both cases.
            self.send(url, "while they may")
            self.assertEqual([m["Body"] for m in poll.result()["Messages"]], ["while they may"])
            poll = pool.submit(self.other.receive_message, QueueUrl=url, WaitTimeSeconds=20)
            self.set_policy(url, "")
            self.send(url, "not for them any more")
            self.sqs = self.other
            with self.refused("AccessDenied", status=403):
                poll.result()
        self.sqs = self.owner
        self.assertEqual(self.receive_one(url)["Body"], "not for them any more")

    def test_what_looks_stricter_than_it_is_is_refused(self):
        url = self.queue()
        for more in ({"Principal": None, "NotPrincipal": {}},
                     {"Principal": None, "NotPrincipal": {"AWS": target.ACCOUNT}},
                     {"Resource": "arn:aws:sqs:*:*:${aws:username"},
                     {"Condition": {"StringEquals": {"aws:username": "${}"}}},
                     {"Principal": {"AWS": f"arn:aws:iam::{target.OTHER_ACCOUNT}:user/*"}}):
            with self.subTest(**more), self.refused("InvalidAttributeValue"):
                self.set_policy(url, self.allow(url, **more))
        twice = self.allow(url).replace('"Effect": "Allow"', '"Effect": "Deny", "Effect": "Allow"')
        with self.refused("InvalidAttributeValue"):
            self.set_policy(url, twice)

    def test_what_has_no_value_lets_nobody_in(self):
        url = self.queue()
        for more in ({"Resource": "arn:aws:sqs:*:*:${aws:username}"},
                     {"Condition": {"StringEquals": {"aws:username": "${aws:PrincipalTag/a}"}}},
                     {"Condition": {"StringEquals": {"aws:userid": "AIDA"}}},
                     {"Condition": {"StringNotEquals": {"aws:NoSuchKey": "x"}}}):
            self.set_policy(url, self.allow(url, **more))
            self.sqs = self.other
            with self.subTest(**more), self.refused("AccessDenied", status=403):
                self.other.receive_message(QueueUrl=url)
            self.sqs = self.owner

    def test_conditions_see_what_aws_would_show_them(self):
        url = self.queue()
        ann = client_of(target.OTHER_USER_ACCESS_KEY, target.OTHER_SECRET_KEY)

        def may(client, condition):
            self.set_policy(url, self.allow(url, Condition=condition))
            try:
                client.receive_message(QueueUrl=url)
            except client.exceptions.ClientError as error:
                self.assertEqual(error.response["Error"]["Code"], "AccessDenied")
                return False
            return True
        for condition in ({"StringEquals": {"aws:RequestedRegion": target.REGION}},
                          {"Bool": {"aws:PrincipalIsAWSService": "false"}},
                          {"StringEquals": {"aws:ResourceAccount": target.ACCOUNT}}):
            with self.subTest(condition):
                self.assertTrue(may(self.other, condition))
                self.assertTrue(may(ann, condition))
        named = {"StringEquals": {"aws:username": target.OTHER_USER, "aws:PrincipalType": "User"}}
        self.assertTrue(may(ann, named))
        self.assertFalse(may(self.other, named))
        # A caller that calls directly is not a source, and has no source account.
        self.assertFalse(may(ann, {"StringEquals": {"aws:SourceAccount": target.OTHER_ACCOUNT}}))


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
