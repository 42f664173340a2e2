// The list of all replicators.

import { whole } from "./api.js";
import { element, facts, section, table } from "./dom.js";
import { sparkline, states } from "./plots.js";
import { counted, lag, number, total } from "./words.js";

const HEADS = ["Replicator", "From and to", "Tables", "Lag", "Changes in 24 h", "#Rows", "Waits for a person"];
const filter = { search: "", attention: false };

// shown: draws the page again.
export async function listView(shown) {
  const query = filter.search ? `?search=${encodeURIComponent(filter.search)}` : "";
  const { replicators: found, not_run: notRun } = await whole(`/replicators${query}`, "replicators");
  const troubled = found.filter(needsAttention);
  const rows = (filter.attention ? troubled : found).map((one) => [
    element("a", { href: `#/${encodeURIComponent(one.name)}` }, one.name),
    `${one.source} → ${one.targets.map((target) => target.type).join(", ")}`,
    states(one.states, one.late),
    lag(one),
    sparkline(one.changes_24h),
    number(one.rows),
    waiting(one),
  ]);
  const none = filter.search ? "No replicator has this name." : "No replicator has run yet.";
  return [
    facts([["Replicators", number(found.length)], ["Need attention", number(troubled.length)],
      ["Late", number(found.filter((one) => one.late).length)], ["Tables", number(total(found.map((one) => one.tables)))],
      ["Blocked or failing tables", number(total(found.map(inTrouble)))]]),
    filters(shown),
    rows.length ? table(counted(rows.length, "replicator"), HEADS, rows) : element("p", {}, found.length ? "Nothing needs attention." : none),
    notRun.length ? section("Not run yet", element("ul", {}, ...notRun.map(waitingDag))) : null,
  ];
}

function waitingDag(one) {
  const link = element("a", { href: `../dags/${encodeURIComponent(one.name)}` }, one.name);
  return element("li", {}, link, one.paused ? ": its DAG is paused" : ": waits for its first run");
}

function filters(shown) {
  const search = element("input", { type: "search", value: filter.search, "aria-label": "Search by name", placeholder: "Search by name" });
  search.addEventListener("change", () => { filter.search = search.value; shown(); });
  const attention = element("input", { type: "checkbox", checked: filter.attention ? "" : null });
  attention.addEventListener("change", () => { filter.attention = attention.checked; shown(); });
  return element("p", { class: "actions" }, search, element("label", {}, attention, " Only what needs attention"));
}

function inTrouble(one) {
  return (one.states.blocked || 0) + (one.states.failing || 0);
}

function needsAttention(one) {
  return one.late || inTrouble(one) > 0 || one.questions > 0 || one.quarantined > 0;
}

function waiting(one) {
  const parts = [];
  if (one.questions) parts.push(counted(one.questions, "question"));
  if (one.quarantined) parts.push(`${counted(one.quarantined, "record")} in quarantine`);
  return parts.join(", ");
}
