// Sends a message, once or several times.
import { call } from "/console/api.js";
import { sendAll } from "/console/batches.js";
import { deleteChosen } from "/console/chosen.js";
import { field, h, notify, replace, setText, tick, trial } from "/console/dom.js";
import { isJson } from "/console/decode.js";
import { count, counted } from "/console/format.js";
import { takeDraft } from "/console/draft.js";
import { messageForm } from "/console/message-form.js";
import { filePart } from "/console/send-file.js";

const COPIES_MAX = 10_000;

// Whether the message that is sent again is to be removed from where it was seen. It must wait
// there: what was received can be deleted by who received it.
function originalPart(draft) {
  const { message, queue } = draft ?? {};
  if (!message?.StanchionPosition || message.State !== "Visible") return null;
  const box = h("input", { type: "checkbox", id: "send-removes" });
  const element = tick(`When it was sent, remove the original from ${queue.name}`, box);
  const removed = async () => {
    if (!box.checked) return;
    const { failures } = await deleteChosen(queue, [message]);
    if (failures.length) throw new Error(`The message was sent, but the original is still in ${
      queue.name}: ${failures[0].reason}.`);
    element.remove();
    box.checked = false;
    notify(`Sent, and the original was removed from ${queue.name}.`);
  };
  return { element, removed };
}

export function sendTab(panel, queue) {
  const { place, attempt } = trial();
  const draft = takeDraft();
  const form = messageForm(queue, draft?.message ?? null);
  const original = originalPart(draft);
  const copies = h("input", { id: "send-copies", inputmode: "numeric", size: "6", value: "1" });
  const format = h("small", { role: "status" });
  const state = h("span", { class: "dim", role: "status", id: "send-state" });
  let left = false;

  const tellFormat = () => {
    const text = form.body.value.trim();
    const meant = /^[[{]/.test(text);
    const words = isJson(text) ? "valid JSON" : "looks like JSON, but is not valid";
    setText(format, meant ? words : "");
  };
  form.body.addEventListener("input", tellFormat);
  const one = async () => {
    const { MessageId } = await call("SendMessage", { QueueUrl: queue.url, ...form.entry() });
    setText(state, `Sent as ${MessageId}.`);
    notify(`Sent as ${MessageId}.`);
  };
  const many = async (number) => {
    const entries = Array.from({ length: number }, (_, at) =>
      ({ line: at + 1, message: form.entry(at) }));
    const outcome = await sendAll(queue.url, entries, ({ sent }) => {
      setText(state, `${count(sent)} of ${counted(number, "message")} sent`);
      return !left;
    });
    setText(state, `${counted(outcome.sent, "message was", "messages were")} sent.`);
    if (outcome.failures.length) throw new Error(`${counted(outcome.failures.length,
      "message was", "messages were")} refused: ${outcome.failures[0].message}`);
  };
  const submit = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const number = Number(copies.value);
      if (!Number.isInteger(number) || number < 1 || number > COPIES_MAX)
        throw new Error(`The number of copies must be between 1 and ${count(COPIES_MAX)}.`);
      await (number === 1 ? one() : many(number));
      await original?.removed();
      await queue.refresh();
    });
  };
  const file = filePart(queue, queue.refresh);
  replace(panel, h("form", { class: "card", onsubmit: submit },
    h("h2", {}, draft ? "Send this message again" : "Send a message"),
    draft ? h("p", { class: "dim" }, "The message as it was; change what should be different.")
      : null,
    form.elements, original?.element, format, place, h("div", { class: "bar" },
      h("button", { class: "main" }, "Send"), field("Copies", copies), state)), file.element);
  tellFormat();
  return () => {
    left = true;
    file.stop();
  };
}
