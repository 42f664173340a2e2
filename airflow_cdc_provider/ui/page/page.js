"use strict";
// The page of replicators. It shows what the API answers; all texts are set as text, never as HTML.

const API = "api/v1";
const REFRESH_MS = 30000;
const WINDOWS_DRAWN = 48;
const FILL = {
  replicating: "replicating-fill", snapshotting: "busy-fill", resyncing: "busy-fill", rewinding: "busy-fill",
  paused: "wait-fill", pending: "wait-fill", new: "wait-fill", failing: "bad-fill", blocked: "bad-fill",
  dropped: "idle-fill",
};
const SVG = "http://www.w3.org/2000/svg";
const CONFIRMED = {
  resync: "copies the tables again. Rows that the source does not have are removed from the copies.",
};

const place = document.getElementById("place");
const main = document.getElementById("main");
const message = document.getElementById("message");
let search = "";
let onlyTrouble = false;
let shown = 0;

// Elements

function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return made;
}

function asNode(child) {
  return child instanceof Node ? child : String(child);
}

function table(caption, heads, rows) {
  const head = element("tr", {}, ...heads.map(heading));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, at) => data(cell, heads[at]))));
  return element("div", { class: "scroll" },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body)));
}

function heading(text) {
  const number = text.startsWith("#");
  return element("th", { scope: "col", class: number ? "number" : "" }, number ? text.slice(1) : text);
}

function data(cell, head) {
  return element("td", { class: head.startsWith("#") ? "number" : "" }, cell ?? "");
}

function button(text, act, name) {
  const made = element("button", { type: "button", ...(name ? { "aria-label": name } : {}) }, text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    await act();
    made.disabled = false;
    if (document.activeElement === document.body) made.focus();
  });
  return made;
}

// Words

const number = (value) => (value === null || value === undefined ? "" : Number(value).toLocaleString("en"));
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const time = (text) => (text ? `${text.slice(0, 19).replace("T", " ")} UTC` : "");

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

function lag(one) {
  const text = one.lag_s === null ? "no copy yet" : duration(one.lag_s);
  return element("span", { class: one.late ? "lag late" : "lag" }, one.late ? `${text}, late` : text);
}

function state(name) {
  return element("span", { class: `state ${name}` }, name);
}

function states(counts) {
  const all = total(counts);
  const words = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ") || "no tables";
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  for (const [name, count] of Object.entries(counts)) {
    const part = element("div", { class: FILL[name] || "idle-fill" });
    part.style.flexGrow = count / all;
    bar.append(part);
  }
  return element("div", {}, bar, element("span", {}, words));
}

function total(counts) {
  return Object.values(counts).reduce((sum, one) => sum + one, 0);
}

// The API

async function request(path, options) {
  const answer = await fetch(`${API}${path}`, { credentials: "same-origin", ...options });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(problem(body, answer.status));
  return body;
}

function problem(body, status) {
  const found = (body.problems || []).map((one) =>
    [one.code, one.what, one.found && `found: ${one.found}`, one.allowed && `allowed: ${one.allowed}`, one.do]
      .filter(Boolean).join(" · "));
  return found.join("\n") || body.title || `HTTP ${status}`;
}

async function all(path, list) {
  const items = [];
  for (let cursor = ""; cursor !== null;) {
    const page = await request(`${path}${path.includes("?") ? "&" : "?"}limit=200&cursor=${encodeURIComponent(cursor)}`);
    items.push(...page[list]);
    cursor = page.next_cursor;
  }
  return items;
}

function path(name) {
  return `/replicators/${encodeURIComponent(name)}`;
}

async function send(route, body) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  try {
    const done = await request(route, { method: "POST", headers, body: JSON.stringify(body) });
    tell(done.outcome || (done.run_id ? `Run ${done.run_id} started` : "Submitted: the next run carries it out"), true);
    await show();
  } catch (error) {
    tell(error.message, false);
  }
}

async function command(name, kind, tables) {
  const body = { kind, tables };
  const about = tables.length ? tables.join(", ") : "all tables";
  if (kind in CONFIRMED) {
    if (!(await confirmed(`${capital(kind)} ${about}`, `This ${CONFIRMED[kind]}`, name))) return;
    body.confirm = name;
  }
  await send(`${path(name)}/commands`, body);
}

function confirmed(title, text, name) {
  const dialog = document.getElementById("dialog");
  const input = document.getElementById("dialog-input");
  const yes = document.getElementById("dialog-yes");
  document.getElementById("dialog-title").textContent = title;
  document.getElementById("dialog-text").textContent = text;
  document.getElementById("dialog-name").textContent = name;
  yes.textContent = title.split(" ", 1)[0];
  input.value = "";
  yes.disabled = true;
  input.oninput = () => { yes.disabled = input.value !== name; };
  return new Promise((resolve) => {
    let answer = false;
    yes.onclick = () => { answer = true; dialog.close(); };
    document.getElementById("dialog-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
    input.focus();
  });
}

function tell(text, done) {
  message.textContent = text;
  message.className = done ? "done" : "";
  message.hidden = false;
  setTimeout(() => { message.hidden = true; }, done ? 5000 : 20000);
}

// Views

async function listView() {
  const query = search ? `?search=${encodeURIComponent(search)}` : "";
  const found = await all(`/replicators${query}`, "replicators");
  const troubled = found.filter(needsAttention);
  const rows = (onlyTrouble ? troubled : found).map((one) => [
    element("a", { href: `#/${encodeURIComponent(one.name)}` }, one.name),
    `${one.source} → ${one.targets.map((target) => target.type).join(", ")}`,
    states(one.states),
    lag(one),
    number(one.rows),
    number(one.changes),
    waiting(one),
  ]);
  const field = element("input", { type: "search", value: search, "aria-label": "Search by name", placeholder: "Search by name" });
  field.addEventListener("change", () => { search = field.value; show(); });
  const heads = ["Replicator", "From and to", "Tables", "Lag", "#Rows", "#Changes", "Waits for a person"];
  const none = search ? "No replicator has this name." : "No replicator has run yet. Unpause a DAG to see it here.";
  const filter = element("input", { type: "checkbox", id: "trouble", ...(onlyTrouble ? { checked: "" } : {}) });
  filter.addEventListener("change", () => { onlyTrouble = filter.checked; show(); });
  return [
    facts([["Replicators", number(found.length)], ["Need attention", number(troubled.length)],
      ["Late", number(found.filter((one) => one.late).length)], ["Tables", number(found.reduce((sum, one) => sum + one.tables, 0))],
      ["Blocked or failing tables", number(found.reduce((sum, one) => sum + inTrouble(one), 0))]]),
    element("p", { class: "actions" }, field, element("label", {}, filter, " Only what needs attention")),
    rows.length ? table(counted(rows.length, "replicator"), heads, rows) : element("p", {}, found.length ? "Nothing needs attention." : none),
  ];
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

async function replicatorView(name) {
  const route = path(name);
  const one = await request(route);
  const [tables, windows, questions, records, commands, audit] = await Promise.all([
    all(`${route}/tables`, "tables"),
    optional(`${route}/windows?limit=${WINDOWS_DRAWN}`, "windows"),
    one.questions ? optional(`${route}/questions`, "questions") : { items: [] },
    one.quarantined ? optional(`${route}/quarantine`, "records") : { items: [] },
    optional(`${route}/commands?limit=10`, "commands"),
    optional(`${route}/audit?limit=10`, "entries"),
  ]);
  const acts = element("p", { class: "actions" },
    button("Run now", () => send(`${route}/runs`, null)),
    ...["pause", "resume", "verify", "resync"].map((kind) => button(`${capital(kind)} all`, () => command(name, kind, []))));
  return [
    facts([["Source", one.source], ["Target", one.targets.map((target) => target.type).join(", ")],
      ["Lag", lag(one)], ["Freshness", duration(one.freshness_s)], ["Rows", number(one.rows)], ["Tables", number(one.tables)],
      ["Seen", time(one.seen_at)]]),
    acts,
    ...questions.items.map((question) => questionView(name, question)),
    tablesView(name, tables),
    records.items.length ? quarantineView(name, records.items) : null,
    windowsView(windows),
    commands.items.length ? commandsView(commands.items) : null,
    audit.items.length ? auditView(audit.items) : null,
  ];
}

async function optional(route, list) {
  try {
    return { items: (await request(route))[list], reason: "" };
  } catch (error) {
    return { items: [], reason: error.message };
  }
}

function facts(pairs) {
  return element("dl", { class: "facts" },
    ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function tablesView(name, tables) {
  const rows = tables.map((one) => [
    element("a", { href: `#/${encodeURIComponent(name)}/${encodeURIComponent(one.table)}` }, one.table),
    state(one.state), lag(one), number(one.rows), number(total(one.changes)),
    element("div", {}, one.reason, one.quarantined ? ` ${counted(one.quarantined, "record")} in quarantine` : null,
      one.remedy ? element("div", { class: "faint" }, one.remedy) : null),
    element("div", { class: "actions" }, ...tableActs(name, one)),
  ]);
  return table("Tables", ["Table", "State", "Lag", "#Rows", "#Changes", "Reason", "Actions"], rows);
}

function tableActs(name, one) {
  const kinds = one.state === "paused" || one.state === "blocked" ? ["resume", "resync"] : ["pause", "resync", "verify"];
  return one.state === "dropped" ? [] : kinds.map((kind) => button(capital(kind), () => command(name, kind, [one.table]), `${capital(kind)} ${one.table}`));
}

function questionView(name, question) {
  const answers = question.answers.map((answer) =>
    button(capital(answer), () => send(`${path(name)}/questions/${encodeURIComponent(question.id)}/answer`, { answer })));
  return element("section", {}, element("h2", {}, `Question about ${question.table}`),
    element("p", {}, question.changes.join("; ")), element("p", { class: "actions" }, ...answers));
}

function quarantineView(name, records) {
  const rows = records.map((one) => [
    one.id, one.table, one.reason, time(one.since), one.blocks_table ? "blocks the table" : number(one.parked), one.decision,
    element("div", { class: "actions" }, ...["replay", "discard"].map((decision) =>
      button(capital(decision), () => decide(name, decision, one.id), `${capital(decision)} ${one.id}`)))]);
  return table("Records in quarantine", ["Record", "Table", "Reason", "Since", "#Held behind it", "Decision", "Actions"], rows);
}

async function decide(name, decision, record) {
  const body = { decision, records: [record] };
  if (decision === "discard") {
    if (!(await confirmed(`Discard ${record}`, "Its change, and those that depend on it, are lost.", name))) return;
    body.confirm = name;
  }
  await send(`${path(name)}/quarantine`, body);
}

function windowsView({ items, reason }) {
  if (!items.length) return element("p", { class: "faint" }, reason || "The change log has no windows yet.");
  const windows = [...items].reverse();
  const most = Math.max(...windows.map((one) => one.records));
  const drawing = document.createElementNS(SVG, "svg");
  const sum = windows.reduce((before, one) => before + one.records, 0);
  const first = WINDOWS_DRAWN - windows.length;
  const label = `${counted(sum, "record")} in the last ${counted(windows.length, "window")}, at most ${number(most)} in one`;
  for (const [key, value] of [["class", "windows"], ["viewBox", `0 0 ${WINDOWS_DRAWN} 10`], ["preserveAspectRatio", "none"], ["role", "img"], ["aria-label", label]]) {
    drawing.setAttribute(key, value);
  }
  windows.forEach((one, at) => {
    const height = one.holes.length ? 10 : Math.max(0.15, (10 * one.records) / Math.max(1, most));
    const bar = document.createElementNS(SVG, "rect");
    const title = document.createElementNS(SVG, "title");
    for (const [key, value] of [["x", first + at + 0.1], ["y", 10 - height], ["width", 0.8], ["height", height]]) bar.setAttribute(key, value);
    if (one.holes.length) bar.setAttribute("class", "hole");
    title.textContent = `window ${one.window}, ${time(one.sealed_at)}: ${number(one.records)} records${one.holes.map((hole) => `; ${hole.cause} in ${hole.table}`).join("")}`;
    bar.append(title);
    drawing.append(bar);
  });
  return element("section", {}, element("h2", {}, "Windows"), drawing, element("p", { class: "faint" }, label));
}

function commandsView(commands) {
  const rows = commands.map((one) => [time(one.requested_at), one.kind, one.tables.join(", ") || "all tables", one.requested_by, one.status, one.outcome]);
  return table("Last commands", ["At", "Command", "Tables", "By", "Status", "Outcome"], rows);
}

function auditView(entries) {
  const detail = (one) => Object.entries(one.detail).map(([key, value]) => `${key}: ${[value].flat().join(", ")}`).join("; ");
  return table("Audit", ["At", "By", "Action", "Detail"], entries.map((one) => [time(one.at), one.actor, one.action, detail(one)]));
}

async function tableView(name, tableName) {
  const one = await request(`${path(name)}/tables/${encodeURIComponent(tableName)}`);
  const columns = one.schema ? one.schema.columns : [];
  const keys = one.schema ? one.schema.key : [];
  return [
    facts([["State", state(one.state)], ["Since", time(one.since)], ["Lag", lag(one)], ["Rows", number(one.rows)],
      ["Window", number(one.window)], ["Target table", one.target]]),
    element("p", {}, one.reason), one.remedy ? element("p", { class: "faint" }, one.remedy) : null,
    element("p", { class: "actions" }, ...tableActs(name, one)),
    table("Columns of the copy", ["Column", "Type", "Key", "NULL allowed"], columns.map((column) => [
      column.name, column.type.kind, keys.includes(column.name) ? "key" : "", column.nullable === false ? "no" : "yes"])),
  ];
}

// The place in the address: #/, #/replicator, #/replicator/table

async function show() {
  const turn = ++shown;
  const [, name, tableName] = location.hash.split("/").map(decodeURIComponent);
  const links = [["Replicators", "#/"], ...(name ? [[name, `#/${encodeURIComponent(name)}`]] : []), ...(tableName ? [[tableName, location.hash]] : [])];
  let view;
  try {
    view = await (tableName ? tableView(name, tableName) : name ? replicatorView(name) : listView());
  } catch (error) {
    view = [element("p", { role: "alert" }, error.message)];
  }
  if (turn !== shown) return;
  place.replaceChildren(...links.map(([text, href], at) =>
    element("li", {}, element("a", at === links.length - 1 ? { href, "aria-current": "page" } : { href }, text))));
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
