// Drawings. Each has its content as a text for those who do not see it.

import { drawn, element, leaving } from "./dom.js";
import { counted, duration, number, percent, state, time, total } from "./words.js";

const FILL = {
  replicating: "good", success: "good", snapshotting: "busy", resyncing: "busy", rewinding: "busy", running: "busy",
  paused: "wait", pending: "wait", new: "wait", queued: "wait", failing: "bad", blocked: "bad", failed: "bad",
  dropped: "idle",
};
const MINUTES = 30; // of a half hour
const RUN_PLACES = 30;

const fill = (name) => `fill-${FILL[name] || "idle"}`;

// Without a label, the words beside the drawing say the same.
function drawing(name, width, label, marks) {
  const spoken = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return drawn("svg", { class: name, viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", ...spoken }, ...marks);
}

function bar(x, width, height, name, text) {
  return drawn("rect", { x, y: 10 - height, width, height, class: name }, text ? drawn("title", {}, text) : null);
}

// Changes by half hour, the last on the right.
export function sparkline(series) {
  const most = Math.max(...series);
  if (!most) return element("span", { class: "faint" }, "none");
  const label = `${counted(total(series), "change")} in 24 hours, at most ${number(Math.ceil(most / MINUTES))} per minute`;
  const marks = series.map((count, at) => (count ? bar(at, 0.8, Math.max(0.6, (10 * count) / most), "fill-busy") : null));
  return element("span", { class: "spark", title: label }, drawing("sparkline", series.length, label, marks));
}

// late: whether a copy is, so that none of them is shown as good.
export function states(counts, late) {
  const entries = Object.entries(counts);
  const words = entries.map(([name, count]) => `${count} ${name}`).join(", ") || "no tables";
  const all = total(Object.values(counts));
  let x = 0;
  const marks = entries.map(([name, count]) => {
    const part = bar((x / all) * 100, (count / all) * 100, 10, late && fill(name) === "fill-good" ? "fill-wait" : fill(name));
    x += count;
    return part;
  });
  return element("div", {}, drawing("strip", 100, "", marks), element("span", {}, words));
}

// Windows of the change log, the last on the right; one with a hole is a whole bar.
export function windows(items, places) {
  const ordered = [...items].reverse();
  const most = Math.max(1, ...ordered.map((one) => one.records));
  const label = `${counted(total(ordered.map((one) => one.records)), "record")} in the last ${counted(ordered.length, "window")}, at most ${number(most)} in one`;
  const marks = ordered.map((one, at) => bar(
    places - ordered.length + at + 0.1, 0.8, one.holes.length ? 10 : Math.max(0.15, (10 * one.records) / most),
    one.holes.length ? "fill-bad" : "fill-busy",
    `window ${one.window}, ${time(one.sealed_at)}: ${number(one.records)} records${one.holes.map((hole) => `; ${hole.cause} in ${hole.table}`).join("")}`));
  return [drawing("bars", places, label, marks), element("p", { class: "faint" }, label)];
}

// Runs by the time of their start, as high as they were long; each is a link to the run.
export function runs(items, link) {
  const ordered = items.filter((one) => one.started_at).reverse();
  if (!ordered.length) return [element("p", { class: "faint" }, "No run has started yet.")];
  const now = Date.now();
  const taken = (one) => ((one.ended_at ? Date.parse(one.ended_at) : now) - Date.parse(one.started_at)) / 1000;
  const longest = Math.max(1, ...ordered.map(taken));
  const counts = {};
  for (const one of ordered) counts[one.state] = (counts[one.state] || 0) + 1;
  const label = `${counted(ordered.length, "run")} since ${time(ordered[0].started_at)}: ${Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ")}; the longest took ${duration(longest)}`;
  const places = Math.max(RUN_PLACES, ordered.length);
  const marks = ordered.map((one, at) => leaving(drawn("a", { href: link(one), "aria-label": `run ${one.run_id}: ${one.state}` },
    bar(places - ordered.length + at + 0.1, 0.8, Math.max(0.6, (10 * taken(one)) / longest), fill(one.state),
      `${one.kind} run ${one.run_id}: ${one.state}, ${time(one.started_at)}, ${duration(taken(one))}`))));
  const svg = drawing("bars", places, label, marks);
  svg.setAttribute("role", "group");
  return [svg, element("p", { class: "faint" }, label)];
}

// How full something is, 0 to 1.
export function gauge(fraction, label, bad) {
  return drawing("strip", 100, label, [bar(0, 100 * Math.min(1, fraction), 10, fraction >= bad ? "fill-bad" : "fill-busy")]);
}

export function progress({ progress: { rows, of, fraction }, seconds_left: left }) {
  const done = fraction ?? (of ? Math.min(1, rows / of) : null);
  const parts = [counted(rows, "row"), done === null ? "" : percent(done), left === null ? "" : `${duration(left)} left`];
  const words = parts.filter(Boolean).join(", ");
  return element("div", {}, done === null ? null : gauge(done, "", 2), element("span", {}, words));
}

// The states of a table one after another, as long as each lasted.
export function history(items) {
  const begun = items.map((one) => Date.parse(one.since));
  const first = begun[0];
  const span = Math.max(1, Date.now() - first);
  const marks = items.map((one, at) => {
    const end = at + 1 < items.length ? begun[at + 1] : first + span;
    return bar((100 * (begun[at] - first)) / span, Math.max(0.3, (100 * (end - begun[at])) / span), 10, fill(one.state),
      `${one.state} since ${time(one.since)}${one.reason ? `: ${one.reason}` : ""}`);
  });
  const label = `${counted(items.length, "state")} since ${time(items[0].since)}`;
  return [drawing("strip tall", 100, label, marks), ...[...items].reverse().map((one) =>
    element("p", {}, state(one.state), ` since ${time(one.since)} `, element("span", { class: "faint" }, one.reason)))];
}
