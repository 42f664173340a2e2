// Buttons that change something, and the confirmation of what removes rows.

import { path, post, request, tell } from "./api.js";
import { asked } from "./dialog.js";
import { button, element } from "./dom.js";
import { capital } from "./words.js";

const CONFIRMED = {
  resync: { text: "This copies the tables again. Rows that the source does not have are removed from the copies.", option: "Also if that removes more rows than the limit of deletes allows" },
  rewind: { text: "This takes the copies back to a window of the change log; the next run applies the later windows again.", detail: "To window or time" },
};
const OF_STATE = {
  paused: ["resume", "resync"], blocked: ["resume", "resync"], dropped: [],
};
// What a command sends, and what the dialog adds to it.
const SENT = { repair: { kind: "verify", repair: true } };
const ADDED = { resync: ({ option }) => ({ approve_deletes: option }), rewind: ({ detail }) => ({ to: detail }) };

// Commands about all tables of a replicator. shown: draws the page again.
export function replicatorActs(one, shown) {
  if (!one.may_edit) return element("p", { class: "faint" }, "You may read this replicator; its DAG's editors command it.");
  const act = (kind) => button(`${capital(kind)} all`, () => command(one, kind, [], shown));
  return element("p", { class: "actions" },
    button("Run now", () => sent(`${path(one.name)}/runs`, undefined, shown)),
    ...["pause", "resume", "verify", "repair", "resync", "rewind"].map(act));
}

export function tableActs(one, table, shown) {
  if (!one.may_edit) return null;
  const kinds = OF_STATE[table.state] || ["pause", "resync", "verify", "repair"];
  return element("div", { class: "actions" }, ...kinds.map((kind) =>
    button(capital(kind), () => command(one, kind, [table.table], shown), `${capital(kind)} ${table.table}`)));
}

export function answerActs(one, question, shown) {
  const route = `${path(one.name)}/questions/${encodeURIComponent(question.id)}`;
  return one.may_edit && element("p", { class: "actions" }, values(`${route}/sample`, `waiting for ${question.table}`), ...question.answers.map((answer) => button(capital(answer), () =>
    answered(one, question, answer, `${route}/answer`, shown))));
}

async function answered(one, question, answer, route, shown) {
  const text = answer === "resync" ? CONFIRMED.resync.text : "";
  const title = `${capital(answer)} ${question.table}`;
  await sent(route, text ? await confirmed(one, { answer }, { title, text }) : { answer }, shown);
}

export function recordActs(one, record, shown) {
  return one.may_edit && element("div", { class: "actions" }, values(`${path(one.name)}/quarantine/${encodeURIComponent(record)}`, record), ...["replay", "correct", "discard"].map((decision) =>
    button(capital(decision), () => decide(one, decision, record, shown), `${capital(decision)} ${record}`)));
}

// Values of rows are asked for one by one: each request is in the audit log.
function values(route, name) {
  return button("Values", async () => {
    try {
      show(`Values ${name}`, JSON.stringify(await request(route), null, 2));
    } catch (error) {
      tell(error.message, false);
    }
  }, `Values ${name}`);
}

function show(title, text) {
  const dialog = document.getElementById("values");
  document.getElementById("values-title").textContent = title;
  document.getElementById("values-text").textContent = text;
  document.getElementById("values-close").onclick = () => dialog.close();
  dialog.showModal();
}

async function decide(one, decision, record, shown) {
  const title = `${capital(decision)} ${record}`;
  const records = { records: [record] };
  const route = `${path(one.name)}/quarantine`;
  if (decision === "replay") return sent(route, { ...records, decision }, shown);
  if (decision === "correct") return sent(route, await corrected(title, records), shown);
  const text = "Its change, and those that depend on it, are lost.";
  return sent(route, await confirmed(one, { ...records, decision }, { title, text }), shown);
}

async function corrected(title, records) {
  const given = await asked({ title, text: "The record is applied again with these values in place of its own.", detail: 'Values by column, as texts in quotes, or null: {"price": "1.50"}' });
  if (!given) return null;
  try {
    return { ...records, decision: "replay", values: JSON.parse(given.detail) };
  } catch (error) {
    tell(`The values are no JSON: ${error.message}`, false);
    return null;
  }
}

async function command(one, kind, tables, shown) {
  const body = { kind, tables, ...SENT[kind] };
  const title = `${capital(kind)} ${tables.length ? tables.join(", ") : "all tables"}`;
  const confirmedBody = kind in CONFIRMED ? await confirmed(one, body, { title, ...CONFIRMED[kind] }, ADDED[kind]) : body;
  await sent(`${path(one.name)}/commands`, confirmedBody, shown, kind === "rewind" ? one.version : "");
}

// The body with the typed name; null if the user does not want it.
async function confirmed(one, body, question, added = () => ({})) {
  const given = await asked({ ...question, name: one.name });
  return given && { ...body, ...added(given), confirm: one.name };
}

async function sent(route, body, shown, version) {
  if (body !== null && await post(route, body, version)) await shown();
}
