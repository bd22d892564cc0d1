// Deletes chosen messages, or moves them to another queue. They are received first, by their
// positions, so that no consumer has them meanwhile; and none is deleted here before it is there.
import { call } from "/console/api.js";

const AT_A_TIME = 10;
const HELD_SECONDS = 60;

const NOT_THERE = "it was received, deleted or moved meanwhile";
const NOT_FIRST = "it was received, deleted or moved meanwhile, or another message of its group "
  + "comes first or is in flight";
const OUT_OF_ORDER = "an earlier message of its group was not moved";

function* tens(messages) {
  for (let at = 0; at < messages.length; at += AT_A_TIME) yield messages.slice(at, at + AT_A_TIME);
}

const failed = (outcome, id, reason) => outcome.failures.push({ id, reason });

// Those of the messages that can be received now, in order.
async function take(queue, messages, outcome) {
  let taken = [];
  let reason = queue.fifo ? NOT_FIRST : NOT_THERE;
  try {
    taken = (await call("ReceiveMessage", { QueueUrl: queue.url,
      StanchionPositions: messages.map((message) => message.StanchionPosition),
      VisibilityTimeout: HELD_SECONDS, MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"] })).Messages ?? [];
  } catch (error) {
    reason = error.message;
  }
  const ids = new Set(taken.map((message) => message.MessageId));
  for (const { MessageId: id } of messages) if (!ids.has(id)) failed(outcome, id, reason);
  return taken;
}

// `progress` is told after each step: { done, failures: [{ id, reason }] }.
export async function deleteChosen(queue, messages, progress = () => {}) {
  const outcome = { done: 0, failures: [] };
  for (const some of tens(messages)) {
    const taken = await take(queue, some, outcome);
    for (const message of taken) {
      try {
        await call("DeleteMessage", { QueueUrl: queue.url, ReceiptHandle: message.ReceiptHandle });
        outcome.done += 1;
      } catch (error) {
        failed(outcome, message.MessageId, error.message);
      }
      progress(outcome);
    }
    progress(outcome);
  }
  return outcome;
}

// The message as it is sent again: all that a sender can say about a message is kept.
function requestOf(message, url, fifo) {
  const system = message.Attributes ?? {};
  const request = { QueueUrl: url, MessageBody: message.Body };
  if (message.MessageAttributes) request.MessageAttributes = message.MessageAttributes;
  if (system.AWSTraceHeader)
    request.MessageSystemAttributes = { AWSTraceHeader: { DataType: "String",
      StringValue: system.AWSTraceHeader } };
  if (system.MessageGroupId) request.MessageGroupId = system.MessageGroupId;
  if (fifo && system.MessageDeduplicationId)
    request.MessageDeduplicationId = system.MessageDeduplicationId;
  return request;
}

// Nobody else is to wait for the timeout of a message that was not moved.
async function giveBack(queue, message) {
  try {
    await call("ChangeMessageVisibility", { QueueUrl: queue.url, VisibilityTimeout: 0,
      ReceiptHandle: message.ReceiptHandle });
  } catch {
    // It is visible again when its timeout ends.
  }
}

// Returns why the message was not moved, or nothing.
async function moveOne(queue, message, to) {
  try {
    await call("SendMessage", requestOf(message, to.url, to.name.endsWith(".fifo")));
  } catch (error) {
    await giveBack(queue, message);
    // Without an answer from the server, nobody knows.
    const perhaps = error.status >= 400 && error.status < 500 ? ""
      : `; perhaps it is in ${to.name} nevertheless`;
    return `${to.name} did not take it: ${error.message}${perhaps}`;
  }
  try {
    await call("DeleteMessage", { QueueUrl: queue.url, ReceiptHandle: message.ReceiptHandle });
  } catch (error) {
    return `it is in ${to.name} now, but here as well, because it could not be deleted: ${
      error.message}`;
  }
  return "";
}

// Finds the queues to which the messages go before anything is received: the destination of each
// message that has one.
async function destinationsOf(messages, nameFor, outcome) {
  const queues = new Map();
  const found = new Map();
  for (const message of messages) {
    const name = nameFor(message);
    try {
      if (!name) throw new Error("it does not say from which queue it came: name a queue");
      if (!queues.has(name))
        queues.set(name, { name, url: (await call("GetQueueUrl", { QueueName: name })).QueueUrl });
      found.set(message.MessageId, queues.get(name));
    } catch (error) {
      failed(outcome, message.MessageId, name ? `${name}: ${error.message}` : error.message);
    }
  }
  return found;
}

// `nameFor` says to which queue a message goes.
export async function moveChosen(queue, messages, nameFor, progress = () => {}) {
  const outcome = { done: 0, failures: [] };
  const destinations = await destinationsOf(messages, nameFor, outcome);
  const broken = new Set();  // FIFO: groups of which a message stayed here.
  const groupOf = (message) => (queue.fifo ? message.Attributes?.MessageGroupId : undefined);
  for (const { id } of outcome.failures)
    broken.add(groupOf(messages.find((message) => message.MessageId === id)));
  const able = messages.filter((message) => destinations.has(message.MessageId));
  for (const some of tens(able)) {
    for (const message of await take(queue, some, outcome)) {
      const group = groupOf(message);
      const late = group !== undefined && broken.has(group);
      if (late) await giveBack(queue, message);
      const reason = late ? OUT_OF_ORDER
        : await moveOne(queue, message, destinations.get(message.MessageId));
      if (reason) {
        failed(outcome, message.MessageId, reason);
        broken.add(group);
      } else {
        outcome.done += 1;
      }
      progress(outcome);
    }
    progress(outcome);
  }
  return outcome;
}
