// Draws the charts of the report page: Vega-Lite where a figure is a specification, uPlot where it
// is learning curves. What is drawn stands in the page as JSON, and nothing is ever loaded. The
// policy of the page forbids code made from strings, so Vega's expressions are interpreted.
import uPlot from "uplot";
import { transforms } from "vega-dataflow";
import * as encoders from "vega-encode";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";
import { parse } from "vega-parser";
import * as dataTransforms from "vega-transforms";
import { View } from "vega-view";
import * as viewTransforms from "vega-view-transforms";

Object.assign(transforms, dataTransforms, encoders, viewTransforms);

const refuse = () => Promise.reject(new Error("a report loads nothing"));
const noLoader = { load: refuse, sanitize: refuse, http: refuse, file: refuse };

// The style sheet's colours by name, so that a change of theme needs no new drawing.
const config = {
  background: null,
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    gridColor: "var(--line)", domainColor: "var(--soft)", tickColor: "var(--soft)",
    labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12,
    titleFontWeight: "normal",
  },
  legend: { labelColor: "var(--soft)", titleColor: "var(--soft)", labelFontSize: 12 },
  header: { labelColor: "var(--ink)", titleColor: "var(--soft)", labelFontSize: 12 },
  title: { color: "var(--ink)", anchor: "start", fontSize: 13 },
  text: { fill: "var(--ink)", fontSize: 12 },
};

function drawSpecification(element, specification) {
  const view = new View(parse(compile(specification, { config }).spec, null, { ast: true }), {
    expr: expressionInterpreter, renderer: "svg", container: element, hover: true,
    loader: noLoader,
  });
  return view.runAsync();
}

// A canvas takes no names of colours from the style sheet, only what they stand for at the moment.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const dashes = [[], [6, 4], [2, 4]];
const number = new Intl.NumberFormat("en");

function curveSeries(curve) {
  return {
    label: curve.name, stroke: () => color(`c${curve.color}`), width: 1.8, spanGaps: true,
    dash: dashes[curve.dash], points: { show: curve.steps.length === 1 },
    value: (plot, value) => (value == null ? "-" : value.toFixed(2)),
  };
}

function drawCurves(element, { curves }) {
  const axis = {
    stroke: () => color("soft"), grid: { stroke: () => color("line"), width: 1 },
    ticks: { stroke: () => color("line"), width: 1 },
  };
  const size = () => ({ width: Math.max(200, element.clientWidth), height: 300 });
  const plot = new uPlot({
    ...size(),
    scales: { x: { time: false } },
    series: [
      { label: "step", value: (u, value) => (value == null ? "-" : number.format(value)) },
      ...curves.map(curveSeries),
    ],
    axes: [{ ...axis, values: (u, ticks) => ticks.map((tick) => number.format(tick)) }, axis],
  }, uPlot.join(curves.map((curve) => [curve.steps, curve.percents])), element);
  new ResizeObserver(() => plot.setSize(size())).observe(element);
  document.addEventListener("themechange", () => plot.redraw(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw(false));
}

const painters = { specification: drawSpecification, curves: drawCurves };
const drawings = [...document.querySelectorAll(".chart")].map(async (element) => {
  await painters[element.dataset.kind](element, JSON.parse(element.querySelector("script").text));
  element.closest("figure").classList.add("drawn");
});
Promise.all(drawings).then(() => document.documentElement.classList.add("charts-drawn"));
