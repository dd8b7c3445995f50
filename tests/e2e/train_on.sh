#!/usr/bin/env bash
# A run that is trained further with other settings, and one that begins with the weights of another:
# what ends where, what the record says, and what is refused in one line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

settings=(--data data --threads 1 --quiet
  --set task.length=64 --set task.min_length=8 --set task.max_length=64 --set train.batch_size=4
  --set train.eval_every=5 --set train.schedule=constant --set train.warmup_steps=0
  --set train.learning_rate=1e-3 --set model.layers=1)

expect_code 0 lra data make listops --train 80 --val 20 --test 20 --out data/listops --threads 1 \
  --set task.length=64 --set task.min_length=8 --set task.max_length=64 --quiet

expect_code 0 lra train listops transformer --out short "${settings[@]}" --set train.steps=10
expect_code 0 lra train listops transformer --out long "${settings[@]}" --set train.steps=15
expect_code 0 lra train --resume short --threads 1 --set train.steps=15
grep -q 'continued .* after step 10 with train.steps=15 instead of 10' out || fail "$(cat out)"
same_tensors short/checkpoints/latest/model.safetensors long/checkpoints/latest/model.safetensors
[[ $(field short/record.json earlier_parts 0 steps) == 10 ]] || fail "the record lacks its parts"
expect_code 0 lra eval short --checkpoint short/checkpoints/step_10/model.safetensors --quiet ||
  fail "a checkpoint of the first part"
expect_code 0 lra report short long --check
passed "a run trained on ends where a longer one does"

refused 'the run has completed all of its 15 steps' lra train --resume short --set train.steps=12
refused 'cannot change in a run that continues' lra train --resume short --set train.batch_size=8
refused 'cannot change in a run that continues' lra train --resume short --set model.layers=2
refused 'trained further with other settings' lra reproduce short
passed "settings that would change its past are refused"

expect_code 0 lra train listops transformer --out next "${settings[@]}" --set train.steps=5 \
  --seed 7 --init-from long
[[ $(field next/record.json initial_weights hash) == $(field long/record.json weights_hash) ]] ||
  fail "other weights than those of the run"
[[ $(field next/record.json division) == free-for-all ]] || fail "the division"
mv long elsewhere
expect_code 0 lra reproduce next --threads 1
rm -r next/checkpoints/step_0
refused 'the weights that the run began with are missing' lra reproduce next
refused 'elsewhere/checkpoints' lra train listops transformer --out none "${settings[@]}" \
  --set model.mlp_dim=32 --init-from elsewhere
[[ ! -e none ]] || fail "a refused run left its folder"
expect_code 0 lra train listops transformer --out partial "${settings[@]}" --set train.steps=5 \
  --set model.mlp_dim=32 --init-from elsewhere --init-partial
refused 'no-such' lra train listops transformer --out none "${settings[@]}" --init-from no-such
echo nonsense >junk.safetensors
refused 'junk.safetensors' lra train listops transformer --out none "${settings[@]}" \
  --init-from junk.safetensors
passed "a run begins with the weights of another"

sizes=(--set task.length=64 --set task.min_length=8 --set task.max_length=64)
expect_code 0 lra data export listops data/listops "${sizes[@]}" --out official
mkdir exchanged other
cp official/listops-1000/basic_val.tsv exchanged/
cp official/listops-1000/basic_train.tsv exchanged/basic_test.tsv
cp official/listops-1000/basic_test.tsv exchanged/basic_train.tsv
expect_code 0 lra data import listops exchanged --out other/listops "${sizes[@]}"
expect_code 0 lra train listops transformer --data other --out knows "${settings[@]:2}" \
  --set train.steps=2 --init-from elsewhere
grep -q 'warning: copies: 80 of the 80 test examples are among those that the first weights' out err ||
  fail "weights that were trained on the test: $(cat out err)"
rm -r data/listops
expect_code 0 lra train listops transformer --data other --out may-know "${settings[@]:2}" \
  --set train.steps=2 --init-from elsewhere
grep -q 'other data, which is not at hand' out err || fail "weights of other data: $(cat out err)"
passed "weights that were trained on the test are found"
