// Small helpers to build pages. Text is always set as text: nothing that a message or a name
// contains is ever taken for HTML.

// h("button", { class: "main", onclick: f }, "Send", other)
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined || key === "value") continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...present(children));
  // After the children: a select needs its options first.
  if (properties.value !== undefined) element.value = properties.value;
  return element;
}

const present = (children) => children.flat(Infinity)
  .filter((child) => child !== null && child !== undefined && child !== false);

export function replace(element, ...children) {
  element.replaceChildren(...present(children));
}

// Changes only what differs, so that a refresh neither flickers nor moves the focus.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

// Makes the children of `parent` those that `items` describe, in their order. What was there stays
// the same element, and is told of its new item. `known` remembers them from call to call;
// make(item) returns { element, update(item) }.
export function keyed(parent, known, items, keyOf, make) {
  const keys = new Set(items.map(keyOf));
  for (const [key, { element }] of known)
    if (!keys.has(key)) {
      element.remove();
      known.delete(key);
    }
  items.forEach((item, index) => {
    const key = keyOf(item);
    if (!known.has(key)) known.set(key, make(item));
    const { element, update } = known.get(key);
    update(item);
    if (parent.children[index] !== element)
      parent.insertBefore(element, parent.children[index] ?? null);
  });
}

const NOTICE_MILLIS = 6000;

export function notify(text) {
  const line = h("p", {}, text);
  document.getElementById("notice").replaceChildren(line);
  setTimeout(() => line.remove(), NOTICE_MILLIS);
}

export const problem = (error) => h("p", { class: "error", role: "alert" }, error.message);

export const button = (text, onclick, kind = "") =>
  h("button", { type: "button", class: kind || null, onclick }, text);

let fields = 0;

// A control with its label above and, if there is one, a hint below.
export function field(label, control, hint) {
  fields += 1;
  control.id ||= `field-${fields}`;
  const help = hint ? h("small", { id: `${control.id}-hint` }, hint) : null;
  if (help) control.setAttribute("aria-describedby", help.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, help);
}

export function tick(label, control) {
  fields += 1;
  control.id ||= `field-${fields}`;
  return h("div", { class: "tick" }, control, h("label", { for: control.id }, label));
}

export function table(titles, body, label) {
  const heads = titles.map((title) => {
    const number = title.startsWith("#");
    return h("th", { scope: "col", class: number ? "number" : null }, title.replace(/^#/, ""));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, heads)), body));
}

// A place for what went wrong, and a way to try something that may.
export function trial() {
  const place = h("div", { class: "trial" });
  const attempt = async (work) => {
    replace(place);
    try {
      return await work();
    } catch (error) {
      replace(place, problem(error));
      place.scrollIntoView({ block: "nearest" });
      return undefined;
    }
  };
  return { place, attempt };
}

// Calls `work` now and again until the returned function is called, but not while nobody looks.
export function repeat(millis, work) {
  let timer = 0;
  let over = false;
  const turn = async () => {
    if (!document.hidden) await work();
    if (!over) timer = setTimeout(turn, millis);
  };
  turn();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
