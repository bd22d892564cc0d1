// The dead-letter queues, with their sources; and one of them: why each message is there, and what
// can be done about it.
import { call, watch } from "/console/api.js";
import { choicePart } from "/console/choice.js";
import { h, keyed, problem, replace, setText, table, trial } from "/console/dom.js";
import { age, count, counted, nameOfArn, nameOfUrl } from "/console/format.js";
import { messageView } from "/console/message.js";
import { pager } from "/console/peek.js";
import { redrivePart } from "/console/redrive.js";
import { link } from "/console/route.js";

const SOURCES_SHOWN = 5;

function sourceLinks(names, all = names.length) {
  const shown = names.slice(0, SOURCES_SHOWN);
  const links = shown.map((name) => h("a", { href: link("queue", name) }, name));
  return [links.flatMap((one, at) => (at ? [", ", one] : [one])),
    all > shown.length ? ` and ${count(all - shown.length)} more` : ""];
}

function row(queue) {
  const cells = [1, 2].map(() => h("td", { class: "number" }));
  const sources = h("td");
  let before = "";
  const update = (now) => {
    setText(cells[0], count(now.visible + now.inFlight + now.delayed));
    setText(cells[1], now.oldest === null ? "–" : age(now.oldest));
    const text = `${now.sourceCount} ${now.sources.join()}`;
    if (text !== before) replace(sources, sourceLinks(now.sources, now.sourceCount));
    before = text;
  };
  return { element: h("tr", {}, h("td", {}, h("a", { class: "name",
    href: link("dead-letters", queue.name) }, queue.name)), cells, sources), update };
}

function listPage(main) {
  const body = h("tbody");
  const rows = new Map();
  const list = h("div", { class: "card" },
    table(["Dead-letter queue", "#Messages", "#Oldest", "Dead letters of"], body,
      "Dead-letter queues"));
  const empty = h("div", { class: "empty", hidden: true }, h("h2", {}, "No dead-letter queues"),
    h("p", {}, "A queue that names another one in its redrive policy sends messages there that "
      + "fail again and again. Set it in the queue's settings, or when you create a queue."));
  const summary = h("p", { class: "dim", role: "status" }, "Loading …");
  list.hidden = true;
  replace(main, h("h1", {}, "Dead letters"), summary, list, empty);
  return { leave: watch({ only: "dead-letters", sort: "visible" }, ({ queues, matching }) => {
    keyed(body, rows, queues, (queue) => queue.name, row);
    list.hidden = matching === 0;
    empty.hidden = matching !== 0;
    setText(summary, matching === 0 ? "" : matching > queues.length
      ? `The ${count(queues.length)} with the most messages of ${count(matching)}`
      : counted(matching, "dead-letter queue"));
  }) };
}

async function describe(queue) {
  queue.url = (await call("GetQueueUrl", { QueueName: queue.name })).QueueUrl;
  await queue.refresh();
  const { queueUrls = [] } = await call("ListDeadLetterSourceQueues",
    { QueueUrl: queue.url, MaxResults: 1000 });
  return queueUrls.map(nameOfUrl);
}

// A message goes back to where it came from; one that was sent here directly, to the only source.
function targetOf(message, sources, queue) {
  const source = message.Attributes?.DeadLetterQueueSourceArn;
  if (source) return nameOfArn(source);
  return sources.length === 1 ? sources[0] : queue.name;
}

function onePage(main, name) {
  const { place, attempt } = trial();
  const queue = { name, url: name, fifo: name.endsWith(".fifo"), attributes: {} };
  const summary = h("p", { class: "dim" }, "Loading …");
  const redriving = h("div");
  let sources = [];
  let redrive = null;
  let left = false;
  queue.refresh = async () => {
    const { Attributes } = await call("GetQueueAttributes",
      { QueueUrl: queue.url, AttributeNames: ["All"] });
    queue.attributes = Attributes;
    return Attributes;
  };
  const choice = choicePart(queue, { dead: true, changed: () => pages.again(), attempt });
  const pages = pager(() => ({ QueueUrl: queue.url }), (message) => messageView(message, queue,
    { target: targetOf(message, sources, queue), mark: choice.mark(message) }),
  () => "The dead-letter queue is empty: nothing has failed too often.", attempt, choice);
  pages.list.id = "dead";
  const begin = async () => {
    try {
      sources = await describe(queue);
    } catch (error) {
      return replace(summary, problem(error));
    }
    if (left) return undefined;
    replace(summary, sources.length ? ["Dead letters of ", sourceLinks(sources), ". ",
      h("a", { href: link("queue", name) }, "The queue itself"), "."]
      : "No queue names this one as its dead-letter queue.");
    redrive = redrivePart(queue, pages.begin);
    replace(redriving, redrive.element);
    return pages.begin();
  };
  replace(main, h("nav", { class: "crumbs", "aria-label": "Where you are" },
    h("a", { href: "#/dead-letters" }, "Dead letters"), " / "),
  h("div", { class: "headline" }, h("h1", {}, name)), summary, redriving, place,
  h("h2", {}, "Why each message is here"), choice.element, pages.element);
  begin();
  return { leave: () => {
    left = true;
    redrive?.stop();
    pages.stop();
  } };
}

export const deadLettersPage = (main, route) =>
  (route.name ? onePage(main, route.name) : listPage(main));
