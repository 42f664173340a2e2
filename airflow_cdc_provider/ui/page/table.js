// One table: its columns on both sides, its states, its costs, and where it comes from.

import { optional, path, request } from "./api.js";
import { tableActs } from "./commands.js";
import { element, facts, leaving, section, table } from "./dom.js";
import { history, progress, sparkline } from "./plots.js";
import { billed, bytes, duration, lag, number, percent, state, time } from "./words.js";

export async function tableView(name, tableName, shown) {
  const route = `${path(name)}/tables/${encodeURIComponent(tableName)}`;
  const [one, replicator, columns] = await Promise.all([
    request(route), request(path(name)), optional(`${path(name)}/columns/${encodeURIComponent(tableName)}`),
  ]);
  return [
    facts([["State", state(one.state, one.late)], ["Since", time(one.since)], ["Lag", lag(one)], ["Rows", number(one.rows)],
      ["Changes in 24 h", sparkline(one.changes_24h)], ["Not late, 30 days", percent(one.attainment) || "not measured yet"],
      ["Window", number(one.window)], one.backlog ? ["Not applied yet", bytes(one.backlog)] : null,
      ["Last comparison", one.comparison || "none"]]),
    element("p", {}, one.reason), one.remedy ? element("p", { class: "faint" }, one.remedy) : null,
    one.copying ? progress(one.copying) : null,
    tableActs(replicator, one, shown),
    columns.body ? columnsView(columns.body) : element("p", { class: "faint" }, columns.reason),
    lineage(one, replicator, columns.body),
    one.history.length ? section("States", ...history(one.history)) : null,
    costs(one.costs),
  ];
}

function columnsView({ columns }) {
  return table("Columns", ["In the copy", "Type in the copy", "In the source", "Type in the source", "Key", "NULL allowed", "Values"],
    columns.map((one) => [one.name, one.target_type, one.source || "added", one.source_type, one.key ? "key" : "",
      one.nullable ? "yes" : "no", one.masked ? "masked" : one.converted ? "converted" : "as they are"]));
}

function lineage(one, replicator, columns) {
  const places = columns
    ? [[columns.source.type, columns.source.table], [replicator.name, "change log"], [columns.target.type, columns.target.table]]
    : [[replicator.source, one.table], [replicator.name, "change log"], ["copy", one.target]];
  const parts = places.map(([where, what]) => element("li", {}, element("span", { class: "faint" }, where), element("span", {}, what)));
  const asset = leaving(element("a", { href: `../assets?name_pattern=${encodeURIComponent(one.asset.name)}` }, one.asset.name));
  return section("Lineage", element("ol", { class: "flow" }, ...parts), element("p", {}, "Asset: ", asset, " ", element("span", { class: "faint" }, one.asset.uri)));
}

function costs(days) {
  const rows = Object.entries(days).sort().reverse().map(([day, spent]) =>
    [day, duration(spent.seconds), number(spent.rows), bytes(spent.bytes), billed(spent.billed).join(", ")]);
  return rows.length ? table("Costs by day", ["Day", "#Jobs", "#Rows written", "#Log applied", "Billed by the target"], rows) : null;
}
