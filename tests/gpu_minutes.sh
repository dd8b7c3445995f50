#!/usr/bin/env bash
# Spends a quarter of an hour on a GPU in parts that each end by themselves and leave their results.
#
#   tests/gpu_minutes.sh [FOLDER]
#
# The results are in FOLDER, build/gpu-minutes unless named: NAME.log of every part, records in bench/, and
# summary.txt. A part that is done is not run again, so the same call goes on after an interruption. The exit
# code is 1 if a part failed or had no time, and 77 without a GPU.
#
#   LRA_PROGRAM        the program, with test_gpu beside it (tools/build, tools/carry --gpu); default build/lra
#   LRA_GPU_SECONDS    time for all parts, default 840; a part that has less than 10 s left is not begun
#   LRA_GPU_PARTS      parts, separated by spaces; default all, in this order
#   LRA_GPU_DEVICE     the device, default cuda. With cpu every part runs at small sizes: a test of this
#                      script, which needs no GPU
#   LRA_PEERS_PYTHON   a Python with a CUDA build of torch, for the peers; without it that part is left out
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
device=${LRA_GPU_DEVICE:-cuda}
export LRA_PROGRAM=${LRA_PROGRAM:-$root/build/lra}
out=$(realpath -m "${1:-$root/build/gpu-minutes}")
end=$((SECONDS + ${LRA_GPU_SECONDS:-840}))
if [[ $device != cpu ]] && ! nvidia-smi -L >/dev/null 2>&1; then
  echo "gpu_minutes.sh: skipped, this machine has no NVIDIA GPU"
  exit 77
fi
mkdir -p "$out/bench"
cd "$out"

# Sizes of the published comparison, or small ones.
if [[ $device == cpu ]]; then
  release=(--lengths 64 --batch 1) short=(--task text --lengths 64 --batch 1) windows=(--windows 1 --window-seconds 0)
else
  release=(--lengths 4096 --batch 32 --dtype bf16) short=(--task image --batch 50) windows=(--windows 5 --window-seconds 0.3)
fi
bench() { "$LRA_PROGRAM" bench --device "$device" "${windows[@]}" --out bench --quiet "$@"; }

# The kernels and operators that changed since a GPU ran them, against the CPU's.
part_operators() {
  [[ $device != cpu ]] || return 0
  LRA_KERNELS=ref "$(dirname "$LRA_PROGRAM")/tests/simulated_cuda/test_gpu" --gtest_brief=1 --gtest_filter='GpuOperators.*:GpuScans.*'
}
part_conformance() {
  [[ $device != cpu ]] || return 0
  LRA_GPU_MODELS="mega mamba synthesizer sparse_transformer local long_conv reformer s4d s5 chordmixer mamba2 gated_deltanet rwkv7 gla min_gru" "$root/tests/gpu.sh" "$out/conformance-of-models.log"
}
# The models with most to gain by the ledger, and those whose kernels changed.
part_changed() { bench --models mega,mamba,synthesizer,sparse_transformer,local,long_conv,reformer "${release[@]}"; }
part_others() {
  bench --models transformer,linear_transformer,performer,longformer,bigbird,linformer,sinkhorn,s4d,s5,lru,chordmixer "${release[@]}"
}
part_small() { bench --preset small --models s4d,linear_transformer,transformer,mamba2,gated_deltanet,rwkv7,gla,min_gru "${short[@]}"; }
part_peers() {
  [[ -n ${LRA_PEERS_PYTHON-} ]] || return 0
  "$root/bench/peers/run" --device "$device" --dtype bf16 --lengths 4096 --windows 5 --window-seconds 0.3 \
    --models longformer,bigbird,reformer,sinkhorn,transformer-drop,synthesizer,sparse
}

all=(operators:120 conformance:150 changed:120 others:120 small:60 peers:270)
declare -A limits
for entry in "${all[@]}"; do limits[${entry%:*}]=${entry#*:}; done

# run_part NAME: in a shell of its own, with a limit of time.
run_part() {
  local name=$1 left=$((end - SECONDS)) began=$SECONDS code=0
  local seconds=$((limits[$name] < left ? limits[$name] : left))
  [[ $device != cpu ]] || seconds=$left # a processor takes longer, even for little
  if [[ -e $name.done ]]; then
    echo "$name: done before"
    return 0
  fi
  if [[ $left -lt 10 ]]; then
    echo "$name: not begun, no time is left"
    return 1
  fi
  (part_"$name") >"$name.log" 2>&1 &
  local part=$!
  (sleep "$seconds" && kill -INT -- -"$part" && sleep 5 && kill -KILL -- -"$part") 2>/dev/null &
  local watch=$!
  disown
  wait $part || code=$?
  kill -- -$watch 2>/dev/null || true
  if [[ $code == 0 ]]; then
    touch "$name.done"
    echo "$name: ok, $((SECONDS - began)) s"
  else
    echo "$name: exit code $code after $((SECONDS - began)) s; last line: $(tail -n 1 "$name.log")"
    return 1
  fi
}

set -m # a part and its children are one group of processes
failed=0
for name in ${LRA_GPU_PARTS:-${all[@]%:*}}; do
  [[ -n ${limits[$name]-} ]] || {
    echo "gpu_minutes.sh: no part is named $name; there are: ${all[*]%:*}" >&2
    exit 2
  }
  run_part "$name" >line.txt || failed=1
  tee -a summary.txt <line.txt
done
exit $failed
