"""The Query protocol with answers in JSON: the same values as in XML, in the shapes that AWS gives."""
import json
import os
import pathlib
import sys
import unittest
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import digests, raw, suite

ACCOUNT = os.environ["STANCHION_ACCOUNT"]


class QueryJson(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.endpoint = os.environ["STANCHION_ENDPOINT"]
        self.client = raw.Client(self.endpoint)
        self.name = f"json-{uuid.uuid4().hex[:12]}"
        self.url = self.call("CreateQueue", QueueName=self.name)["QueueUrl"]

    def call(self, action, **parameters):
        """The result of a call, or None if the action has none."""
        answer = self.client.query_json(action, parameters)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"),
                         answer.body)
        document = answer.json()
        self.assertEqual(list(document), [action + "Response"])
        response = document[action + "Response"]
        self.assertEqual(response.pop("ResponseMetadata"),
                         {"RequestId": answer.headers["x-amzn-RequestId"]})
        if not response:
            return None
        self.assertEqual(list(response), [action + "Result"])
        return response[action + "Result"]

    def test_queues(self):
        self.assertEqual(self.url, f"{self.endpoint}/{ACCOUNT}/{self.name}")
        self.assertEqual(self.call("GetQueueUrl", QueueName=self.name), {"QueueUrl": self.url})
        self.assertEqual(self.call("ListQueues", QueueNamePrefix=self.name),
                         {"queueUrls": [self.url], "NextToken": None})
        self.assertEqual(self.call("ListQueues", QueueNamePrefix="none-of-that-name"),
                         {"queueUrls": None, "NextToken": None})
        self.assertEqual(self.call("ListDeadLetterSourceQueues", QueueUrl=self.url),
                         {"queueUrls": None, "NextToken": None})
        self.assertIsNone(self.call("DeleteQueue", QueueUrl=self.url))

    def test_attributes_and_tags_are_lists_of_pairs(self):
        self.assertIsNone(self.call("SetQueueAttributes", QueueUrl=self.url,
                                    Attributes={"VisibilityTimeout": "7"}))
        self.assertEqual(self.call("GetQueueAttributes", QueueUrl=self.url,
                                   AttributeNames=["VisibilityTimeout"]),
                         {"Attributes": [{"Name": "VisibilityTimeout", "Value": "7"}]})
        self.assertEqual(self.call("ListQueueTags", QueueUrl=self.url), {"Tags": None})
        self.assertIsNone(self.call("TagQueue", QueueUrl=self.url, Tags={"a": "\"b\"", "c": ""}))
        self.assertEqual(self.call("ListQueueTags", QueueUrl=self.url),
                         {"Tags": [{"Key": "a", "Value": "\"b\""}, {"Key": "c", "Value": ""}]})

    def test_a_message_goes_there_and_comes_back(self):
        body = "<\r\n\"\u20ac\U0001f600\t"
        self.assertEqual(self.call("ReceiveMessage", QueueUrl=self.url), {"messages": None})
        sent = self.call("SendMessage", QueueUrl=self.url, MessageBody=body, MessageAttributes={
            "n": {"DataType": "Number", "StringValue": "1"},
            "b": {"DataType": "Binary", "BinaryValue": "AAE="}})
        digest = sent["MD5OfMessageAttributes"]
        self.assertEqual(sent, {"MessageId": sent["MessageId"], "SequenceNumber": None,
                                "MD5OfMessageBody": digests.of_text(body),
                                "MD5OfMessageAttributes": digest,
                                "MD5OfMessageSystemAttributes": None})
        [plain] = self.call("ReceiveMessage", QueueUrl=self.url, VisibilityTimeout=0)["messages"]
        self.assertEqual(plain, {"MessageId": sent["MessageId"], "Body": body,
                                 "ReceiptHandle": plain["ReceiptHandle"], "Attributes": None,
                                 "MD5OfBody": digests.of_text(body), "MessageAttributes": None,
                                 "MD5OfMessageAttributes": None})
        [full] = self.call("ReceiveMessage", QueueUrl=self.url, MessageAttributeNames=["*"],
                           AttributeNames=["ApproximateReceiveCount"])["messages"]
        self.assertEqual(full["Attributes"], [{"Name": "ApproximateReceiveCount", "Value": "2"}])
        self.assertEqual(full["MD5OfMessageAttributes"], digest)
        self.assertEqual(sorted(full["MessageAttributes"], key=lambda pair: pair["Name"]), [
            {"Name": "b", "Value": {"BinaryValue": "AAE=", "DataType": "Binary"}},
            {"Name": "n", "Value": {"StringValue": "1", "DataType": "Number"}}])
        self.assertIsNone(self.call("DeleteMessage", QueueUrl=self.url,
                                    ReceiptHandle=full["ReceiptHandle"]))

    def test_every_way_of_asking(self):
        query = urllib.parse.urlencode({"Action": "GetQueueUrl", "QueueName": self.name})
        accept = {"Accept": "application/json"}
        form = raw.FORM
        expected = {"GetQueueUrlResult": {"QueueUrl": self.url}}
        for method, path, headers, body in (
                ("GET", f"/?{query}", accept, None),
                ("GET", f"/?{query}&ContentType=JSON", {}, None),
                ("POST", "/", {**form, **accept}, query),
                ("POST", "/", form, query + "&ContentType=JSON"),
                ("POST", "/?ContentType=JSON", form, query)):
            answer = self.client.send(method, path, headers, body)
            with self.subTest(method=method, path=path, headers=headers):
                response = json.loads(answer.body)["GetQueueUrlResponse"]
                self.assertEqual({**expected, "ResponseMetadata": response["ResponseMetadata"]},
                                 response)
                wrong = self.client.send(method, path.replace("GetQueueUrl", "Nonsense"), headers,
                                         body and body.replace("GetQueueUrl", "Nonsense"))
                self.assertEqual((wrong.status, wrong.headers["Content-Type"]),
                                 (400, "application/json"))
                self.assertEqual(json.loads(wrong.body), {
                    "Error": {"Type": "Sender", "Code": "InvalidAction",
                              "Message": "The action Nonsense is not valid for this endpoint."},
                    "RequestId": wrong.headers["x-amzn-RequestId"]})

    def test_who_does_not_ask_gets_xml(self):
        for accept in ("*/*", "text/xml", "text/xml, application/json"):
            answer = self.client.query("ListQueues", {}, Accept=accept)
            self.assertEqual(answer.headers["Content-Type"], "text/xml")
            answer.xml()


if __name__ == "__main__":
    sys.exit(suite.run([sys.modules["__main__"]]))
