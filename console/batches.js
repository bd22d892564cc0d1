// Sends many messages in batches, and keeps count of what became of each.
import { call } from "/console/api.js";

const BATCH_MAX = 10;
const BATCH_BYTES_MAX = 1024 * 1024;

const encoder = new TextEncoder();

function sizeOf(entry) {
  const attributes = entry.MessageAttributes ?? {};
  const extra = Object.keys(attributes).length ? JSON.stringify(attributes) : "";
  return encoder.encode(entry.MessageBody).length + encoder.encode(extra).length;
}

// Batches of at most ten entries that together are no larger than a batch may be.
function* batchesOf(entries) {
  let batch = [];
  let size = 0;
  for (const entry of entries) {
    const more = sizeOf(entry.message);
    if (batch.length === BATCH_MAX || (batch.length && size + more > BATCH_BYTES_MAX)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(entry);
    size += more;
  }
  if (batch.length) yield batch;
}

// `entries`: { line, message }. Tells `progress` after each batch; ends early if it returns false.
// Returns { sent, failures: [{ line, message }] }.
export async function sendAll(url, entries, progress) {
  const outcome = { sent: 0, failures: [] };
  for (const batch of batchesOf(entries)) {
    await sendBatch(url, batch, outcome);
    if (!progress(outcome)) break;
  }
  return outcome;
}

async function sendBatch(url, batch, outcome) {
  try {
    const { Successful = [], Failed = [] } = await call("SendMessageBatch", { QueueUrl: url,
      Entries: batch.map(({ message }, at) => ({ Id: String(at), ...message })) });
    outcome.sent += Successful.length;
    for (const failed of Failed)
      outcome.failures.push({ line: batch[Number(failed.Id)].line,
        message: failed.Message ?? failed.Code });
  } catch (error) {
    // The whole batch was refused, perhaps because of one of its messages.
    if (error.status !== 400 || batch.length === 1)
      outcome.failures.push(...batch.map(({ line }) => ({ line, message: error.message })));
    else for (const one of batch) await sendBatch(url, [one], outcome);
  }
}
