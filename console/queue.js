// One queue: its figures live, and a tab for each thing that can be done with it.
import { accessTab } from "/console/access.js";
import { call, watch } from "/console/api.js";
import { groupsTab } from "/console/groups.js";
import { h, problem, replace, setText } from "/console/dom.js";
import { age, count, rate } from "/console/format.js";
import { live, SAMPLE_MILLIS } from "/console/live.js";
import { overviewTab } from "/console/overview.js";
import { messagesTab } from "/console/peek.js";
import { kindOf } from "/console/queues.js";
import { receiveTab } from "/console/receive.js";
import { link } from "/console/route.js";
import { sendTab } from "/console/send.js";
import { settingsTab } from "/console/settings.js";
import { sparkline } from "/console/sparkline.js";
import { tagsTab } from "/console/tags.js";

const TABS = [
  ["", () => "Overview", overviewTab],
  ["messages", () => "Messages", messagesTab],
  ["send", () => "Send", sendTab],
  ["receive", () => "Receive", receiveTab],
  ["groups", (queue) => (queue.fifo ? "Groups" : "Tenants"), groupsTab],
  ["settings", () => "Settings", settingsTab],
  ["access", () => "Access", accessTab],
  ["tags", () => "Tags", tagsTab],
];

const FACTS = [
  { title: "Waiting", text: (q) => count(q.visible), line: "visible" },
  { title: "In flight", text: (q) => count(q.inFlight), line: "inFlight" },
  { title: "Delayed", text: (q) => count(q.delayed) },
  { title: "Oldest", text: (q) => (q.oldest === null ? "–" : age(q.oldest)), line: "oldest" },
  { title: "Sent/s", text: (q) => rate(live.rate(q.name, "sent")) },
  { title: "Received/s", text: (q) => rate(live.rate(q.name, "received")) },
  { title: "Deleted/s", text: (q) => rate(live.rate(q.name, "deleted")) },
];

// The figures of the queue's head; `update` shows others.
function factsPart() {
  const parts = FACTS.map((fact) => {
    const value = h("dd", {}, "–");
    const line = fact.line ? sparkline() : null;
    return { element: h("div", {}, h("dt", {}, fact.title), value, line?.element),
      update: (queue) => {
        setText(value, fact.text(queue));
        line?.update(live.values(queue.name, fact.line));
      } };
  });
  return { element: h("dl", { class: "facts", id: "facts" }, parts.map((part) => part.element)),
    update: (queue) => parts.forEach((part) => part.update(queue)) };
}

// What the tabs share: the queue's name, URL and attributes, and a way to ask for them again.
function queueOf(name) {
  const queue = { name, url: name, fifo: name.endsWith(".fifo"), attributes: {} };
  queue.refresh = async () => {
    const { Attributes } = await call("GetQueueAttributes",
      { QueueUrl: queue.url, AttributeNames: ["All"] });
    queue.attributes = Attributes;
    return Attributes;
  };
  return queue;
}

function missing(name, error) {
  if (!/NonExistent|DoesNotExist/.test(error.code)) return problem(error);
  return h("div", { class: "empty" }, h("h1", {}, `There is no queue ${name}`),
    h("p", {}, "It may have been deleted, or belong to another account."),
    h("p", {}, h("a", { class: "button", href: "#/queues" }, "All queues")));
}

function headOf(queue, kind, facts, tabs) {
  return [h("nav", { "aria-label": "Where you are", class: "crumbs" },
    h("a", { href: "#/queues" }, "Queues"), " / "),
  h("div", { class: "headline" }, h("h1", {}, queue.name), kind), facts.element,
  h("nav", { class: "tabs", "aria-label": `Parts of ${queue.name}` }, tabs)];
}

export function queuePage(main, route) {
  const queue = queueOf(route.name);
  const kind = h("span", { class: "tag" });
  const facts = factsPart();
  const panel = h("div", { id: "panel" });
  const links = TABS.map(([key, title]) =>
    h("a", { href: link("queue", queue.name, key) }, title(queue)));
  let latest = null;
  let leaveTab = null;
  let wanted = route;  // A tab may be chosen before the queue's attributes are known.
  let known = false;

  const draw = () => {
    if (!latest) return;
    setText(kind, kindOf(latest) || "standard");
    facts.update(latest);
  };
  const show = ({ queues }) => {
    live.take(queues);
    latest = queues.find((one) => one.name === queue.name) ?? latest;
    draw();
  };
  const open = ({ tab, query }) => {
    leaveTab?.();
    const at = Math.max(0, TABS.findIndex(([key]) => key === tab));
    links.forEach((one, index) => {
      if (index === at) one.setAttribute("aria-current", "page");
      else one.removeAttribute("aria-current");
    });
    replace(panel);
    leaveTab = TABS[at][2](panel, queue, query) ?? null;
  };
  const begin = async () => {
    try {
      queue.url = (await call("GetQueueUrl", { QueueName: queue.name })).QueueUrl;
      await queue.refresh();
    } catch (error) {
      return replace(main, missing(queue.name, error));
    }
    known = true;
    return open(wanted);
  };
  const choose = (next) => {
    wanted = next;
    if (known) open(next);
  };
  setText(kind, queue.fifo ? "FIFO" : "standard");
  replace(main, headOf(queue, kind, facts, links), panel);
  begin();
  const stop = watch({ only: "queue", filter: queue.name }, show);
  const sampling = setInterval(() => {
    live.sample();
    draw();
  }, SAMPLE_MILLIS);
  return {
    route: choose,
    leave: () => {
      leaveTab?.();
      stop();
      clearInterval(sampling);
    },
  };
}
