// sqs-consumer, a widely used worker loop over the SDK, against the server at STANCHION_ENDPOINT.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Consumer } from "sqs-consumer";
import {
  call, client, close, counts, queue, queueWithDeadLetters, receive, send, text,
} from "./support.mjs";

// Runs a consumer until `done` is resolved, then lets it finish what it has begun.
async function consume(url, options, done) {
  const consumer = Consumer.create({ queueUrl: url, sqs: client(), waitTimeSeconds: 5,
    pollingCompleteWaitTimeMs: 30_000, ...options });
  consumer.on("processing_error", () => {});  // What a handler throws is no error of the consumer.
  const failed = new Promise((_, reject) => {
    consumer.on("error", reject);
  });
  consumer.start();
  try {
    await Promise.race([done, failed]);
  } finally {
    const stopped = once(consumer, "stopped");
    consumer.stop();
    await stopped;
  }
}

function promise() {
  const made = {};
  made.done = new Promise((resolve) => {
    made.resolve = resolve;
  });
  return made;
}

test("each message is handled once and deleted", async () => {
  const url = await queue();
  const all = promise();
  const bodies = [];
  for (let i = 0; i < 12; ++i) await send(url, `m${i}`);
  await consume(url, {
    batchSize: 10,
    handleMessage: async (message) => {
      bodies.push(message.Body);
      if (bodies.length === 12) all.resolve();
      return message;
    },
  }, all.done);
  assert.deepEqual(bodies.sort(), Array.from({ length: 12 }, (_, i) => `m${i}`).sort());
  assert.deepEqual(await counts(url), [0, 0, 0]);
});

test("attributes that were asked for are there", async () => {
  const url = await queue();
  await send(url, "x", { MessageAttributes: { colour: text("blue") } });
  const seen = promise();
  let message;
  await consume(url, {
    messageAttributeNames: ["All"],
    messageSystemAttributeNames: ["All"],
    handleMessage: async (got) => {
      message = got;
      seen.resolve();
      return got;
    },
  }, seen.done);
  assert.deepEqual(message.MessageAttributes.colour.StringValue, "blue");
  assert.equal(message.Attributes.ApproximateReceiveCount, "1");
});

test("a batch is handled as a whole and deleted by one call", async () => {
  const url = await queue({ fifo: true, ContentBasedDeduplication: "true" });
  for (let i = 0; i < 5; ++i) await send(url, `m${i}`, { MessageGroupId: "g" });
  const seen = promise();
  const batches = [];
  await consume(url, {
    batchSize: 10,
    suppressFifoWarning: true,
    handleMessageBatch: async (messages) => {
      batches.push(messages.map((message) => message.Body));
      if (batches.flat().length === 5) seen.resolve();
      return messages;
    },
  }, seen.done);
  assert.deepEqual(batches, [["m0", "m1", "m2", "m3", "m4"]]);
  assert.deepEqual(await counts(url), [0, 0, 0]);
});

test("a failing handler sends the message back, and at last to the dead letters", async () => {
  const { url, dead } = await queueWithDeadLetters({ receives: 2 });
  await send(url, "poison");
  let attempts = 0;
  const buried = receive(dead, 1, { WaitTimeSeconds: 20 });
  await consume(url, {
    terminateVisibilityTimeout: true,
    handleMessage: async () => {
      attempts += 1;
      throw new Error("cannot digest this");
    },
  }, buried);
  assert.equal((await buried)[0].Body, "poison");
  assert.equal(attempts, 2);
  assert.deepEqual(await counts(url), [0, 0, 0]);
});

test("a heartbeat keeps a long task's message hidden", async () => {
  const url = await queue();
  await send(url, "long task");
  const beaten = promise();
  let changes = 0;
  const watched = client();
  const add = (next) => async (args) => {
    const answer = await next(args);
    changes += 1;
    if (changes === 2) beaten.resolve();
    return answer;
  };
  watched.middlewareStack.add((next, context) => (args) =>
    context.commandName === "ChangeMessageVisibilityCommand" ? add(next)(args) : next(args),
  { step: "initialize", name: "heartbeats" });
  let deliveries = 0;
  await consume(url, {
    visibilityTimeout: 30,
    heartbeatInterval: 1,
    handleMessage: async (message) => {
      deliveries += 1;
      await beaten.done;
      return message;
    },
  }, beaten.done);
  watched.middlewareStack.remove("heartbeats");
  assert.equal(deliveries, 1);
  assert.deepEqual(await counts(url), [0, 0, 0]);
});

test("a queue that does not exist is an error of the consumer", async () => {
  const url = await queue();
  await call("DeleteQueue", { QueueUrl: url });
  await assert.rejects(
    consume(url, { handleMessage: async () => {} }, new Promise(() => {})),
    (error) => {
      assert.match(error.message, /The specified queue does not exist/);
      assert.equal(error.code, "QueueDoesNotExist");
      return true;
    },
  );
});

after(close);
