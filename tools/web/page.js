"use strict";
const units = { kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
function sortKey(cell) {
  const text = (cell.dataset.sort ?? cell.textContent).trim();
  if (text === "" || text === "-") return null;
  const number = parseFloat(text.replaceAll(",", ""));
  if (Number.isNaN(number) || cell.classList.contains("word")) return text.toLowerCase();
  return number * (units[text.split(" ")[1]] ?? 1);
}
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
}
// The rows of a table, or its entries (a <tbody> each), sorted within each group.
function sortBy(header) {
  const table = header.closest("table");
  const old = header.getAttribute("aria-sort"), words = header.classList.contains("word");
  const down = old === "descending" ? false : old === "ascending" ? true : !words;
  for (const other of header.parentElement.cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const sorted = (items, rowOf) => items.map((item) => [sortKey(rowOf(item).cells[header.cellIndex]), item])
    .sort((a, b) => compare(a[0], b[0], down ? -1 : 1)).map((pair) => pair[1]);
  const bodies = [...table.tBodies];
  if (!bodies.some((body) => body.matches(".entry"))) {
    bodies[0].append(...sorted([...bodies[0].rows], (row) => row));
    return;
  }
  const ordered = [];
  let group = [];
  for (const body of [...bodies, null]) {
    if (body?.matches(".entry")) { group.push(body); continue; }
    ordered.push(...sorted(group, (entry) => entry.rows[0]));
    if (body) ordered.push(body);
    group = [];
  }
  table.append(...ordered);
}
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("figure details:not([open])")];
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});
// A run's details are opened by what links to them, and so is a section that is folded as a whole.
function openTarget() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const target = found?.querySelector(":scope > h2 + details") ?? found;
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary").focus({ preventScroll: true });
  }
}
addEventListener("hashchange", openTarget);
openTarget();
// The same link again changes no hash.
for (const link of document.querySelectorAll("a[href^='#run-'], nav a")) {
  link.addEventListener("click", () => setTimeout(openTarget));
}
const tools = document.querySelector(".tools");
tools.hidden = false;
for (const button of tools.querySelectorAll("[data-theme]")) {
  button.addEventListener("click", () => {
    for (const other of tools.querySelectorAll("[data-theme]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    document.documentElement.dataset.theme = button.dataset.theme;
  });
}
// What is looked for in: rows of tables and runs. Baselines and headings stay.
const filtered = [...document.querySelectorAll(
  ".entry, main > section tbody:not(.entry, .group, .plain) tr, .runs > details")]
  .filter((row) => !row.closest("figure, .more"))
  .map((row) => [row, row.textContent.toLowerCase()]);
tools.querySelector("input").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const [row, text] of filtered) {
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  tools.querySelector("output").textContent =
    words.length ? `${shown} of ${filtered.length} rows and runs` : "";
});
// Learning curves: the nearest point is read out, a stretch is dragged open, a double click shows all.
// The curves are drawn in steps and percents, so that a stretch of steps is a view of them.
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
for (const chart of document.querySelectorAll("svg.lines")) {
  const plot = chart.querySelector("svg"), ticks = [...chart.querySelectorAll(".tick")];
  const [, top, steps, height] = plot.getAttribute("viewBox").split(" ").map(Number);
  const [left, width] = ["x", "width"].map((name) => Number(plot.getAttribute(name)));
  const texts = ticks.map((tick) => tick.textContent);
  const points = [...plot.querySelectorAll("path")].flatMap((path) =>
    [...path.getAttribute("d").matchAll(/([\d.]+) (-?[\d.]+)/g)].map((match) =>
      ({ name: path.textContent, step: Number(match[1]), y: Number(match[2]) })));
  const reading = document.createElement("p");
  reading.className = "reading";
  chart.after(reading);
  const stretch = plot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
  stretch.setAttribute("class", "stretch");
  let begin = 0, span = steps, held = null;
  function place(event) {
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(chart.getScreenCTM().inverse());
    const part = (at.y - plot.y.baseVal.value) / plot.height.baseVal.value;
    return { step: begin + span * Math.min(1, Math.max(0, (at.x - left) / width)),
      y: top + height * part };
  }
  function mark(from, to) {
    const box = { x: Math.min(from, to), width: Math.abs(to - from), y: top, height };
    for (const [name, value] of Object.entries(box)) stretch.setAttribute(name, value);
  }
  function show(from, wide) {
    [begin, span] = [from, wide];
    plot.setAttribute("viewBox", `${begin} ${top} ${span} ${height}`);
    plot.setAttribute("overflow", span === steps ? "visible" : "hidden");
    ticks.forEach((tick, i) => {
      const part = (Number(tick.getAttribute("x")) - left) / width;
      tick.textContent = span === steps ? texts[i] : number.format(begin + span * part);
    });
  }
  chart.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (held !== null) mark(held, at.step);
    const far = (point) => Math.hypot((point.step - at.step) / span * 2, (point.y - at.y) / height);
    const near = points.reduce((a, b) => (far(b) < far(a) ? b : a));
    reading.textContent = `${near.name}: ${(-near.y).toFixed(2)} % at step ${number.format(near.step)}`;
  });
  chart.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") held = place(event).step;
  });
  addEventListener("pointerup", (event) => {
    if (held === null) return;
    const to = place(event).step, from = Math.min(held, to), wide = Math.abs(held - to);
    if (wide > span / 50) show(from, wide);
    held = null;
    mark(0, 0);
  });
  chart.addEventListener("dblclick", () => show(0, steps));
}
