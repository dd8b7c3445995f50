#!/usr/bin/env bash
# The same seed gives the same bits, for a model of each family, at one thread and several, with or without
# the thread that prepares batches; another seed gives others. Every model: tests/faults/threads.py.
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
    same_tensors "$1/checkpoints/latest/$name.safetensors" "$2/checkpoints/latest/$name.safetensors"
  done
}

for model in transformer bigbird reformer synthesizer performer s4d mega mamba gated_deltanet long_conv; do
  train "$model" "$model" 1
  train "$model-3" "$model" 3
  expect_same "$model" "$model-3"
  passed "$model: one and three threads, the same bits"
done

train synthesizer-dense synthesizer 1 --set mixer.variant=factorized_dense
train synthesizer-dense-3 synthesizer 3 --set mixer.variant=factorized_dense
expect_same synthesizer-dense synthesizer-dense-3
train bf16 transformer 1 --set train.precision=bf16
train bf16-3 transformer 3 --set train.precision=bf16
expect_same bf16 bf16-3
passed "weights made in chunks, and bfloat16: the same bits"

for loaders in 0 4; do
  train "loaders-$loaders" transformer 1 --set train.prefetch=$loaders \
    --set train.loader_threads=$((loaders > 0 ? loaders : 1))
  expect_same transformer "loaders-$loaders"
  passed "$loaders loader threads: the same bits"
done

train other-seed transformer 1 --seed 1
if cmp -s <(tensors transformer/checkpoints/latest/model.safetensors) \
  <(tensors other-seed/checkpoints/latest/model.safetensors); then
  fail "seeds 0 and 1 give the same weights"
fi
passed "another seed, other bits"

expect_code 0 lra reproduce transformer --data data --threads 2 --quiet
grep -q "reproduced bit for bit" out || fail "lra reproduce does not say so: $(cat out)"
sed 's/"seed": 0/"seed": 1/' transformer/record.json >changed.json
expect_code 2 lra reproduce changed.json --data data --threads 1 --quiet
grep -q "changed after it was written: its content does not match record_hash" err ||
  fail "lra reproduce takes a record with another seed: $(cat out err)"
sed '/"record_hash"/d; s/"weights_hash": "[0-9a-f]*"/"weights_hash": "00000000000000000000000000000000"/' \
  transformer/record.json >changed.json
expect_code 2 lra reproduce changed.json --data data --threads 1 --quiet
grep -q "DIFFERS  weights" out || fail "lra reproduce calls other weights equal: $(cat out)"
expect_code 0 lra reproduce transformer --steps 5 --data data --threads 2 --quiet
grep -q "the first 5 of 8 steps: reproduced bit for bit" out || fail "not the first steps: $(cat out)"
grep -q "validation at step 4" out || fail "no validation compared: $(cat out)"
cp -r transformer changed
"$LRA_PYTHON" - changed <<'EOF'
import json, pathlib, sys
record = pathlib.Path(sys.argv[1], "record.json")
log = record.with_name("metrics.jsonl")
fields = json.loads(record.read_text())
loss = fields["val_curve"][0]["loss"]
for file in record, log: file.write_text(file.read_text().replace(repr(loss), repr(loss + 1e-12)))
fields = json.loads(record.read_text())
del fields["record_hash"]
record.write_text(json.dumps(fields))
EOF
expect_code 2 lra reproduce changed --steps 5 --data data --threads 1 --quiet
grep -q "DIFFERS  validation at step 4" out || fail "other first steps are called equal: $(cat out err)"
expect_code 2 lra reproduce transformer --steps 8 --data data --quiet
grep -q "leave --steps out" err || fail "--steps of the whole run: $(cat err)"
expect_code 2 lra reproduce transformer --steps 3 --data data --quiet
grep -q "expected at least the step of the first validation, 4" err ||
  fail "--steps before anything was recorded: $(cat err)"
passed "lra reproduce tells the same run from another"

for threads in 1 2; do
  lra data make listops --train 300 --val 20 --test 20 --seed 3 --out "made-$threads" \
    --threads "$threads" --quiet >/dev/null
done
diff -r made-1 made-2 || fail "data made with one and two threads differs"
passed "data made with one and two threads is the same"

# spin_count VARIABLE...: GOMP_SPINCOUNT of a training process that is started with these.
spin_count() {
  local pid
  env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "$@" "$LRA_PROGRAM" train listops transformer --data data --out spin \
    --threads 2 --quiet --set task.length=128 --set train.batch_size=8 --set train.steps=100000 2>err &
  pid=$!
  for _ in {1..300}; do
    [[ -s spin/metrics.jsonl ]] && break
    sleep 0.1
  done
  [[ -s spin/metrics.jsonl ]] || echo "did not train"
  tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^GOMP_SPINCOUNT=//p'
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
  rm -rf spin
}
[[ $(spin_count) == 10000 ]] || fail "threads of a training process turn for as long as OpenMP likes"
[[ $(spin_count GOMP_SPINCOUNT=7) == 7 ]] || fail "another GOMP_SPINCOUNT is not kept"
[[ -z $(spin_count OMP_WAIT_POLICY=passive) ]] || fail "GOMP_SPINCOUNT is set beside OMP_WAIT_POLICY"
[[ -z $(spin_count OMP_PROC_BIND=true) ]] || fail "a program whose thread is bound begins again"
passed "threads wait briefly unless the environment says how"
