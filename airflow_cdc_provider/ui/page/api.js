// Requests to the REST API, as the user who sees the page, and what they say.

const API = "api/v1";
const message = document.getElementById("message");

export const path = (name) => `/replicators/${encodeURIComponent(name)}`;

export async function request(route, options) {
  // A kept answer with the same ETag would show an old lag.
  const answer = await fetch(`${API}${route}`, { credentials: "same-origin", cache: "no-store", ...options });
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

export const all = async (route, list) => (await whole(route, list))[list];

// The first page, with the list of all pages.
export async function whole(route, list) {
  const items = [];
  let first = null;
  for (let cursor = ""; cursor !== null;) {
    const page = await request(`${route}${route.includes("?") ? "&" : "?"}limit=200&cursor=${encodeURIComponent(cursor)}`);
    first ??= page;
    items.push(...page[list]);
    cursor = page.next_cursor;
  }
  return { ...first, [list]: items };
}

// A part of the page whose absence does not hide the rest: { body, reason }.
export async function optional(route) {
  try {
    return { body: await request(route), reason: "" };
  } catch (error) {
    return { body: null, reason: error.message };
  }
}

// The same of a list: { items, reason }.
export async function optionalList(route, list) {
  const { body, reason } = await optional(route);
  return { items: body ? body[list] : [], reason };
}

// Returns whether it was accepted. version: of the replicator as the page shows it.
export async function post(route, body, version) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": newKey() };
  if (version) headers["If-Match"] = `"${version}"`;
  try {
    const done = await request(route, { method: "POST", headers, body: JSON.stringify(body) });
    tell(done.outcome || (done.run_id ? `Run ${done.run_id} started` : "Submitted: the next run carries it out"), true);
    return true;
  } catch (error) {
    tell(error.message, false);
    return false;
  }
}

// Browsers have crypto.randomUUID on HTTPS and localhost only.
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function tell(text, done) {
  message.textContent = text;
  message.className = done ? "done" : "";
  message.hidden = false;
  setTimeout(() => { message.hidden = true; }, done ? 5000 : 20000);
}
