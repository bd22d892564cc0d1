// The list of queues, live.
import { watch } from "/console/api.js";
import { field, h, keyed, replace, setText } from "/console/dom.js";
import { age, count, rate } from "/console/format.js";
import { live, SAMPLE_MILLIS } from "/console/live.js";
import { link, note } from "/console/route.js";
import { sparkline } from "/console/sparkline.js";

const TYPING_MILLIS = 150;
const SOURCES_SHOWN = 3;

const COLUMNS = [
  { key: "name", title: "Queue" },
  { key: "visible", title: "Waiting", text: (q) => count(q.visible), line: "visible" },
  { key: "inFlight", title: "In flight", text: (q) => count(q.inFlight) },
  { key: "delayed", title: "Delayed", text: (q) => count(q.delayed), wide: true },
  { key: "oldest", title: "Oldest", text: (q) => oldest(q), line: "oldest" },
  { key: "sent", title: "Sent/s", text: (q) => rate(live.rate(q.name, "sent")), wide: true },
  { key: "received", title: "Received/s", text: (q) => rate(live.rate(q.name, "received")),
    wide: true },
  { key: "deleted", title: "Deleted/s", text: (q) => rate(live.rate(q.name, "deleted")),
    wide: true },
];
const RATES = ["sent", "received", "deleted"];

const oldest = (queue) => (queue.oldest === null ? "–" : age(queue.oldest));

const classOf = ({ key, wide }) =>
  [key !== "name" && "number", wide && "wide"].filter(Boolean).join(" ") || null;

// The kind of a queue, as its figures show it.
export function kindOf(queue) {
  if (queue.fifo ?? queue.name.endsWith(".fifo")) return "FIFO";
  return queue.groups > 0 ? "fair" : "";
}

function nameCell(queue) {
  const kind = h("span", { class: "tag", hidden: true });
  const noisy = h("span", { class: "tag warn", hidden: true });
  const dead = h("a", { class: "dim small" });
  const sources = h("a", { class: "dim small" });
  const name = h("a", { class: "name", href: link("queue", queue.name) }, queue.name);
  const element = h("td", {}, name, " ", kind, " ", noisy,
    h("div", { class: "relations" }, dead, sources));
  const update = (now) => {
    kind.hidden = !kindOf(now);
    setText(kind, kindOf(now));
    noisy.hidden = !now.noisyGroups;
    setText(noisy, `${now.noisyGroups} noisy`);
    setText(dead, now.deadLetter ? `dead letters: ${now.deadLetter}` : "");
    dead.href = link("queue", now.deadLetter ?? "");
    dead.hidden = !now.deadLetter;
    const from = now.sources.slice(0, SOURCES_SHOWN);
    const more = now.sourceCount - from.length;
    setText(sources, from.length ? `dead letters of ${from.join(", ")}${
      more > 0 ? ` and ${more} more` : ""}` : "");
    sources.href = link("dead-letters", now.name);
    sources.hidden = !from.length;
  };
  return { element, update };
}

function row(queue) {
  const name = nameCell(queue);
  const cells = COLUMNS.slice(1).map((column) => {
    const text = h("span");
    const line = column.line ? sparkline() : null;
    const element = h("td", { class: classOf(column) }, line?.element, text);
    const update = (now) => {
      setText(text, column.text(now));
      line?.update(live.values(now.name, column.line));
    };
    return { element, update };
  });
  const update = (now) => {
    name.update(now);
    for (const cell of cells) cell.update(now);
  };
  return { element: h("tr", {}, name.element, cells.map((cell) => cell.element)), update };
}

function summaryOf({ queues, matching, total }) {
  if (matching > queues.length)
    return `The first ${count(queues.length)} of ${count(matching)} queues in this order; filter `
      + "to see others.";
  return `${count(matching)} of ${count(total)} queues`;
}

function heads(query, choose) {
  return COLUMNS.map((column) => {
    const sort = column.key === query.sort ? (column.key === "name" ? "ascending" : "descending")
      : null;
    return h("th", { scope: "col", class: classOf(column), "aria-sort": sort },
      h("button", { type: "button", onclick: () => choose(column.key) }, column.title));
  });
}

const nothing = (filter) => (filter
  ? h("div", { class: "empty" }, h("p", {}, "No queue has this text in its name."))
  : h("div", { class: "empty" }, h("h2", {}, "There is no queue yet"),
    h("p", {}, "Create one here, or let a client do it: any AWS SDK works with ",
      h("code", {}, location.origin), " as its endpoint."),
    h("p", {}, h("a", { class: "button main", href: "#/create" }, "Create a queue"))));

export function queuesPage(main, route) {
  const query = { filter: route.query.get("filter") ?? "",
    sort: route.query.get("sort") ?? "name" };
  const rows = new Map();
  const body = h("tbody");
  const head = h("thead");
  const summary = h("p", { class: "dim", role: "status" }, "Loading …");
  const empty = h("div");
  const list = h("div", { class: "scroll card", hidden: true }, h("table", { class: "queues" },
    h("caption", { class: "unseen" }, "Queues"), head, body));
  let latest = null;
  let stop = () => {};
  let typing = 0;

  const draw = () => {
    if (!latest) return;
    const queues = RATES.includes(query.sort)
      ? latest.queues.toSorted((a, b) =>
        (live.rate(b.name, query.sort) ?? 0) - (live.rate(a.name, query.sort) ?? 0))
      : latest.queues;
    keyed(body, rows, queues, (queue) => queue.name, row);
  };
  const show = (event) => {
    latest = event;
    live.take(event.queues);
    draw();
    list.hidden = event.matching === 0;
    if (event.matching === 0) replace(empty, nothing(event.total && query.filter));
    else replace(empty);
    setText(summary, event.total === 0 ? "" : summaryOf(event));
  };
  const listen = () => {
    stop();
    note({ filter: query.filter, sort: query.sort === "name" ? "" : query.sort });
    stop = watch(query, show);
  };
  const choose = (key) => {
    query.sort = key;
    replace(head, h("tr", {}, heads(query, choose)));
    head.querySelector(`[aria-sort] button`)?.focus();
    listen();
  };
  const filter = h("input", { type: "search", id: "filter", value: query.filter,
    placeholder: "part of a name", oninput: () => {
      query.filter = filter.value;
      clearTimeout(typing);
      typing = setTimeout(listen, TYPING_MILLIS);
    } });
  replace(head, h("tr", {}, heads(query, choose)));
  replace(main, h("div", { class: "headline" }, h("h1", {}, "Queues"),
    h("a", { class: "button main", href: "#/create" }, "Create a queue")),
  h("div", { class: "bar" }, field("Filter", filter)), summary, list, empty);
  listen();
  const sampling = setInterval(() => {
    live.sample();
    draw();
  }, SAMPLE_MILLIS);
  return { leave: () => {
    stop();
    clearInterval(sampling);
    clearTimeout(typing);
  } };
}
