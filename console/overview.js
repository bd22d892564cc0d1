// A queue at a glance: advice, what it is connected with, and charts.
import { adviceCard, watchAdvice } from "/console/advice.js";
import { call } from "/console/api.js";
import { chartsPart } from "/console/charts.js";
import { h, replace } from "/console/dom.js";
import { counted, nameOfArn, nameOfUrl } from "/console/format.js";
import { link } from "/console/route.js";

const SOURCES_SHOWN = 20;

// Where its dead letters go, and whose dead letters it has.
async function relationsOf(queue) {
  const lines = [];
  if (queue.attributes.RedrivePolicy) {
    const { deadLetterTargetArn, maxReceiveCount } = JSON.parse(queue.attributes.RedrivePolicy);
    const name = nameOfArn(deadLetterTargetArn);
    lines.push(h("p", {}, `After ${counted(maxReceiveCount, "receive")} a message goes to `,
      h("a", { href: link("queue", name) }, name), "."));
  }
  const { queueUrls = [] } = await call("ListDeadLetterSourceQueues",
    { QueueUrl: queue.url, MaxResults: 1000 });
  if (queueUrls.length) {
    const shown = queueUrls.slice(0, SOURCES_SHOWN).map(nameOfUrl);
    lines.push(h("p", {}, "It has the dead letters of ",
      shown.flatMap((name, at) => [at ? ", " : "", h("a", { href: link("queue", name) }, name)]),
      queueUrls.length > shown.length ? ` and ${queueUrls.length - shown.length} more` : "", ". ",
      h("a", { href: link("dead-letters", queue.name) }, "Why they are there, and redrive"), "."));
  }
  return lines;
}

export function overviewTab(panel, queue, query) {
  const advice = h("div", { id: "queue-advice" });
  const relations = h("div", { class: "relations" });
  const charts = chartsPart(queue, query);
  replace(panel, advice, relations, charts.element);
  // Another account's queue shows its figures, but not always what it is connected with.
  relationsOf(queue).then((lines) => replace(relations, lines), () => {});
  const stop = watchAdvice((all) => replace(advice,
    all.filter((one) => nameOfUrl(one.QueueUrl) === queue.name).map((one) => adviceCard(one))));
  return () => {
    stop();
    charts.stop();
  };
}
