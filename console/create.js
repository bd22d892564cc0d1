// A new queue, with all its attributes, its tags and, if wanted, its dead-letter queue.
import { call, Refused } from "/console/api.js";
import { attributeForm, attributeInputs } from "/console/attribute-fields.js";
import { field, h, notify, replace, tick, trial } from "/console/dom.js";
import { link } from "/console/route.js";
import { tagsOf } from "/console/tags.js";

const SUFFIX = ".fifo";
const DEAD_RETENTION_SECONDS = "1209600";

const bare = (name) => (name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name);

const deadNameOf = (name) =>
  `${bare(name)}-dead${name.endsWith(SUFFIX) ? SUFFIX : ""}`;

async function arnOf(name) {
  const { Attributes } = await call("GetQueueAttributes",
    { QueueUrl: name, AttributeNames: ["QueueArn"] });
  return Attributes.QueueArn;
}

// The queue first: if the server refuses it, nothing was made.
async function create({ name, attributes, tags, dead, deadIsNew, receives }) {
  const fifo = name.endsWith(SUFFIX) ? { FifoQueue: "true" } : {};
  await call("CreateQueue", { QueueName: name, Attributes: { ...attributes, ...fifo }, tags });
  if (!dead) return;
  try {
    if (deadIsNew)
      await call("CreateQueue", { QueueName: dead,
        Attributes: { ...fifo, MessageRetentionPeriod: DEAD_RETENTION_SECONDS } });
    const policy = { deadLetterTargetArn: await arnOf(dead), maxReceiveCount: Number(receives) };
    await call("SetQueueAttributes", { QueueUrl: name,
      Attributes: { RedrivePolicy: JSON.stringify(policy) } });
  } catch (error) {
    throw new Refused(error.status, error.code,
      `${name} was created, but its dead-letter queue was not set: ${error.message}`);
  }
}

function deadLetterPart(nameNow) {
  const choice = h("select", { id: "new-dead" },
    h("option", { value: "" }, "none: failed messages come back until they expire"),
    h("option", { value: "new", selected: true }, "a new one"),
    h("option", { value: "other" }, "one that exists"));
  const name = h("input", { id: "new-dead-name", maxlength: "80", autocomplete: "off" });
  const receives = h("input", { id: "new-receives", inputmode: "numeric", value: "5", size: "6" });
  const details = h("div", { class: "grid" }, field("Name of the dead-letter queue", name),
    field("After this many receives", receives, "Between 1 and 1,000."));
  let typed = false;
  name.addEventListener("input", () => {
    typed = true;
  });
  const update = () => {
    details.hidden = choice.value === "";
    if (choice.value === "new" && !typed) name.value = nameNow() ? deadNameOf(nameNow()) : "";
  };
  choice.addEventListener("change", update);
  const value = () => ({ dead: choice.value ? name.value.trim() : "",
    deadIsNew: choice.value === "new", receives: receives.value });
  return { element: h("section", { class: "card" }, h("h2", {}, "Dead letters"),
    field("Dead-letter queue", choice, "Where messages go that fail again and again."), details),
  update, value };
}

export function createPage(main) {
  const name = h("input", { id: "new-name", required: true, maxlength: "80", autocomplete: "off",
    pattern: "[A-Za-z0-9_\\-]+(\\.fifo)?",
    title: "Letters, digits, - and _; a FIFO queue ends with .fifo" });
  const fifo = h("input", { id: "new-fifo", type: "checkbox" });
  const attributes = h("div");
  const tags = h("textarea", { id: "new-tags", rows: "2", spellcheck: "false" });
  const { place, attempt } = trial();
  let inputs;
  const fullName = () => {
    const given = name.value.trim();
    return fifo.checked && given ? bare(given) + SUFFIX : given;
  };
  const dead = deadLetterPart(fullName);
  const drawAttributes = () => {
    const old = inputs;
    inputs = attributeInputs(fifo.checked,
      ({ key, initial }) => old?.get(key)?.control.value ?? initial);
    inputs.delete("RedrivePolicy");  // It is made by the part about dead letters.
    replace(attributes, attributeForm(inputs));
  };
  const changed = () => {
    if (name.value.endsWith(SUFFIX) && !fifo.checked) {
      fifo.checked = true;
      drawAttributes();
    }
    dead.update();
  };
  name.addEventListener("input", changed);
  fifo.addEventListener("change", () => {
    if (!fifo.checked) name.value = bare(name.value);
    drawAttributes();
    dead.update();
  });
  const submit = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const given = [...inputs].map(([key, { control }]) => [key, control.value.trim()]);
      await create({ name: fullName(), tags: tagsOf(tags.value), ...dead.value(),
        attributes: Object.fromEntries(given.filter(([, value]) => value !== "")) });
      notify(`${fullName()} was created.`);
      location.hash = link("queue", fullName());
    });
  };
  drawAttributes();
  dead.update();
  replace(main, h("h1", {}, "Create a queue"), h("form", { onsubmit: submit },
    h("section", { class: "card" }, h("div", { class: "grid" },
      field("Name", name, "Up to 80 letters, digits, - and _. A FIFO queue keeps the order within "
        + "groups, and takes each message once."),
      h("div", { class: "field" }, tick("FIFO queue", fifo)))),
    dead.element,
    h("section", { class: "card" }, h("h2", {}, "Attributes"), attributes),
    h("section", { class: "card" }, h("h2", {}, "Tags"),
      field("Tags", tags, "One to a line, as team=payments.")),
    place, h("div", { class: "bar" }, h("button", { class: "main" }, "Create"),
      h("a", { class: "button", href: "#/queues" }, "Cancel"))));
  name.focus();
  return {};
}
