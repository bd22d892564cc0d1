// Questions before something is lost, and the clipboard.
import { h, notify } from "/console/dom.js";

let dialogs = 0;

function open(title, content, buttons) {
  dialogs += 1;
  const id = `dialog-${dialogs}`;
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title), content,
      h("form", { method: "dialog", class: "bar end" }, buttons));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Asks before something is lost; resolves to whether it may be. `loss` says what, and how much.
export const confirmLoss = (title, loss, action) => open(title, h("p", {}, loss), [
  h("button", { value: "no", autofocus: true }, "Cancel"),
  h("button", { value: "yes", class: "danger" }, action),
]);

// Without TLS, and from another machine, browsers give pages no clipboard: then the text is shown
// to be copied by hand.
export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    notify(done);
  } catch {
    const area = h("textarea", { readonly: true, rows: "8", value: text,
      "aria-label": "The text" });
    area.addEventListener("focus", () => area.select());
    await open("Copy this text", area, [h("button", { value: "no" }, "Close")]);
  }
}
