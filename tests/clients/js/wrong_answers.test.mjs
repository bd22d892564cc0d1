// The tests of @aws-sdk/client-sqs notice wrong answers: each falsehood of falsehoods.json makes
// one fail. This reveals a test that calls an action but does not look at its answer.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cases as messages } from "./sdk_messages.mjs";
import { cases as queues } from "./sdk_queues.mjs";
import { close, target } from "./support.mjs";

const cases = { ...queues, ...messages };
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const falsehoods = JSON.parse(readFileSync(here("../support/falsehoods.json"))).json;

// Which tests check the answers of an action, beginning with those that notice most.
const witnesses = {
  CreateQueue: ["a created queue is found by its name, and gone once deleted"],
  GetQueueUrl: ["a created queue is found by its name, and gone once deleted"],
  ListQueues: ["listing goes through all pages"],
  ListDeadLetterSourceQueues: ["dead-letter sources come in pages"],
  GetQueueAttributes: ["attributes are read back"],
  ListQueueTags: ["tags are added, replaced and removed"],
  SendMessage: ["attributes of every type come back", "a message is sent, received and deleted",
    "system attributes are those asked for",
    "a group keeps its order and waits for what is in flight"],
  SendMessageBatch: ["a batch fails in part", "a batch keeps its order"],
  DeleteMessageBatch: ["deleting and changing fail in part"],
  ChangeMessageVisibilityBatch: ["deleting and changing fail in part"],
  ReceiveMessage: ["attributes of every type come back", "a message is sent, received and deleted",
    "system attributes are those asked for",
    "a group keeps its order and waits for what is in flight"],
  StartMessageMoveTask: ["a task is paced, seen and cancelled"],
  ListMessageMoveTasks: ["a task is paced, seen and cancelled",
    "a message received too often is moved, and moved back by a task"],
  CancelMessageMoveTask: ["a task is paced, seen and cancelled",
    "a task is paced, seen and cancelled"],
  Error: ["creating again needs the same attributes"],
};

let proxy;
const control = (options) => fetch(`${target.endpoint}/falsehood`, options);

before(async () => {
  proxy = spawn("python3", ["-B", here("../support/wrong_answers.py"), target.endpoint],
    { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(proxy.stdout, "data");
  target.endpoint = line.toString().split(/\s+/)[1];
  target.patience = 1;
});

after(() => {
  close();
  proxy.kill();
});

test("the truth passes", async () => {
  for (const name of new Set(Object.values(witnesses).flat())) await cases[name]();
});

for (const [action, fields] of Object.entries(falsehoods))
  for (const field of fields)
    for (const how of field.endsWith("*") ? ["drop"] : ["alter", "drop"])
      test(`${how} ${field} of ${action}`, async () => {
        await control({ method: "PUT",
          body: JSON.stringify({ action, field: field.replace("*", ""), how }) });
        let noticed = false;
        for (const name of witnesses[action]) {
          if (noticed) break;
          await cases[name]().catch(() => {
            noticed = true;
          });
        }
        const { told } = await (await control()).json();
        assert.ok(told > 0, "never told");
        assert.ok(noticed, "nobody noticed");
      });
