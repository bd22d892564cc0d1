// The tags of a queue.
import { call } from "/console/api.js";
import { field, h, notify, replace, table, trial } from "/console/dom.js";
import { seen } from "/console/format.js";

// "team=payments" lines as a map.
export function tagsOf(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

export function tagsTab(panel, queue) {
  const { place, attempt } = trial();
  const list = h("div", { id: "tags" });
  const key = h("input", { id: "tag-key", required: true, maxlength: "128" });
  const value = h("input", { id: "tag-value", maxlength: "256" });

  const show = async () => {
    const { Tags = {} } = await call("ListQueueTags", { QueueUrl: queue.url });
    const rows = Object.entries(Tags).map(([name, text]) => h("tr", {},
      h("td", {}, h("bdi", {}, seen(name))), h("td", {}, h("bdi", {}, seen(text))),
      h("td", { class: "number" }, h("button", { type: "button", onclick: () => remove(name),
        "aria-label": `Remove the tag ${seen(name)}` }, "Remove"))));
    replace(list, rows.length ? table(["Key", "Value", "#Change"], h("tbody", {}, rows), "Tags")
      : h("p", { class: "empty" }, "This queue has no tags. Use them to note what it is for and "
        + "whose it is."));
  };
  const remove = (name) => attempt(async () => {
    await call("UntagQueue", { QueueUrl: queue.url, TagKeys: [name] });
    notify(`The tag ${seen(name)} was removed.`);
    await show();
  });
  const add = (event) => {
    event.preventDefault();
    return attempt(async () => {
      await call("TagQueue", { QueueUrl: queue.url, Tags: { [key.value]: value.value } });
      notify(`The tag ${seen(key.value)} was set.`);
      key.value = "";
      value.value = "";
      key.focus();
      await show();
    });
  };
  replace(panel, place, h("section", { class: "card" }, h("h2", {}, "Tags"), list),
    h("form", { class: "card", onsubmit: add }, h("h2", {}, "Set a tag"),
      h("div", { class: "bar" }, field("Key", key), field("Value", value),
        h("button", { class: "main" }, "Set"))));
  attempt(show);
}
