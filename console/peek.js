// Looks at messages without receiving them: pages, states, groups, search.
import { call } from "/console/api.js";
import { choicePart } from "/console/choice.js";
import { button, field, h, replace, setText, trial } from "/console/dom.js";
import { counted } from "/console/format.js";
import { messageView } from "/console/message.js";
import { note } from "/console/route.js";

const PAGE = 20;
const PAGE_CHARACTERS = 4 * 1024 * 1024;
const PATIENCE_MILLIS = 1000;

// One page from `token` on: { messages, next }. The server ends a look early when it was long or
// messages are large, even with nothing found: then the look goes on, for a moment if there is
// something to show, and otherwise as long as anybody waits.
async function lookFrom(request, token, goesOn) {
  const messages = [];
  const until = performance.now() + PATIENCE_MILLIS;
  let next = token;
  let size = 0;
  const enough = () => messages.length > 0
    && (messages.length >= PAGE || size >= PAGE_CHARACTERS || performance.now() >= until);
  do {
    const page = await call("StanchionPeek", { ...request, MaxResults: PAGE - messages.length,
      ...(next ? { NextToken: next } : {}) });
    for (const message of page.Messages ?? []) {
      messages.push(message);
      size += message.Body.length;
    }
    next = page.NextToken;
  } while (next && !enough() && goesOn());
  return { messages, next };
}

// Pages of messages with buttons below; `view` makes one message's element. `choice`, if there is
// one, is what can be chosen of each page.
export function pager(requestOf, view, empty, attempt, choice) {
  const list = h("div", { class: "messages" });
  const state = h("span", { class: "dim", role: "status" });
  const first = button("First page", () => show([]));
  const next = button("Next page", () => show([...tokens, following]));
  let tokens = [];
  let following;
  let turn = 0;

  const show = (path) => attempt(async () => {
    turn += 1;
    const mine = turn;
    setText(state, "Looking …");
    const { messages, next: token } = await lookFrom(requestOf(), path.at(-1), () => mine === turn);
    if (mine !== turn) return;
    tokens = path;
    following = token;
    choice?.clear();
    replace(list, messages.length ? messages.map(view) : h("p", { class: "empty" }, empty()));
    choice?.tell();
    first.hidden = tokens.length === 0;
    next.hidden = !token;
    setText(state, messages.length ? `Page ${tokens.length + 1}: ${
      counted(messages.length, "message")}` : "");
  });
  first.hidden = true;
  next.hidden = true;
  return { element: h("div", {}, list, h("div", { class: "bar" }, first, next, state)),
    begin: () => show([]), again: () => show(tokens), list,
    stop: () => {
      turn += 1;
    } };
}

export function messagesTab(panel, queue, query) {
  const { place, attempt } = trial();
  const states = [["", "all"], ["Visible", "waiting"], ["Delayed", "delayed"],
    ["InFlight", "in flight"]];
  const state = h("select", { id: "peek-state" },
    states.map(([value, title]) => h("option", { value }, title)));
  const search = h("input", { type: "search", id: "peek-search", maxlength: "256",
    value: query.get("search") ?? "" });
  const group = h("input", { id: "peek-group", maxlength: "128", value: query.get("group") ?? "" });
  state.value = query.get("state") ?? "";
  const requestOf = () => ({ QueueUrl: queue.url,
    ...(state.value ? { States: [state.value] } : {}),
    ...(search.value ? { Search: search.value } : {}),
    ...(group.value ? { MessageGroupId: group.value } : {}) });
  const empty = () => (search.value || state.value || group.value
    ? "No message matches. The search is exact: capitals count."
    : "The queue is empty.");
  const choice = choicePart(queue, { changed: () => pages.again(), attempt });
  const pages = pager(requestOf, (message) => messageView(message, queue,
    { mark: choice.mark(message) }), empty, attempt, choice);
  pages.list.id = "peeked";
  const look = (event) => {
    event?.preventDefault();
    note({ state: state.value, search: search.value, group: group.value });
    return pages.begin();
  };
  state.addEventListener("change", () => look());
  replace(panel, place, h("form", { class: "bar card", onsubmit: look },
    field("State", state), field("Text in body or attributes", search), field("Group", group),
    h("button", { class: "main" }, "Look"),
    h("p", { class: "dim small" }, "Looking takes nothing from consumers, and counts as no "
      + "receive.")), choice.element, pages.element);
  look();
  return pages.stop;
}
