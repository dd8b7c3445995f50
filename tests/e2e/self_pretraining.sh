#!/usr/bin/env bash
# The commands of docs/pretraining.md: a run that predicts masked inputs, one that begins with its
# weights, their report; and what is refused in one line.
page=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../docs/pretraining.md")
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

sed -n '/^```sh$/,/^```$/{/^```/!p}' "$page" >commands.sh
[[ $(grep -c '^lra ' commands.sh) -ge 4 ]] || fail "the page has lost its commands"
mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$LRA_PROGRAM" >bin/lra
chmod +x bin/lra
expect_code 0 env PATH="$PWD/bin:$PATH" bash -e commands.sh
passed "the commands of the page run"

[[ $(field runs/masked/record.json division) == pretraining ]] || fail "the masked run"
[[ $(field runs/masked/record.json val num_positions) -gt 50 ]] || fail "no positions are counted"
[[ $(field runs/tuned/record.json division) == self-pretrained ]] || fail "the division"
[[ $(field runs/tuned/record.json initial_weights pretraining steps) == 20 ]] || fail "its steps"
grep -q 'Transformer, self-pretrained' report.html || fail "the report has no such row"
grep -q 'id="pretraining"' report.html || fail "the report lists no pretraining"
expect_code 0 lra report runs --check
expect_code 0 lra report runs --format csv
[[ $(cut -d, -f1-4 out | grep -c transformer) -ge 1 ]] || fail "the table lacks the tuned run"
[[ $(grep -c 'pretraining' out) == 0 ]] || fail "the masked run is in the table: $(cat out)"
passed "the report keeps the two apart"

expect_code 0 lra reproduce runs/tuned --threads 1
expect_code 0 lra eval runs/masked --quiet
grep -q 'predicted places' out || fail "eval does not say what it counts"
expect_code 0 lra export runs/masked --out exported
mkdir -p short  # the commands of the page may have made it
short=(--set task.length=64 --set task.min_length=8 --set task.max_length=64 --set train.steps=5
  --set train.warmup_steps=1 --quiet)
expect_code 0 lra train listops transformer --out again --data short "${short[@]}" --init-from exported
[[ $(field again/record.json division) == self-pretrained ]] || fail "exported weights"
mkdir bare
cp exported/model.safetensors bare
expect_code 0 lra train listops transformer --out bare_run --data short "${short[@]}" \
  --init-from bare/model.safetensors
[[ $(field bare_run/record.json division) == free-for-all ]] || fail "weights without a record"
expect_code 0 lra data make listops --train 300 --val 50 --test 50 --out other/listops --quiet \
  --set task.length=64 --set task.min_length=8 --set task.max_length=64
expect_code 0 lra train listops transformer --out other_run "${short[@]}" --data other \
  --init-from runs/masked
[[ $(field other_run/record.json division) == free-for-all ]] || fail "other data"
passed "weights keep the division with their record and their data alone"

masked=(--set train.objective=masked --quiet)
refused 'the inputs are tokens' lra train listops local --out none "${masked[@]}" \
  --set train.masked_loss=l1
refused 'receptive_field' lra train listops local --out none "${masked[@]}" \
  --set model.receptive_field=8
refused 'predicts its inputs' lra analyze generalization runs/masked
refused 'cannot change in a run that continues' lra train --resume runs/tuned \
  --set train.objective=masked
[[ ! -e none ]] || fail "a refused run left its folder"
passed "what has nothing to predict is refused"
