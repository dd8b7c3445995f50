#!/usr/bin/env bash
# Analyses of finished, unfinished and bfloat16 runs: tables, records, pictures; the same again;
# a stop leaves no record behind. What the figures are: tests/parity/analyses_from_python.py.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

tiny=(--data data --threads 1 --quiet --set train.batch_size=4 --set task.length=64
  --set task.min_length=8 --set task.max_length=64 --set train.learning_rate=0.01)
lra data make listops --train 200 --val 60 --test 40 --out data/listops --threads 1 --quiet \
  --set task.min_length=8 --set task.max_length=64 >/dev/null
lra train listops transformer --out exact "${tiny[@]}" --set train.steps=8 \
  --set train.eval_every=4 >/dev/null
lra train listops reformer --out hashed "${tiny[@]}" --set train.steps=4 \
  --set train.eval_every=2 --set train.precision=bf16 --set model.pooling=cls >/dev/null

for kind in span generalization convergence rollout embeddings controls reach breakdown; do
  where=(--data data)
  if [[ $kind == convergence || $kind == embeddings ]]; then where=(); fi
  lra analyze $kind exact hashed "${where[@]}" --threads 1 --quiet >table
  grep -q "exact: $kind, Long ListOps, Transformer" table || fail "$kind: $(cat table)"
  grep -q "hashed: $kind, Long ListOps, Reformer" table || fail "$kind: $(cat table)"
  for run in exact hashed; do
    [[ $(field $run/analysis/$kind.json kind) == "$kind" ]] || fail "$run has no $kind"
    mv $run/analysis/$kind.json $run.json
  done
  lra analyze $kind exact hashed "${where[@]}" --threads 2 --json >said.json 2>/dev/null
  runs=(exact hashed)
  for number in 0 1; do
    run=${runs[number]}
    [[ $(field said.json $number file) == "$run/analysis/$kind.json" ]] || fail "$(cat said.json)"
    for part in $kind choices step num_examples; do
      [[ $(field $run.json $part) == "$(field $run/analysis/$kind.json $part)" ]] ||
        fail "$kind of $run says other things the second time: $part"
    done
  done
done
passed "every analysis of two runs, the same on one thread and on two"

[[ $(field exact/analysis/span.json num_examples) == 60 ]] || fail "not all 60 examples"
lra analyze span exact --data data --samples 7 --split test --checkpoint best --quiet >/dev/null
[[ $(field exact/analysis/span.json split) == test ]] || fail "another split"
[[ $(field exact/analysis/span.json num_examples) == 7 ]] || fail "not 7 samples"
[[ $(field exact/analysis/span.json checkpoint) == best ]] || fail "not the best weights"
lra analyze generalization exact --data data --examples 10 --quiet >/dev/null
[[ $(field exact/analysis/generalization.json num_examples) == 20 ]] || fail "not 10 of each split"
lra analyze rollout exact --data data --index 5,3 --quiet >/dev/null
[[ $(field exact/analysis/rollout.json rollout examples 0 index) == 5 ]] || fail "not example 5"
for file in rollout-5.png rollout-3.png embeddings-tokens.png embeddings-positions.png; do
  [[ $(head -c 4 exact/analysis/$file | tail -c 3) == PNG ]] || fail "$file is no picture"
done
lra analyze controls exact --data data --examples 10 --fields 8,32 --quiet >table
[[ $(field exact/analysis/controls.json num_examples) == 10 ]] || fail "not 10 examples"
for words in "shuffled tokens" "receptive field 8" "receptive field 32" "without a model, majority"; do
  grep -q "^$words" table || fail "no '$words' in $(cat table)"
done
lra analyze reach exact --data data --examples 10 --gradients 3 --fields 8,32 --quiet >table
[[ $(field exact/analysis/reach.json num_examples) == 10 ]] || fail "not 10 examples"
[[ $(field exact/analysis/reach.json reach num_gradients) == 3 ]] || fail "not 3 gradients"
for words in "layer 0 " "all layers " "layer 1 in windows of 8 " "all layers in windows of 32 "; do
  grep -q "^$words" table || fail "no '$words' in $(cat table)"
done
lra eval exact --data data --json --quiet >said.json
lra analyze controls exact --data data --quiet >/dev/null
[[ $(field exact/analysis/controls.json controls scores 0 score accuracy) == \
  $(field said.json accuracy) ]] || fail "the first score is not that of lra eval"
passed "options"

# A run that was evaluated with its own data only.
mv data/listops aside
lra data make listops --train 200 --val 60 --test 40 --seed 9 --out data/listops --threads 1 \
  --quiet --set task.min_length=8 --set task.max_length=64 >/dev/null
expect_code 2 lra analyze span exact --data data --quiet
grep -q "is not the data of exact" err || fail "$(cat err)"
lra analyze span exact --data data --other-data --quiet >/dev/null
rm -r data/listops
mv aside data/listops
passed "data of another run"

# Later and later, until a signal comes between start and end.
lra data make listops --train 200 --val 6000 --test 40 --out many/listops --threads 1 --quiet \
  --set task.min_length=8 --set task.max_length=64 >/dev/null
interrupt() {
  local code delay
  for delay in 0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8; do
    code=0
    rm -f hashed/analysis/*.json
    "$LRA_PROGRAM" analyze "$@" hashed --data many --other-data --threads 1 --quiet >out 2>err &
    sleep $delay
    kill -TERM $! 2>/dev/null || true
    wait $! || code=$?
    [[ $code != 3 ]] || break
  done
  [[ $code == 3 ]] || fail "'$*' ended with $code after SIGTERM: $(cat out err)"
  [[ -z $(ls hashed/analysis/*.json 2>/dev/null) ]] || fail "'$*' left a record behind"
  [[ ! -s out ]] || fail "'$*' printed $(cat out)"
}
interrupt span --samples 6000
interrupt rollout --count 1000
interrupt controls --split val
interrupt reach --split val --gradients 6000
passed "stops"
