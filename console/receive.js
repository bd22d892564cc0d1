// Receives messages like a consumer, and deletes them or gives them back.
import { call } from "/console/api.js";
import { confirmLoss } from "/console/dialog.js";
import { button, field, h, notify, replace, trial } from "/console/dom.js";
import { count, seen, span } from "/console/format.js";
import { messageView } from "/console/message.js";

const EXCERPT = 80;

const number = (id, value, hint, title) =>
  field(title, h("input", { id, inputmode: "numeric", size: "6", value }), hint);

function warningOf(queue) {
  const timeout = span(queue.attributes.VisibilityTimeout ?? 0);
  const policy = queue.attributes.RedrivePolicy;
  const limit = policy ? JSON.parse(policy) : null;
  return `Consumers do not see the messages until the visibility timeout ends (${timeout} by `
    + "default), and each counts as received once more"
    + (limit ? `; after ${limit.maxReceiveCount} receives a message goes to the dead-letter queue.`
      : ".");
}

export function receiveTab(panel, queue) {
  const { place, attempt } = trial();
  const list = h("div", { id: "received" });
  const many = number("receive-many", "10", "1 to 10", "Messages");
  const wait = number("receive-wait", "0", "0 to 20", "Wait (s)");
  const timeout = number("receive-timeout", "", "empty: the queue's", "Visibility timeout (s)");
  const valueOf = (part) => part.querySelector("input").value;
  let asked = false;

  const gone = async (view, text) => {
    view.remove();
    notify(text);
    if (!list.children.length) replace(list);
    await queue.refresh();
  };
  const remove = (message, view) => attempt(async () => {
    const body = seen(message.Body);
    const excerpt = body.length > EXCERPT ? `${body.slice(0, EXCERPT)} …` : body;
    if (!await confirmLoss("Delete this message?", `1 message is lost: ${message.MessageId}, `
      + `“${excerpt}”.`, "Delete")) return;
    await call("DeleteMessage", { QueueUrl: queue.url, ReceiptHandle: message.ReceiptHandle });
    await gone(view, "The message was deleted.");
  });
  const giveBack = (message, view) => attempt(async () => {
    await call("ChangeMessageVisibility", { QueueUrl: queue.url, VisibilityTimeout: 0,
      ReceiptHandle: message.ReceiptHandle });
    await gone(view, "The message is visible again.");
  });
  const viewOf = (message) => {
    const view = messageView(message, queue, { extra: [
      button("Give back", () => giveBack(message, view)),
      button("Delete …", () => remove(message, view), "danger"),
    ] });
    return view;
  };
  const receive = () => attempt(async () => {
    await queue.refresh();
    if (!asked && !await confirmLoss(`Receive from ${queue.name}?`, warningOf(queue), "Receive"))
      return;
    asked = true;
    const request = { QueueUrl: queue.url, MaxNumberOfMessages: Number(valueOf(many)),
      WaitTimeSeconds: Number(valueOf(wait)), MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"] };
    if (valueOf(timeout) !== "") request.VisibilityTimeout = Number(valueOf(timeout));
    const { Messages = [] } = await call("ReceiveMessage", request);
    replace(list, Messages.length ? Messages.map(viewOf)
      : h("p", { class: "empty" }, emptyWords(queue.attributes)));
    await queue.refresh();
  });
  replace(panel, place, h("section", { class: "card" }, h("h2", {}, "Receive like a consumer"),
    h("p", { class: "dim" }, "To look at messages only, use the tab Messages."),
    h("div", { class: "bar" }, many, wait, timeout, button("Receive …", receive, "main"))), list);
}

function emptyWords(attributes) {
  const taken = Number(attributes.ApproximateNumberOfMessagesNotVisible ?? 0);
  const delayed = Number(attributes.ApproximateNumberOfMessagesDelayed ?? 0);
  return `Nothing can be received now: ${count(taken)} in flight, ${count(delayed)} delayed.`;
}
