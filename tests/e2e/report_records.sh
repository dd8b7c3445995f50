#!/usr/bin/env bash
# Records that are handed on: --check passes what a run left, and finds a record that was edited and a
# log or weights of another run; --card says what the record says.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

make_listops data/listops 200 20 20
lra train listops linformer --data data --out run --threads 1 --quiet --set task.length=200 \
  --set train.batch_size=8 --set train.steps=4 --set train.eval_every=2 --set train.warmup_steps=1

expect_code 0 lra report --check run
passed "a record that a run left agrees with itself"

# changed [--without-hash] KEY... VALUE: a copy of the record with the value at that place.
changed() {
  "$LRA_PYTHON" - "$@" <<'PYTHON'
import json, pathlib, sys

words = sys.argv[1:]
record = json.loads(pathlib.Path("run/record.json").read_text())
if words[0] == "--without-hash":
    del words[0], record["record_hash"]
*keys, last, value = words
place = record
for key in keys:
    place = place[int(key) if isinstance(place, list) else key]
place[last] = json.loads(value)
pathlib.Path("changed.json").write_text(json.dumps(record))
PYTHON
}

# finds FILE EXPECTED: --check of the file says it, in one line, and ends with 2.
finds() {
  expect_code 2 lra report --check "$1"
  grep -q -- "$2" out || fail "'$2' is not among: $(cat out)"
  [[ $(wc -l <out) == 1 ]] || fail "not one line: $(cat out)"
}

changed test accuracy "$(field run/record.json test accuracy)"
expect_code 0 lra report --check changed.json
passed "white space is not part of a record's hash"
for edit in "test accuracy 0.512345" "config train learning_rate 0.9" 'division "apples-to-apples"' "seed -1"; do
  # shellcheck disable=SC2086  # words
  changed $edit
  finds changed.json "changed.json: was changed after it was written: its content does not match record_hash; expected"
done
expect_code 2 lra report changed.json
[[ $(wc -l <err) == 1 ]] || fail "not one line: $(cat err)"
changed schema 99
finds changed.json "of schema 99; expected schema 1"
changed --without-hash seed 7
expect_code 0 lra report --check changed.json
passed "an edited record is refused, and one of an earlier program is not"

expect_code 0 lra analyze convergence run
sed -i 's/"eval_every": 2/"eval_every": 1/' run/analysis/convergence.json
expect_code 0 lra report run
grep -q "convergence.json: was changed after it was written" out || fail "an edited analysis is believed: $(cat out)"
rm -r run/analysis
passed "an edited analysis is left out"

# The log next to a record, and its weights, are of the same run.
cp -r run edited
changed --without-hash val_curve 0 accuracy 0.95
mv changed.json edited/record.json
finds edited "edited/record.json: the validation has accuracy 0.95 .*; metrics.jsonl says"
rm edited/metrics.jsonl
expect_code 0 lra report --check edited
lra train listops linformer --data data --out other --seed 1 --threads 1 --quiet --set task.length=200 \
  --set train.batch_size=8 --set train.steps=4 --set train.eval_every=2 --set train.warmup_steps=1
cp other/metrics.jsonl edited
finds edited "edited/record.json: .*metrics.jsonl says"
rm -r edited/metrics.jsonl edited/checkpoints/*
cp -r other/checkpoints edited
expect_code 2 lra report --check edited
grep -q "holds the weights of another run: seed 1 instead of 0" out || fail "weights of another run are believed: $(cat out)"
passed "the log or the weights of another run are found out"

expect_code 0 lra report run --card --out cards
card=$(echo cards/linformer-listops-seed0-*.md)
[[ $(head -n 1 "$card") == --- ]] || fail "$card has no head"
accuracy=$("$LRA_PYTHON" -c 'import json; print("%.4f" % (100 * json.load(open("run/record.json"))["test"]["accuracy"]))')
grep -qF "value: $accuracy" "$card" || fail "$card does not say $accuracy"
expect_code 2 lra report empty --card
expect_code 2 lra report run --card --format csv
passed "a card says what the record says"

expect_code 0 lra report run --out made/for/it/report.csv
grep -q linformer made/for/it/report.csv || fail "no run in the report"
passed "folders that --out lacks are made"

# A table has no place for what was left out of it.
mkdir broken
echo '{"schema": 999}' >broken/record.json
expect_code 0 lra report run broken --format csv
grep -q "^left out: .*broken/record.json" err || fail "a lost record is not named: $(cat err)"
passed "tables name on standard error what they leave out"
