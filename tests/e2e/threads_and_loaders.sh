#!/usr/bin/env bash
# The same seed gives the same bits, with or without the thread that prepares batches; another seed
# gives others. Whether one and two threads agree is reported, not demanded: sums inside the
# library's matrix products may be cut differently.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

make_listops data/listops 200 20 20

# train RUN MODEL THREADS ARGUMENT...
train() {
  local run=$1 model=$2 threads=$3
  shift 3
  expect_code 0 lra train listops "$model" --data data --out "$run" --threads "$threads" --quiet \
    --set task.length=128 --set train.batch_size=8 --set train.steps=8 --set train.eval_every=4 \
    --set train.warmup_steps=3 "$@"
}

expect_same() {
  local name
  for name in model optimizer; do
    same_files "$1/checkpoints/latest/$name.safetensors" "$2/checkpoints/latest/$name.safetensors"
  done
}

for model in transformer local linformer linear_transformer; do
  train "$model" "$model" 1
  train "$model-again" "$model" 1
  expect_same "$model" "$model-again"
  passed "$model: the same seed, the same bits"
done

for prefetch in 0 4; do
  train "prefetch-$prefetch" transformer 1 --set train.prefetch=$prefetch
  expect_same transformer "prefetch-$prefetch"
  passed "train.prefetch=$prefetch: the same bits"
done

train other-seed transformer 1 --seed 1
if cmp -s {transformer,other-seed}/checkpoints/latest/model.safetensors; then
  fail "seeds 0 and 1 give the same weights"
fi
passed "another seed, other bits"

train two-threads transformer 2
train two-threads-again transformer 2
expect_same two-threads two-threads-again
passed "two threads: the same bits twice"
for name in model optimizer; do
  if cmp -s {transformer,two-threads}/checkpoints/latest/$name.safetensors; then
    echo "note: $name.safetensors has the same bits with one and two threads"
  else
    echo "note: $name.safetensors differs between one and two threads"
  fi
done
# Data is ours alone: there the number of threads may not matter.
for threads in 1 2; do
  lra data make listops --train 300 --val 20 --test 20 --seed 3 --out "made-$threads" \
    --threads "$threads" --quiet >/dev/null
done
diff -r made-1 made-2 || fail "data made with one and two threads differs"
passed "data made with one and two threads is the same"
