// Moves the messages of a dead-letter queue back, or elsewhere: starts tasks, shows how far they
// are, and cancels them.
import { call } from "/console/api.js";
import { confirmLoss } from "/console/dialog.js";
import { button, field, h, keyed, notify, repeat, setText, trial } from "/console/dom.js";
import { ago, count, counted, nameOfArn } from "/console/format.js";

const REFRESH_MILLIS = 1000;
const WORDS = { RUNNING: "running", COMPLETED: "completed", CANCELLING: "being cancelled",
  CANCELLED: "cancelled", FAILED: "failed" };

function taskView(task, cancel) {
  const bar = h("progress", { "aria-label": "Messages moved", value: 0 });
  const words = h("span");
  const stop = button("Cancel", () => cancel(task));
  const key = task.StartedTimestamp;
  const update = (now) => {
    const moved = Number(now.ApproximateNumberOfMessagesMoved ?? 0);
    const all = Math.max(moved, Number(now.ApproximateNumberOfMessagesToMove ?? moved));
    bar.max = Math.max(1, all);
    bar.value = now.Status === "COMPLETED" ? bar.max : moved;
    const to = now.DestinationArn ? nameOfArn(now.DestinationArn) : "their sources";
    setText(words, `${WORDS[now.Status] ?? now.Status}: ${count(moved)} of ${
      counted(all, "message")} moved to ${to}, started ${ago(key)}${
      now.FailureReason ? `; ${now.FailureReason}` : ""}`);
    stop.hidden = now.Status !== "RUNNING";
    Object.assign(task, now);
  };
  return { element: h("div", { class: "task" }, bar, words, stop), update };
}

export function redrivePart(queue, changed) {
  const { place, attempt } = trial();
  const target = h("input", { id: "redrive-target", maxlength: "80", autocomplete: "off" });
  const velocity = h("input", { id: "redrive-velocity", inputmode: "numeric", size: "6" });
  const list = h("div", { id: "tasks" });
  const tasks = new Map();
  let running = false;

  const refresh = async () => {
    const { Results = [] } = await call("ListMessageMoveTasks",
      { SourceArn: queue.attributes.QueueArn, MaxResults: 5 });
    keyed(list, tasks, Results, (task) => task.StartedTimestamp, (task) => taskView(task, cancel));
    const now = Results.some((task) => task.Status === "RUNNING" || task.Status === "CANCELLING");
    if (running && !now) await changed();
    running = now;
  };
  const cancel = (task) => attempt(async () => {
    const { ApproximateNumberOfMessagesMoved: moved } = await call("CancelMessageMoveTask",
      { TaskHandle: task.TaskHandle });
    notify(`Cancelled; ${counted(moved ?? 0, "message was", "messages were")} moved.`);
    await refresh();
  });
  const start = (event) => {
    event.preventDefault();
    return attempt(async () => {
      const { ApproximateNumberOfMessages: many } = await queue.refresh();
      const to = target.value.trim() || "the queues from which they came";
      if (!await confirmLoss(`Redrive ${queue.name}?`, `${counted(many, "message")} leave this `
        + `queue for ${to}. Why they failed before should be mended first.`, "Redrive")) return;
      const request = { SourceArn: queue.attributes.QueueArn };
      if (target.value.trim())
        request.DestinationArn = queue.attributes.QueueArn.replace(/[^:]+$/, target.value.trim());
      if (velocity.value) request.MaxNumberOfMessagesPerSecond = Number(velocity.value);
      await call("StartMessageMoveTask", request);
      running = true;
      await refresh();
    });
  };
  const element = h("form", { class: "card", onsubmit: start }, h("h2", {}, "Redrive all"),
    h("div", { class: "bar" },
      field("To the queue", target, "Empty: to where each message came from."),
      field("At most per second", velocity, "Empty: as fast as possible."),
      h("button", { class: "main" }, "Redrive …")), place, list);
  return { element, stop: repeat(REFRESH_MILLIS, () => refresh().catch(() => {})) };
}
