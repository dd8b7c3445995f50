#!/usr/bin/env bash
# mlflow-skinny 3.17.2 with SQLite: a run whose last loss is NaN. Guess: a search for `loss < 3` leaves it out and one
# for `loss > 3` finds it. Seen: neither finds it, nor do <=, >= and =; `loss != 3` does. An infinite loss is stored and
# read back as 1.7976931348623157e308, so it passes for a number.
# So runs that diverged are best told by their status and their last finite loss.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1 pandas
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import math

import mlflow

mlflow.set_tracking_uri("sqlite:///mlflow.db")
for name, value in (("nan", math.nan), ("infinite", math.inf), ("fine", 2.0)):
    with mlflow.start_run(run_name=name):
        mlflow.log_metric("loss", value)

def found(where):
    runs = mlflow.search_runs(search_all_experiments=True, filter_string=where, output_format="list")
    return sorted(run.info.run_name for run in runs)

for sign in ("<", ">", "<=", ">=", "=", "!="):
    print(f"loss {sign} 3:", *found(f"metrics.loss {sign} 3"))
    assert ("nan" in found(f"metrics.loss {sign} 3")) == (sign == "!=")
[infinite] = mlflow.search_runs(search_all_experiments=True, output_format="list",
                                filter_string="attributes.run_name = 'infinite'")
print("infinity reads", infinite.data.metrics["loss"])
assert infinite.data.metrics["loss"] == 1.7976931348623157e308
assert found("metrics.loss < 3") == ["fine"]
PYTHON
