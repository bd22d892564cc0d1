// A message as a person reads it: pretty JSON, base64 and gzip decoded on request.
import { age, h, notify, replace } from "/console/dom.js";

const pretty = (text) => { try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; } };

async function decoded(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const stream = packed ? new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")) : new Blob([bytes]).stream();
  return pretty(await new Response(stream).text());
}

const looksLikeBase64 = (text) => text.length >= 8 && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text);

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function messageView(message, queue) {
  const system = message.Attributes ?? {};
  const body = h("pre", {}, pretty(message.Body));
  const facts = [
    message.State && h("span", { class: "tag" }, message.State),
    message.EnteredTimestamp && h("span", { class: "dim" }, `${age(Date.now() - message.EnteredTimestamp)} old`),
    message.VisibleTimestamp && h("span", { class: "dim" }, `visible in ${age(message.VisibleTimestamp - Date.now())}`),
    system.ApproximateReceiveCount !== "0" && h("span", { class: "dim" }, `received ${system.ApproximateReceiveCount}×`),
    system.MessageGroupId && h("span", { class: "dim" }, `group ${system.MessageGroupId}`),
    system.DeadLetterQueueSourceArn && h("span", { class: "dim" }, `from ${system.DeadLetterQueueSourceArn}`),
  ].filter(Boolean);
  const copy = async () => {
    await navigator.clipboard.writeText(`aws sqs send-message --endpoint-url ${location.origin} --queue-url ${queue} --message-body ${quoted(message.Body)}`);
    notify("Copied as a command of the AWS CLI.");
  };
  const decode = async () => {
    try { replace(body, await decoded(message.Body)); } catch { notify("The body is not base64."); }
  };
  const attributes = Object.entries(message.MessageAttributes ?? {});
  return h("article", { "data-id": message.MessageId }, h("header", {}, h("code", {}, message.MessageId), facts), body,
    attributes.length ? h("pre", {}, attributes.map(([name, value]) => `${name} (${value.DataType}) = ${value.StringValue ?? value.BinaryValue}`).join("\n")) : null,
    h("div", { class: "bar" }, h("button", { type: "button", onclick: copy }, "Copy as a command"),
      looksLikeBase64(message.Body) ? h("button", { type: "button", onclick: decode }, "Decode base64") : null));
}
