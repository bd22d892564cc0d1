// A small line of the last minutes, without axes: for the eye only.

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 72;
const HEIGHT = 20;
// Fewer points than these do not fill the line.
const POINTS_MIN = 20;

function svg(name, attributes) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export function sparkline() {
  const line = svg("path", { class: "line" });
  const area = svg("path", { class: "area" });
  const element = svg("svg", {
    class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT,
    "aria-hidden": "true",
  });
  element.append(area, line);
  const update = (values) => {
    if (values.length < 2) return;
    const top = Math.max(1, ...values);
    const step = WIDTH / (Math.max(POINTS_MIN, values.length) - 1);
    const from = WIDTH - (values.length - 1) * step;
    const height = (value) => HEIGHT - 1 - value / top * (HEIGHT - 3);
    const points = values.map((value, index) =>
      `${(from + index * step).toFixed(1)},${height(value).toFixed(1)}`);
    line.setAttribute("d", `M${points.join("L")}`);
    area.setAttribute("d", `M${from.toFixed(1)},${HEIGHT}L${points.join("L")}L${WIDTH},${HEIGHT}Z`);
  };
  return { element, update };
}
