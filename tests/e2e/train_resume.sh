#!/usr/bin/env bash
# A run that is stopped, killed or damaged and then resumed ends with the very bytes of one that was
# left alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

steps=60
settings=(--data data --threads 1 --quiet
  --set task.length=256 --set train.batch_size=8 --set train.steps=$steps
  --set train.eval_every=20 --set train.checkpoint_every=8 --set train.warmup_steps=5
  --set train.log_every=1 --set train.eval_examples=16)
make_listops data/listops 400 50 50

# start RUN: trains in the background; sets pid. Not through the function lra, whose shell would get
# the signals.
start() {
  "$LRA_PROGRAM" train listops transformer --out "$1" "${settings[@]}" >"$1.log" 2>&1 &
  pid=$!
}

resume_in_background() {
  "$LRA_PROGRAM" train --resume "$1" --data data --threads 1 --quiet >"$1.log" 2>&1 &
  pid=$!
}

num_lines() { if [[ -e $1 ]]; then wc -l <"$1"; else echo 0; fi; }

# wait_for_step RUN STEP: until that step is logged (every step is, in one line).
wait_for_step() {
  while [[ $(num_lines "$1/metrics.jsonl") -lt $2 ]]; do
    kill -0 "$pid" 2>/dev/null || fail "$1 ended before step $2: $(cat "$1.log")"
    sleep 0.02
  done
}

# expect_end CODE: waits for the background run.
expect_end() {
  local code=0
  { wait "$pid"; } 2>/dev/null || code=$?  # bash would report the kill
  [[ $code == "$1" ]] || fail "the run ended with $code, not $1: $(tail -n 5 ./*.log)"
}

resume() { expect_code 0 lra train --resume "$1" --data data --threads 1 --quiet; }

# Same bytes of weights and moments, same figures at every step, each step once.
expect_like_the_uninterrupted() {
  local name
  for name in model optimizer; do
    same_files "whole/checkpoints/latest/$name.safetensors" \
      "$1/checkpoints/latest/$name.safetensors"
  done
  [[ $(field "$1/record.json" status) == done ]] || fail "$1: the record does not say done"
  "$LRA_PYTHON" - whole "$1" "$steps" <<'PYTHON' || fail "$1: other figures than without the stop"
import json, sys

def lines(run):
    found = {}
    for text in open(run + "/metrics.jsonl"):
        line = json.loads(text)
        for speed in ("tokens_per_s", "examples_per_s"):
            line.pop(speed, None)
        key = (line.pop("kind"), line.pop("step"))
        assert key not in found, f"{run}: {key} is there twice"
        found[key] = line
    return found

def result(run):
    record = json.load(open(run + "/record.json"))
    keys = ("test", "val", "best_val", "val_curve", "weights_hash", "steps", "tokens", "fingerprint")
    return {key: record[key] for key in keys}

whole, other, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
assert [s for kind, s in lines(other) if kind == "train"] == list(range(1, steps + 1))
assert lines(whole) == lines(other), "metrics.jsonl"
assert result(whole) == result(other), "record.json"
PYTHON
  passed "$1"
}

stopped_by() {
  local run=stopped_by_$1
  start "$run"
  wait_for_step "$run" 13
  kill -"$1" "$pid"
  expect_end 3
  [[ $(field "$run/record.json" status) == stopped ]] || fail "$run: record does not say stopped"
  [[ $(field "$run/record.json" steps) -ge 13 ]] || fail "$run: steps done are not recorded"
  resume "$run"
  expect_like_the_uninterrupted "$run"
}

# Each time a little further, at any place of the code.
killed_again_and_again() {
  local run=killed_again_and_again step
  start "$run"
  for step in 2 11 20 33 47; do
    wait_for_step "$run" "$step"
    kill -KILL "$pid"
    expect_end 137
    [[ $(field "$run/record.json" status) == running ]] || fail "$run: the record does not say running"
    printf '{"step":%d,"kind":"tra' "$step" >>"$run/metrics.jsonl"
    resume_in_background "$run"
    # Time to take the steps after the last checkpoint off the log; a kill before that is as good.
    sleep 0.3
  done
  expect_end 0
  expect_like_the_uninterrupted "$run"
}

saved_on_request() {
  local run=saved_on_request
  start "$run"
  wait_for_step "$run" 9
  kill -USR1 "$pid"
  until [[ $(readlink "$run/checkpoints/latest" || true) =~ ^step_([0-9]+)$ &&
    $((BASH_REMATCH[1] % 8)) != 0 && $((BASH_REMATCH[1] % 20)) != 0 ]]; do
    kill -0 "$pid" 2>/dev/null || fail "$run: ended without the checkpoint asked for"
    sleep 0.01
  done
  expect_end 0
  expect_like_the_uninterrupted "$run"
}

resumed_past_a_damaged_checkpoint() {
  local run=damaged
  start "$run"
  wait_for_step "$run" 30
  kill -TERM "$pid"
  expect_end 3
  printf '\xff\xff' | dd of="$run/checkpoints/latest/model.safetensors" bs=1 seek=20000 \
    conv=notrunc status=none
  resume "$run"
  grep -q "checkpoint skipped: $run/checkpoints/step_" err ||
    fail "$run: nothing said about the damaged checkpoint"
  [[ $(field "$run/record.json" warnings) == *"$run/checkpoints/step_"* ]] ||
    fail "$run: nothing in the record about the damaged checkpoint"
  expect_like_the_uninterrupted "$run"
}

# Bars that are not those of the run would stay on the screen.
on_a_terminal() {
  local run=on_a_terminal
  "$LRA_PYTHON" -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$LRA_PROGRAM" train \
    --threads 1 --data data listops transformer --out "$run" --profile trace.json \
    --set task.length=64 --set train.batch_size=2 --set train.steps=2 --set train.eval_every=2 \
    --set train.eval_examples=8 --set train.test_examples=8 >screen </dev/null ||
    fail "on a terminal the run ended with $?: $(cat screen)"
  grep -q 'memory: about' screen || fail "no message on the screen: $(cat screen)"
  grep -q 'no trace' screen || fail "no message at the end: $(cat screen)"
  if grep -q '0it' screen; then fail "a stray bar: $(cat -v screen)"; fi
  passed "$run"
}

one_process_per_run() {
  local run=locked
  start "$run"
  wait_for_step "$run" 2
  expect_code 2 lra train --resume "$run" --data data
  grep -q "$run" err || fail "the refusal does not name the run: $(cat err)"
  kill -TERM "$pid"
  expect_end 3
  passed "$run"
}

expect_code 0 lra train listops transformer --out whole "${settings[@]}"
expect_like_the_uninterrupted whole
stopped_by TERM
stopped_by INT
killed_again_and_again
saved_on_request
resumed_past_a_damaged_checkpoint
on_a_terminal
one_process_per_run
cp whole/checkpoints/latest/model.safetensors before
resume whole
same_files before whole/checkpoints/latest/model.safetensors
passed "a finished run stays as it is"
