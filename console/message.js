// A message as a person reads it: pretty JSON, base64 and gzip decoded on request.
import { sendCommand } from "/console/command.js";
import { decoded, laidOut, looksLikeBase64 } from "/console/decode.js";
import { copy } from "/console/dialog.js";
import { button, h, notify, setText } from "/console/dom.js";
import { ago, bytes, counted, nameOfArn, seen, since, until, when } from "/console/format.js";
import { setDraft } from "/console/draft.js";
import { link } from "/console/route.js";

// Longer texts are shown in part: a megabyte of text makes a page slow.
const SHOWN_MAX = 5000;

const STATES = { Visible: "waiting", Delayed: "delayed", InFlight: "in flight" };

// A text with a way to see all of it.
function longText(text) {
  const place = h("pre", { tabindex: "0", "aria-label": "Body" });
  let safe = "";
  const more = button("", () => {
    setText(place, safe);
    more.hidden = true;
  });
  const set = (value) => {
    safe = seen(value);
    more.hidden = safe.length <= SHOWN_MAX;
    setText(more, `Show all ${counted(safe.length, "character")}`);
    setText(place, more.hidden ? safe : `${safe.slice(0, SHOWN_MAX)} …`);
  };
  set(text);
  return { element: h("div", {}, place, more), set };
}

function factsOf(message) {
  const system = message.Attributes ?? {};
  const receives = Number(system.ApproximateReceiveCount ?? 0);
  const entered = message.EnteredTimestamp ?? system.SentTimestamp;
  return [
    message.State && h("span", { class: `tag ${message.State.toLowerCase()}` },
      STATES[message.State] ?? message.State),
    entered && h("span", { title: when(entered) }, `${since(entered)} old`),
    message.VisibleTimestamp
      && h("span", {}, `visible in ${until(message.VisibleTimestamp)}`),
    receives > 0 && h("span", {}, `received ${counted(receives, "time")}`),
    system.MessageGroupId && h("span", {}, "group ", h("bdi", {}, seen(system.MessageGroupId))),
    h("span", {}, bytes(new Blob([message.Body]).size)),
  ].filter(Boolean);
}

function detailsOf(message) {
  const system = message.Attributes ?? {};
  const rows = [
    ["Sent", system.SentTimestamp && when(system.SentTimestamp)],
    ["Sent by", system.SenderId],
    ["First received", system.ApproximateFirstReceiveTimestamp
      && when(system.ApproximateFirstReceiveTimestamp)],
    ["Last received", message.LastReceiveTimestamp && when(message.LastReceiveTimestamp)],
    ["Expires", message.ExpiresTimestamp && when(message.ExpiresTimestamp)],
    ["Deduplication id", system.MessageDeduplicationId],
    ["Sequence number", system.SequenceNumber],
    ["Trace header", system.AWSTraceHeader],
  ].filter(([, value]) => value);
  const attributes = Object.entries(message.MessageAttributes ?? {}).map(([name, value]) =>
    [name, `${value.StringValue ?? value.BinaryValue} (${value.DataType})`]);
  return h("details", {}, h("summary", {}, attributes.length
    ? `Details and ${counted(attributes.length, "attribute")}` : "Details"),
  h("dl", { class: "pairs" }, [...rows, ...attributes].map(([title, value]) => h("div", {},
    h("dt", {}, h("bdi", {}, seen(title))), h("dd", {}, h("bdi", {}, seen(value)))))));
}

// Why a message is in a dead-letter queue; null if it was sent there like any other.
function reasonOf(message) {
  const system = message.Attributes ?? {};
  const source = system.DeadLetterQueueSourceArn;
  if (!source) return null;
  const name = nameOfArn(source);
  const first = system.ApproximateFirstReceiveTimestamp;
  const last = message.LastReceiveTimestamp;
  return h("p", { class: "reason" }, "Came from ", h("a", { href: link("queue", name) }, name),
    ` after ${counted(system.ApproximateReceiveCount, "receive")}`,
    first ? `: first received ${ago(first)}` : "",
    first && last ? `, last ${ago(last)}` : "",
    `, moved here ${ago(message.EnteredTimestamp)}, sent ${ago(system.SentTimestamp)}.`);
}

// `queue`: { name, url }. `target`: the queue to which the message would be sent again.
export function messageView(message, queue, { target = queue.name, extra = [], mark } = {}) {
  const body = longText(laidOut(message.Body));
  const decode = button("Decode", async () => {
    try {
      body.set(await decoded(message.Body));
      decode.remove();
    } catch {
      notify("The body is neither base64 nor gzip.");
    }
  });
  const again = button("Edit and send again", () => {
    setDraft(message, queue);
    location.hash = link("queue", target, "send");
  });
  const command = button("Copy as command",
    () => copy(sendCommand(message, queue.url), "Copied as a command of the AWS CLI."));
  return h("article", { class: "message", "data-id": message.MessageId },
    h("header", {}, mark, h("code", {}, message.MessageId), factsOf(message)),
    reasonOf(message), body.element, detailsOf(message),
    h("div", { class: "bar" },
      button("Copy body", () => copy(message.Body, "The body was copied.")), command,
      looksLikeBase64(message.Body) ? decode : null, again, extra));
}
