// Small helpers to build pages. Text is always set as text: nothing that a message or a name
// contains is ever taken for HTML.

// h("button", { class: "main", onclick: f }, "Send", other)
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat());
}

// Changes only what differs, so that a refresh neither flickers nor moves the focus.
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

export function notify(text) {
  const notice = document.getElementById("notice");
  const line = h("p", {}, text);
  notice.replaceChildren(line);
  setTimeout(() => line.remove(), 6000);
}

export const problem = (error) => h("p", { class: "error", role: "alert" }, error.message);

// Asks before something is lost; resolves to whether it may be.
export function confirmLoss(question, action) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": action },
      h("p", {}, question),
      h("form", { method: "dialog", class: "bar" },
        h("button", { value: "no", autofocus: true }, "Cancel"),
        h("button", { value: "yes", class: "danger" }, action)));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export const field = (label, control) => h("label", {}, label, control);

export function age(millis) {
  const seconds = Math.max(0, Math.round(millis / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const count = (number) => Number(number).toLocaleString("en");
