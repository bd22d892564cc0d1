// The list of queues, live.
import { call, watch } from "/console/api.js";
import { age, count, field, h, notify, problem, replace, setText } from "/console/dom.js";

const COLUMNS = [
  ["name", "Queue", (q) => q.name],
  ["visible", "Waiting", (q) => count(q.visible)],
  ["inFlight", "In flight", (q) => count(q.inFlight)],
  ["delayed", "Delayed", (q) => count(q.delayed)],
  ["oldest", "Oldest", (q) => (q.oldest === null ? "–" : age(q.oldest))],
  ["sent", "Sent", (q) => count(q.sent)],
  ["deleted", "Deleted", (q) => count(q.deleted)],
];

function row(queue) {
  const cells = COLUMNS.map(([key]) => (key === "name"
    ? h("td", {}, h("a", { href: `#/queue/${encodeURIComponent(queue.name)}` }, queue.name))
    : h("td", { class: key === "sent" || key === "deleted" ? "number wide" : "number" })));
  return { element: h("tr", {}, cells), cells };
}

export function queuesPage(main) {
  const query = { filter: "", sort: "name" };
  const rows = new Map();
  const body = h("tbody");
  const summary = h("p", { class: "dim" });
  let stop = () => {};

  const show = ({ queues, matching, total }) => {
    const names = new Set(queues.map((queue) => queue.name));
    for (const [name, known] of rows)
      if (!names.has(name)) { known.element.remove(); rows.delete(name); }
    queues.forEach((queue, index) => {
      if (!rows.has(queue.name)) rows.set(queue.name, row(queue));
      const known = rows.get(queue.name);
      COLUMNS.forEach(([key, , text], i) => { if (key !== "name") setText(known.cells[i], text(queue)); });
      if (body.children[index] !== known.element) body.insertBefore(known.element, body.children[index] ?? null);
    });
    setText(summary, total === 0 ? "There is no queue yet: create one below."
      : matching > queues.length ? `The first ${count(queues.length)} of ${count(matching)} queues; filter to see others.`
        : `${count(matching)} of ${count(total)} queues`);
  };
  const listen = () => { stop(); stop = watch(query, show); };

  const filter = h("input", { type: "search", id: "filter", oninput: () => { query.filter = filter.value; listen(); } });
  const heads = COLUMNS.map(([key, title]) => h("th",
    { scope: "col", class: key === "name" ? "" : key === "sent" || key === "deleted" ? "number wide" : "number" },
    h("button", { type: "button", onclick: () => { query.sort = key; listen(); } }, title)));

  const name = h("input", { required: true, maxlength: "80", id: "new-name" });
  const dead = h("input", { type: "checkbox", id: "new-dead" });
  const errors = h("div");
  const create = async (event) => {
    event.preventDefault();
    replace(errors);
    try {
      await createQueue(name.value.trim(), dead.checked);
      notify(`${name.value} was created.`);
      location.hash = `#/queue/${encodeURIComponent(name.value.trim())}`;
    } catch (error) { replace(errors, problem(error)); }
  };
  replace(main, h("h1", {}, "Queues"),
    h("div", { class: "bar" }, field("Filter by name", filter)), summary,
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)),
    h("h2", {}, "Create a queue"),
    h("form", { class: "bar", onsubmit: create }, field("Name (a FIFO queue ends with .fifo)", name),
      h("label", {}, "With a dead-letter queue", dead),
      h("button", { class: "main" }, "Create")), errors);
  listen();
  return () => stop();
}

async function createQueue(name, withDeadLetters) {
  const fifo = name.endsWith(".fifo");
  const attributes = fifo ? { FifoQueue: "true" } : {};
  if (withDeadLetters) {
    const dead = fifo ? name.replace(/\.fifo$/, "-dead.fifo") : `${name}-dead`;
    const made = await call("CreateQueue", { QueueName: dead, Attributes: { ...attributes, MessageRetentionPeriod: "1209600" } });
    const about = await call("GetQueueAttributes", { QueueUrl: made.QueueUrl, AttributeNames: ["QueueArn"] });
    attributes.RedrivePolicy = JSON.stringify({ deadLetterTargetArn: about.Attributes.QueueArn, maxReceiveCount: 5 });
  }
  await call("CreateQueue", { QueueName: name, Attributes: attributes });
}
