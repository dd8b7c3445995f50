#!/usr/bin/env bash
# Data that nobody here made: 240 digits of scikit-learn (UCI, "Optical Recognition of Handwritten
# Digits"), imported from CSV, .npz and JSON Lines, checked, trained on by three models,
# reported, exported and evaluated elsewhere.
digits=$(realpath "$(dirname "${BASH_SOURCE[0]}")/own_data/digits.csv")
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

hash_of() { field "$1" hash; }
quick=(--set train.steps=20 --set train.eval_every=10 --set train.checkpoint_every=10
       --set train.batch_size=8 --quiet)

# one WORD...: on one thread.
one() { lra "$@" --threads 1; }

import_digits() {
  lra data import custom "$digits" --set task.label=c64 --out data/digits --json --quiet >csv.json
  [[ $(field csv.json splits train) == 192 ]] || fail "train has not four fifths of 240"
  "$LRA_PYTHON" - "$digits" <<'PYTHON'
import json, sys
import numpy as np

rows = np.loadtxt(sys.argv[1], delimiter=",", dtype=np.uint8)
np.savez_compressed("digits.npz", x=rows[:, :-1], y=rows[:, -1].astype(np.int64))
with open("digits.jsonl", "w") as file:
    for row in rows.tolist():
        file.write(json.dumps({"tokens": row[:-1], "label": row[-1]}) + "\n")
pixels = rows[:, :-1].reshape(-1, 8, 8).astype(np.float32)
np.savez("rows.npz", x_train=pixels[:180], y_train=rows[:180, -1], x_val=pixels[180:210],
         y_val=rows[180:210, -1], x_test=pixels[210:], y_test=rows[210:, -1])
PYTHON
  for kind in npz jsonl; do
    lra data import custom "digits.$kind" --out "again/$kind" --json --quiet >"$kind.json"
    [[ $(hash_of csv.json) == $(hash_of "$kind.json") ]] || fail "$kind differs from CSV"
  done
  lra data import custom rows.npz --out data/rows --json --quiet >rows.json
  expect_code 0 lra data check custom data/digits
  grep -q 'nearest class mean' out || fail "check names no baseline"
  expect_code 0 lra data check custom:rows data/rows
  lra data show custom data/rows --split test --index 3 --json >shown.json
  [[ $(field shown.json tokens 0 7 | tr , '\n' | wc -l) == 8 ]] || fail "no channels are shown"
  passed "one data set, hash $(hash_of csv.json), from CSV, .npz and JSON Lines"
}

import_settings() {
  expect_code 2 lra train custom s4d --data data/digits --out none --set task.label=c3
  grep -q 'task.label: has an effect only at the import' err || fail "train: $(cat err)"
  expect_code 2 lra data show custom data/digits --set task.split_seed=1
  grep -q 'imported with split_seed = 0, not split_seed = 1' err || fail "data show: $(cat err)"
  printf '%s\n' 'tasks = ["custom:digits"]' 'models = ["s4d"]' 'seeds = [0]' '[set.task]' \
    'split_seed = 1' >seeds.toml
  expect_code 2 lra suite run seeds.toml --data data --out none
  grep -q 'imported with split_seed = 0' err || fail "suite: $(cat err)"
  [[ ! -e none ]] || fail "a refused setting leaves a folder"
  passed "settings of the import are not those of a run"
}

train_models() {
  one train custom transformer --data data/digits --out runs/transformer "${quick[@]}" >/dev/null
  one train custom:digits local --data data --out runs/local "${quick[@]}" >/dev/null
  one train custom:rows s4d --data data --out runs/s4d "${quick[@]}" >/dev/null
  [[ $(field runs/transformer/record.json task) == custom:digits ]] || fail "the task has no name"
  [[ $(field runs/s4d/record.json config task channels) == 8 ]] || fail "the run has no channels"
  for run in transformer local s4d; do
    [[ $(field "runs/$run/record.json" status) == done ]] || fail "$run is not done"
  done
  # The same bits with another number of threads.
  lra train custom:rows s4d --data data --out two "${quick[@]}" --threads 2 >/dev/null
  [[ $(field two/record.json weights_hash) == $(field runs/s4d/record.json weights_hash) ]] ||
    fail "two threads give other weights"
  passed "three models on two data sets"
}

suite_of_both() {
  cat >suite.toml <<'TOML'
name = "own"
tasks = ["custom:digits", "custom:rows"]
models = ["linformer"]
seeds = [0]

[set.train]
steps = 10
eval_every = 10
batch_size = 8
TOML
  expect_code 0 lra suite run suite.toml --data data --out suite --quiet --threads 1
  [[ -f suite/custom.digits-linformer-s0/record.json ]] || fail "the suite has no run on digits"
  expect_code 0 lra suite status suite.toml --out suite --json
  [[ $(field out runs 0 state 2>/dev/null || field out 0 state) == done ]] || fail "$(cat out)"
  passed "a suite over both"
}

report_and_export() {
  expect_code 0 lra report runs --format text
  grep -q '^digits ' out || fail "the report does not name the data"
  expect_code 0 lra report runs --format html --out report.html
  expect_code 0 lra report runs --check
  expect_code 0 lra export runs/s4d --out exported
  (cd exported && sha256sum --quiet -c SHA256SUMS) || fail "checksums differ"
  mkdir elsewhere && mv exported elsewhere/model && cp -r data/rows elsewhere/
  expect_code 0 lra eval elsewhere/model --data elsewhere/rows --json
  "$LRA_PYTHON" - out runs/s4d/record.json <<'PYTHON' || fail "the exported run scores otherwise"
import json, sys

found, record = (json.load(open(path)) for path in sys.argv[1:])
assert found["exported"] and found["model"] == "s4d" and found["task"] == "custom:rows"
assert found["accuracy"] == record["test"]["accuracy"], (found, record["test"])
PYTHON
  expect_code 0 lra eval elsewhere/model --data elsewhere/rows
  grep -q '^exported: S4D on Own data: rows' out || fail "eval does not say what it is"
  expect_code 2 lra eval elsewhere/model --data data/digits
  expect_code 0 one train custom:rows s4d --data data --init-from elsewhere/model --out tuned \
    "${quick[@]}"
  printf 'x' | dd of=elsewhere/model/model.safetensors bs=1 seek=2000 conv=notrunc status=none
  expect_code 2 lra eval elsewhere/model --data elsewhere/rows
  passed "report, export and evaluation elsewhere"
}

texts_and_pairs() {
  "$LRA_PYTHON" - <<'PYTHON'
import csv

with open("pairs.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["sentence1", "sentence2", "label"])
    for i in range(60):
        rows.writerow([f'first, "{i}"\nwith two lines', f"second {i}", "same" if i % 3 else "other"])
PYTHON
  expect_code 0 lra data import custom pairs.csv --out data/pairs --quiet
  expect_code 0 one train custom:pairs transformer --data data --out pairs "${quick[@]}"
  expect_code 0 lra data show custom data/pairs
  grep -q 'two lines' out || fail "the pair is not shown"
  expect_code 0 lra eval pairs
  grep -q '^same ' out || fail "eval does not name the classes: $(cat out)"
  expect_code 0 lra data check custom data/pairs
  grep -Eq 'labels of train +other: .*, same: ' out || fail "check does not name the classes: $(cat out)"
  expect_code 2 lra train custom:pears transformer --data data
  grep -q "did you mean 'custom:pairs'" err || fail "no name is suggested: $(cat err)"
  LRA_DATA=data expect_code 0 lra list tasks
  grep -q '^custom:pairs ' out || fail "own data is not listed: $(cat out)"
  expect_code 0 lra data export custom data/pairs --out pairs_out
  lra data import custom pairs_out --out data/pairs_again --json --quiet >again.json
  lra data prepare custom:pairs --data data --json --quiet >pairs.json
  [[ $(hash_of again.json) == $(hash_of pairs.json) ]] || fail "pairs change on their way"
  passed "pairs of texts"
}

parquet() {
  if ! "$LRA_PYTHON" -c 'import pyarrow' 2>/dev/null; then
    printf 'x' >a.parquet
    LRA_INTERPRETER=$LRA_PYTHON expect_code 2 lra data import custom a.parquet --out none
    [[ $(wc -l <err) == 1 ]] || fail "not one line: $(cat err)"
    grep -q 'pip install pyarrow' err || fail "$(cat err)"
    passed "without pyarrow a line says what to install"
    return
  fi
  "$LRA_PYTHON" - <<'PYTHON'
import pyarrow
import pyarrow.parquet

for split, count in (("train", 40), ("test", 20)):
    labels = [i % 2 for i in range(count)]
    texts = [f"{split} review {i}, {'good' if label else 'bad'}" for i, label in enumerate(labels)]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": labels}),
                                f"{split}-00000-of-00001.parquet")
PYTHON
  export LRA_INTERPRETER=$LRA_PYTHON
  expect_code 0 lra data import custom train-*.parquet test-*.parquet --out data/reviews --quiet
  expect_code 0 lra data import text train-*.parquet test-*.parquet --out data/text --quiet
  expect_code 0 lra data check text data/text --set task.num_train=40 --set task.num_test=20
  head -c 100 train-00000-of-00001.parquet >cut.parquet
  expect_code 2 lra data import custom cut.parquet --out none
  [[ $(wc -l <err) == 1 ]] || fail "not one line: $(cat err)"
  passed "Parquet through pyarrow"
}

help_of_settings() {
  for topic in train.steps steps; do
    expect_code 0 lra help "$topic"
    grep -q '^train.steps .*number of updates' out || fail "help $topic: $(cat out)"
  done
  expect_code 0 lra help mixer
  grep -q '^mixer.rank .*linformer' out || fail "help mixer: $(cat out)"
  passed "help of one setting and of a group"
}

help_of_settings
import_digits
import_settings
train_models
suite_of_both
report_and_export
texts_and_pairs
parquet
