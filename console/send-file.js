// Many messages from a file: one to a line, or the elements of a JSON array.
import { sendAll } from "/console/batches.js";
import { button, field, h, replace, setText, trial } from "/console/dom.js";
import { count, counted, seen } from "/console/format.js";
import { randomId } from "/console/message-form.js";

const FILE_MAX = 256 * 1024 * 1024;
const FAILURES_SHOWN = 100;
const OWN_MEMBERS = ["MessageBody", "DelaySeconds", "MessageGroupId", "MessageDeduplicationId",
  "MessageAttributes"];

// An element of the array is a body, or says more, as an entry of SendMessageBatch does.
function messageOf(element) {
  if (typeof element === "string") return { MessageBody: element };
  if (element && typeof element === "object" && typeof element.MessageBody === "string")
    return Object.fromEntries(OWN_MEMBERS.filter((key) => element[key] !== undefined)
      .map((key) => [key, element[key]]));
  return { MessageBody: JSON.stringify(element) };
}

// { line, message } of each message in a file's text.
function messagesIn(text) {
  if (/^\s*\[/.test(text)) {
    try {
      const elements = JSON.parse(text);
      return elements.map((element, at) => ({ line: at + 1, message: messageOf(element) }));
    } catch {
      // Lines that begin with [ are no JSON document: each is a message.
    }
  }
  return text.split(/\r?\n/).map((line, at) => ({ line: at + 1, message: { MessageBody: line } }))
    .filter(({ message }) => message.MessageBody !== "");
}

function withGroup(entry, queue, group) {
  const message = { ...entry.message };
  if (group && !message.MessageGroupId) message.MessageGroupId = group;
  const byContent = queue.attributes.ContentBasedDeduplication === "true";
  if (queue.fifo && !byContent) message.MessageDeduplicationId ??= randomId();
  return { line: entry.line, message };
}

function failureList({ failures }) {
  if (!failures.length) return null;
  const left = failures.length - FAILURES_SHOWN;
  return h("div", { class: "error", role: "alert" }, h("p", {},
    `${counted(failures.length, "message was", "messages were")} refused:`),
  h("ul", {}, failures.slice(0, FAILURES_SHOWN).map(({ line, message }) =>
    h("li", {}, `line ${count(line)}: ${seen(message)}`))),
  left > 0 ? h("p", {}, `… and ${count(left)} more.`) : null);
}

export function filePart(queue, sent) {
  const { place, attempt } = trial();
  const file = h("input", { type: "file", id: "send-file", required: true });
  const group = h("input", { id: "file-group", maxlength: "128" });
  const bar = h("progress", { "aria-label": "Messages sent", hidden: true, max: "1", value: 0 });
  const state = h("p", { class: "dim", role: "status", id: "file-state" });
  const failures = h("div");
  let stopped = false;
  const stop = button("Stop", () => {
    stopped = true;
  });
  stop.hidden = true;

  const send = async () => {
    const [chosen] = file.files;
    if (chosen.size > FILE_MAX)
      throw new Error("The file is larger than 256 MiB. Split it, or use a client.");
    const entries = messagesIn(await chosen.text())
      .map((one) => withGroup(one, queue, group.value));
    if (!entries.length) throw new Error("There is no message in this file.");
    bar.max = entries.length;
    bar.hidden = false;
    stop.hidden = false;
    stopped = false;
    replace(failures);
    const outcome = await sendAll(queue.url, entries, ({ sent: good, failures: bad }) => {
      bar.value = good + bad.length;
      setText(state, `${count(good)} of ${counted(entries.length, "message")} sent`);
      return !stopped;
    });
    replace(failures, failureList(outcome));
    setText(state, `${counted(outcome.sent, "message was", "messages were")} sent of ${
      count(entries.length)}${stopped ? "; stopped" : ""}.`);
    stop.hidden = true;
    await sent();
  };
  const submit = (event) => {
    event.preventDefault();
    return attempt(send);
  };
  const element = h("form", { class: "card", onsubmit: submit },
    h("h2", {}, "Many messages from a file"),
    h("p", { class: "dim" }, "Each line is a message; or the file is a JSON array of bodies, or of "
      + "objects as SendMessageBatch takes them (MessageBody, MessageGroupId, …)."),
    h("div", { class: "bar" }, field("File", file), field("Group for those without one", group),
      h("button", { class: "main" }, "Send the file"), stop), bar, state, failures, place);
  return { element, stop: () => {
    stopped = true;
  } };
}
