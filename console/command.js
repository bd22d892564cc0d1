// Messages as commands of the AWS CLI, to be pasted into a shell.

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function sendCommand(message, url) {
  const system = message.Attributes ?? {};
  const parts = ["aws sqs send-message", `--endpoint-url ${location.origin}`, `--queue-url ${url}`,
    `--message-body=${quoted(message.Body)}`];
  const attributes = message.MessageAttributes ?? {};
  if (Object.keys(attributes).length)
    parts.push(`--message-attributes=${quoted(JSON.stringify(attributes))}`);
  if (system.MessageGroupId) parts.push(`--message-group-id=${quoted(system.MessageGroupId)}`);
  if (system.MessageDeduplicationId)
    parts.push(`--message-deduplication-id=${quoted(system.MessageDeduplicationId)}`);
  return parts.join(" ");
}
