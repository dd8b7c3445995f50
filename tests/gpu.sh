#!/usr/bin/env bash
# The program on a GPU: every model trains there to the same bits twice, is evaluated there and on the
# CPU alike, and runs move between the two. Before them test_gpu, the kernels and operators against the
# CPU's. No part of ./check, whose machines have no GPU.
#
#   tests/gpu.sh [LOG]
#
# What it finds goes to the terminal and to LOG, build/gpu-conformance.log unless named; a log worth
# keeping is copied to docs/results/gpu/conformance.log. The last line is "N passed, N failed"; the exit
# code is 0 or 1, and 77 where there is no GPU.
#
#   LRA_PROGRAM     the program; without it tools/build builds it, with the LibTorch of LRA_TORCH, or
#                   it is build/lra as tools/carry --gpu packed it
#   LRA_PYTHON      any Python 3; default python3
#   LRA_GPU_DEVICE  the device, default cuda. With cpu it runs without a GPU, all but test_gpu: a test
#                   of this script, some ten minutes of two cores.
#   LRA_GPU_MODELS  models, separated by spaces; default all
#   LRA_GPU_JOBS    models at a time, each with its share of the processors; default one for two of them
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
device=${LRA_GPU_DEVICE:-cuda}
jobs_at_once=${LRA_GPU_JOBS:-$((($(nproc) + 1) / 2))}
log=$(realpath -m "${1:-$root/build/gpu-conformance.log}")

has_gpu() { compgen -G "/dev/nvidia[0-9]*" >/dev/null || nvidia-smi -L >/dev/null 2>&1; }

if [[ $device != cpu ]] && ! has_gpu; then
  echo "gpu.sh: skipped, this machine has no NVIDIA GPU"
  exit 77
fi
if [[ -z ${LRA_PROGRAM-} ]]; then
  if [[ ! -f $root/build/made_for ]]; then "$root/tools/build"; fi
  LRA_PROGRAM=$root/build/lra
fi
LRA_PYTHON=${LRA_PYTHON:-python3}
source "$root/tests/e2e/lib.bash"

# check NAME COMMAND...: one pass or failure. In a shell of its own, which `fail` and errors end.
check() {
  local name=$1 code
  shift
  set +e
  (
    set -e
    "$@"
  )
  code=$?
  set -e
  if [[ $code == 0 ]]; then passed "$name"; else echo "NOT PASSED: $name"; fi
}

info_names_the_gpu() {
  expect_code 0 lra info
  cat out
  [[ $device == cpu ]] || ! grep -q "^gpu *none" out || fail "the program sees no GPU"
}

# shard_of_gpu_tests INDEX COUNT: compared with the plain references, since a processor's own bfloat16
# products round otherwise.
shard_of_gpu_tests() {
  LRA_KERNELS=ref GTEST_SHARD_INDEX=$1 GTEST_TOTAL_SHARDS=$2 \
    timeout 1200 "$(dirname "$LRA_PROGRAM")/tests/simulated_cuda/test_gpu" --gtest_brief=1
}

# train RUN DEVICE MODEL ARGUMENT...
train() {
  local run=$1 where=$2 model=$3
  shift 3
  expect_code 0 lra train listops "$model" --preset small --data data --out "$run" --quiet \
    --device "$where" "${settings[@]}" "$@"
  [[ $(field "$run/record.json" provenance device) == "$where"* ]] || fail "$run: another device"
}

settings=(--set task.length=256 --set train.batch_size=8 --set train.steps=20
  --set train.eval_every=10 --set train.warmup_steps=3)

same_bits_again() {
  train "$1-again" "$device" "$1"
  local first again
  first=$(field "$1/record.json" weights_hash)
  again=$(field "$1-again/record.json" weights_hash)
  [[ $first == "$again" ]] || fail "weights $first, then $again"
}

# evaluate_alike RUN LOSS: on both devices, accuracies within two of the 100 examples and losses within
# LOSS.
evaluate_alike() {
  local where
  for where in cpu "$device"; do
    expect_code 0 lra eval "$1" --data data --device "$where" --json --quiet
    mv out "$1-on-${where//:/-}.json"
  done
  agree "$1-on-cpu.json" "$1-on-${device//:/-}.json" "$2"
}

# agree FILE FILE LOSS: evaluations.
agree() {
  "$LRA_PYTHON" - "$@" <<'PYTHON'
import json, sys

one, other = (json.load(open(name)) for name in sys.argv[1:3])
loss = abs(one["loss"] - other["loss"])
accuracy = abs(one["accuracy"] - other["accuracy"])
print(f"   loss {one['loss']:.6f}, other by {loss:.1e}; accuracy {one['accuracy']:.2f}, other by {accuracy:.2f}")
if not (loss <= float(sys.argv[3]) and accuracy <= 0.0201):
    sys.exit("FAILED: too far apart")
PYTHON
}

# resumes RUN FROM TO: stopped on one device at its first checkpoint, ended on the other, near the run
# that nobody stopped.
resumes() {
  local run=$1 from=$2 to=$3 code=0
  "$LRA_PROGRAM" train listops transformer --preset small --data data --out "$run" --quiet \
    --device "$from" "${settings[@]}" --set train.steps=60 --set train.checkpoint_every=2 >"$run.log" 2>&1 &
  until [[ -d $run/checkpoints/latest ]]; do
    kill -0 $! 2>/dev/null || fail "$run ended before a checkpoint: $(tail -n 5 "$run.log")"
    sleep 0.02
  done
  kill -INT $!
  wait $! || code=$?
  [[ $code == 3 ]] || fail "$run ended with $code when it was stopped: $(tail -n 5 "$run.log")"
  expect_code 0 lra train --resume "$run" --data data --device "$to" --quiet
  [[ $(field "$run/record.json" status) == done ]] || fail "$run is not done"
  "$LRA_PYTHON" - whole/record.json "$run/record.json" <<'PYTHON'
import json, sys

whole, moved = (json.load(open(name)) for name in sys.argv[1:])
apart = abs(whole["test"]["loss"] - moved["test"]["loss"])
print(f"   steps {moved['steps']}; loss {whole['test']['loss']:.6f} in one piece, other by {apart:.1e}")
if moved["steps"] != whole["steps"] or not apart <= 0.01:
    sys.exit("FAILED: another result")
PYTHON
}

# on_two RUN BACKEND: two ranks, whose gradients are summed by BACKEND.
on_two() {
  local rank port tasks=()
  port=$(free_port)
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$LRA_PROGRAM" train listops transformer --preset small --data data --out "$1" --quiet --device "$device" \
      "${settings[@]}" --rank-backend "$2" >"$1.$rank.log" 2>&1 &
    tasks+=($!)
  done
  for rank in 0 1; do
    wait "${tasks[rank]}" || fail "rank $rank by $2 ended with $?: $(tail -n 5 "$1.$rank.log")"
  done
}

# A sum of two numbers has the same bits wherever it is made. Without GPUs Gloo makes it twice.
two_ranks_sum_alike() {
  local backend=nccl
  [[ $device != cpu ]] || backend=gloo
  on_two by-gloo gloo
  on_two by-other $backend
  local gloo other
  gloo=$(field by-gloo/record.json weights_hash)
  other=$(field by-other/record.json weights_hash)
  [[ $gloo == "$other" ]] || fail "weights $gloo by gloo, $other by $backend"
}

# A batch of the CPU takes a core minutes.
measures() {
  local batch=32
  [[ $device != cpu ]] || batch=1
  expect_code 0 lra bench --device "$device" --models transformer --lengths 1024 --windows 5 \
    --batch $batch --quiet
  cat out
}

checks_of_model() {
  local model=$1
  check "$model: trains in float32" train "$model" "$device" "$model"
  check "$model: the same bits again" same_bits_again "$model"
  check "$model: the CPU evaluates it alike" evaluate_alike "$model" 1e-3
  check "$model: trains in bfloat16" train "$model-bf16" "$device" "$model" --set train.precision=bf16
  check "$model: the CPU evaluates it alike in bfloat16" evaluate_alike "$model-bf16" 3e-2
}

checks_of_ranks() { check "two ranks sum alike in main memory and on GPUs" two_ranks_sum_alike; }

checks_of_moves() {
  check "a run of 60 steps" train whole "$device" transformer --set train.steps=60
  check "a run from the GPU goes on on the CPU" resumes to-cpu "$device" cpu
  check "a run from the CPU goes on on the GPU" resumes to-gpu cpu "$device"
}

# job SLOT NAME COMMAND...: in a folder of its own, on the processors of the slot, its lines behind NAME.
job() {
  local slot=$1 name=$2 share=$(($(nproc) / jobs_at_once))
  shift 2
  mkdir "job-$name"
  cd "job-$name"
  ln -s ../data data
  if [[ $share -gt 0 ]]; then taskset -pc $((slot * share))-$((slot * share + share - 1)) $BASHPID >/dev/null; fi
  "$@" 2>&1 | sed -u "s/^/$name: /"
}

# Every job takes a slot of processors from the pipe and gives it back.
in_parallel() {
  local slot
  mkfifo slots
  exec 9<>slots
  for ((slot = 0; slot < jobs_at_once; ++slot)); do echo $slot >&9; done
  while [[ $# -gt 0 ]]; do
    read -r slot <&9
    {
      job "$slot" $1
      echo "$slot" >&9
    } &
    shift
  done
  wait
}

check_all() {
  date --utc +%F
  check "lra info" info_names_the_gpu
  make_listops data/listops 400 100 100
  local model models shard jobs=()
  models=${LRA_GPU_MODELS:-$(lra list models --json | "$LRA_PYTHON" -c '
import json, sys
for model in json.load(sys.stdin)["models"]: print(model["name"])')}
  if [[ $device != cpu ]]; then
    for shard in 0 1 2 3; do jobs+=("test_gpu_$shard check test_gpu shard_of_gpu_tests $shard 4"); done
  fi
  jobs+=("moves checks_of_moves")
  if [[ $device == cpu || ($device == cuda && $(nvidia-smi -L | grep -c '^GPU') -ge 2) ]]; then
    jobs+=("ranks checks_of_ranks")
  fi
  for model in $models; do jobs+=("$model checks_of_model $model"); done
  in_parallel "${jobs[@]}"
  check "lra bench" measures
}

mkdir -p "$(dirname "$log")"
check_all 2>&1 | tee "$log"
num_passed=$(grep -cE '^([a-z0-9_]+: )?ok: ' "$log") || true
num_failed=$(grep -c 'NOT PASSED: ' "$log") || true
echo "$num_passed passed, $num_failed failed" | tee -a "$log"
[[ $num_failed == 0 ]]
