// The groups of a FIFO queue: how much waits in each, and what locks it; or the tenants of a fair
// queue: the share of each, and who is noisy.
import { call } from "/console/api.js";
import { button, h, keyed, repeat, replace, setText, table, trial } from "/console/dom.js";
import { count, counted, seen, since, until } from "/console/format.js";
import { link } from "/console/route.js";

const PAGE = 100;
const REFRESH_MILLIS = 3000;

function share(percent) {
  const bar = h("span", { class: "fill" });
  const text = h("span", { class: "share-text" });
  const update = (value) => {
    bar.style.width = `${Math.min(100, value)}%`;
    setText(text, `${value} %`);
  };
  update(percent);
  const element = h("span", { class: "share" }, h("span", { class: "track" }, bar), text);
  return { element, update };
}

function lockWords(group) {
  if (!group.Locked) return "free";
  const by = group.LockedByMessageId ?? `number ${group.LockedBySequenceNumber}`;
  return `locked for ${since(group.LockedSinceTimestamp)} by ${by}, received ${
    counted(group.LockedByReceiveCount, "time")}; free in ${
    until(group.LockedUntilTimestamp)} at the latest`;
}

function groupCell(group, queue) {
  const id = group.MessageGroupId;
  return h("td", {}, id
    ? h("a", { href: link("queue", queue.name, "messages", { group: id }) }, h("bdi", {}, seen(id)))
    : h("span", { class: "dim" }, "(without a group)"));
}

function fifoRow(group, queue) {
  const cells = [h("td", { class: "number" }), h("td", { class: "number" }), h("td", {})];
  const update = (now) => {
    setText(cells[0], count(now.Waiting));
    setText(cells[1], count(now.InFlight));
    setText(cells[2], lockWords(now));
    cells[2].classList.toggle("dim", !now.Locked);
  };
  return { element: h("tr", {}, groupCell(group, queue), cells), update };
}

function tenantRow(group, queue) {
  const cells = [1, 2].map(() => h("td", { class: "number" }));
  const flight = share(0);
  const busy = share(0);
  const noisy = h("span", { class: "tag warn" }, "noisy");
  const update = (now) => {
    setText(cells[0], count(now.Waiting + now.Delayed));
    setText(cells[1], count(now.InFlight));
    flight.update(now.InFlightPercent);
    busy.update(now.BusyPercent);
    noisy.hidden = !now.Noisy;
  };
  return { element: h("tr", {}, groupCell(group, queue), cells, h("td", {}, flight.element),
    h("td", {}, busy.element), h("td", {}, noisy)), update };
}

const TITLES = {
  fifo: ["Group", "#Waiting", "#In flight", "State"],
  fair: ["Tenant", "#Waiting", "#In flight", "Share in flight", "Share of consumers", "Noise"],
};

const EXPLAINED = {
  fifo: "A group is locked while one of its messages is in flight: those behind it wait.",
  fair: "A noisy tenant takes more than its share of the consumers; messages of the others are "
    + "received first.",
};

export function groupsTab(panel, queue) {
  const { place, attempt } = trial();
  const kind = queue.fifo ? "fifo" : "fair";
  const body = h("tbody");
  const rows = new Map();
  const list = table(TITLES[kind], body, queue.fifo ? "Groups" : "Tenants");
  const empty = h("p", { class: "empty", hidden: true }, queue.fifo ? "There are no groups now."
    : "There are no tenants: messages without a group are all treated alike. Give each tenant's "
      + "messages its own MessageGroupId, and the queue is fair among them.");
  const first = button("First page", () => show());
  const next = button("Next page", () => show(following));
  let token;
  let following;

  const draw = ({ Groups = [], NextToken }) => {
    following = NextToken;
    keyed(body, rows, Groups, (group) => group.MessageGroupId,
      (group) => (queue.fifo ? fifoRow : tenantRow)(group, queue));
    const none = !Groups.some((group) => group.MessageGroupId) && !token;
    list.hidden = none;
    empty.hidden = !none;
    first.hidden = !token;
    next.hidden = !NextToken;
  };
  const refresh = async () => draw(await call("StanchionGroups", { QueueUrl: queue.url,
    MaxResults: PAGE, ...(token ? { NextToken: token } : {}) }));
  const show = (from) => attempt(async () => {
    token = from;
    await refresh();
  });
  replace(panel, place, h("section", { class: "card", id: "groups" },
    h("h2", {}, queue.fifo ? "Groups" : "Tenants"), h("p", { class: "dim" }, EXPLAINED[kind]),
    list, empty, h("div", { class: "bar" }, first, next)));
  return repeat(REFRESH_MILLIS, () => attempt(refresh));
}
