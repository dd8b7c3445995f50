// Bundles charts.js into dist/charts.js with the licences of what went in, and the style sheet of
// uPlot beside it. The same sources give the same bytes: tools/setup refuses others than those in
// SHA256SUMS. After a wanted change: npm install, node bundle.mjs, and
//   sha256sum package-lock.json bundle.mjs charts.js dist/* >SHA256SUMS
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

process.chdir(dirname(fileURLToPath(import.meta.url)));
const result = await build({
  entryPoints: ["charts.js"], bundle: true, minify: true, format: "iife", charset: "ascii",
  target: "es2022", legalComments: "none", metafile: true, write: false,
  // Vega-Lite takes four small functions from the whole of Vega.
  alias: { vega: "vega-util" },
});

// Licence text -> the packages that have it, in the order of their names.
const licences = new Map();
const packages = new Set(Object.keys(result.metafile.inputs).flatMap(
  (path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
for (const name of [...packages].sort()) {
  const folder = `node_modules/${name}`;
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = readFileSync(`${folder}/${file}`, "utf8").replace(/\s*\n\s*/g, "\n").trim();
  licences.set(text, [...(licences.get(text) ?? []), `${name} ${version}`]);
}
let banner = "/*!\n";
for (const [text, names] of licences) banner += `${names.join(", ")}:\n${text}\n\n`;
banner = banner.replace(/[^\n -~]/g, "?").trimEnd() + "\n*/\n";

const files = {
  "charts.js": banner + result.outputFiles[0].text,
  "charts.css": readFileSync("node_modules/uplot/dist/uPlot.min.css", "utf8"),
};
mkdirSync("dist", { recursive: true });
for (const [name, text] of Object.entries(files)) {
  if (/<\/script|<\/style|<!--/i.test(text)) throw new Error(`${name} would end its element`);
  writeFileSync(`dist/${name}`, text);
}
