// One queue: its attributes, its messages, and what can be done with them.
import { call } from "/console/api.js";
import { age, confirmLoss, count, field, h, notify, problem, replace, setText } from "/console/dom.js";
import { messageView } from "/console/message.js";

const REFRESH_MILLIS = 3000;
const SETTABLE = ["VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds", "ReceiveMessageWaitTimeSeconds",
  "MaximumMessageSize", "RedrivePolicy", "Policy"];

export function queuePage(main, name) {
  const url = name;  // A bare name is a queue of the caller.
  const facts = { ApproximateNumberOfMessages: "Waiting", ApproximateNumberOfMessagesNotVisible: "In flight",
    ApproximateNumberOfMessagesDelayed: "Delayed" };
  const numbers = Object.fromEntries(Object.keys(facts).map((key) => [key, h("dd", {}, "–")]));
  const errors = h("div");
  let counts = {};
  const attempt = async (work) => {
    replace(errors);
    try { return await work(); } catch (error) { replace(errors, problem(error)); return undefined; }
  };
  const refresh = async () => {
    const { Attributes } = await call("GetQueueAttributes", { QueueUrl: url, AttributeNames: ["All"] });
    counts = Attributes;
    for (const key of Object.keys(facts)) setText(numbers[key], count(Attributes[key]));
    return Attributes;
  };
  const peek = peekPart(url, attempt);
  const fifo = name.endsWith(".fifo");
  const purge = async () => {
    if (!await confirmLoss(`All messages of ${name} are lost: ${counts.ApproximateNumberOfMessages} that wait, ${
      counts.ApproximateNumberOfMessagesNotVisible} in flight and ${counts.ApproximateNumberOfMessagesDelayed} delayed.`, "Purge")) return;
    await attempt(async () => { await call("PurgeQueue", { QueueUrl: url }); notify(`${name} was purged.`); await refresh(); await peek.again(); });
  };
  const remove = async () => {
    if (!await confirmLoss(`The queue ${name} is deleted, with its settings and all its messages (${
      counts.ApproximateNumberOfMessages} wait).`, "Delete the queue")) return;
    await attempt(async () => { await call("DeleteQueue", { QueueUrl: url }); notify(`${name} was deleted.`); location.hash = "#/queues"; });
  };
  replace(main, h("h1", {}, name),
    h("dl", { class: "facts" }, Object.entries(facts).map(([key, title]) => h("div", {}, h("dt", {}, title), numbers[key]))),
    errors, peek.element, sendPart(url, fifo, attempt, async () => { await refresh(); await peek.again(); }),
    receivePart(url, attempt, refresh), groupsPart(url, attempt), attributesPart(url, attempt, refresh),
    h("h2", {}, "Danger"), h("div", { class: "bar" },
      h("button", { type: "button", class: "danger", onclick: purge }, "Purge …"),
      h("button", { type: "button", class: "danger", onclick: remove }, "Delete the queue …")));
  attempt(async () => { await refresh(); await peek.again(); });
  const timer = setInterval(() => { if (!document.hidden) refresh().catch(() => {}); }, REFRESH_MILLIS);
  return () => clearInterval(timer);
}

function peekPart(url, attempt) {
  const list = h("div", { id: "peeked" });
  const state = h("select", { id: "peek-state" }, ["", "Visible", "Delayed", "InFlight"].map((value) => h("option", { value }, value || "all")));
  const search = h("input", { type: "search", id: "peek-search", maxlength: "256" });
  const more = h("button", { type: "button", hidden: true, onclick: () => show(false) }, "More");
  let token;
  const show = (anew) => attempt(async () => {
    if (anew) { token = undefined; replace(list); }
    const request = { QueueUrl: url, MaxResults: 20 };
    if (state.value) request.States = [state.value];
    if (search.value) request.Search = search.value;
    const found = [];
    do {  // A page may be empty although there are more.
      const page = await call("StanchionPeek", { ...request, ...(token ? { NextToken: token } : {}) });
      found.push(...(page.Messages ?? []));
      token = page.NextToken;
    } while (token && found.length === 0);
    list.append(...found.map((message) => messageView(message, url)));
    if (!list.children.length) replace(list, h("p", { class: "dim" }, search.value || state.value ? "No message matches." : "The queue is empty."));
    more.hidden = !token;
  });
  return {
    again: () => show(true),
    element: h("section", { "aria-label": "Messages" }, h("h2", {}, "Messages"),
      h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); show(true); } },
        field("State", state), field("Search", search), h("button", {}, "Look")), list, more),
  };
}

function sendPart(url, fifo, attempt, sent) {
  const body = h("textarea", { required: true, id: "send-body" });
  const delay = h("input", { type: "number", min: "0", max: "900", id: "send-delay" });
  const group = h("input", { maxlength: "128", id: "send-group", required: fifo });
  const deduplication = h("input", { maxlength: "128", id: "send-deduplication" });
  const submit = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const request = { QueueUrl: url, MessageBody: body.value };
      if (delay.value) request.DelaySeconds = Number(delay.value);
      if (group.value) request.MessageGroupId = group.value;
      if (fifo) request.MessageDeduplicationId = deduplication.value || crypto.randomUUID();
      const { MessageId } = await call("SendMessage", request);
      notify(`Sent as ${MessageId}.`);
      await sent();
    });
  };
  return h("section", { "aria-label": "Send" }, h("h2", {}, "Send a message"), h("form", { onsubmit: submit }, field("Body", body),
    h("div", { class: "bar" }, fifo ? null : field("Delay in seconds", delay), field("Group", group),
      fifo ? field("Deduplication id", deduplication) : null, h("button", { class: "main" }, "Send"))));
}

function receivePart(url, attempt, changed) {
  const list = h("div", { id: "received" });
  const remove = (message, view) => attempt(async () => {
    await call("DeleteMessage", { QueueUrl: url, ReceiptHandle: message.ReceiptHandle });
    view.remove();
    notify("Deleted.");
    await changed();
  });
  const receive = () => attempt(async () => {
    const { Messages = [] } = await call("ReceiveMessage", { QueueUrl: url, MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["All"], MessageAttributeNames: ["All"] });
    replace(list, Messages.length ? Messages.map((message) => {
      const view = messageView(message, url);
      view.append(h("button", { type: "button", class: "danger", onclick: () => remove(message, view) }, "Delete"));
      return view;
    }) : h("p", { class: "dim" }, "Nothing can be received now."));
    await changed();
  });
  return h("section", { "aria-label": "Receive" }, h("h2", {}, "Receive"),
    h("p", { class: "dim" }, "This takes messages from consumers until the visibility timeout ends. To look at them only, see above."),
    h("button", { type: "button", onclick: receive }, "Receive up to 10"), list);
}

function groupsPart(url, attempt) {
  const list = h("div", { id: "groups" });
  const show = () => attempt(async () => {
    const { Groups = [], NextToken } = await call("StanchionGroups", { QueueUrl: url });
    const line = (group) => h("tr", {}, h("td", {}, group.MessageGroupId || "(without a group)"), h("td", { class: "number" }, count(group.Waiting + group.Delayed)),
      h("td", { class: "number" }, count(group.InFlight)), h("td", {}, groupState(group)));
    replace(list, Groups.length ? h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Group", "Waiting", "In flight", "State"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, Groups.map(line)))) : h("p", { class: "dim" }, "There are no groups."));
    if (NextToken) list.append(h("p", { class: "dim" }, "There are more groups: stanchion peek --groups shows all."));
  });
  return h("section", { "aria-label": "Groups" }, h("h2", {}, "Groups and tenants"), h("button", { type: "button", onclick: show }, "Show groups"), list);
}

function groupState(group) {
  if (group.Locked)
    return `locked by ${group.LockedByMessageId ?? group.LockedBySequenceNumber} since ${age(Date.now() - group.LockedSinceTimestamp)}, for ${age(group.LockedUntilTimestamp - Date.now())} more`;
  if (group.Noisy) return `noisy: ${group.InFlightPercent} % of what is in flight`;
  return group.Locked === false ? "free" : `${group.InFlightPercent} % of what is in flight`;
}

function attributesPart(url, attempt, refresh) {
  const form = h("form");
  const show = () => attempt(async () => {
    const attributes = await refresh();
    const inputs = Object.fromEntries(SETTABLE.map((key) => [key, h("input", { value: attributes[key] ?? "", size: "40", id: `attribute-${key}` })]));
    const save = () => attempt(async () => {
      const changed = Object.fromEntries(SETTABLE.filter((key) => inputs[key].value !== (attributes[key] ?? "")).map((key) => [key, inputs[key].value]));
      if (!Object.keys(changed).length) return notify("Nothing was changed.");
      await call("SetQueueAttributes", { QueueUrl: url, Attributes: changed });
      notify(`Saved: ${Object.keys(changed).join(", ")}.`);
      return show();
    });
    const others = Object.entries(attributes).filter(([key]) => !SETTABLE.includes(key) && !key.startsWith("Approximate"));
    replace(form, h("div", { class: "bar" }, SETTABLE.map((key) => field(key, inputs[key]))),
      h("div", { class: "bar" }, h("button", { type: "button", class: "main", onclick: save }, "Save")),
      h("pre", {}, others.map(([key, value]) => `${key} = ${value}`).join("\n")));
  });
  return h("section", { "aria-label": "Attributes" }, h("h2", {}, "Attributes"), h("button", { type: "button", onclick: show }, "Show attributes"), form);
}
