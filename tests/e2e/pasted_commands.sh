#!/usr/bin/env bash
# Every command that the program prints works when it is pasted, from the same folder, with nothing
# added, whatever the paths are called.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

sets=(--set task.length=64 --set model.layers=1 --set train.batch_size=4 --set train.steps=400000
  --set train.eval_every=400000 --set train.checkpoint_every=5 --set train.warmup_steps=5
  --set train.log_every=1 --set train.eval_examples=4)
data="data of 'mine'" runs='my runs; $HOME'
make_listops "$data/listops" 40 8 8

# command_in FILE: the last thing of a line of it, behind ": " or a title.
command_in() {
  local found
  found=$(grep -oE "('[^']*/lra'|[^ ']*/lra) .*$" "$1" | tail -n 1) || true
  [[ -n $found ]] || fail "no command in '$(cat "$1")'"
  echo "$found"
}

# paste CODE FILE: the command in FILE as a shell takes it.
paste() {
  local command
  command=$(command_in "$2")
  expect_code "$1" timeout 120 bash -c "$command"
  passed "pasted: $command"
}

# interrupt RUN COMMAND...: the command trains in RUN until it has logged a few more steps, and is
# stopped then.
interrupt() {
  local run=$1 before=0 code=0 pid
  shift
  if [[ -e $run/metrics.jsonl ]]; then before=$(wc -l <"$run/metrics.jsonl"); fi
  "$@" >summary 2>err &
  pid=$!
  while [[ ! -e $run/metrics.jsonl || $(wc -l <"$run/metrics.jsonl") -lt $((before + 5)) ]]; do
    kill -0 $pid 2>/dev/null || fail "the run ended early: $(cat err)"
    sleep 0.05
  done
  kill -TERM $pid
  wait $pid || code=$?
  [[ $code == 3 ]] || fail "the run ended with $code, not 3: $(cat err)"
}

# go_on FILE: the command of FILE goes on with the run, and is stopped again.
go_on() {
  local command
  command=$(command_in "$1")
  interrupt "$run" bash -c "exec $command"
  grep -q "resume with" summary || fail "$command: $(cat summary err)"
  passed "pasted: $command"
}

run="$runs/a b"
interrupt "$run" "$LRA_PROGRAM" train listops transformer --data "$data" --out "$run" --threads 1 \
  "${sets[@]}"
go_on summary
expect_code 2 lra train listops transformer --data "$data" --out "$run" "${sets[@]}"
cp err told
go_on told
expect_code 2 lra reproduce "$run"
cp err told
go_on told

expect_code 0 lra eval "$run" --threads 1 --quiet
expect_code 0 lra analyze generalization "$run" --threads 1 --quiet
passed "eval and analyze find the data where the run had it"
mv "$data" moved
expect_code 2 lra eval "$run" --threads 1 --quiet
expect_code 0 lra eval "$run" --data moved --threads 1 --quiet
passed "data that was moved is asked for"
mv moved "$data"

# told WORDS...: a mistake whose answer holds a command.
told() {
  expect_code 2 lra "$@"
  cp err told
}
told train
paste 0 told
told data make text --out x
paste 0 told
told data import listops 'no such folder' --out x
paste 0 told
told data make listops --out x --set lenght=3
paste 0 told
