"""No room of src/ is above its budget of lines (tools/layers.py).

    python3 tests/faults/budgets.py [--quick]

--quick: nothing recorded; else docs/results/scorecard/30-budgets.json.
"""
import pathlib
import sys

from shared import result

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import layers  # noqa: E402


def main():
    lines = layers.lines_of_rooms(ROOT)
    above = list(layers.over_budget(lines))
    print("\n".join(above) if above else f"{sum(lines.values()):,} lines, every room within its budget")
    if "--quick" not in sys.argv:
        result.record(30, "budgets", {"lines of src/ without tests": sum(lines.values()), "rooms above their budget": len(above)},
                      "red" if above else "green", "python3 tests/faults/budgets.py")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
