#!/usr/bin/env bash
# Tasks that are answered at many places of a sequence: their data, runs, evaluation and report, and
# what is refused in one line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

small=(--quiet --set task.length=16 --set task.num_train=400 --set task.num_val=50
  --set task.num_test=50 --set train.steps=12 --set train.warmup_steps=2 --set train.eval_every=6)
pairs=("${small[@]}" --set task.pairs=2 --set task.vocabulary=32)
elements=("${small[@]}" --set task.group=parity --set task.min_length=3)

expect_code 0 lra train recall mamba2 "${pairs[@]}" --threads 1 --out runs/recall
expect_code 0 lra train recall mamba2 "${pairs[@]}" --threads 2 --out runs/two
cmp runs/recall/checkpoints/latest/model.safetensors runs/two/checkpoints/latest/model.safetensors ||
  fail "two threads have other weights than one"
[[ $(field runs/recall/record.json test num_positions) == 100 ]] || fail "two places of 50 examples"
[[ $(field runs/recall/record.json division) == diagnostic ]] || fail "the division"
grep -q 'bidirectional = false' runs/recall/config.toml || fail "the layer sees what comes later"
expect_code 0 lra train state gated_deltanet "${elements[@]}" --out runs/state
expect_code 0 lra train state transformer "${elements[@]}" --out runs/transformer
grep -q 'causal = true' runs/transformer/config.toml || fail "attention sees what comes later"
passed "runs"

expect_code 0 lra eval runs/recall
grep -q 'predicted places' out || fail "eval does not say what it counts"
mkdir longer
longer=(--data longer --set task.length=40 --set task.num_train=0 --set task.num_val=0 --set task.num_test=30)
expect_code 0 lra eval runs/recall "${longer[@]}"
grep -q 'OTHER DATA' out || fail "eval does not say that the data is other data: $(cat out)"
[[ -e longer/recall/manifest.json ]] || fail "no data of other settings"
expect_code 0 lra analyze reach runs/recall --fields 4 --gradients 5
grep -q '^all layers in windows of 4 ' out || fail "no windows: $(cat out)"
expect_code 0 lra reproduce runs/state --threads 1
expect_code 0 lra data show recall data/recall --count 1 --set task.length=16 --set task.pairs=2 \
  --set task.vocabulary=32
grep -q '=' out || fail "no answers are shown"
expect_code 0 lra data check state data/state "${elements[@]:1:8}" --set task.group=parity
grep -q 'labels of test' out || fail "answers are not checked"
expect_code 0 lra help recall
grep -q 'lra data make recall' out || fail "help does not say where examples come from"
expect_code 0 lra report runs --out page.html
expect_code 0 lra report runs --format csv
passed "evaluation, data and report"

# Trees of one operator in the other, near and far.
spine=(--quiet --set task.tree=spine --set task.max_depth=3 --set task.min_args=3 --set task.max_args=3 --set task.min_length=0
  --set task.max_length=20 --set task.num_train=60 --set task.num_val=20 --set task.num_test=20 --set train.steps=3
  --set train.warmup_steps=1)
expect_code 0 lra train listops local "${spine[@]}" --set task.length=30 --out runs/near
mkdir far
expect_code 0 lra eval runs/near --data far --set task.length=60 --set task.filler=1
expect_code 0 lra data check listops far/listops --set task.filler=1
passed "the control of ListOps"

refused 'more examples than\|fewer different examples' lra data make state --out few --quiet \
  --set task.group=parity --set task.length=3 --train 100
refused 'expected lra data make' lra data import recall data/recall --out none
refused 'train.objective' lra train recall s4d "${pairs[@]}" --out none --set train.objective=masked
refused 'quarter of task.length' lra train recall s4d --out none --set task.pairs=40
refused 'no one label' lra eval runs/recall --predictions predictions.csv
refused 'no one label' lra analyze generalization runs/recall
refused 'the run.s own data' lra eval runs/recall --set task.num_test=50
refused "unknown section 'train'" lra eval runs/recall --set train.steps=3
refused 'has 33 token ids\|was trained with 33 token ids' lra eval runs/recall --data longer --set task.vocabulary=64
refused 'at most task.length' lra train state s4d --out none --set task.min_length=100
passed "refusals"
