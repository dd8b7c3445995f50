#!/usr/bin/env bash
# Records that are handed on: --check passes what a run left and finds what was changed afterwards,
# --card and --format lm-eval say what the record says.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

make_listops data/listops 200 20 20
lra train listops linformer --data data --out run --threads 1 --quiet --set task.length=200 \
  --set train.batch_size=8 --set train.steps=4 --set train.eval_every=2 --set train.warmup_steps=1

expect_code 0 lra report --check run
passed "a record that a run left agrees with itself"

# changed KEY... VALUE: a copy of the record with the value at that place.
changed() {
  "$LRA_PYTHON" - "$@" <<'PYTHON'
import json, pathlib, sys

*keys, last, value = sys.argv[1:]
record = json.loads(pathlib.Path("run/record.json").read_text())
place = record
for key in keys:
    place = place[int(key) if isinstance(place, list) else key]
place[last] = json.loads(value)
pathlib.Path("changed.json").write_text(json.dumps(record))
PYTHON
}

# finds EXPECTED: --check of the copy names it, in one line, and ends with 2.
finds() {
  expect_code 2 lra report --check changed.json
  grep -qF -- "$1" out || fail "'$1' is not among: $(cat out)"
  [[ $(wc -l <out) == "${2-1}" ]] || fail "not ${2-1} lines: $(cat out)"
}

changed test accuracy 0.512345
finds "is no whole number of 20 examples"
changed fingerprint '"00000000000000000000000000000000"'
finds "fingerprint is 0000"
changed config train learning_rate 0.9
finds "config_hash is"
changed division '"apples-to-apples"'
finds "division is apples-to-apples; expected free-for-all"
changed num_parameters 17
finds "num_parameters is 17"
changed model '"performer"'
finds "run.model of the settings is linformer"
changed schema 99
finds "schema"
changed seed -1
finds "seed"
passed "changed records are found out, one line each"

# In a run's folder the record is also checked against the run's log: here for a validation and a test
# that are shares of their examples, and would pass otherwise.
cp -r run edited
changed val_curve 0 accuracy 0
mv changed.json edited/record.json
expect_code 2 lra report --check edited
grep -q "edited/record.json: val_curve.accuracy at step 2 is 0.0; metrics.jsonl says" out ||
  fail "a validation that the log contradicts is believed: $(cat out)"
# One example more, so that the test is no further from the validation than a run's own could be.
one_more=$("$LRA_PYTHON" -c "print(round($(field run/record.json test accuracy) + 0.05, 2))")
changed test accuracy "$one_more"
mv changed.json edited/record.json
expect_code 2 lra report --check edited
grep -q "edited/record.json: test.accuracy at step 4 is $one_more; metrics.jsonl says" out ||
  fail "a test that the log contradicts is believed: $(cat out)"
[[ $(wc -l <out) == 1 ]] || fail "not one line: $(cat out)"
rm edited/metrics.jsonl
expect_code 0 lra report --check edited
passed "a record that the log of its run contradicts is found out"

expect_code 0 lra report run --card --out cards
card=$(echo cards/linformer-listops-seed0-*.md)
[[ $(head -n 1 "$card") == --- ]] || fail "$card has no head"
accuracy=$("$LRA_PYTHON" -c 'import json; print("%.4f" % (100 * json.load(open("run/record.json"))["test"]["accuracy"]))')
grep -qF "value: $accuracy" "$card" || fail "$card does not say $accuracy"
expect_code 2 lra report empty --card
expect_code 2 lra report run --card --format csv
passed "a card says what the record says"

expect_code 0 lra report run --format lm-eval --out results.json
[[ $(field results.json results lra_listops acc,none) == "$(field run/record.json test accuracy)" ]] ||
  fail "another accuracy: $(cat results.json)"
passed "the lm-evaluation-harness shape holds the figure"

expect_code 0 lra report run --out made/for/it/report.csv
grep -q linformer made/for/it/report.csv || fail "no run in the report"
passed "folders that --out lacks are made"

finds_preset_steps() {
  changed preset_steps 20
  finds "preset_steps is 20; expected 5000"
  changed model_title '"Somebody else"'
  finds "model_title is Somebody else; expected Linformer"
}
finds_preset_steps
passed "what the record says of preset and model is compared with these"

# A table has no place for what was left out of it.
mkdir broken
echo '{"schema": 999}' >broken/record.json
for format in csv lm-eval; do
  expect_code 0 lra report run broken --format "$format"
  grep -q "^left out: .*broken/record.json" err || fail "$format: a lost record is not named: $(cat err)"
done
passed "tables name on standard error what they leave out"
