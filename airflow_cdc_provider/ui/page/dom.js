// Elements of the page. All texts are set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties, ...children) {
  return filled(document.createElement(name), properties, children);
}

export function drawn(name, properties, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(made, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child || child === 0).map(asNode));
  return made;
}

function asNode(child) {
  return child instanceof Node ? child : String(child);
}

// A head that begins with # is one of numbers.
export function table(caption, heads, rows) {
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

export function facts(pairs) {
  return element("dl", { class: "facts" }, ...pairs.filter(Boolean).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

export function section(title, ...children) {
  return element("section", {}, element("h2", {}, title), ...children);
}

// Makes a link lead to another page of Airflow, also where this page is in an iframe of Airflow: the iframe may not
// navigate the page around it, but a link of that page may.
export function leaving(link) {
  link.addEventListener("click", (event) => {
    if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const outer = window.parent.document;
    const same = outer.createElement("a");
    same.href = new URL(link.getAttribute("href"), location.href).href;
    outer.body.append(same);
    same.click();
    same.remove();
  });
  return link;
}

export function button(text, act, name) {
  const made = element("button", { type: "button", "aria-label": name }, text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await act();
    } finally {
      made.disabled = false;
    }
    if (document.activeElement === document.body) made.focus();
  });
  return made;
}
