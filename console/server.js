// The server itself: health, journal, memory, connections, settings.
import { aboutServer } from "/console/api.js";
import { h, keyed, problem, repeat, replace, setText } from "/console/dom.js";

const REFRESH_MILLIS = 3000;

function rowOf({ name, help }) {
  const value = h("dd");
  const element = h("div", { title: help || null }, h("dt", {}, name,
    help ? h("small", {}, help) : null), value);
  return { element, update: (now) => setText(value, now.value) };
}

function sectionOf({ title }) {
  const list = h("dl", { class: "pairs facts-list" });
  const rows = new Map();
  return { element: h("section", { class: "card" }, h("h2", {}, title), list),
    update: (now) => keyed(list, rows, now.rows, (row) => row.name, rowOf) };
}

export function serverPage(main) {
  const list = h("div", { id: "server", class: "sections" });
  const errors = h("div");
  const sections = new Map();
  replace(main, h("h1", {}, "Server"), errors, list);
  return { leave: repeat(REFRESH_MILLIS, async () => {
    try {
      const about = await aboutServer();
      replace(errors);
      keyed(list, sections, about.sections ?? [], (section) => section.title, sectionOf);
    } catch (error) {
      replace(errors, problem(error));
    }
  }) };
}
