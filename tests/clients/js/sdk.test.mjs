// @aws-sdk/client-sqs against the server at STANCHION_ENDPOINT.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { cases as messages } from "./sdk_messages.mjs";
import { cases as queues } from "./sdk_queues.mjs";
import { called, close, offered } from "./support.mjs";

for (const [name, run] of Object.entries({ ...queues, ...messages })) test(name, run);

test("every action of the client was exercised", () => {
  assert.deepEqual(offered().filter((name) => !called.has(name)), []);
});

after(close);
