// Cases of @aws-sdk/client-sqs: the life of queues, their attributes, tags, permissions, listing.
import assert from "node:assert/strict";
import { paginateListDeadLetterSourceQueues, paginateListQueues } from "@aws-sdk/client-sqs";
import {
  account, arnOf, assertNothingToReceive, attributesOf, call, client, counts, freshName, queue,
  queueWithDeadLetters, receive, refused, refusedValue, send,
} from "./support.mjs";

const gone = { name: "QueueDoesNotExist", code: "AWS.SimpleQueueService.NonExistentQueue",
  message: "The specified queue does not exist." };

export const cases = {
  "a created queue is found by its name, and gone once deleted": async () => {
    const url = await queue();
    const QueueName = url.split("/").at(-1);
    assert.equal((await call("GetQueueUrl", { QueueName })).QueueUrl, url);
    assert.equal(
      (await call("GetQueueUrl", { QueueName, QueueOwnerAWSAccountId: account })).QueueUrl, url);
    await call("DeleteQueue", { QueueUrl: url });
    await refused(gone, "GetQueueUrl", { QueueName });
    await refused(gone, "SendMessage", { QueueUrl: url, MessageBody: "x" });
    await refused(gone, "ReceiveMessage", { QueueUrl: url, WaitTimeSeconds: 20 });
    await refused(gone, "DeleteQueue", { QueueUrl: url });
  },

  "creating again needs the same attributes": async () => {
    const url = await queue({ VisibilityTimeout: "45" });
    const QueueName = url.split("/").at(-1);
    assert.equal((await call("CreateQueue", { QueueName })).QueueUrl, url);
    await refused(
      { name: "QueueNameExists", code: "QueueAlreadyExists",
        message: "A queue already exists with the same name and a different value for attribute " +
          "VisibilityTimeout" },
      "CreateQueue", { QueueName, Attributes: { VisibilityTimeout: "46" } });
    await refusedValue(
      "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
      "CreateQueue", { QueueName: "not a name" });
  },

  "a purged queue is empty": async () => {
    const url = await queue();
    await send(url, "in flight");
    await receive(url);
    await send(url, "ready");
    await send(url, "delayed", { DelaySeconds: 900 });
    assert.deepEqual(await counts(url), [1, 1, 1]);
    await call("PurgeQueue", { QueueUrl: url });
    assert.deepEqual(await counts(url), [0, 0, 0]);
    await assertNothingToReceive(url);
  },

  "listing goes through all pages": async () => {
    const prefix = freshName();
    assert.equal((await call("ListQueues", { QueueNamePrefix: prefix })).QueueUrls, undefined);
    const urls = [];
    for (let i = 0; i < 5; ++i)
      urls.push((await call("CreateQueue", { QueueName: `${prefix}-${i}` })).QueueUrl);
    const whole = await call("ListQueues", { QueueNamePrefix: prefix });
    assert.deepEqual(whole.QueueUrls.sort(), urls);
    assert.equal(whole.NextToken, undefined);
    const pages = [];
    for await (const page of paginateListQueues({ client: client(), pageSize: 2 },
      { QueueNamePrefix: prefix })) pages.push(page.QueueUrls);
    assert.deepEqual(pages.map((page) => page.length), [2, 2, 1]);
    assert.deepEqual(pages.flat().sort(), urls);
    await refusedValue("Invalid or expired next token.", "ListQueues",
      { MaxResults: 1, NextToken: "made up" });
  },

  "dead-letter sources come in pages": async () => {
    const { url, dead } = await queueWithDeadLetters();
    const RedrivePolicy = (await attributesOf(url, "RedrivePolicy")).RedrivePolicy;
    const sources = [url, await queue({ RedrivePolicy }), await queue({ RedrivePolicy })].sort();
    const whole = await call("ListDeadLetterSourceQueues", { QueueUrl: dead });
    assert.deepEqual(whole.queueUrls.sort(), sources);
    const pages = [];
    for await (const page of paginateListDeadLetterSourceQueues({ client: client(), pageSize: 2 },
      { QueueUrl: dead })) pages.push(page.queueUrls);
    assert.deepEqual(pages.map((page) => page.length), [2, 1]);
    assert.deepEqual(pages.flat().sort(), sources);
    const none = await call("ListDeadLetterSourceQueues", { QueueUrl: await queue() });
    assert.deepEqual(none.queueUrls ?? [], []);
  },

  "attributes are read back": async () => {
    const url = await queue();
    const { CreatedTimestamp, LastModifiedTimestamp, ...rest } = await attributesOf(url, "All");
    assert.match(CreatedTimestamp, /^\d{10}$/);
    assert.match(LastModifiedTimestamp, /^\d{10}$/);
    const defaults = {
      QueueArn: await arnOf(url), VisibilityTimeout: "30", DelaySeconds: "0",
      MaximumMessageSize: "1048576", MessageRetentionPeriod: "345600",
      ReceiveMessageWaitTimeSeconds: "0", SqsManagedSseEnabled: "true",
      ApproximateNumberOfMessages: "0", ApproximateNumberOfMessagesNotVisible: "0",
      ApproximateNumberOfMessagesDelayed: "0",
    };
    assert.deepEqual(rest, defaults);
    const changes = { VisibilityTimeout: "0", DelaySeconds: "900", MaximumMessageSize: "1024",
      MessageRetentionPeriod: "60", ReceiveMessageWaitTimeSeconds: "20" };
    await call("SetQueueAttributes", { QueueUrl: url, Attributes: changes });
    assert.deepEqual(await attributesOf(url, ...Object.keys(changes)), changes);
    assert.equal((await call("GetQueueAttributes", { QueueUrl: url })).Attributes, undefined);
    const fifo = { FifoQueue: "true", ContentBasedDeduplication: "true",
      DeduplicationScope: "messageGroup", FifoThroughputLimit: "perMessageGroupId" };
    assert.deepEqual(
      await attributesOf(await queue({ fifo: true, ...fifo }), ...Object.keys(fifo)), fifo);
    for (const names of [["All", "Fancy"], ["Fancy", "All"]]) {
      await refused({ name: "InvalidAttributeName", message: "Unknown Attribute Fancy." },
        "GetQueueAttributes", { QueueUrl: url, AttributeNames: names });
    }
    await refused({ name: "InvalidAttributeName", message: "Unknown Attribute Fancy." },
      "SetQueueAttributes", { QueueUrl: url, Attributes: { Fancy: "1" } });
    await refused({ name: "InvalidAttributeValue",
      message: "Invalid value for the parameter DelaySeconds." },
    "SetQueueAttributes", { QueueUrl: url, Attributes: { DelaySeconds: "901" } });
  },

  "tags are added, replaced and removed": async () => {
    const { QueueUrl } = await call("CreateQueue",
      { QueueName: freshName(), tags: { team: "blue", "ключ": "значение" } });
    const tags = async () => (await call("ListQueueTags", { QueueUrl })).Tags;
    assert.deepEqual(await tags(), { team: "blue", "ключ": "значение" });
    await call("TagQueue", { QueueUrl, Tags: { team: "red", empty: "" } });
    assert.deepEqual(await tags(), { team: "red", "ключ": "значение", empty: "" });
    await call("UntagQueue", { QueueUrl, TagKeys: ["team", "ключ", "empty", "absent"] });
    assert.equal(await tags(), undefined);
  },

  "permissions become statements of the policy": async () => {
    const QueueUrl = await queue();
    const Resource = await arnOf(QueueUrl);
    await call("AddPermission", { QueueUrl, Label: "them", AWSAccountIds: ["111111111111"],
      Actions: ["SendMessage", "ReceiveMessage"] });
    const policy = JSON.parse((await attributesOf(QueueUrl, "Policy")).Policy);
    assert.deepEqual(policy.Statement, [{ Sid: "them", Effect: "Allow",
      Principal: { AWS: "arn:aws:iam::111111111111:root" },
      Action: ["SQS:SendMessage", "SQS:ReceiveMessage"], Resource }]);
    await refusedValue("Value them for parameter Label is invalid. Reason: Already exists.",
      "AddPermission", { QueueUrl, Label: "them", AWSAccountIds: ["222222222222"],
        Actions: ["SendMessage"] });
    await refused({ name: "OverLimit", status: 403,
      message: "8 Actions were found, maximum allowed is 7." },
    "AddPermission", { QueueUrl, Label: "more", AWSAccountIds: ["111111111111"],
      Actions: ["SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility",
        "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue"] });
    await call("RemovePermission", { QueueUrl, Label: "them" });
    assert.equal(await attributesOf(QueueUrl, "Policy"), undefined);
  },

  "only the end of a queue URL counts": async () => {
    const url = await queue();
    const name = url.split("/").at(-1);
    for (const address of [`https://queue.example.com/${account}/${name}`, name])
      assert.equal((await attributesOf(address, "QueueArn")).QueueArn, await arnOf(url));
  },
};
