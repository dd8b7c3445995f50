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
function sortBy(header) {
  const table = header.closest("table"), body = table.tBodies[0];
  const old = header.getAttribute("aria-sort"), words = header.classList.contains("word");
  const down = old === "descending" ? false : old === "ascending" ? true : !words;
  for (const other of table.querySelectorAll("thead th")) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].map((row) => [sortKey(row.cells[header.cellIndex]), row]);
  rows.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
  body.append(...rows.map((pair) => pair[1]));
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
// A run's details are opened by what links to them.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary").focus({ preventScroll: true });
  }
}
addEventListener("hashchange", openTarget);
openTarget();
// The same link again changes no hash.
for (const link of document.querySelectorAll("a[href^='#run-']")) {
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
    document.dispatchEvent(new Event("themechange"));
  });
}
// What is looked for in: rows of tables and runs. The feet of tables stay.
const filtered = [...document.querySelectorAll("main > section tbody tr, .runs > details")]
  .filter((row) => !row.closest("figure"))
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
