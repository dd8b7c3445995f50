#!/usr/bin/env bash
# A small suite from nothing to its report; again without doing anything; with a cell that is
# killed; stopped and taken up again. And --json of every command is JSON and nothing else.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

make_listops data/listops 64 8 8
cat >small.toml <<'TOML'
name = "small-suite"
tasks = ["listops"]
models = ["transformer", "linear_transformer"]
seeds = [0, 1]
preset = "small"

[set.train]
steps = 6
warmup_steps = 2
eval_every = 3
batch_size = 4
log_every = 1

[listops.task]
length = 64
TOML

# suite OUT FILE: runs it; output in out and err.
suite() { lra suite run "$2" --out "$1" --data data --threads 1 >out 2>err; }

# states OUT FILE: the state of every cell, one a line.
states() {
  lra suite status "$2" --out "$1" --json | "$LRA_PYTHON" -c '
import json, sys
for row in json.load(sys.stdin): print(row["state"])'
}

expect_states() {
  local found
  found=$(states "$1" "$2" | sort | uniq -c | tr -s ' \n' ' ')
  [[ $found == "$3" ]] || fail "$1: states are '$found', not '$3'"
}

done_and_done_again() {
  expect_states whole small.toml " 4 waiting "
  suite whole small.toml || fail "the suite ended with $?: $(tail -n 3 err)"
  expect_states whole small.toml " 4 done "
  grep -q 'Linear Transformer' out || fail "no leaderboard: $(cat out)"
  grep -q '<html' whole/report.html || fail "no report.html"
  grep -q 'Linear Transformer' whole/report.md || fail "no report.md"
  local before after
  before=$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)
  local begin=$SECONDS
  suite whole small.toml || fail "again, the suite ended with $?"
  [[ $((SECONDS - begin)) -le 10 ]] || fail "a finished suite took $((SECONDS - begin)) s"
  after=$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)
  [[ $before == "$after" ]] || fail "a finished suite wrote to its runs"
  passed "a suite, and again"
}

# The long suite: its first cell takes long enough to be met at work.
long_suite() {
  sed 's/^steps = 6/steps = 250/; s/^eval_every = 3/eval_every = 250/; s/^seeds.*/seeds = [0]/' \
    small.toml >long.toml
}

# start OUT: the long suite in the background, until its first cell is training. Sets pid.
start() {
  "$LRA_PROGRAM" suite run long.toml --out "$1" --data data --threads 1 --quiet >"$1.out" 2>&1 &
  pid=$!
  until [[ -s $1/listops-transformer-s0/metrics.jsonl ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the suite ended early: $(cat "$1.out")"
    sleep 0.02
  done
}

expect_end() {
  local code=0
  wait "$pid" || code=$?
  [[ $code == "$1" ]] || fail "the suite ended with $code, not $1: $(tail -n 5 ./*.out)"
}

killed_cell() {
  start killed
  kill -KILL "$(cat /proc/"$pid"/task/*/children)"
  expect_end 4
  expect_states killed long.toml " 1 done 1 failed "
  [[ $(field killed/listops-transformer-s0/record.json failure) == *137* ]] ||
    fail "the record does not say how the cell ended"
  suite killed long.toml || fail "after the kill, the suite ended with $?: $(tail -n 3 err)"
  expect_states killed long.toml " 2 done "
  passed "a killed cell is recorded, the others finish, and the next run makes up for it"
}

stopped_suite() {
  start stopped
  kill -TERM "$pid"
  expect_end 3
  expect_states stopped long.toml " 1 stopped 1 waiting "
  suite stopped long.toml || fail "after the stop, the suite ended with $?: $(tail -n 3 err)"
  expect_states stopped long.toml " 2 done "
  same_files {killed,stopped}/listops-transformer-s0/checkpoints/latest/model.safetensors
  passed "a stopped suite goes on, to the same bits"
}

# json COMMAND...: standard output must be one JSON value.
json() {
  lra "$@" --json --threads 1 >out 2>err || fail "lra $* --json ended with $?: $(cat err)"
  "$LRA_PYTHON" -c 'import json; json.load(open("out"))' ||
    fail "lra $* --json printed what is not JSON: $(head -c 300 out)"
  num_commands=$((num_commands + 1))
}

every_json() {
  num_commands=0
  local run=whole/listops-transformer-s0 small=(--set train.steps=1 --set train.batch_size=2
    --set task.length=16)
  json info
  local topic
  for topic in "" tasks models suites presets; do json list $topic; done
  for topic in listops text linformer train data bench; do json help $topic; done
  json data make listops --train 500 --val 8 --test 8 --out made
  json data check listops made
  json data show listops made
  json data export listops made --out official
  json data import listops official --out imported
  make_reviews reviews
  json data import text reviews --out texts
  json data show text texts
  json train listops local --data data --out new "${small[@]}"
  json train --resume new --data data
  json eval $run --data data
  json bench --task listops --models local,transformer --lengths 32 --batch 2 --windows 1 \
    --window-seconds 0 --preset small
  json suite status small.toml --out whole
  json suite run small.toml --out whole --data data
  json report whole
  json model compare listops linformer
  passed "--json of $num_commands commands is JSON alone"
}

done_and_done_again
long_suite
killed_cell
stopped_suite
every_json
