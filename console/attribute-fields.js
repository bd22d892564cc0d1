// The attributes of a queue as a form: what each means, its unit, and what it is by default. The
// server decides what is valid; the form only explains.
import { field, h, setText } from "/console/dom.js";
import { bytes, span } from "/console/format.js";

const seconds = (value) => (value === "" ? "" : span(value));

const ATTRIBUTES = [
  { key: "VisibilityTimeout", title: "Visibility timeout", unit: "s", initial: "30",
    help: "How long a received message is hidden from other consumers.", words: seconds },
  { key: "MessageRetentionPeriod", title: "Retention", unit: "s", initial: "345600",
    help: "After this time a message that nobody deleted is forgotten.", words: seconds },
  { key: "ReceiveMessageWaitTimeSeconds", title: "Long polling", unit: "s", initial: "20",
    help: "How long a receive waits for a message. 20 s spares consumers empty answers.",
    words: seconds },
  { key: "DelaySeconds", title: "Delay", unit: "s", initial: "0",
    help: "How long a new message is hidden at first.", words: seconds },
  { key: "MaximumMessageSize", title: "Largest message", unit: "bytes", initial: "1048576",
    help: "Larger messages are refused.", words: (value) => (value === "" ? "" : bytes(value)) },
  { key: "ContentBasedDeduplication", title: "Deduplication by content", fifo: true,
    choices: ["false", "true"], initial: "false",
    help: "Whether messages without a deduplication id get one from their body." },
  { key: "DeduplicationScope", title: "Deduplication scope", fifo: true,
    choices: ["queue", "messageGroup"], initial: "queue",
    help: "Whether a deduplication id counts for the whole queue or for its group." },
  { key: "FifoThroughputLimit", title: "Throughput limit", fifo: true,
    choices: ["perQueue", "perMessageGroupId"], initial: "perQueue",
    help: "perMessageGroupId needs the deduplication scope messageGroup." },
  { key: "RedrivePolicy", title: "Redrive policy", text: true, initial: "",
    help: "The dead-letter queue and after how many receives a message goes there, as JSON; empty: "
      + "there is none." },
  { key: "RedriveAllowPolicy", title: "Redrive allow policy", text: true, initial: "", rare: true,
    help: "Which queues may use this one as their dead-letter queue, as JSON; empty: all." },
  { key: "SqsManagedSseEnabled", title: "Encryption by SQS", choices: ["true", "false"],
    initial: "", rare: true, help: "Kept and answered as AWS does." },
  { key: "KmsMasterKeyId", title: "KMS key", initial: "", rare: true,
    help: "Kept and answered as AWS does; empty: none." },
  { key: "KmsDataKeyReusePeriodSeconds", title: "KMS data key reuse", unit: "s", initial: "",
    rare: true, help: "Kept and answered as AWS does.", words: seconds },
];

const attributesFor = (fifo) => ATTRIBUTES.filter((one) => fifo || !one.fifo);

function controlOf(attribute, value) {
  const id = `attribute-${attribute.key}`;
  if (attribute.choices) {
    const choices = attribute.choices.includes(value) ? attribute.choices
      : [value, ...attribute.choices];
    return h("select", { id, value },
      choices.map((choice) => h("option", { value: choice }, choice || "(not set)")));
  }
  if (attribute.text) return h("textarea", { id, rows: "2", value, spellcheck: "false" });
  const number = attribute.unit !== undefined;
  return h("input", { id, value, inputmode: number ? "numeric" : null, size: "12",
    autocomplete: "off" });
}

// Inputs for all attributes: { control, element } by key.
export function attributeInputs(fifo, valueOf) {
  const inputs = new Map();
  for (const attribute of attributesFor(fifo)) {
    const control = controlOf(attribute, valueOf(attribute));
    const unit = attribute.unit ? ` (${attribute.unit})` : "";
    const element = field(attribute.title + unit, control, attribute.help);
    if (attribute.words) {
      const words = h("small", { class: "words" });
      const tell = () => setText(words, /^\d{1,9}$/.test(control.value)
        ? `= ${attribute.words(control.value)}` : "");
      control.addEventListener("input", tell);
      tell();
      element.insertBefore(words, control.nextSibling);
    }
    inputs.set(attribute.key, { control, element, attribute });
  }
  return inputs;
}

// The fields that are used every day, and the others behind a fold.
export function attributeForm(inputs) {
  const all = [...inputs.values()];
  return [
    h("div", { class: "grid" }, all.filter((one) => !one.attribute.rare).map((one) => one.element)),
    h("details", {}, h("summary", {}, "More attributes"),
      h("div", { class: "grid" },
        all.filter((one) => one.attribute.rare).map((one) => one.element))),
  ];
}
