// Choosing messages of a page, and what can be done with those that were chosen.
import { deleteChosen, moveChosen } from "/console/chosen.js";
import { confirmLoss } from "/console/dialog.js";
import { button, field, h, replace, setText, tick } from "/console/dom.js";
import { count, counted, nameOfArn } from "/console/format.js";

const NAMED = 3;

// The first few ids, for a person to compare.
function named(messages) {
  const ids = messages.slice(0, NAMED).map((message) => message.MessageId);
  const more = messages.length - ids.length;
  return more > 0 ? `${ids.join(", ")} and ${count(more)} more` : ids.join(", ");
}

function resultView(words, failures) {
  return [h("p", {}, words), failures.length ? h("ul", { class: "error" },
    failures.map(({ id, reason }) => h("li", {}, h("code", {}, id), `: ${reason}.`))) : null];
}

// `dead`: the queue is a dead-letter queue, and its messages know where they came from. `changed`
// is called when messages were deleted or moved.
export function choicePart(queue, { dead = false, changed, attempt }) {
  const boxes = new Map();  // By message.
  const chosen = () => [...boxes].filter(([, box]) => box.checked).map(([message]) => message);
  const all = h("input", { type: "checkbox", id: "choose-all" });
  const target = h("input", { id: "chosen-target", maxlength: "80", autocomplete: "off" });
  const state = h("span", { class: "dim", role: "status", id: "chosen-state" });
  const result = h("div", { id: "chosen-result", role: "status" });
  const remove = button("", () => attempt(deleteThem), "danger");
  const move = button("", () => attempt(moveThem));

  const tell = () => {
    const many = chosen().length;
    const open = [...boxes.values()].filter((box) => !box.disabled);
    all.checked = many > 0 && many === open.length;
    all.indeterminate = many > 0 && many < open.length;
    all.disabled = open.length === 0;
    remove.disabled = move.disabled = many === 0;
    setText(remove, many ? `Delete ${count(many)} chosen …` : "Delete chosen …");
    const verb = dead ? "Redrive" : "Move";
    setText(move, many ? `${verb} ${count(many)} chosen …` : `${verb} chosen …`);
  };
  all.addEventListener("change", () => {
    for (const box of boxes.values()) if (!box.disabled) box.checked = all.checked;
    tell();
  });

  // Shows how far it is, and then what became of the messages.
  const work = async (messages, act, done) => {
    remove.disabled = move.disabled = true;
    replace(result);
    const outcome = await act(messages, ({ done: so, failures }) =>
      setText(state, `${count(so + failures.length)} of ${counted(messages.length, "message")}`));
    setText(state, "");
    await changed();
    replace(result, resultView(done(outcome), outcome.failures));
  };
  const deleteThem = async () => {
    const messages = chosen();
    if (!await confirmLoss(`Delete ${counted(messages.length, "message")}?`, `${
      counted(messages.length, "message is", "messages are")} lost from ${queue.name}: ${
      named(messages)}.`, "Delete")) return;
    await work(messages, (some, progress) => deleteChosen(queue, some, progress),
      ({ done }) => `${counted(done, "message was", "messages were")} deleted.`);
  };
  const moveThem = async () => {
    const messages = chosen();
    const name = target.value.trim();
    if (!name && !dead) throw new Error("Name the queue to which the messages are to go.");
    const to = name || "the queues from which they came";
    if (!await confirmLoss(`${dead ? "Redrive" : "Move"} ${counted(messages.length, "message")}?`,
      `${counted(messages.length, "message leaves", "messages leave")} ${queue.name} for ${to}, as `
      + `new messages with new ids: ${named(messages)}.`, dead ? "Redrive" : "Move")) return;
    const nameFor = (message) => {
      const source = message.Attributes?.DeadLetterQueueSourceArn;
      return name || (source ? nameOfArn(source) : "");
    };
    await work(messages, (some, progress) => moveChosen(queue, some, nameFor, progress),
      ({ done }) => `${counted(done, "message was", "messages were")} moved to ${to}.`);
  };

  // The box of a message.
  const mark = (message) => {
    const waits = message.State === "Visible";
    const box = h("input", { type: "checkbox", onchange: tell, disabled: !waits,
      "aria-label": `Choose message ${message.MessageId}`,
      title: waits ? null : "Only messages that wait can be chosen." });
    boxes.set(message, box);
    return box;
  };
  const element = h("section", { class: "card", "aria-label": "Chosen messages" },
    h("div", { class: "bar" }, tick("All of this page that wait", all),
      field("To the queue", target, dead ? "Empty: to where each message came from." : null),
      move, remove, state), result);
  tell();
  return { element, mark, tell,
    clear: () => {
      boxes.clear();
      replace(result);
    } };
}
