// What the server would change.
import { call } from "/console/api.js";
import { h, problem, replace } from "/console/dom.js";

export function advicePage(main) {
  const list = h("div", { id: "advice" }, h("p", {}, "Loading …"));
  replace(main, h("h1", {}, "Advice"), list);
  call("StanchionAdvice").then(({ Advice = [] }) => {
    replace(list, Advice.length ? Advice.map((one) => {
      const name = one.QueueUrl.split("/").pop();
      return h("article", {}, h("header", {}, h("a", { href: `#/queue/${encodeURIComponent(name)}` }, name), h("span", { class: "tag" }, one.Kind)),
        h("p", {}, one.Text), one.Command ? h("pre", {}, one.Command) : null);
    }) : h("p", {}, "No advice: all looks well."));
  }, (error) => replace(list, problem(error)));
  return () => {};
}
