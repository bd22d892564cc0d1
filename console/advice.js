// What the server would change, and the call that does.
import { call } from "/console/api.js";
import { copy } from "/console/dialog.js";
import { button, h, problem, repeat, replace } from "/console/dom.js";
import { nameOfUrl } from "/console/format.js";
import { link } from "/console/route.js";

const REFRESH_MILLIS = 15_000;

const TITLES = {
  VisibilityLoop: "The visibility timeout is too short",
  PoisonMessage: "Messages come back and have nowhere to go",
  ShortPolling: "Consumers ask in vain",
  SingleSends: "Messages are sent one by one",
  Backlog: "More comes than is done",
  DeadLetterRetention: "Dead letters expire early",
  FifoDeadLetters: "Dead letters break the order",
  InFlightLimit: "Many messages are in flight",
  PolicyWithoutEffect: "Parts of the policy look wrong",
};

export function adviceCard(one, withQueue) {
  const name = nameOfUrl(one.QueueUrl);
  return h("article", { class: "advice" },
    h("header", {}, h("h2", {}, TITLES[one.Kind] ?? one.Kind),
      withQueue ? h("a", { href: link("queue", name) }, name) : null,
      h("span", { class: "tag" }, one.Kind)),
    h("p", {}, one.Text),
    one.Command ? h("div", { class: "command" },
      h("pre", { tabindex: "0", "aria-label": "The command that mends it" }, one.Command),
      button("Copy", () => copy(one.Command, "The command was copied."))) : null);
}

// Calls `show` with the advice now and then, but only if it has changed.
export function watchAdvice(show, fail) {
  let before;
  return repeat(REFRESH_MILLIS, async () => {
    try {
      const { Advice = [] } = await call("StanchionAdvice");
      const now = JSON.stringify(Advice);
      if (now !== before) show(Advice);
      before = now;
    } catch (error) {
      fail?.(error);
    }
  });
}

export function advicePage(main) {
  const list = h("div", { id: "advice" }, h("p", { class: "dim" }, "Loading …"));
  replace(main, h("h1", {}, "Advice"), h("p", { class: "dim" }, "How the queues could be used "
    + "better, by what the server saw in the last minutes. ", h("code", {}, "stanchion advise"),
  " prints the same."), list);
  return { leave: watchAdvice((advice) => replace(list, advice.length
    ? advice.map((one) => adviceCard(one, true))
    : h("div", { class: "empty" }, h("h2", {}, "No advice"),
      h("p", {}, "Clients use the queues as they should."))),
  (error) => replace(list, problem(error))) };
}
