// Asks for an access key.
import { signIn } from "/console/api.js";
import { field, h, problem, replace } from "/console/dom.js";

export function askForKey(main, done) {
  const id = h("input", { id: "key-id", required: true, autocomplete: "username" });
  const secret = h("input", { id: "key-secret", required: true, type: "password",
    autocomplete: "current-password" });
  const errors = h("div");
  const submit = async (event) => {
    event.preventDefault();
    try {
      await signIn(id.value.trim(), secret.value);
      done();
    } catch (refused) {
      replace(errors, problem(refused));
      secret.select();
    }
  };
  replace(main, h("form", { class: "card sign-in", onsubmit: submit }, h("h1", {}, "Sign in"),
    h("p", { class: "dim" }, "With an access key of this server. The session ends after an hour, "
      + "or when you sign out."),
    field("Access key id", id), field("Secret access key", secret), errors,
    h("div", { class: "bar" }, h("button", { class: "main" }, "Sign in"))));
  id.focus();
}
