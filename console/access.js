// Who may do what with a queue: its policy in words and as JSON, and permissions to add and remove.
import { call } from "/console/api.js";
import { confirmLoss } from "/console/dialog.js";
import { button, field, h, notify, replace, tick, trial } from "/console/dom.js";
import { laidOut } from "/console/decode.js";
import { counted, seen } from "/console/format.js";
import { explain } from "/console/policy-words.js";

const GRANTED = ["SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility",
  "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue"];

function ownerLine(arn) {
  const account = arn.split(":")[4] ?? "";
  return h("li", {}, `Account ${account} owns the queue and may do everything that is not denied `
    + "here.");
}

function statementLine(statement, remove) {
  return h("li", { class: statement.denies ? "denies" : null },
    statement.sid ? h("code", {}, seen(statement.sid)) : null, " ", h("bdi", {},
      seen(statement.words)), " ",
    statement.open ? h("span", { class: "tag warn" }, "open to everybody") : null, " ",
    statement.sid && remove ? h("button", { type: "button", class: "slim",
      "aria-label": `Remove the permission ${seen(statement.sid)}`,
      onclick: () => remove(statement) }, "Remove") : null);
}

function wordsInto(place, text, arn, remove) {
  const { statements, problem } = explain(text, arn);
  replace(place, problem ? h("p", { class: "error" }, problem)
    : h("ul", { class: "rights" }, ownerLine(arn),
      statements.map((one) => statementLine(one, remove)),
      statements.length ? null : h("li", { class: "dim" }, "Nobody else may do anything.")));
}

function grantPart(queue, attempt, changed) {
  const label = h("input", { id: "grant-label", required: true, maxlength: "80" });
  const accounts = h("input", { id: "grant-accounts", required: true });
  const boxes = GRANTED.map((name) => [name,
    h("input", { type: "checkbox", id: `grant-${name}` })]);
  const submit = (event) => {
    event.preventDefault();
    return attempt(async () => {
      await call("AddPermission", { QueueUrl: queue.url, Label: label.value.trim(),
        AWSAccountIds: accounts.value.split(/[\s,]+/).filter(Boolean),
        Actions: boxes.filter(([, box]) => box.checked).map(([name]) => name) });
      notify(`The permission ${label.value} was added.`);
      await changed();
    });
  };
  return h("form", { class: "card", onsubmit: submit }, h("h2", {}, "Give another account a right"),
    h("div", { class: "grid" }, field("Name of the permission", label),
      field("Accounts", accounts, "Numbers of twelve digits, with spaces between them.")),
    h("fieldset", {}, h("legend", {}, "May"), h("div", { class: "ticks" },
      boxes.map(([name, box]) => tick(name, box)))),
    h("div", { class: "bar" }, h("button", { class: "main" }, "Give")));
}

export function accessTab(panel, queue) {
  const { place, attempt } = trial();
  const words = h("div", { id: "rights" });
  const draft = h("div", { id: "rights-draft" });
  const policy = h("textarea", { id: "policy", rows: "14", spellcheck: "false" });
  let saved = "";

  const show = async () => {
    const attributes = await queue.refresh();
    saved = laidOut(attributes.Policy ?? "");
    policy.value = saved;
    replace(draft);
    wordsInto(words, saved, attributes.QueueArn, remove);
  };
  const remove = ({ sid, words: lost }) => attempt(async () => {
    if (!await confirmLoss("Remove this permission?", `This no longer holds: ${seen(lost)}`,
      "Remove")) return;
    await call("RemovePermission", { QueueUrl: queue.url, Label: sid });
    notify(`The permission ${seen(sid)} was removed.`);
    await show();
  });
  policy.addEventListener("input", () => {
    if (policy.value === saved) return replace(draft);
    replace(draft, h("h3", {}, "If you save this"), h("div"));
    return wordsInto(draft.lastChild, policy.value, queue.attributes.QueueArn, null);
  });
  const save = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const before = explain(saved, "").statements.length;
      if (!policy.value.trim() && before && !await confirmLoss("Remove the whole policy?",
        `${counted(before, "statement is", "statements are")} lost; then only the owner may use `
        + "the queue.", "Remove")) return;
      await call("SetQueueAttributes", { QueueUrl: queue.url,
        Attributes: { Policy: policy.value.trim() } });
      notify("The policy was saved.");
      await show();
    });
  };
  replace(panel, place, h("section", { class: "card" }, h("h2", {}, "Who may do what"), words),
    grantPart(queue, attempt, show),
    h("form", { class: "card", onsubmit: save }, h("h2", {}, "Policy"),
      field("The policy as JSON", policy, "Empty: there is none."), draft,
      h("div", { class: "bar" }, h("button", { class: "main" }, "Save the policy"),
        button("Undo changes", () => attempt(show)))));
  attempt(show);
}
