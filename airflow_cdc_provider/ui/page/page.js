// The page of replicators: the place in its address, #/, #/replicator or #/replicator/table, decides what it shows.

import { element } from "./dom.js";
import { listView } from "./list.js";
import { replicatorView } from "./replicator.js";
import { tableView } from "./table.js";

const REFRESH_MS = 30000;
const place = document.getElementById("place");
const main = document.getElementById("main");
let shown = 0;

async function show() {
  const turn = ++shown;
  const [, name, tableName] = location.hash.split("/").map(decodeURIComponent);
  const links = [["Replicators", "#/"], ...(name ? [[name, `#/${encodeURIComponent(name)}`]] : []), ...(tableName ? [[tableName, location.hash]] : [])];
  let view;
  try {
    view = await (tableName ? tableView(name, tableName, show) : name ? replicatorView(name, show) : listView(show));
  } catch (error) {
    view = [element("p", { role: "alert" }, error.message)];
  }
  if (turn !== shown) return;
  place.replaceChildren(...links.map(([text, href], at) =>
    element("li", {}, element("a", { href, "aria-current": at === links.length - 1 ? "page" : null }, text))));
  main.replaceChildren(...view.filter(Boolean));
  document.getElementById("as-of").textContent = `as of ${new Date().toISOString().slice(11, 19)} UTC`;
}

function followTheme() {
  const root = document.documentElement;
  let outer = null;
  try {
    outer = window.parent !== window ? window.parent.document.documentElement : null;
  } catch {
    outer = null; // a page of another origin
  }
  const dark = () => outer ? outer.classList.contains("dark") : matchMedia("(prefers-color-scheme: dark)").matches;
  const apply = () => root.classList.toggle("dark", dark());
  if (outer) new MutationObserver(apply).observe(outer, { attributes: true, attributeFilter: ["class"] });
  apply();
}

followTheme();
addEventListener("hashchange", () => { show().then(() => main.focus()); });
setInterval(() => {
  const busy = document.hidden || document.querySelector("dialog[open]") || document.activeElement?.tagName === "INPUT";
  if (!busy) show();
}, REFRESH_MS);
show();
