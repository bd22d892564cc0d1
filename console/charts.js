// What happened in a queue over time, as the server's CloudWatch tells it.
import "/console/chart.min.js";
import { cloudwatch } from "/console/api.js";
import { h, problem, repeat, replace, setText } from "/console/dom.js";
import { age, count } from "/console/format.js";
import { note } from "/console/route.js";
import { now } from "/console/server-time.js";

const { Chart } = globalThis;
const REFRESH_MILLIS = 30_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// How far back, and of how many seconds each point is.
const RANGES = [
  { key: "1h", title: "Hour", span: HOUR, period: MINUTE },
  { key: "3h", title: "3 hours", span: 3 * HOUR, period: MINUTE },
  { key: "1d", title: "Day", span: DAY, period: 5 * MINUTE },
  { key: "3d", title: "3 days", span: 3 * DAY, period: 15 * MINUTE },
  { key: "1w", title: "Week", span: 7 * DAY, period: 30 * MINUTE },
  { key: "2w", title: "14 days", span: 14 * DAY, period: HOUR },
];

const CHARTS = [
  { title: "Messages", sums: true, lines: [
    ["sent", "Sent", "NumberOfMessagesSent"], ["received", "Received", "NumberOfMessagesReceived"],
    ["deleted", "Deleted", "NumberOfMessagesDeleted"]] },
  { title: "Depth", lines: [
    ["visible", "Waiting", "ApproximateNumberOfMessagesVisible"],
    ["inflight", "In flight", "ApproximateNumberOfMessagesNotVisible"],
    ["delayed", "Delayed", "ApproximateNumberOfMessagesDelayed"]] },
  { title: "Age of the oldest message", seconds: true, lines: [
    ["age", "Oldest", "ApproximateAgeOfOldestMessage"]] },
  { title: "Receives that found nothing", sums: true, lines: [
    ["empty", "Empty receives", "NumberOfEmptyReceives"]] },
];

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const valueText = (chart, value) => (chart.seconds ? age(value * 1000) : count(value));

function tickText(seconds, span) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (span <= DAY) return time;
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return span <= 3 * DAY ? `${day} ${time}` : day;
}

// Ticks at round times of the day; the step is the smallest that leaves about eight of them.
function tickStep(span) {
  const steps = [5, 10, 15, 30, 60, 180, 360, 720, 1440, 2880].map((minutes) => minutes * MINUTE);
  return steps.find((step) => span / step <= 8) ?? steps.at(-1);
}

function ticksBetween(min, max) {
  const step = tickStep(max - min);
  const zone = new Date(min * 1000).getTimezoneOffset() * MINUTE;
  const ticks = [];
  for (let at = Math.ceil((min - zone) / step) * step + zone; at <= max; at += step)
    ticks.push({ value: at });
  return ticks;
}

// Round spans of time, too: seconds by tens and hundreds are no round minutes.
function ageTicks(max) {
  const steps = [1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY];
  const step = steps.find((one) => max / one <= 5) ?? steps.at(-1);
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, at) => ({ value: at * step }));
}

function optionsOf(chart) {
  const grid = style("--line");
  const text = { color: style("--dim"), font: { size: 11 } };
  return {
    animation: false, maintainAspectRatio: false, interaction: { mode: "index", intersect: false },
    scales: {
      x: { type: "linear", grid: { color: grid, drawTicks: false, drawBorder: false },
        ticks: { ...text, maxRotation: 0, callback: (value) => tickText(value, chart.span) },
        afterBuildTicks: (axis) => {
          axis.ticks = ticksBetween(axis.min, axis.max);
        } },
      y: { beginAtZero: true, suggestedMax: 1,
        grid: { color: grid, drawTicks: false, drawBorder: false },
        ticks: { ...text, precision: 0, maxTicksLimit: 5,
          callback: (value) => valueText(chart, value) },
        afterBuildTicks: (axis) => {
          if (chart.seconds) axis.ticks = ageTicks(axis.max);
        } },
    },
    plugins: {
      legend: { display: false },
      tooltip: { callbacks: {
        title: ([item]) => new Date(item.parsed.x * 1000).toLocaleString("en-GB"),
        label: (item) => ` ${item.dataset.label}: ${valueText(chart, item.parsed.y)}`,
      } },
    },
  };
}

function lineOf(label, index, alone) {
  const color = style(`--line-${index + 1}`);
  return { label, data: [], borderColor: color, backgroundColor: `${color}22`, fill: alone,
    borderWidth: 1.75, pointRadius: 0, pointHoverRadius: 3, tension: 0.2, spanGaps: false };
}

// The sum or the last value of a line, for the legend and for those who do not see the chart.
function wordsOf(chart, points) {
  const known = points.filter((point) => point.y !== null);
  if (!known.length) return "–";
  return valueText(chart, chart.sums ? known.reduce((sum, point) => sum + point.y, 0)
    : known.at(-1).y);
}

function figure(chart) {
  const canvas = h("canvas", { role: "img", "aria-label": chart.title });
  const values = chart.lines.map(() => h("b", {}, "–"));
  const legend = chart.lines.map(([, label], index) => h("span", {},
    h("i", { class: `key line-${index + 1}` }), `${label} `, values[index]));
  const element = h("figure", { class: "card" }, h("figcaption", {}, h("h2", {}, chart.title),
    h("div", { class: "legend" }, legend)), h("div", { class: "plot" }, canvas));
  let drawn = null;
  const draw = (results, range, end) => {
    chart.span = range.span;
    drawn ??= new Chart(canvas, { type: "line", options: optionsOf(chart),
      data: { datasets: chart.lines.map(([, label], index) =>
        lineOf(label, index, chart.lines.length === 1)) } });
    chart.lines.forEach(([id, label], index) => {
      const points = pointsOf(results.get(id), range, end, chart.sums);
      drawn.data.datasets[index].data = points;
      setText(values[index], wordsOf(chart, points));
      canvas.setAttribute("aria-label", `${chart.title}: ${chart.lines.map(([, name], at) =>
        `${name} ${values[at].textContent}`).join(", ")}`);
    });
    Object.assign(drawn.options.scales.x, { min: end - range.span, max: end });
    drawn.update("none");
  };
  const repaint = () => {
    drawn?.destroy();
    drawn = null;
  };
  return { element, draw, repaint };
}

// A point for each period; where nothing is known, sums are 0 and other values leave a gap.
function pointsOf(result, { span, period }, end, sums) {
  const values = new Map((result?.Timestamps ?? []).map((at, index) =>
    [Math.round(Number(at) || Date.parse(at) / 1000), result.Values[index]]));
  const points = [];
  const missing = sums && values.size ? 0 : null;
  for (let at = Math.ceil((end - span) / period) * period; at + period <= end; at += period)
    points.push({ x: at, y: values.get(at) ?? missing });
  return points;
}

async function load(queue, range, end) {
  const queries = CHARTS.flatMap((chart) => chart.lines.map(([id, , metric]) => ({ Id: id,
    MetricStat: { Period: range.period, Stat: chart.sums ? "Sum" : "Maximum", Metric: {
      Namespace: "AWS/SQS", MetricName: metric,
      Dimensions: [{ Name: "QueueName", Value: queue.name }] } } })));
  const results = new Map();
  let token;
  do {
    const page = await cloudwatch("GetMetricData", { MetricDataQueries: queries,
      StartTime: end - range.span, EndTime: end, ScanBy: "TimestampAscending",
      ...(token ? { NextToken: token } : {}) });
    for (const one of page.MetricDataResults ?? []) {
      const known = results.get(one.Id) ?? { Timestamps: [], Values: [] };
      known.Timestamps.push(...one.Timestamps);
      known.Values.push(...one.Values);
      results.set(one.Id, known);
    }
    token = page.NextToken;
  } while (token);
  return results;
}

// The charts of a queue, and a choice of how far back they go.
export function chartsPart(queue, query) {
  let range = RANGES.find((one) => one.key === query.get("range")) ?? RANGES[0];
  const figures = CHARTS.map((chart) => figure({ ...chart }));
  const errors = h("div");
  const empty = h("p", { class: "dim small", hidden: true }, "A point is written at the end of "
    + "each minute; there is none in this range yet.");
  const refresh = async () => {
    const wanted = range;
    const end = Math.floor(now() / 1000 / wanted.period) * wanted.period;
    try {
      const results = await load(queue, wanted, end);
      if (wanted !== range) return;
      replace(errors);
      empty.hidden = [...results.values()].some((one) => one.Values.length);
      for (const one of figures) one.draw(results, wanted, end);
    } catch (error) {
      replace(errors, problem(error));
    }
  };
  const buttons = RANGES.map((one) => h("button", { type: "button", class: "slim",
    "aria-pressed": String(one === range), onclick: () => choose(one) }, one.title));
  const choose = (chosen) => {
    range = chosen;
    RANGES.forEach((one, at) => buttons[at].setAttribute("aria-pressed", String(one === range)));
    note({ range: range === RANGES[0] ? "" : range.key });
    refresh();
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => {
    for (const one of figures) one.repaint();
    refresh();
  };
  scheme.addEventListener("change", repaint);
  const stop = repeat(REFRESH_MILLIS, refresh);
  return {
    element: h("section", { "aria-label": "Charts" }, h("div", { class: "bar ranges", role: "group",
      "aria-label": "How far back" }, buttons), errors, empty,
    h("div", { class: "figures" }, figures.map((one) => one.element))),
    stop: () => {
      stop();
      scheme.removeEventListener("change", repaint);
      for (const one of figures) one.repaint();
    },
  };
}
