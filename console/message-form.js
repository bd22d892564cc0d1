// What can be said about a message that is sent: its attributes, delay, group, deduplication id.
import { button, field, h } from "/console/dom.js";

const ATTRIBUTES_MAX = 10;
const TYPES = ["String", "Number", "Binary"];

function attributeRow(name, value, remove) {
  const type = value?.DataType ?? "String";
  const types = TYPES.includes(type) ? TYPES : [type, ...TYPES];
  const controls = {
    name: h("input", { "aria-label": "Name of the attribute", placeholder: "name", value: name }),
    type: h("select", { "aria-label": "Type of the attribute", value: type },
      types.map((one) => h("option", { value: one }, one))),
    value: h("input", { "aria-label": "Value of the attribute", placeholder: "value",
      value: value?.StringValue ?? value?.BinaryValue ?? "" }),
  };
  controls.type.value = type;
  const element = h("div", { class: "bar attribute" }, controls.name, controls.type, controls.value,
    h("button", { type: "button", "aria-label": "Remove this attribute",
      onclick: () => remove(one) }, "Remove"));
  const one = { element, controls };
  return one;
}

// Rows of attributes; `read` returns them as the API wants them.
function attributesPart(initial) {
  const rows = [];
  const list = h("div");
  const add = button("Add an attribute", () => addRow("").controls.name.focus());
  const remove = (row) => {
    rows.splice(rows.indexOf(row), 1);
    row.element.remove();
    add.disabled = false;
    add.focus();
  };
  const addRow = (name, value) => {
    const row = attributeRow(name, value, remove);
    rows.push(row);
    list.append(row.element);
    add.disabled = rows.length >= ATTRIBUTES_MAX;
    return row;
  };
  for (const [name, value] of Object.entries(initial)) addRow(name, value);
  const read = () => Object.fromEntries(rows.map(({ controls: { name, type, value } }) =>
    [name.value, type.value.startsWith("Binary")
      ? { DataType: type.value, BinaryValue: value.value }
      : { DataType: type.value, StringValue: value.value }]));
  return { element: h("fieldset", {}, h("legend", {}, "Attributes"), list, add), read };
}

// Browsers give pages without TLS no randomUUID, but random bytes.
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
}

// `draft`: a message to begin with, as it was peeked, or null.
export function messageForm(queue, draft) {
  const system = draft?.Attributes ?? {};
  const body = h("textarea", { id: "send-body", rows: "8", required: true, spellcheck: "false",
    value: draft?.Body ?? "" });
  const delay = h("input", { id: "send-delay", inputmode: "numeric", size: "6" });
  const group = h("input", { id: "send-group", maxlength: "128", required: queue.fifo,
    value: system.MessageGroupId ?? "" });
  const deduplication = h("input", { id: "send-deduplication", maxlength: "128" });
  const attributes = attributesPart(draft?.MessageAttributes ?? {});
  const byContent = () => queue.attributes.ContentBasedDeduplication === "true";
  // Each of several copies needs a deduplication id of its own.
  const entry = (number = 0) => {
    const given = attributes.read();
    const one = { MessageBody: body.value };
    if (Object.keys(given).length) one.MessageAttributes = given;
    if (delay.value) one.DelaySeconds = Number(delay.value);
    if (group.value) one.MessageGroupId = group.value;
    if (!queue.fifo) return one;
    if (deduplication.value)
      one.MessageDeduplicationId = deduplication.value + (number ? `-${number}` : "");
    else if (!byContent()) one.MessageDeduplicationId = randomId();
    return one;
  };
  const fields = h("div", { class: "grid" },
    queue.fifo ? null : field("Delay (s)", delay, "Up to 900; empty: as the queue says."),
    field("Group", group, queue.fifo ? "Messages of a group keep their order."
      : "The tenant, if the queue is to be fair among several."),
    queue.fifo ? field("Deduplication id", deduplication,
      "Empty: a random one, or the body's where the queue says so.") : null);
  return { elements: [field("Body", body), fields, attributes.element], entry, body };
}
