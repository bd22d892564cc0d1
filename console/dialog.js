// Questions before something is lost, and the clipboard.
import { field, h, notify } from "/console/dom.js";
import { lookAround } from "/console/where.js";

let dialogs = 0;

function open(title, content, buttons) {
  dialogs += 1;
  const id = `dialog-${dialogs}`;
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title),
      h("form", { method: "dialog" }, content, h("div", { class: "bar end" }, buttons)));
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

// The same before a whole queue or all of its messages are lost: its name has to be typed, and the
// dialog says on which server and in which account that would be.
export async function confirmLossOf(name, title, loss, action) {
  const where = await lookAround();
  const typed = h("input", { id: "typed-name", autocomplete: "off", autocapitalize: "off",
    spellcheck: "false", autofocus: true });
  const yes = h("button", { value: "yes", class: "danger", disabled: true }, action);
  typed.addEventListener("input", () => {
    yes.disabled = typed.value.trim() !== name;
  });
  // Not one that submits: Enter presses the first one that does.
  const no = h("button", { type: "button",
    onclick: () => no.closest("dialog").close("no") }, "Cancel");
  return open(title, [h("p", {}, loss), h("p", { class: "at" }, `This is ${where}.`),
    field(["Type ", h("b", {}, name), " to confirm"], typed)], [no, yes]);
}

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
