// The attributes of a queue, edited with the server's own validation; and what ends the queue.
import { call } from "/console/api.js";
import { attributeForm, attributeInputs } from "/console/attribute-fields.js";
import { confirmLossOf } from "/console/dialog.js";
import { button, h, notify, replace, trial } from "/console/dom.js";
import { count, counted, when } from "/console/format.js";

const FACTS = [
  ["QueueUrl", "URL"], ["QueueArn", "ARN"], ["CreatedTimestamp", "Created"],
  ["LastModifiedTimestamp", "Changed"],
];

const seconds = (key, value) => (key.endsWith("Timestamp") ? when(Number(value) * 1000) : value);

export function settingsTab(panel, queue) {
  const { place, attempt } = trial();
  const form = h("form", { class: "card" });
  const facts = h("dl", { class: "pairs" });

  const show = async () => {
    const attributes = await queue.refresh();
    const inputs = attributeInputs(queue.fifo, ({ key }) => attributes[key] ?? "");
    const changes = () => Object.fromEntries([...inputs]
      .map(([key, { control }]) => [key, control.value.trim()])
      .filter(([key, value]) => value !== (attributes[key] ?? "")));
    const state = h("span", { class: "dim", role: "status" });
    form.oninput = () => {
      const many = Object.keys(changes()).length;
      state.textContent = many ? `${counted(many, "change")} not saved yet` : "";
    };
    form.onsubmit = (event) => {
      event.preventDefault();
      return save(changes());
    };
    replace(form, h("h2", {}, "Attributes"), attributeForm(inputs), h("div", { class: "bar" },
      h("button", { class: "main" }, "Save"), button("Undo changes", () => attempt(show)), state));
    const all = { ...attributes, QueueUrl: queue.url };
    replace(facts, FACTS.filter(([key]) => all[key]).map(([key, title]) =>
      h("div", {}, h("dt", {}, title), h("dd", {}, seconds(key, all[key])))));
  };
  const save = (changed) => attempt(async () => {
    if (!Object.keys(changed).length) return notify("Nothing was changed.");
    await call("SetQueueAttributes", { QueueUrl: queue.url, Attributes: changed });
    notify(`Saved: ${Object.keys(changed).join(", ")}.`);
    return show();
  });
  replace(panel, place, form, h("section", { class: "card" }, h("h2", {}, "About"), facts),
    endPart(queue, attempt));
  attempt(show);
}

function endPart(queue, attempt) {
  const purge = () => attempt(async () => {
    const lost = lossOf(await queue.refresh());
    if (!await confirmLossOf(queue.name, `Purge ${queue.name}?`, "All messages of the queue are "
      + `lost: ${lost}. Nothing brings them back.`, "Purge")) return;
    await call("PurgeQueue", { QueueUrl: queue.url });
    notify(`${queue.name} was purged.`);
    await queue.refresh();
  });
  const remove = () => attempt(async () => {
    const lost = lossOf(await queue.refresh());
    if (!await confirmLossOf(queue.name, `Delete ${queue.name}?`, "The queue is lost with its "
      + `attributes, tags, policy and all its messages: ${lost}.`, "Delete the queue")) return;
    await call("DeleteQueue", { QueueUrl: queue.url });
    notify(`${queue.name} was deleted.`);
    location.hash = "#/queues";
  });
  return h("section", { class: "card" }, h("h2", {}, "Empty or delete it"),
    h("div", { class: "bar" }, button("Purge …", purge, "danger"),
      button("Delete the queue …", remove, "danger")));
}

function lossOf(attributes) {
  const waiting = Number(attributes.ApproximateNumberOfMessages);
  const taken = Number(attributes.ApproximateNumberOfMessagesNotVisible);
  const delayed = Number(attributes.ApproximateNumberOfMessagesDelayed);
  return `${counted(waiting + taken + delayed, "message")} (${count(waiting)} waiting, ${
    count(taken)} in flight, ${count(delayed)} delayed)`;
}
