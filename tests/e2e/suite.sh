#!/usr/bin/env bash
# A small suite from nothing to its report; again without doing anything; with a cell that is killed,
# diverges, is in use by another process, or has a damaged record or other data; stopped by a signal or Ctrl-C, or killed, and taken up
# again; its measurements made again when they are not what it asks for. And --json of every command
# is JSON and nothing else.
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

[linear_transformer.train]
learning_rate = 2e-3
TOML
# One run of the Transformer with the same settings.
alone='s/^seeds.*/seeds = [0]/; s/^models.*/models = ["transformer"]/; /^\[linear_transformer/,+1d'

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
  grep -q '^learning_rate = 0.002' whole/listops-linear_transformer-s0/config.toml ||
    fail "the settings of one model are not those of its run"
  ! grep -q '^learning_rate = 0.002' whole/listops-transformer-s0/config.toml ||
    fail "the settings of one model are those of another"
  local before after
  before=$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)
  local begin=$SECONDS
  suite whole small.toml || fail "again, the suite ended with $?"
  [[ $((SECONDS - begin)) -le 10 ]] || fail "a finished suite took $((SECONDS - begin)) s"
  after=$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)
  [[ $before == "$after" ]] || fail "a finished suite wrote to its runs"
  passed "a suite, and again"
}

# Left out by the suite's file: named with the reason, and run only when asked for.
left_out() {
  cat small.toml - >part.toml <<'TOML'

[[leave_out]]
tasks = ["listops"]
models = ["linear_transformer"]
reason = "an hour on two cores"
TOML
  expect_states whole part.toml " 4 done "
  suite part part.toml || fail "the suite ended with $?: $(tail -n 3 err)"
  expect_states part part.toml " 2 done 2 left out "
  grep -q 'left out: an hour on two cores' err || fail "a run left out is not named: $(cat err)"
  [[ $(lra suite status part.toml --out part | tail -n 1) == \
    "left out: an hour on two cores (listops-linear_transformer-s0, listops-linear_transformer-s1)" ]] ||
    fail "no reason: $(lra suite status part.toml --out part)"
  lra suite submit part.toml --slurm --dry-run --out part --data data | grep -q '2 done, 2 left out' ||
    fail "submit does not leave them out"
  # A run that was stopped, or failed, stays as it is.
  sed -i '/"record_hash"/d; s/"status": *"done"/"status": "stopped"/' part/listops-transformer-s0/record.json
  sed 's/^models = \["linear.*/models = ["all"]/' part.toml >none.toml
  suite part none.toml || fail "with all left out, the suite ended with $?: $(cat err)"
  expect_states part none.toml " 1 done 3 left out "
  suite empty none.toml || fail "with all left out, the suite ended with $?: $(cat err)"
  grep -q 'no run to report' err || fail "an empty suite says: $(cat out err)"
  lra suite run part.toml --out part --data data --threads 1 --quiet \
    --only listops-linear_transformer-s1 >out 2>err || fail "--only ended with $?: $(cat err)"
  expect_states part part.toml " 2 done 1 left out 1 stopped "
  lra suite run part.toml --out part --data data --threads 1 --quiet --all >out 2>err ||
    fail "--all ended with $?: $(cat err)"
  expect_states part part.toml " 4 done "
  passed "runs that the suite's file leaves out"
}

# The long suite: its first cell takes long enough to be met at work.
long_suite() {
  sed 's/^steps = 6/steps = 250/; s/^eval_every = 3/eval_every = 250/; s/^seeds.*/seeds = [0]/
    s/^log_every = 1/&\ncheckpoint_every = 5/' small.toml >long.toml
}

long_command() {
  printf '%s\n' "$LRA_PROGRAM" suite run long.toml --out "$1" --data data --threads 1 --quiet
}

# start OUT [COMMAND...]: the long suite in the background, run by COMMAND, until its first cell has
# a checkpoint and more steps. Sets pid, and child to the process that trains.
start() {
  local out=$1 command run=$1/listops-transformer-s0 before=0
  shift
  if [[ -e $run/metrics.jsonl ]]; then before=$(wc -l <"$run/metrics.jsonl"); fi
  mapfile -t command < <(long_command "$out")
  "$@" "${command[@]}" >"$out.out" 2>&1 &
  pid=$!
  until [[ -e $run/checkpoints/latest && $(wc -l <"$run/metrics.jsonl") -gt $before ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the suite ended early: $(cat "$out.out")"
    sleep 0.02
  done
  child=$(child_of "$pid")
}

expect_end() {
  local code=0
  wait "$pid" || code=$?
  [[ $code == "$1" ]] || fail "the suite ended with $code, not $1: $(tail -n 5 ./*.out)"
}

# wait_for_end PROCESS: of one that is not a child of this shell.
wait_for_end() {
  local deadline=$((SECONDS + 60))
  while [[ -e /proc/$1 && $(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null) != Z ]]; do
    [[ $SECONDS -lt $deadline ]] || fail "process $1 lives on"
    sleep 0.05
  done
}

# One suite is stopped, then its run alone, then that run is killed, and ends with the bits of an undisturbed one.
stopped_and_killed() {
  start disturbed
  kill -TERM "$pid"
  expect_end 3
  expect_states disturbed long.toml " 1 stopped 1 waiting "
  passed "a stopped suite"
  start disturbed
  kill -TERM "$child"
  expect_end 3
  expect_states disturbed long.toml " 1 done 1 stopped "
  grep -q 'listops transformer seed 0 stopped' disturbed.out || fail "not named: $(cat disturbed.out)"
  passed "a suite with an unfinished run does not end with 0"
  start disturbed
  kill -KILL "$child"
  expect_end 2
  expect_states disturbed long.toml " 1 done 1 failed "
  [[ $(field disturbed/listops-transformer-s0/record.json failure) == *"signal 9"* ]] ||
    fail "the record does not say how the cell ended"
  grep -q 'listops transformer seed 0 failed' disturbed.out || fail "the failed cell is not named"
  suite disturbed long.toml || fail "after the kill, the suite ended with $?: $(tail -n 3 err)"
  expect_states disturbed long.toml " 2 done "
  grep -q 'resumes, it was failed' err || fail "the killed cell did not go on: $(cat err)"
  lra suite run long.toml --out plain --data data --threads 1 --quiet --only listops-transformer-s0 >out 2>err ||
    fail "the undisturbed run ended with $?: $(cat err)"
  same_files {plain,disturbed}/listops-transformer-s0/checkpoints/latest/model.safetensors
  passed "a killed cell is recorded, the others finish, and the next run goes on with it, to the same bits"
}

# A request to save that comes before a run, or before it listens, ends neither it nor the suite.
saved_early() {
  sed 's/^length = 64/&\nnum_train = 10000/; s/^seeds.*/seeds = [0]/' small.toml >early.toml
  mkdir -p fresh
  "$LRA_PROGRAM" suite run early.toml --out early --data fresh --threads 1 --quiet >early.out 2>&1 &
  pid=$!
  until [[ -e fresh/listops.turn ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the suite ended early: $(cat early.out)"
    sleep 0.01
  done
  kill -USR1 "$pid"
  until [[ -n $(child_of "$pid") ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the suite ended early: $(cat early.out)"
    sleep 0.01
  done
  for _ in {1..40}; do
    if kill -USR1 "$pid" 2>/dev/null; then sleep 0.02; fi
  done
  expect_end 0
  expect_states early early.toml " 2 done "
  passed "a request to save before a run listens"
}

# One record that cannot be read: its run alone is left out.
damaged_record() {
  cp -r whole spoilt
  rm -r spoilt/listops-linear_transformer-s1
  truncate -s 300 spoilt/listops-transformer-s0/record.json
  expect_states spoilt small.toml " 1 damaged 2 done 1 waiting "
  expect_code 2 lra suite run small.toml --out spoilt --data data --threads 1
  expect_states spoilt small.toml " 1 damaged 3 done "
  grep -q 'lra: listops transformer seed 0 damaged: spoilt/listops-transformer-s0/record.json' err ||
    fail "the damaged record is not named: $(cat err)"
  grep -q 'Linear Transformer' out || fail "no leaderboard beside a damaged record: $(cat out)"
  passed "a damaged record stops its run alone"
}

# Figures from other data would stand beside those of these.
other_data() {
  make_listops other/listops 64 8 9
  expect_code 2 lra suite run small.toml --out whole --data other --threads 1
  [[ $(wc -l <err) == 1 && $(cat err) == *whole/listops-transformer-s0*"trained on data"* ]] ||
    fail "other data is not refused: $(cat err)"
  local record=disturbed/listops-transformer-s0/record.json
  sed -i 's/"task_version": [0-9]*/"task_version": 0/' $record
  expect_code 2 lra suite run long.toml --out disturbed --data data --threads 1
  grep -q 'damaged: .*changed after it was written' err || fail "an edited version is not refused: $(cat err)"
  sed -i '/"record_hash"/d' $record
  expect_code 2 lra suite run long.toml --out disturbed --data data --threads 1
  grep -q 'task.version.* 0' err || fail "another task version is not refused: $(cat err)"
  passed "runs on other data are not taken for done"
}

# A task without data, and nobody who works: --watch ends.
watched_after_the_end() {
  sed 's/^tasks.*/tasks = ["listops", "text"]/' small.toml >no_text.toml
  suite whole no_text.toml || fail "without data for one task, the suite ended with $?: $(cat err)"
  timeout 60 "$LRA_PROGRAM" suite status no_text.toml --out whole --watch >watched ||
    fail "the watched table ended with $?"
  [[ $(tail -n 1 watched) == "4 done, 4 waiting" ]] || fail "watched: $(cat watched)"
  passed "a watched suite that is over"
}

# The steps that a budget of epochs takes are known once a run has begun.
epoch_budget() {
  sed 's/^steps = 6/epochs = 0.5/; s/^seeds.*/seeds = [0]/' small.toml >epochs.toml
  lra suite status epochs.toml --out epochs | grep -q ' 0/? ' || fail "steps before there are any"
  suite epochs epochs.toml || fail "a suite of epochs ended with $?: $(tail -n 3 err)"
  lra suite status epochs.toml --out epochs | grep -q ' 8/8 ' ||
    fail "not 8 steps: $(lra suite status epochs.toml --out epochs)"
  passed "steps of a budget in epochs"
}

# Messages of quiet concurrent runs are kept: the reason of a failure, and warnings.
told_by_runs() {
  local run
  sed 's/^warmup_steps = 2/warmup_steps = 20/; s/^seeds.*/seeds = [0]/' small.toml >warned.toml
  expect_code 0 lra suite run warned.toml --out warned --data data --threads 1 --jobs 2
  for run in transformer linear_transformer; do
    grep -q "listops $run seed 0: the learning rate never leaves warm-up" err ||
      fail "no warning for $run: $(cat err)"
    [[ $(field warned/listops-$run-s0/record.json warnings) == *"never leaves warm-up"* ]] ||
      fail "no warning in the record of $run"
  done
  sed 's/^batch_size = 4/batch_size = 65536/' warned.toml >greedy.toml
  printf '[set.model]\nlayers = 6\nembed_dim = 512\nqkv_dim = 512\nmlp_dim = 2048\n' >>greedy.toml
  expect_code 2 lra suite run greedy.toml --out greedy --data data --threads 1 --jobs 2
  for run in transformer linear_transformer; do
    [[ $(field greedy/listops-$run-s0/record.json failure) == *"exit code 2: memory"* ]] ||
      fail "$run does not say why it failed: $(field greedy/listops-$run-s0/record.json failure)"
  done
  passed "the suite keeps why a run failed and what it warned of"
}

# Several runs at a time: the same bits as one after another; a stop reaches all of them.
several_at_once() {
  local run
  expect_code 0 lra suite run small.toml --out several --data data --threads 1 --devices cpu,cpu,cpu
  expect_states several small.toml " 4 done "
  expect_code 2 lra suite run small.toml --out several --data data --devices cpu,gpu
  grep -q -- '--device gpu: is not a device' err || fail "no word of the device: $(cat err)"
  expect_code 2 lra suite run small.toml --out several --data data --device cpu --devices cpu
  for run in several/*-s[01]; do
    same_files "$run/checkpoints/latest/model.safetensors" \
      "whole/${run#several/}/checkpoints/latest/model.safetensors"
  done
  # So long that neither ends while a busy machine asks for their states.
  sed 's/^steps = 250/steps = 5000/' long.toml >longer.toml
  "$LRA_PROGRAM" suite run longer.toml --out both --data data --threads 1 --jobs 2 >both.out 2>&1 &
  pid=$!
  local watcher model
  for model in transformer linear_transformer; do
    until [[ -e both/listops-$model-s0/checkpoints/latest ]]; do
      kill -0 "$pid" 2>/dev/null || fail "the suite ended early: $(cat both.out)"
      sleep 0.02
    done
  done
  "$LRA_PROGRAM" suite status longer.toml --out both --watch >watched &
  watcher=$!
  expect_states both longer.toml " 2 running "
  lra suite status longer.toml --out both | grep -qE 'running +[0-9]+/5,?000 +[0-9]+\.[0-9]+' ||
    fail "no pace: $(lra suite status longer.toml --out both)"
  kill -TERM "$pid"
  expect_end 3
  expect_states both longer.toml " 2 stopped "
  wait "$watcher" || fail "the watched table ended with $?"
  [[ $(tail -n 1 watched) == "2 stopped" ]] || fail "the watched table did not end so: $(cat watched)"
  passed "a suite of several runs at a time"
}

# A running record whose process is gone.
interrupted_cell() {
  start gone
  kill -KILL "$child" "$pid"
  wait "$pid" 2>/dev/null || true
  wait_for_end "$child"
  expect_states gone long.toml " 1 interrupted 1 waiting "
  # The lock of another machine cannot be seen: the age of the last line decides.
  local run=gone/listops-transformer-s0
  echo "$child 00000000-0000-4000-8000-000000000000" >$run/.lock
  touch $run/metrics.jsonl
  expect_states gone long.toml " 1 running 1 waiting "
  touch -d '11 minutes ago' $run/metrics.jsonl $run/record.json
  expect_states gone long.toml " 1 interrupted 1 waiting "
  passed "status tells a run that was killed from one at work"
}

# Ctrl-C: the terminal signals the whole process group of the suite.
interrupted_suite() {
  start interrupted setsid
  kill -INT -- "-$pid"
  expect_end 3
  expect_states interrupted long.toml " 1 stopped 1 waiting "
  passed "Ctrl-C stops a suite with everything saved"
}

# Nobody is left to stop the run that trains: it must save and stop by itself.
killed_suite() {
  start orphaned
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
  wait_for_end "$child"
  expect_states orphaned long.toml " 1 stopped 1 waiting "
  passed "when the suite is killed, its run saves and stops"
}

# A folder in which another process trains is not touched, even when its record says failed.
used_cell() {
  local run=used/listops-transformer-s0 lock_holder before
  cp -r disturbed used
  sed -i '/"record_hash"/d; s/"status": "done"/"status": "failed"/' $run/record.json
  before=$(find $run -printf '%p %T@\n' | sort)
  flock --no-fork $run/.lock sleep 60 &
  lock_holder=$!
  until ! flock --nonblock $run/.lock true; do sleep 0.02; done
  expect_code 2 lra suite run long.toml --out used --data data --threads 1
  kill "$lock_holder"
  wait "$lock_holder" 2>/dev/null || true
  grep -q 'listops transformer seed 0 in use' err || fail "the used cell is not named: $(cat err)"
  [[ $before == "$(find $run -printf '%p %T@\n' | sort)" ]] || fail "a run in use was written to"
  passed "a run in use is left alone"
}

# A diverged cell is a fact: exit code 4, now and again, without training it again.
diverged_cell() {
  local before
  sed '/^steps = 6/a learning_rate = 1e30' small.toml >diverging.toml
  sed -i "$alone" diverging.toml
  expect_code 4 lra suite run diverging.toml --out diverged --data data --threads 1
  expect_states diverged diverging.toml " 1 diverged "
  before=$(find diverged/listops-transformer-s0 -printf '%p %T@\n' | sort)
  expect_code 4 lra suite run diverging.toml --out diverged --data data --threads 1
  [[ $before == "$(find diverged/listops-transformer-s0 -printf '%p %T@\n' | sort)" ]] ||
    fail "a diverged cell was run again"
  grep -q 'unless diverged/listops-transformer-s0 is removed' err ||
    fail "how to run a diverged cell again is not said: $(cat err)"
  passed "a diverged cell is kept"
}

# Measurements are made again when they failed or are not those that the suite asks for.
measurements() {
  local record=measured/bench/listops-transformer-train/record.json before
  sed "$alone" small.toml >measured.toml
  cat >>measured.toml <<'TOML'

[bench]
task = "listops"
preset = "small"
lengths = [16, 32]
batch = 2
windows = 1
window_seconds = 0
TOML
  suite measured measured.toml || fail "the measuring suite ended with $?: $(tail -n 3 err)"
  [[ $(field $record status) == done ]] || fail "the measurement is not done"
  before=$(stat -c %y $record)
  suite measured measured.toml || fail "again, the measuring suite ended with $?"
  [[ $(stat -c %y $record) == "$before" ]] || fail "a complete measurement was repeated"
  sed -i '/"record_hash"/d; s/"status": "done"/"status": "failed"/' $record
  suite measured measured.toml || fail "after a failure, the measuring suite ended with $?"
  [[ $(field $record status) == done ]] || fail "a failed measurement was not repeated"
  sed -i 's/^lengths.*/lengths = [16, 48]/' measured.toml
  suite measured measured.toml || fail "with other lengths, the measuring suite ended with $?"
  [[ $(field $record measurements 1 length) == 48 ]] || fail "the new length was not measured"
  # The preset of S4D trains in bfloat16, and is measured in float32.
  sed 's/^models.*/models = ["s4d"]/' measured.toml >precise.toml
  suite precise precise.toml || fail "the suite that measures S4D ended with $?: $(tail -n 3 err)"
  record=precise/bench/listops-s4d-train/record.json before=$(stat -c %y $record)
  suite precise precise.toml || fail "again, the suite that measures S4D ended with $?"
  [[ $(stat -c %y $record) == "$before" ]] || fail "a measurement of a bfloat16 preset was repeated"
  # Images have one length, and no setting for it.
  sed 's/^task = .*/task = "pathfinder"/; s/^lengths.*/lengths = [1024]/' measured.toml >images.toml
  for _ in first again; do
    lra suite run images.toml --out measured --data data --threads 1 --quiet >out 2>err ||
      fail "the suite that measures images ended with $?: $(tail -n 3 err)"
  done
  passed "measurements are repeated when they failed or others are wanted, and only then"
}

# Stopped between two lengths, a measurement is not done.
stopped_bench() {
  local first="" second=""
  "$LRA_PROGRAM" bench --task listops --preset small --models local --lengths 16,32,48 --batch 2 \
    --windows 1 --window-seconds 2 --threads 1 --out half --quiet >half.out 2>&1 &
  pid=$!
  until [[ -n $second && $second != "$first" ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the measurement ended early: $(cat half.out)"
    second=$(child_of "$pid")
    if [[ -z $first ]]; then first=$second; fi
    sleep 0.02
  done
  kill -TERM "$pid"
  expect_end 3
  [[ -e half/listops-local-train/record.json &&
    $(field half/listops-local-train/record.json status) == stopped ]] ||
    fail "half a measurement is not recorded as stopped: $(cat half.out half/*/record.json)"
  passed "a stopped measurement says so"
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
  json suite run small.toml --out whole --data data --only listops-transformer-s1
  json suite submit small.toml --slurm --dry-run --out whole
  json report whole
  json model compare listops linformer
  passed "--json of $num_commands commands is JSON alone"
}

done_and_done_again
left_out
long_suite
stopped_and_killed
used_cell
saved_early
damaged_record
other_data
watched_after_the_end
epoch_budget
told_by_runs
several_at_once
interrupted_cell
interrupted_suite
killed_suite
diverged_cell
measurements
stopped_bench
every_json
