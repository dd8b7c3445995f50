#include "report/html_assets.h"

namespace lra::report {

std::string_view page_style() {
  return R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1c1f24; --soft: #5c6470; --line: #e2e4e8;
  --stripe: #f5f6f7; --accent: #1f5fbf; --up: #13754a; --down: #b3352b; --mark: #fff6dc;
  --c0: #2463c9; --c1: #c2500f; --c2: #0f855b; --c3: #9c3db0; --c4: #8f6d00; --c5: #c22c56;
  --c6: #0b8199; --c7: #59626f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161a; --card: #1b1e24; --ink: #e7e9ed; --soft: #9aa3b0; --line: #2e333c;
    --stripe: #21252c; --accent: #7fb0ff; --up: #5fcf98; --down: #ff8f85; --mark: #3a3212;
    --c0: #6ea8fe; --c1: #f59a5b; --c2: #4fd1a0; --c3: #d68be6; --c4: #e0bf55; --c5: #f77f9d;
    --c6: #5fd0e3; --c7: #aab2bd;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main, header, footer { max-width: 84rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.015em; margin: 0 0 0.4rem; }
h2 { font-size: 1.25rem; letter-spacing: -0.01em; margin: 3rem 0 0.35rem; scroll-margin-top: 1rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 0.25rem; }
h2 + h3 { margin-top: 0.75rem; }
figure h3 { margin-top: 0; }
p { margin: 0.35rem 0 1rem; max-width: 46rem; }
a { color: var(--accent); }
.facts, .caption { color: var(--soft); }
.caption { font-size: 0.875rem; }
.facts b { color: var(--ink); font-variant-numeric: tabular-nums; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin: 1rem 0 0; font-size: 0.9rem; }
nav a { text-decoration: none; padding: 0.15rem 0; }
nav a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.scroll {
  overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
}
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.8rem; text-align: right; vertical-align: top; }
th.word, td.word { text-align: left; }
td { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.long { white-space: normal; min-width: 22rem; max-width: 32rem; overflow-wrap: break-word; }
thead th {
  border-bottom: 1px solid var(--line); font-weight: 600; color: var(--soft); white-space: nowrap;
  font-size: 0.8rem; vertical-align: bottom;
}
tbody tr + tr > *, tfoot tr > * { border-top: 1px solid var(--line); }
tbody th { font-weight: 600; }
tfoot th { font-weight: 400; }
tfoot tr > * { color: var(--soft); }
tfoot tr:first-child > * { border-top-width: 2px; }
.pin { position: sticky; left: 0; z-index: 1; background: var(--card); text-align: left; }
thead th { padding-top: 0.55rem; padding-bottom: 0.55rem; }
.board th, .board td { padding: 0.55rem 0.6rem; }
.board .pin { min-width: 12rem; max-width: 15rem; padding-left: 0.9rem; }
.board .avg { background: var(--stripe); }
th button {
  font: inherit; color: inherit; background: none; border: 0; padding: 0.1rem 0; cursor: pointer;
  white-space: nowrap;
}
th button:hover { color: var(--ink); }
th button::after { content: " \2195"; opacity: 0.35; }
th[aria-sort=ascending] button::after { content: " \2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: " \2193"; opacity: 1; }
th[aria-sort=ascending], th[aria-sort=descending] { color: var(--ink); }
.figure { display: block; font-size: 1rem; }
.best .figure { font-weight: 700; }
.best .figure::before { content: "\2605"; color: var(--c4); font-size: 0.7em; margin-right: 0.35em;
  vertical-align: 0.15em; }
.quiet { color: var(--soft); font-weight: 400; }
.sub { display: block; font-size: 0.72rem; line-height: 1.5; color: var(--soft); font-weight: 400; }
.up { color: var(--up); } .down { color: var(--down); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: 1.25rem; }
figure {
  margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 1rem 1rem 0.75rem; min-width: 0;
}
figure > svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 12px system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); stroke-width: 1; }
.axis { stroke: var(--soft); stroke-width: 1; }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.dot { stroke-width: 5; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
.c6 { stroke: var(--c6); } .c7 { stroke: var(--c7); }
.d1 { stroke-dasharray: 6 4; } .d2 { stroke-dasharray: 2 4; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.15rem 1rem; margin: 0.5rem 0 0.4rem;
  padding: 0; font-size: 0.8rem; }
.legend svg { width: 22px; height: 8px; margin-right: 0.4rem; vertical-align: 0.1em; }
details { font-size: 0.875rem; }
summary { cursor: pointer; padding: 0.25rem 0; }
figure details { color: var(--soft); }
figure .scroll { border: 0; }
.runs > details { background: var(--card); border: 1px solid var(--line); border-bottom-width: 0;
  padding: 0.35rem 1rem; }
.runs > details:first-child { border-radius: 8px 8px 0 0; }
.runs > details:last-child { border-radius: 0 0 8px 8px; border-bottom-width: 1px; }
.runs > details:only-child { border-radius: 8px; }
.runs summary b { font-weight: 600; }
.status { border: 1px solid var(--line); border-radius: 1em; padding: 0 0.6em; font-size: 0.75rem;
  margin-left: 0.5rem; color: var(--soft); white-space: nowrap; }
.status.bad { color: var(--down); border-color: currentColor; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0.2rem 1.25rem;
  margin: 0.5rem 0 0.75rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0 0 0.75rem; padding: 0.75rem; background: var(--stripe); border-radius: 6px;
  overflow-x: auto; font: 0.8rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.notes { padding-left: 1.1rem; max-width: 52rem; font-size: 0.9rem; overflow-wrap: anywhere; }
.notes li { margin: 0.3rem 0; }
.warnings { list-style: none; padding: 0.6rem 1rem; background: var(--mark); border-radius: 8px; }
footer { color: var(--soft); font-size: 0.8rem; padding-top: 3rem; padding-bottom: 3rem; }
@media (max-width: 40rem) {
  main, header, footer { padding-left: 1rem; padding-right: 1rem; }
  header { padding-top: 1.75rem; }
  h1 { font-size: 1.5rem; }
  h2 { margin-top: 2.25rem; }
  th, td { padding: 0.35rem 0.6rem; }
  .board .pin { min-width: 8rem; max-width: 9rem; padding-left: 0.7rem; }
  figure { padding: 0.75rem 0.5rem 0.5rem; }
  figure h3, .legend, figure details { padding-left: 0.35rem; }
  svg text { font-size: 17px; }
  .board .pin .sub { display: none; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.35rem; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --stripe: #fff;
    --accent: #000; --up: #13754a; --down: #b3352b; --mark: #fff;
    --c0: #2463c9; --c1: #c2500f; --c2: #0f855b; --c3: #9c3db0; --c4: #8f6d00; --c5: #c22c56;
    --c6: #0b8199; --c7: #59626f;
  }
  @page { size: A4 landscape; margin: 12mm; }
  body { font-size: 9pt; }
  nav, th button::after { display: none; }
  .scroll { overflow: visible; border: 0; }
  .pin { position: static; }
  th, td { padding: 0.25rem 0.4rem; }
  tr, figure { break-inside: avoid; }
  thead { display: table-header-group; }
  h2 { break-after: avoid; margin-top: 1.5rem; }
}
)css";
}

// Sorting only: the page is complete without it. Rows without a figure stay at the end.
std::string_view page_script() {
  return R"js(
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
)js";
}

}  // namespace lra::report
