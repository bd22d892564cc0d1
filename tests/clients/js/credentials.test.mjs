// @aws-sdk/client-sqs with credentials that the server must not accept.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ListQueuesCommand, SQSClient, SQSServiceException } from "@aws-sdk/client-sqs";
import { target } from "./support.mjs";

// The name under which the SDK throws the refusal of these credentials.
async function refusalOf(credentials) {
  const client = new SQSClient({ endpoint: target.endpoint, maxAttempts: 1, credentials });
  try {
    await client.send(new ListQueuesCommand({}));
  } catch (error) {
    assert.ok(error instanceof SQSServiceException, String(error));
    assert.equal(error.$metadata.httpStatusCode, 403);
    return error.name;
  } finally {
    client.destroy();
  }
  return undefined;
}

const accessKeyId = process.env.AWS_ACCESS_KEY_ID;
const secretAccessKey = process.env.AWS_SECRET_ACCESS_KEY;

test("the right key is accepted", async () => {
  assert.equal(await refusalOf({ accessKeyId, secretAccessKey }), undefined);
});

test("a wrong secret", async () => {
  assert.equal(await refusalOf({ accessKeyId, secretAccessKey: "guessed" }),
    "SignatureDoesNotMatch");
});

test("an unknown key", async () => {
  assert.equal(await refusalOf({ accessKeyId: "AKIANOBODY", secretAccessKey }),
    "InvalidClientTokenId");
});
