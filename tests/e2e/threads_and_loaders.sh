#!/usr/bin/env bash
# The same seed gives the same bits, for every model, with or without the thread that prepares batches;
# another seed gives others. Of one step, one and two threads give the same bits in every gradient but
# those that a library adds up (docs/numerics.md).
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

models=$(lra list models --json | "$LRA_PYTHON" -c '
import json, sys
for model in json.load(sys.stdin)["models"]: print(model["name"])')
[[ $models == *transformer* ]] || fail "lra list models names no Transformer: $models"

# expect_same_gradients RUN RUN: after one step the moments are gradients and their squares. Exempt:
# the scale and bias of layer normalisation, and the classifier's last product.
expect_same_gradients() {
  "$LRA_PYTHON" - "$1" "$2" <<'PYTHON' || fail "$1 and $2: other gradients"
import fnmatch, json, struct, sys

EXEMPT = ["?.encoder.layers.*.norm[12].*", "?.encoder.norm.*", "?.head.output.*"]

def tensors(run):
    content = open(run + "/checkpoints/latest/optimizer.safetensors", "rb").read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {name: content[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]
            for name, t in header.items()}

one, two = tensors(sys.argv[1]), tensors(sys.argv[2])
judged = [name for name in one if not any(fnmatch.fnmatch(name, e) for e in EXEMPT)]
assert one.keys() == two.keys() and any(".mixer." in name for name in judged), sorted(one)
differ = [name for name in judged if one[name] != two[name]]
if differ: sys.exit("differ with the threads: " + ", ".join(differ))
PYTHON
}

for model in $models; do
  train "$model" "$model" 1
  train "$model-again" "$model" 1
  expect_same "$model" "$model-again"
  passed "$model: the same seed, the same bits"
  train "$model-two" "$model" 2
  train "$model-two-again" "$model" 2
  expect_same "$model-two" "$model-two-again"
  passed "$model: two threads, the same bits twice"
  for threads in 1 2; do
    train "$model-step-$threads" "$model" $threads --set train.steps=1 --set train.eval_every=1
  done
  expect_same_gradients "$model-step-1" "$model-step-2"
  passed "$model: its mixer has the same gradients with one and two threads"
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

# Data is ours alone: there the number of threads may not matter.
for threads in 1 2; do
  lra data make listops --train 300 --val 20 --test 20 --seed 3 --out "made-$threads" \
    --threads "$threads" --quiet >/dev/null
done
diff -r made-1 made-2 || fail "data made with one and two threads differs"
passed "data made with one and two threads is the same"
