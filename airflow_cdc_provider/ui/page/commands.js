// Buttons that change something, and the confirmation of what removes rows.

import { path, post, request, tell } from "./api.js";
import { button, element } from "./dom.js";
import { capital } from "./words.js";

const CONFIRMED = {
  resync: "This copies the tables again. Rows that the source does not have are removed from the copies.",
  rewind: "This takes the copies back to a window of the change log; the next run applies the later windows again.",
};
const OF_STATE = {
  paused: ["resume", "resync"], blocked: ["resume", "resync"], dropped: [],
};
const DIALOG = Object.fromEntries(["dialog", "title", "text", "name", "input", "no", "yes", "detail", "detail-label", "detail-input"]
  .map((part) => [part, document.getElementById(part === "dialog" ? part : `dialog-${part}`)]));

// Commands about all tables of a replicator. shown: draws the page again.
export function replicatorActs(one, shown) {
  if (!one.may_edit) return element("p", { class: "faint" }, "You may read this replicator; its DAG's editors command it.");
  const act = (kind) => button(`${capital(kind)} all`, () => command(one, kind, [], shown));
  return element("p", { class: "actions" },
    button("Run now", () => sent(`${path(one.name)}/runs`, null, shown)),
    ...["pause", "resume", "verify", "resync", "rewind"].map(act));
}

export function tableActs(one, table, shown) {
  if (!one.may_edit) return null;
  const kinds = OF_STATE[table.state] || ["pause", "resync", "verify"];
  return element("div", { class: "actions" }, ...kinds.map((kind) =>
    button(capital(kind), () => command(one, kind, [table.table], shown), `${capital(kind)} ${table.table}`)));
}

export function answerActs(one, question, shown) {
  const route = `${path(one.name)}/questions/${encodeURIComponent(question.id)}`;
  return one.may_edit && element("p", { class: "actions" }, values(`${route}/sample`, `waiting for ${question.table}`), ...question.answers.map((answer) => button(capital(answer), () =>
    answered(one, question, answer, `${route}/answer`, shown))));
}

async function answered(one, question, answer, route, shown) {
  const body = { answer };
  if (answer in CONFIRMED) {
    const given = await confirmed(`${capital(answer)} ${question.table}`, CONFIRMED[answer], one.name);
    if (given === null) return;
    body.confirm = one.name;
  }
  await sent(route, body, shown);
}

export function recordActs(one, record, shown) {
  return one.may_edit && element("div", { class: "actions" }, values(`${path(one.name)}/quarantine/${encodeURIComponent(record)}`, record), ...["replay", "discard"].map((decision) =>
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
  const body = { decision, records: [record] };
  if (decision === "discard") {
    const given = await confirmed(`Discard ${record}`, "Its change, and those that depend on it, are lost.", one.name);
    if (given === null) return;
    body.confirm = one.name;
  }
  await sent(`${path(one.name)}/quarantine`, body, shown);
}

async function command(one, kind, tables, shown) {
  const body = { kind, tables };
  if (kind in CONFIRMED) {
    const about = tables.length ? tables.join(", ") : "all tables";
    const given = await confirmed(`${capital(kind)} ${about}`, CONFIRMED[kind], one.name, kind === "rewind" ? "To window or time" : "");
    if (given === null) return;
    body.confirm = one.name;
    if (kind === "rewind") body.to = given;
  }
  await sent(`${path(one.name)}/commands`, body, shown, kind === "rewind" ? one.version : "");
}

async function sent(route, body, shown, version) {
  if (await post(route, body, version)) await shown();
}

// Asks for the typed name, and for a detail if it has a label. Returns the detail, or null if the user does not want it.
function confirmed(title, text, name, detail = "") {
  const { dialog, input, yes } = DIALOG;
  DIALOG.title.textContent = title;
  DIALOG.text.textContent = text;
  DIALOG.name.textContent = name;
  DIALOG.detail.hidden = !detail;
  DIALOG["detail-label"].textContent = detail;
  DIALOG["detail-input"].value = "";
  yes.textContent = title.split(" ", 1)[0];
  input.value = "";
  yes.disabled = true;
  dialog.oninput = () => { yes.disabled = input.value !== name || Boolean(detail && !DIALOG["detail-input"].value); };
  return new Promise((resolve) => {
    let answer = null;
    yes.onclick = () => { answer = DIALOG["detail-input"].value; dialog.close(); };
    DIALOG.no.onclick = () => dialog.close();
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
    (detail ? DIALOG["detail-input"] : input).focus();
  });
}
