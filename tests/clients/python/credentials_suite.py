"""boto3 with right, wrong and other people's credentials against a server with accounts."""
import datetime
import sys
import unittest.mock

import boto3
import botocore
import botocore.auth
import botocore.config

import kit
import moves
from support import golden, raw, suite, target

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
            for protocol, ask in (("json", client.json), ("query", client.query)):
                with self.subTest(error=name, protocol=protocol):
                    headers.setdefault("X-Amz-Target", "AmazonSQS.ListQueues")
                    self.assertEqual(golden.form_of(ask("ListQueues", {}, **headers)),
                                     golden.errors(protocol)[name])

    def test_a_session_token(self):
        key, secret, token = target.SESSION_ACCESS_KEY, target.SECRET_KEY, target.SESSION_TOKEN
        client_of(key, secret, token).list_queues()
        self.refused_to(client_of(key, secret), "InvalidClientTokenId")
        self.refused_to(client_of(key, secret, "another"), "InvalidClientTokenId")

    def test_a_clock_that_is_off(self):
        # The place where botocore asks for the time has another name in later versions.
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
        with self.refused("AccessDenied", status=403):  # Which comes before what is wrong with it.
            self.other.set_queue_attributes(QueueUrl=url, Attributes={"Policy": "x"})
        self.owner.remove_permission(QueueUrl=url, Label="them")
        with self.refused("AccessDenied", status=403):
            attempt()
        self.sqs = self.owner
        message = self.receive_one(url, AttributeNames=["SenderId"])
        self.assertEqual(message["Body"], "hello, neighbour")
        self.assertEqual(message["Attributes"], {"SenderId": target.OTHER_ACCOUNT})
        self.assertIn(target.ACCOUNT, arn)


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
