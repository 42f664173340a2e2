// Numbers, times and states in words.

import { element } from "./dom.js";

const UNITS = ["", "KiB", "MiB", "GiB", "TiB"];

export const number = (value) => (value === null || value === undefined ? "" : Number(value).toLocaleString("en"));
export const capital = (word) => word[0].toUpperCase() + word.slice(1);
export const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
export const time = (text) => (text ? `${text.slice(0, 19).replace("T", " ")} UTC` : "");
export const total = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

export function bytes(count) {
  let unit = 0;
  for (; count >= 1024 && unit < UNITS.length - 1; unit += 1) count /= 1024;
  return unit ? `${count.toFixed(1)} ${UNITS[unit]}` : counted(count, "byte");
}

// Rounded down, so that 100 % means always.
export function percent(fraction) {
  return fraction === null || fraction === undefined ? "" : `${(Math.floor(fraction * 10000) / 100).toLocaleString("en")} %`;
}

export function lag(one) {
  const text = one.lag_s === null ? "no copy yet" : duration(one.lag_s);
  return element("span", { class: one.late ? "lag late" : "lag" }, one.late ? `${text}, late` : text);
}

export function state(name, late = false) {
  return element("span", { class: late ? `state ${name} overdue` : `state ${name}` }, name);
}

export const billed = (amounts) => Object.entries(amounts).map(([unit, amount]) => `${number(amount)} ${unit.replaceAll("_", " ")}`);

export function cost(one) {
  return [duration(one.seconds), counted(one.rows, "row"), bytes(one.bytes), ...billed(one.billed)].join(" · ");
}
