// Cases of @aws-sdk/client-sqs: messages, batches, attributes, texts, FIFO, dead letters, moves.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  account, arnOf, assertNothingToReceive, binary, call, checkSent, counts, plain, queue,
  queueWithDeadLetters, receive, refused, refusedValue, remove, send, target, text,
} from "./support.mjs";
import { forbidden, texts } from "./unicode.mjs";

const KiB = 1024;
const everyType = {
  plain: text("World"),
  "Label.ed": text("<b>&\r\n\t😀</b>", "String.html"),
  count: text("-12.50e3", "Number"),
  big: text("1234567890123456789012", "Number.bigint"),
  raw: binary(Array.from({ length: 256 }, (_, i) => i)),
  picture_1: binary([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0], "Binary.png"),
};

const messages = {
  "a message is sent, received and deleted": async () => {
    const url = await queue();
    const sent = await send(url, "hello");
    assert.equal(sent.SequenceNumber, undefined);
    const [message] = await receive(url);
    assert.equal(message.MessageId, sent.MessageId);
    assert.equal(message.Body, "hello");
    assert.deepEqual(Object.keys(message).sort(),
      ["Body", "MD5OfBody", "MessageId", "ReceiptHandle"]);
    assert.deepEqual(await counts(url), [0, 1, 0]);
    await assertNothingToReceive(url);
    await remove(url, message);
    await remove(url, message);
    assert.deepEqual(await counts(url), [0, 0, 0]);
  },

  "system attributes are those asked for": async () => {
    const url = await queue();
    await send(url, "traced", { MessageGroupId: "tenant",
      MessageSystemAttributes: { AWSTraceHeader: text("some-trace-id") } });
    const [all] = await receive(url, 1,
      { MessageSystemAttributeNames: ["All"], VisibilityTimeout: 0 });
    const { SentTimestamp, ApproximateFirstReceiveTimestamp, ...rest } = all.Attributes;
    assert.match(SentTimestamp, /^\d{13}$/);
    assert.ok(Number(ApproximateFirstReceiveTimestamp) >= Number(SentTimestamp));
    assert.deepEqual(rest, { SenderId: account, ApproximateReceiveCount: "1",
      AWSTraceHeader: "some-trace-id", MessageGroupId: "tenant" });
    const [some] = await receive(url, 1, { AttributeNames: ["SentTimestamp"], VisibilityTimeout: 0,
      MessageSystemAttributeNames: ["ApproximateReceiveCount"] });
    assert.deepEqual(some.Attributes, { SentTimestamp, ApproximateReceiveCount: "2" });
    assert.equal((await receive(url))[0].Attributes, undefined);
  },

  "visibility is changed": async () => {
    const url = await queue();
    await send(url, "x");
    const [first] = await receive(url, 1, { VisibilityTimeout: 600 });
    await call("ChangeMessageVisibility",
      { QueueUrl: url, ReceiptHandle: first.ReceiptHandle, VisibilityTimeout: 0 });
    const [second] = await receive(url, 1, { AttributeNames: ["ApproximateReceiveCount"] });
    assert.equal(second.MessageId, first.MessageId);
    assert.notEqual(second.ReceiptHandle, first.ReceiptHandle);
    assert.equal(second.Attributes.ApproximateReceiveCount, "2");
  },

  "delays and long polls end with the message": async () => {
    const url = await queue();
    const waiting = receive(url, 1, { WaitTimeSeconds: 20 });
    await send(url, "soon", { DelaySeconds: 1 });
    assert.equal((await waiting)[0].Body, "soon");
    await send(url, "late", { DelaySeconds: 900 });
    assert.deepEqual(await counts(url), [0, 1, 1]);
    const empty = await call("ReceiveMessage", { QueueUrl: url, WaitTimeSeconds: 1 });
    assert.equal(empty.Messages, undefined);
  },

  "attributes of every type come back": async () => {
    const url = await queue();
    await send(url, "typed", { MessageAttributes: everyType });
    const [message] = await receive(url, 1, { MessageAttributeNames: ["All"] });
    assert.deepEqual(plain(message.MessageAttributes), everyType);
  },

  "only the attributes asked for come": async () => {
    const url = await queue();
    const names = ["a", "pre.one", "pre.two", "z"];
    await send(url, "x",
      { MessageAttributes: Object.fromEntries(names.map((name) => [name, text(name)])) });
    for (const [asked, expected] of [[["a"], ["a"]], [["pre.*"], ["pre.one", "pre.two"]],
      [["absent"], []], [[".*"], names]]) {
      const [message] = await receive(url, 1,
        { MessageAttributeNames: asked, VisibilityTimeout: 0 });
      assert.deepEqual(Object.keys(message.MessageAttributes ?? {}).sort(), expected);
    }
  },

  "every text comes back as it was sent": async () => {
    for (const [name, body] of Object.entries(texts)) {
      const url = await queue();
      const MessageAttributes = { text: text(body, "String.x"), raw: binary(Buffer.from(body)) };
      await send(url, body, { MessageAttributes });
      const [message] = await receive(url, 1, { MessageAttributeNames: ["All"] });
      assert.equal(message.Body, body, name);
      assert.deepEqual(plain(message.MessageAttributes), MessageAttributes, name);
    }
  },

  "forbidden characters are refused": async () => {
    const url = await queue();
    for (const body of Object.values(forbidden)) {
      await refused({ name: "InvalidMessageContents" }, "SendMessage",
        { QueueUrl: url, MessageBody: body });
      await refusedValue(undefined, "SendMessage",
        { QueueUrl: url, MessageBody: "x", MessageAttributes: { a: text(body) } });
    }
  },

  "large messages": async () => {
    const url = await queue();
    for (const body of ["x".repeat(256 * KiB), "y".repeat(1024 * KiB), "é".repeat(512 * KiB),
      "\r".repeat(1024 * KiB), "\"".repeat(1024 * KiB), "😀".repeat(256 * KiB)]) {
      await send(url, body);
      const [message] = await receive(url);
      assert.ok(message.Body === body);
      await remove(url, message);
    }
    await refusedValue("One or more parameters are invalid. Reason: Message must be shorter than " +
      "1048576 bytes.", "SendMessage", { QueueUrl: url, MessageBody: "x".repeat(1024 * KiB + 1) });
  },

  "wrong input": async () => {
    const url = await queue();
    await refusedValue("Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be " +
      "between 1 and 10, if provided.", "ReceiveMessage",
    { QueueUrl: url, MaxNumberOfMessages: 11 });
    await refusedValue("Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 " +
      "and <= 20, if provided.", "ReceiveMessage", { QueueUrl: url, WaitTimeSeconds: 21 });
    await refused({ name: "ReceiptHandleIsInvalid", status: 404 }, "DeleteMessage",
      { QueueUrl: url, ReceiptHandle: "nonsense" });
    await refused({ name: "MissingParameter",
      message: "The request must contain the parameter MessageBody." }, "SendMessage",
    { QueueUrl: url, MessageBody: "" });
    await refusedValue("The type of message (user) attribute 'x' is invalid. You must use only " +
      "the following supported type prefixes: Binary, Number, String.", "SendMessage",
    { QueueUrl: url, MessageBody: "x", MessageAttributes: { x: text("v", "Text") } });
    await refused({ name: "UnsupportedOperation",
      code: "AWS.SimpleQueueService.UnsupportedOperation" }, "SendMessage",
    { QueueUrl: url, MessageBody: "x",
      MessageAttributes: { x: { DataType: "String", StringListValues: ["a"] } } });
  },
};

const batches = {
  "a batch fails in part": async () => {
    const url = await queue();
    const answer = await call("SendMessageBatch", { QueueUrl: url, Entries: [
      { Id: "good-1", MessageBody: "one", MessageAttributes: everyType,
        MessageSystemAttributes: { AWSTraceHeader: text("t") } },
      { Id: "late", MessageBody: "x", DelaySeconds: 901 },
      { Id: "bell", MessageBody: "\u0007" },
      { Id: "good-2", MessageBody: "two" }] });
    assert.deepEqual(answer.Successful.map((entry) => entry.Id), ["good-1", "good-2"]);
    checkSent(answer.Successful[0], "one", { MessageAttributes: everyType,
      MessageSystemAttributes: { AWSTraceHeader: text("t") } });
    checkSent(answer.Successful[1], "two");
    assert.deepEqual(answer.Failed.map(({ Id, Code, SenderFault }) => [Id, Code, SenderFault]),
      [["late", "InvalidParameterValue", true], ["bell", "InvalidMessageContents", true]]);
    assert.equal(answer.Failed[0].Message, "Value 901 for parameter DelaySeconds is invalid. " +
      "Reason: DelaySeconds must be >= 0 and <= 900.");
    assert.deepEqual((await receive(url, 2)).map((m) => m.MessageId).sort(),
      answer.Successful.map((entry) => entry.MessageId).sort());
  },

  "ten at once, without a list of failures": async () => {
    const url = await queue();
    const ids = Array.from({ length: 10 }, (_, i) => `id-${i}`);
    const sent = await call("SendMessageBatch",
      { QueueUrl: url, Entries: ids.map((Id) => ({ Id, MessageBody: Id })) });
    assert.equal(sent.Failed, undefined);
    assert.deepEqual(sent.Successful.map((entry) => entry.Id), ids);
    const got = await receive(url, 10);
    const deleted = await call("DeleteMessageBatch", { QueueUrl: url,
      Entries: got.map(({ ReceiptHandle }, i) => ({ Id: ids[i], ReceiptHandle })) });
    assert.equal(deleted.Failed, undefined);
    assert.deepEqual(deleted.Successful.map((entry) => entry.Id), ids);
    assert.deepEqual(await counts(url), [0, 0, 0]);
  },

  "deleting and changing fail in part": async () => {
    const QueueUrl = await queue();
    await send(QueueUrl, "x");
    const [{ ReceiptHandle }] = await receive(QueueUrl);
    const wrong = { Id: "wrong", ReceiptHandle: "nonsense" };
    for (const [action, more] of [["ChangeMessageVisibilityBatch", { VisibilityTimeout: 60 }],
      ["DeleteMessageBatch", {}]]) {
      const answer = await call(action,
        { QueueUrl, Entries: [{ Id: "right", ReceiptHandle, ...more }, { ...wrong, ...more }] });
      assert.deepEqual(answer.Successful, [{ Id: "right" }]);
      assert.deepEqual(answer.Failed, [{ Id: "wrong", Code: "ReceiptHandleIsInvalid",
        SenderFault: true,
        Message: "The input receipt handle \"nonsense\" is not a valid receipt handle." }]);
    }
  },

  "wrong batches are refused as a whole": async () => {
    const QueueUrl = await queue();
    const batch = (...ids) => ({ QueueUrl, Entries: ids.map((Id) => ({ Id, MessageBody: "x" })) });
    const wrong = async (name, message, input) => refused(
      { name, code: `AWS.SimpleQueueService.${name}`, message }, "SendMessageBatch", input);
    await wrong("EmptyBatchRequest",
      "There should be at least one SendMessageBatchRequestEntry in the request.", batch());
    await wrong("TooManyEntriesInBatchRequest",
      "Maximum number of entries per request are 10. You have sent 11.",
      batch(..."abcdefghijk"));
    await wrong("BatchEntryIdsNotDistinct", "Id a repeated.", batch("a", "a"));
    await wrong("InvalidBatchEntryId", undefined, batch("no spaces"));
    const Entries = ["a", "b"].map((Id) => ({ Id, MessageBody: "x".repeat(512 * KiB + 1) }));
    await wrong("BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You " +
      "have sent 1048578 bytes.", { QueueUrl, Entries });
  },
};

const put = (url, body, group, deduplication) => send(url, body,
  { MessageGroupId: group, ...(deduplication && { MessageDeduplicationId: deduplication }) });

const fifo = {
  "a group keeps its order and waits for what is in flight": async () => {
    const url = await queue({ fifo: true });
    const sent = [];
    for (let i = 0; i < 4; ++i) sent.push(await put(url, `m${i}`, i < 3 ? "g" : "h", `d${i}`));
    const numbers = sent.map((answer) => answer.SequenceNumber);
    for (const number of numbers) assert.match(number, /^\d{20}$/);
    assert.deepEqual(numbers, [...new Set(numbers)].sort());
    const [first] = await receive(url, 1, { AttributeNames: ["All"] });
    assert.equal(first.Attributes.SequenceNumber, numbers[0]);
    assert.equal(first.Attributes.MessageGroupId, "g");
    assert.equal(first.Attributes.MessageDeduplicationId, "d0");
    assert.equal((await receive(url))[0].Body, "m3");
    await assertNothingToReceive(url);
    await remove(url, first);
    assert.deepEqual((await receive(url, 2)).map((m) => m.Body), ["m1", "m2"]);
  },

  "duplicates are accepted and dropped": async () => {
    const url = await queue({ fifo: true, ContentBasedDeduplication: "true" });
    const first = await put(url, "same", "g");
    const again = await put(url, "same", "g");
    assert.equal(again.MessageId, first.MessageId);
    assert.equal(again.SequenceNumber, first.SequenceNumber);
    await put(url, "same", "g", "own");
    const got = await receive(url, 2, { AttributeNames: ["MessageDeduplicationId"] });
    assert.deepEqual(got.map((m) => m.Attributes.MessageDeduplicationId),
      [createHash("sha256").update("same").digest("hex"), "own"]);
  },

  "a batch keeps its order": async () => {
    const url = await queue({ fifo: true });
    const ids = [..."0123456789"];
    const answer = await call("SendMessageBatch", { QueueUrl: url, Entries: ids.map((Id) => (
      { Id, MessageBody: `m${Id}`, MessageGroupId: "g", MessageDeduplicationId: Id })) });
    assert.deepEqual(answer.Successful.map((entry) => entry.Id), ids);
    const got = await receive(url, 10, { AttributeNames: ["SequenceNumber"] });
    assert.deepEqual(got.map((m) => m.Body), ids.map((Id) => `m${Id}`));
    assert.deepEqual(got.map((m) => m.Attributes.SequenceNumber),
      answer.Successful.map((entry) => entry.SequenceNumber));
  },

  "the same attempt gets the same messages": async () => {
    const url = await queue({ fifo: true });
    await put(url, "a", "g", "1");
    const attempt = { ReceiveRequestAttemptId: "attempt" };
    const [first] = await receive(url, 1, attempt);
    const [again] = await receive(url, 1, attempt);
    assert.equal(again.ReceiptHandle, first.ReceiptHandle);
  },

  "what a FIFO queue requires": async () => {
    const QueueUrl = await queue({ fifo: true });
    await refused({ name: "MissingParameter",
      message: "The request must contain the parameter MessageGroupId." }, "SendMessage",
    { QueueUrl, MessageBody: "x", MessageDeduplicationId: "d" });
    await refusedValue("The queue should either have ContentBasedDeduplication enabled or " +
      "MessageDeduplicationId provided explicitly", "SendMessage",
    { QueueUrl, MessageBody: "x", MessageGroupId: "g" });
  },
};

// Repeats `look` until it finds something, which may take the server a moment; long polls pass the
// time.
async function eventually(look) {
  const idle = await queue();
  for (let i = 0; i < 10 * target.patience; ++i) {
    const found = await look();
    if (found) return found;
    await call("ReceiveMessage", { QueueUrl: idle, WaitTimeSeconds: 1 });
  }
  return assert.fail("it does not come");
}

// The newest task of `SourceArn` once it has ended.
const finishedTask = (SourceArn) => eventually(async () => {
  const [task] = (await call("ListMessageMoveTasks", { SourceArn })).Results;
  return ["RUNNING", "CANCELLING"].includes(task.Status) ? undefined : task;
});

// Sends messages and receives them until they are in the dead-letter queue.
async function bury(url, dead, bodies) {
  for (const body of bodies) await send(url, body);
  await receive(url, bodies.length, { VisibilityTimeout: 0 });
  await assertNothingToReceive(url);
  await eventually(async () => (await counts(dead))[0] === bodies.length);
}

const deadLetters = {
  "a message received too often is moved, and moved back by a task": async () => {
    const { url, dead } = await queueWithDeadLetters();
    await bury(url, dead, ["one", "two"]);
    const SourceArn = await arnOf(dead);
    const [buried] = await receive(dead, 1, { AttributeNames: ["All"], VisibilityTimeout: 0 });
    assert.equal(buried.Attributes.DeadLetterQueueSourceArn, await arnOf(url));
    const { TaskHandle } = await call("StartMessageMoveTask", { SourceArn });
    assert.ok(TaskHandle);
    const back = await receive(url, 2, { AttributeNames: ["All"] });
    assert.deepEqual(back.map((m) => m.Body).sort(), ["one", "two"]);
    for (const message of back) assert.equal(message.Attributes.ApproximateReceiveCount, "1");
    const { StartedTimestamp, ...task } = await finishedTask(SourceArn);
    assert.ok(StartedTimestamp > 1e12);
    assert.deepEqual(task, { Status: "COMPLETED", SourceArn, ApproximateNumberOfMessagesMoved: 2,
      ApproximateNumberOfMessagesToMove: 2 });
  },

  "a task is paced, seen and cancelled": async () => {
    const { url, dead } = await queueWithDeadLetters();
    await bury(url, dead, ["poison"]);
    for (let i = 0; i < 6; ++i)
      await call("SendMessageBatch", { QueueUrl: dead,
        Entries: [..."0123456789"].map((Id) => ({ Id, MessageBody: "more" })) });
    const SourceArn = await arnOf(dead);
    const destination = await queue();
    const DestinationArn = await arnOf(destination);
    const { TaskHandle } = await call("StartMessageMoveTask",
      { SourceArn, DestinationArn, MaxNumberOfMessagesPerSecond: 1 });
    const [{ StartedTimestamp, ApproximateNumberOfMessagesMoved, ...task }] =
      (await call("ListMessageMoveTasks", { SourceArn, MaxResults: 10 })).Results;
    assert.ok(StartedTimestamp > 1e12);
    assert.ok(ApproximateNumberOfMessagesMoved >= 0);
    assert.deepEqual(task, { TaskHandle, Status: "RUNNING", SourceArn, DestinationArn,
      MaxNumberOfMessagesPerSecond: 1, ApproximateNumberOfMessagesToMove: 61 });
    await refusedValue("There is already a task running. Only one active task is allowed for a " +
      "source queue arn at a given time.", "StartMessageMoveTask", { SourceArn });
    const cancelled = await call("CancelMessageMoveTask", { TaskHandle });
    // A message that was on its way arrives after the end.
    await eventually(async () => {
      const { Status, ApproximateNumberOfMessagesMoved: moved } = await finishedTask(SourceArn);
      assert.equal(Status, "CANCELLED");
      assert.ok(cancelled.ApproximateNumberOfMessagesMoved <= moved);
      return isDeepStrictEqual([await counts(destination), await counts(dead)],
        [[moved, 0, 0], [61 - moved, 0, 0]]);
    });
  },

  "wrong move tasks are refused": async () => {
    const { url, dead } = await queueWithDeadLetters();
    const SourceArn = await arnOf(dead);
    await refusedValue("Source queue must be configured as a Dead Letter Queue.",
      "StartMessageMoveTask", { SourceArn: await arnOf(url) });
    await refused({ name: "ResourceNotFoundException", status: 404,
      message: "The resource that you specified for the SourceArn parameter doesn't exist." },
    "StartMessageMoveTask", { SourceArn: `${SourceArn}-not` });
    await refusedValue(undefined, "CancelMessageMoveTask", { TaskHandle: "made up" });
    const none = await call("ListMessageMoveTasks", { SourceArn });
    assert.deepEqual(none.Results ?? [], []);
  },
};

export const cases = { ...messages, ...batches, ...fifo, ...deadLetters };
