#!/usr/bin/env bash
# Findings of the checks of data are printed, kept with the data and in every record, and accepted by name.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

quick=(--threads 1 --quiet --set train.steps=2 --set model.layers=1 --set train.batch_size=8)

"$LRA_PYTHON" - <<'PYTHON'
import json, math, random

draw = random.Random(0)
def rows(count):
    return [{"values": [round(math.sin((.2 + .2 * (k % 2)) * t) + draw.gauss(0, .5), 4) for t in range(40)], "label": k % 2}
            for k in range(count)]
train, test = rows(200), rows(80)
for name, those in (("train", train), ("test", train[:12] + test[12:])):
    with open(f"{name}.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in those)
PYTHON

import_with_a_warning() {
  expect_code 0 lra data import custom train.jsonl test.jsonl --out data/waves
  grep -q '  warning: copies: 12 of the 80 examples of test are also in an earlier split' out || fail "import: $(cat out)"
  expect_code 0 lra data check custom data/waves
  grep -q 'warning: copies: 12 of the 80' out || fail "check: $(cat out)"
  expect_code 2 lra data import custom train.jsonl test.jsonl --out none --accept copys
  grep -q "no warning is named 'copys'.*did you mean 'copies'" err || fail "an unknown name: $(cat err)"
  [[ ! -e none ]] || fail "a refused import leaves a folder"
  expect_code 0 lra data import custom train.jsonl test.jsonl --out data/accepted --accept padding,copies --json
  [[ $(field out data_checks 0 accepted) == True ]] || fail "import --accept: $(cat out)"
  passed "an import prints what its checks find, and takes names that are accepted"
}

train_on_it() {
  local said
  lra train custom:waves s4d --data data --out runs/found "${quick[@]}" >out
  grep -q 'warning: copies: 12 of the 80' out || fail "train: $(cat out)"
  lra train custom:accepted s4d --data data --out runs/accepted "${quick[@]}" >out
  lra train custom:waves s4d --data data --out runs/now --accept copies "${quick[@]}" >out
  grep -q 'accepted: copies: 12 of the 80' out || fail "train --accept: $(cat out)"
  for said in found:False accepted:True now:True; do
    [[ $(field "runs/${said%:*}/record.json" data_checks 0 accepted) == "${said#*:}" ]] ||
      fail "$said: $(cat "runs/${said%:*}/record.json")"
  done
  lra eval runs/found --data data >out
  grep -q 'warning: copies: 12 of the 80' out || fail "eval: $(cat out)"
  printf '%s\n' 'tasks = ["custom:waves"]' 'models = ["s4d"]' 'seeds = [0]' 'accept = ["copies"]' '[set]' \
    'train.steps = 2' 'train.batch_size = 8' 'model.layers = 1' >suite.toml
  expect_code 0 lra suite run suite.toml --data data --out suite --threads 1 --quiet
  [[ $(field suite/*/record.json data_checks 0 accepted) == True ]] || fail "a suite: $(cat suite/*/record.json)"
  sed -i 's/copies/copys/' suite.toml
  expect_code 2 lra suite run suite.toml --data data --out none --threads 1
  grep -q "no warning is named 'copys'" err || fail "a suite with an unknown name: $(cat err)"
  passed "records keep what was found, and whether it was accepted"
}

import_with_a_warning
train_on_it
