"""Records what a script has measured, for tools/scorecard."""
import datetime
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def promises():
    """The promise of each line of the scorecard, as tools/scorecard words it."""
    loader = importlib.machinery.SourceFileLoader("scorecard", str(ROOT / "tools" / "scorecard"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("scorecard", loader))
    loader.exec_module(module)
    return module.PROMISES


def machine():
    """Processor and how many of them; no name that leads to a place."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return f"{os.cpu_count()} x {line.split(':', 1)[1].strip()}"
    return f"{os.cpu_count()} processors"


def revision():
    """The commit that is measured; with a plus when files differ from it."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True,
                              check=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "tests", "tools", "bench",
                  "configs", "cmake", "CMakeLists.txt", "CMakePresets.json")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def provenance(command):
    """Provenance of a figure: command, machine, revision and date of the measurement."""
    return {"command": command, "machine": machine(), "revision": revision(),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}


def record(line, name, figures, verdict, command):
    """Writes docs/results/scorecard/LINE-name.json."""
    result = {"line": line, "promise": promises()[line], "figures": figures, "verdict": verdict,
              **provenance(command)}
    path = ROOT / "docs" / "results" / "scorecard" / f"{line:02d}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"recorded {path.relative_to(ROOT)}: {verdict}")
