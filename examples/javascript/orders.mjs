// Takes orders from a queue and stores each of them once, as docs/guide/processing-messages-safely.md
// describes. Ends on SIGTERM.
//
//   QUEUE_URL=http://127.0.0.1:9324/000000000000/orders STORE=/var/lib/orders node orders.mjs
//
// Needs @aws-sdk/client-sqs. Endpoint, region and credentials come from the queue's URL and the
// environment.
import { existsSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ChangeMessageVisibilityCommand, DeleteMessageCommand, ReceiveMessageCommand, SQSClient,
} from "@aws-sdk/client-sqs";

const { QUEUE_URL: QueueUrl, STORE } = process.env;
const VISIBILITY = 10; // Seconds until a message comes again after a crash. Jobs may take longer.

const sqs = new SQSClient({ endpoint: new URL(QueueUrl).origin });
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());

async function receive() {
  try {
    const { Messages } = await sqs.send(new ReceiveMessageCommand({
      QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, VisibilityTimeout: VISIBILITY,
      AttributeNames: ["ApproximateReceiveCount"],
    }), { abortSignal: stop.signal });
    return Messages ?? [];
  } catch (error) {
    // What the poll may have received comes again when its visibility ends.
    if (stop.signal.aborted) return [];
    throw error;
  }
}

function changeVisibility({ ReceiptHandle }, VisibilityTimeout) {
  return sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }));
}

// Idempotent: the name of the file is the order, and a file that is there is complete.
async function store(order, messageId) {
  if (existsSync(`${STORE}/${order}`)) return;
  await writeFile(`${STORE}/.${messageId}`, `${order}\n`);
  await rename(`${STORE}/.${messageId}`, `${STORE}/${order}`);
}

async function handle({ Body: order, MessageId }, count) {
  console.log(`handling ${order}, delivery ${count}`);
  if (order.startsWith("bad")) throw new Error("that is no order");
  if (order.startsWith("slow")) await sleep(15000);
  await store(order, MessageId);
}

async function work(message) {
  const count = Number(message.Attributes.ApproximateReceiveCount);
  // While the message is in hand, nobody else gets it.
  let extending = Promise.resolve();
  const hold = setInterval(() => {
    extending = changeVisibility(message, VISIBILITY).catch((error) => console.error(error.message));
  }, VISIBILITY * 500);
  let failure;
  try {
    await handle(message, count);
  } catch (error) {
    failure = error;
  }
  clearInterval(hold);
  await extending; // It could otherwise overtake what follows.
  if (failure) {
    console.log(`${message.MessageId}: ${failure.message}`);
    // A random time that grows, so that what fails together does not come back together.
    await changeVisibility(message, Math.round(Math.random() * Math.min(900, 2 ** (count - 1))));
  } else {
    // Only now that the effect is stored.
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));
  }
}

while (!stop.signal.aborted) {
  // The messages of one receive at the same time; the next receive when all have ended.
  await Promise.all((await receive()).map(work));
}
