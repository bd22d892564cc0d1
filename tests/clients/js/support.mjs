// What the tests of the JavaScript clients share: clients, fresh queues, checks of whole answers.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import * as sdk from "@aws-sdk/client-sqs";

export const account = process.env.STANCHION_ACCOUNT;
export const region = process.env.AWS_REGION;

// The server's address; the test of wrong answers replaces it by its proxy for a while. `patience`
// is how often a test asks again for a message that must come.
export const target = { endpoint: process.env.STANCHION_ENDPOINT, patience: 6 };

// The actions that any test has called.
export const called = new Set();
const clients = new Map();

export function client() {
  if (!clients.has(target.endpoint)) {
    const made = new sdk.SQSClient({ endpoint: target.endpoint, maxAttempts: 1 });
    made.middlewareStack.add(
      (next, context) => (args) => {
        called.add(context.commandName);
        return next(args);
      },
      { step: "initialize" },
    );
    clients.set(target.endpoint, made);
  }
  return clients.get(target.endpoint);
}

export function close() {
  for (const made of clients.values()) made.destroy();
  clients.clear();
}

// call("SendMessage", {…}) sends the SDK's command of that name.
export const call = (action, input = {}) => client().send(new sdk[`${action}Command`](input));

export const offered = () =>
  Object.keys(sdk).filter((name) => name.endsWith("Command") && name !== "$Command");

export const freshName = (suffix = "") => `js-${randomBytes(6).toString("hex")}${suffix}`;

export async function queue({ fifo = false, ...attributes } = {}) {
  const name = freshName(fifo ? ".fifo" : "");
  if (fifo) attributes.FifoQueue = "true";
  const { QueueUrl } = await call("CreateQueue", { QueueName: name, Attributes: attributes });
  assert.equal(QueueUrl, `${target.endpoint}/${account}/${name}`);
  return QueueUrl;
}

export async function attributesOf(url, ...names) {
  const answer = await call("GetQueueAttributes", { QueueUrl: url, AttributeNames: names });
  return answer.Attributes;
}

export async function arnOf(url) {
  const { QueueArn } = await attributesOf(url, "QueueArn");
  assert.equal(QueueArn, `arn:aws:sqs:${region}:${account}:${url.split("/").at(-1)}`);
  return QueueArn;
}

// How many messages are visible, in flight and delayed.
export async function counts(url) {
  const names = ["", "NotVisible", "Delayed"].map((kind) => `ApproximateNumberOfMessages${kind}`);
  const found = await attributesOf(url, ...names);
  return names.map((name) => Number(found[name]));
}

export async function queueWithDeadLetters({ receives = 1, fifo = false } = {}) {
  const dead = await queue({ fifo });
  const policy = { deadLetterTargetArn: await arnOf(dead), maxReceiveCount: receives };
  return { dead, url: await queue({ fifo, RedrivePolicy: JSON.stringify(policy) }) };
}

export const md5 = (text) => createHash("md5").update(text, "utf8").digest("hex");

// SQS's digest of message attributes, computed from what was sent.
export function md5OfAttributes(attributes) {
  const hash = createHash("md5");
  const sized = (data) => {
    const bytes = Buffer.from(data);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(bytes.length);
    hash.update(size).update(bytes);
  };
  for (const name of Object.keys(attributes).sort()) {
    const { DataType, StringValue, BinaryValue } = attributes[name];
    sized(name);
    sized(DataType);
    hash.update(Buffer.from([BinaryValue ? 2 : 1]));
    sized(BinaryValue ?? StringValue);
  }
  return hash.digest("hex");
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

// Checks the answer to SendMessage, and each entry of SendMessageBatch.
export function checkSent(answer, body, sent = {}) {
  assert.match(answer.MessageId, uuid);
  assert.equal(answer.MD5OfMessageBody, md5(body));
  for (const kind of ["MessageAttributes", "MessageSystemAttributes"])
    assert.equal(answer[`MD5Of${kind}`], sent[kind] && md5OfAttributes(sent[kind]));
}

export async function send(url, body, more = {}) {
  const answer = await call("SendMessage", { QueueUrl: url, MessageBody: body, ...more });
  checkSent(answer, body, more);
  return answer;
}

// The next `count` messages, which must come; receives until they are there.
export async function receive(url, count = 1, more = {}) {
  const found = [];
  for (let i = 0; i < target.patience && found.length < count; ++i) {
    const answer = await call("ReceiveMessage", {
      QueueUrl: url,
      MaxNumberOfMessages: Math.min(10, count - found.length),
      WaitTimeSeconds: 5,
      ...more,
    });
    found.push(...(answer.Messages ?? []));
  }
  assert.equal(found.length, count);
  for (const message of found) {
    assert.match(message.MessageId, uuid);
    assert.equal(message.MD5OfBody, md5(message.Body));
    assert.equal(
      message.MD5OfMessageAttributes,
      message.MessageAttributes && md5OfAttributes(plain(message.MessageAttributes)),
    );
  }
  return found;
}

// Attributes as they were given, with bytes that compare by value.
export const plain = (attributes) =>
  Object.fromEntries(
    Object.entries(attributes).map(([name, { DataType, StringValue, BinaryValue }]) => [
      name,
      BinaryValue
        ? { DataType, BinaryValue: new Uint8Array(BinaryValue) }
        : { DataType, StringValue },
    ]),
  );

export async function assertNothingToReceive(url) {
  const answer = await call("ReceiveMessage", { QueueUrl: url, MaxNumberOfMessages: 10 });
  assert.equal(answer.Messages, undefined);
}

export const remove = (url, message) =>
  call("DeleteMessage", { QueueUrl: url, ReceiptHandle: message.ReceiptHandle });

// The SDK must throw its own exception (a class for modelled errors), with SQS's code and text.
export async function refused({ name, code = name, message, status = 400 }, action, input) {
  await assert.rejects(call(action, input), (error) => {
    assert.ok(error instanceof sdk.SQSServiceException, String(error));
    assert.equal(error.name, name);
    if (sdk[name]) {
      assert.ok(error instanceof sdk[name], `not a ${name}`);
      assert.equal(error.__type, `com.amazonaws.sqs#${name}`);
    } else {
      assert.match(error.__type, /^com\.amazon\.coral\.service#/);
    }
    assert.equal(error.Code ?? error.Error?.Code ?? error.name, code);
    assert.equal(error.$fault, "client");
    assert.equal(error.$metadata.httpStatusCode, status);
    assert.match(error.$metadata.requestId, uuid);
    if (message) assert.equal(error.message, message);
    return true;
  });
}

export const refusedValue = (message, action, input) =>
  refused({ name: "InvalidParameterValue", message }, action, input);

export const text = (value, label = "String") => ({ DataType: label, StringValue: value });
export const binary = (value, label = "Binary") => ({
  DataType: label,
  BinaryValue: new Uint8Array(value),
});
