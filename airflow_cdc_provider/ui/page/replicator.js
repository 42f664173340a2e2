// One replicator: its tables, runs and windows, what its source keeps, and what waits for a person.

import { all, optionalList, path, request } from "./api.js";
import { answerActs, recordActs, replicatorActs, tableActs } from "./commands.js";
import { element, facts, section, table } from "./dom.js";
import { gauge, progress, runs, sparkline, windows } from "./plots.js";
import { bytes, cost, counted, duration, lag, number, percent, state, time } from "./words.js";

const WINDOWS = 48;
const RUNS = 50;
const ALMOST_FULL = 0.8;
const TABLE_HEADS = ["Table", "State", "Lag", "Changes in 24 h", "#Rows", "In 30 days", "Actions"];

export async function replicatorView(name, shown) {
  const route = path(name);
  const one = await request(route);
  const [tables, windowsSealed, started, questions, records, commands, audit] = await Promise.all([
    all(`${route}/tables`, "tables"),
    optionalList(`${route}/windows?limit=${WINDOWS}`, "windows"),
    optionalList(`${route}/runs?limit=${RUNS}`, "runs"),
    one.questions ? optionalList(`${route}/questions`, "questions") : { items: [] },
    one.quarantined ? optionalList(`${route}/quarantine`, "records") : { items: [] },
    optionalList(`${route}/commands?limit=10`, "commands"),
    optionalList(`${route}/audit?limit=10`, "entries"),
  ]);
  const objective = one.definition.objective;
  return [
    facts([["Source", one.source], ["Target", one.targets.map((target) => target.type).join(", ")], ["Lag", lag(one)],
      ["Freshness", duration(one.freshness_s)], objective ? ["Objective", objective] : null, ["Rows", number(one.rows)],
      ["Tables", number(one.tables)], ["Seen", time(one.seen_at)]]),
    replicatorActs(one, shown),
    ...questions.items.map((question) => section(`Question about ${question.table}`,
      ...question.changes.map((change) => element("p", {}, change)),
      question.statements.length ? element("p", {}, "The target would execute:") : null,
      ...question.statements.map((statement) => element("pre", {}, statement)),
      answerActs(one, question, shown))),
    copies(tables),
    tablesView(one, tables, shown),
    records.items.length ? quarantine(one, records.items, shown) : null,
    section("Runs", ...(started.reason ? [reason(started)] : runs(started.items, (run) => runLink(name, run)))),
    section("Windows", ...(windowsSealed.items.length ? windowsView(windowsSealed.items) : [reason(windowsSealed)])),
    holes(windowsSealed.items),
    retention(one.retention),
    positions(one.positions.source),
    commands.items.length ? commandsView(commands.items) : null,
    audit.items.length ? auditView(audit.items) : null,
  ];
}

function reason(part) {
  return element("p", { class: "faint" }, part.reason || "The change log has no windows yet.");
}

function runLink(name, run) {
  return `../dags/${encodeURIComponent(name)}/runs/${encodeURIComponent(run.run_id)}`;
}

function copies(tables) {
  const running = tables.filter((one) => one.copying);
  if (!running.length) return null;
  return table("Copies in progress", ["Table", "Progress", "Seen"], running.map((one) => [one.table, progress(one.copying), time(one.copying.at)]));
}

function tablesView(one, tables, shown) {
  const rows = tables.map((row) => [
    element("a", { href: `#/${encodeURIComponent(one.name)}/${encodeURIComponent(row.table)}` }, row.table),
    stateOf(row), lag(row), sparkline(row.changes_24h), number(row.rows), measured(row), tableActs(one, row, shown),
  ]);
  return table("Tables", TABLE_HEADS, rows);
}

function stateOf(row) {
  return element("div", {}, state(row.state, row.late), row.reason ? element("div", {}, row.reason) : null,
    row.quarantined ? element("div", {}, `${counted(row.quarantined, "record")} in quarantine`) : null,
    row.remedy ? element("div", { class: "faint" }, row.remedy) : null);
}

function measured(row) {
  const late = row.attainment === null ? null : element("div", { class: row.meets_objective === false ? "late" : "" }, `${percent(row.attainment)} not late`);
  return element("div", {}, late, element("div", { class: "faint" }, cost(row.cost)),
    row.comparison ? element("div", { class: "faint" }, `compared ${row.comparison}`) : null);
}

function quarantine(one, records, shown) {
  return table("Records in quarantine", ["Record", "Table", "Reason", "Since", "#Held behind it", "Decision", "Actions"],
    records.map((record) => [record.id, record.table, record.reason, time(record.since),
      record.blocks_table ? "blocks the table" : number(record.parked), record.decision, recordActs(one, record.id, shown)]));
}

function windowsView(items) {
  const moved = (one) => Object.entries(one.tables).map(([name, rows]) => `${name} ${number(rows)}`).join(", ");
  const rows = items.map((one) => [number(one.window), time(one.sealed_at), number(one.records), bytes(one.bytes), moved(one)]);
  return [...windows(items, WINDOWS), element("details", {}, element("summary", {}, "Window by window"),
    table("Windows", ["#Window", "Sealed", "#Records", "#Size", "Rows of each table"], rows))];
}

function holes(items) {
  const rows = items.flatMap((one) => one.holes.map((hole) => [number(one.window), hole.table, hole.cause, hole.detail, hole.open ? element("span", { class: "late" }, "open") : "the table was copied again"]));
  return rows.length ? table("Holes", ["#Window", "Table", "Cause", "Detail", "Closed by"], rows) : null;
}

function retention(one) {
  if (!one.measured_at) return null;
  const kept = one.bytes === null ? null : `${bytes(one.bytes)} kept for this replicator`;
  const age = one.keeps_s === null ? null : `kept for ${duration(one.keeps_s)}, read up to ${time(one.read_at)}`;
  const left = one.runs_out_at ? (Date.parse(one.runs_out_at) - Date.now()) / 1000 : null;
  const end = one.runs_out_at ? `${left > 0 ? "Runs out" : "Ran out"} ${time(one.runs_out_at)} if nothing is read from now on` : "Has no known end";
  const used = one.used ?? (one.keeps_s !== null && left !== null ? 1 - Math.max(0, left) / one.keeps_s : null);
  return section("Log of the source",
    used === null ? null : gauge(used, `${percent(used)} of what the source keeps is used`, ALMOST_FULL),
    element("p", {}, [kept, age, end].filter(Boolean).join(" · ")),
    element("p", { class: "faint" }, `Measured ${time(one.measured_at)}`));
}

function positions(source) {
  const rows = [["End of the stream", source.end, source.end_at], ["Read", source.read, ""], ["Confirmed to the source", source.confirmed, source.confirmed_at]]
    .filter(([, position]) => Object.keys(position).length)
    .map(([what, position, at]) => [what, Object.entries(position).map(([channel, native]) => `${channel} ${native}`).join(", "), time(at)]);
  return rows.length ? table("Positions in the source", ["What", "Position", "Seen"], rows) : null;
}

function commandsView(commands) {
  return table("Last commands", ["At", "Command", "Tables", "By", "Status", "Outcome"], commands.map((one) =>
    [time(one.requested_at), one.kind, one.tables.join(", ") || "all tables", one.requested_by, one.status, outcome(one)]));
}

function outcome(command) {
  const waiting = command.waits_for.length ? `Waits until ${command.waits_for.join(", ")} is resumed` : "";
  return [command.outcome, waiting].filter(Boolean).join("; ");
}

function auditView(entries) {
  const detail = (one) => Object.entries(one.detail).map(([key, value]) => `${key}: ${[value].flat().join(", ")}`).join("; ");
  return table("Audit", ["At", "By", "Action", "Detail"], entries.map((one) => [time(one.at), one.actor, one.action, detail(one)]));
}
