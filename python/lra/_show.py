"""How runs look: one line in a prompt, a small table with a curve in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._run import Run

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 360, 120, 40, 16


def name_of(record: dict[str, Any]) -> str:
    return f"{record['model_title']}, seed {record['seed']}"


def count(number: float) -> str:
    """ "950", "77 k", "1.3 M"."""
    if number < 1000:
        return str(int(number))
    return f"{number / 1e3:.0f} k" if number < 1e6 else f"{number / 1e6:.1f} M"


def accuracy_text(run: Run) -> str:
    """ "37.0 % (34.9 to 39.1)"; the status of a run without a test."""
    if run.test_accuracy is None or run.interval is None:
        return run.status
    low, high = run.interval
    return f"{100 * run.test_accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def line_of(run: Run) -> str:
    record = run.record
    tested = "test accuracy " if run.test_accuracy is not None else ""
    return (f"{record['model_title']} on {record['task_title']}, {record['preset']}, seed "
            f"{record['seed']}: {tested}{accuracy_text(run)}, {count(record['num_parameters'])} "
            f"parameters, {run.folder}")


def html_of(run: Run) -> str:
    record = run.record
    best = max(record["baselines"].items(), key=lambda item: item[1], default=None)
    facts = [
        ("test accuracy" if run.test_accuracy is not None else "status", accuracy_text(run)),
        ("best trivial baseline", f"{100 * best[1]:.1f} % ({best[0]})" if best else "none"),
        ("parameters", f"{record['num_parameters']:,}"),
        ("steps", f"{record['steps']:,} of {record['planned_steps']:,}"),
        ("training", f"{record['train_seconds']:,.0f} s"),
        ("division", f"{record['division']}: {record['division_reason']}"),
        ("folder", str(run.folder)),
        *(("warning", text) for text in record.get("warnings") or ()),
    ]
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(text)}</td></tr>' for name, text in facts)
    title = f"{record['model_title']} on {record['task_title']}, {record['preset']}, seed {record['seed']}"
    return (f'<div><b>{escape(title)}</b><div style="display:flex;flex-wrap:wrap;gap:1em">'
            f"<table>{rows}</table>{curve_svg(record)}</div></div>")


def curve_svg(record: dict[str, Any]) -> str:
    """The validation accuracy over the steps; nothing before the second validation."""
    points = [(e["step"], e["accuracy"]) for e in record["val_curve"]]
    if len(points) < 2:
        return ""
    (first, last), values = (points[0][0], points[-1][0]), [value for _, value in points]
    low, high = min(values), max(values)
    low, high = (low - 0.01, high + 0.01) if low == high else (low, high)

    def place(step: float, value: float) -> str:
        x = _LEFT + (step - first) / (last - first) * (_WIDTH - _LEFT - 8)
        y = 8 + (high - value) / (high - low) * (_HEIGHT - 8 - _BOTTOM - 4)
        return f"{x:.1f},{y:.1f}"

    def text(x: float, y: float, anchor: str, words: str) -> str:
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>'

    line = " ".join(place(step, value) for step, value in points)
    bottom = _HEIGHT - _BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="validation accuracy" '
        'font-family="sans-serif" font-size="10" fill="currentColor">'
        f'<path d="M{_LEFT},4V{bottom}H{_WIDTH - 4}" fill="none" stroke="currentColor" opacity="0.5"/>'
        f'<polyline points="{line}" fill="none" stroke="#0b6bcb" stroke-width="1.5"/>'
        + text(_LEFT - 4, 12, "end", f"{100 * high:.1f} %")
        + text(_LEFT - 4, bottom, "end", f"{100 * low:.1f} %")
        + text(_LEFT, _HEIGHT - 4, "start", f"validation, step {first:,}")
        + text(_WIDTH - 8, _HEIGHT - 4, "end", f"{last:,}")
        + "</svg>")
