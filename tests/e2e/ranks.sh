#!/usr/bin/env bash
# One run in several processes, started by torchrun or with Slurm's variables: the same losses for any
# number, the same bits again, and a clear end when one is lost, stopped or never comes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

torchrun=$(dirname "$LRA_PYTHON")/torchrun
if [[ ! -x $torchrun ]]; then torchrun=$(command -v torchrun) || exit 77; fi
export OMP_NUM_THREADS=1
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_USE_AGENT_STORE
for name in $(compgen -e SLURM_ || true); do unset "$name"; done

steps=60
settings=(--threads 1 --quiet
  --set task.length=128 --set train.batch_size=8 --set train.steps=$steps
  --set train.eval_every=20 --set train.checkpoint_every=8 --set train.warmup_steps=5
  --set train.log_every=1 --set train.eval_examples=20 --set train.eval_batch_size=4)

# torchrun answers with a code of its own, so each rank leaves its code, its process and what it said. In
# Python, for when the signal and the end come together, bash's wait may give a code of its own, too.
cat >rank.py <<'SCRIPT'
import os, signal, subprocess, sys

rank = os.environ["RANK"]
signal.signal(signal.SIGTERM, lambda *_: None)  # by which torchrun ends the others
with open(f"out.{rank}", "w") as out, open(f"err.{rank}", "w") as err:
    process = subprocess.Popen([os.environ["LRA_PROGRAM"], *sys.argv[1:]], stdout=out, stderr=err)
with open(f"pid.{rank}", "w") as file:
    file.write(str(process.pid))
code = process.wait()
code = code if code >= 0 else 128 - code  # as a shell says it
with open(f"code.{rank}", "w") as file:
    file.write(str(code))
sys.exit(code)
SCRIPT
export LRA_PROGRAM

# launch RANKS ARGUMENT...: in the background; sets `launcher`.
launch() {
  local count=$1
  shift
  rm -f {out,err,pid,code}.[0-9]*
  "$torchrun" --standalone --nproc-per-node "$count" rank.py "$@" \
    >launcher.log 2>&1 &
  launcher=$!
}

# start RANKS ARGUMENT...: the same with the variables that torchrun sets, without its import of torch.
start() {
  local count=$1 rank port
  shift
  rm -f {out,err,pid,code}.[0-9]*
  port=$(free_port)
  (
    for ((rank = 0; rank < count; ++rank)); do
      RANK=$rank WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$LRA_PYTHON" rank.py "$@" &
    done
    wait
  ) >launcher.log 2>&1 &
  launcher=$!
}

# wait_for_launcher: within two minutes.
wait_for_launcher() {
  for _ in {1..1200}; do
    if ! kill -0 "$launcher" 2>/dev/null; then break; fi
    sleep 0.1
  done
  ! kill -0 "$launcher" 2>/dev/null || fail "the ranks did not end: $(cat err.*)"
  wait "$launcher" || true
}

# expect_codes CODE...: of rank 0, 1, ...
expect_codes() {
  local rank=0 wanted
  wait_for_launcher
  for wanted in "$@"; do
    [[ $(cat "code.$rank" 2>/dev/null) == "$wanted" ]] ||
      fail "rank $rank ended with $(cat "code.$rank" 2>/dev/null), not $wanted: $(cat err.* launcher.log)"
    rank=$((rank + 1))
  done
}

# train launch|start RANKS RUN ARGUMENT...: a whole run.
train() {
  local begin=$1 count=$2 run=$3 rank codes=()
  shift 3
  "$begin" "$count" train listops transformer --out "$run" "${settings[@]}" "$@"
  for ((rank = 0; rank < count; ++rank)); do codes+=(0); done
  expect_codes "${codes[@]}"
}

wait_for_step() {
  until [[ -e $1/metrics.jsonl && $(wc -l <"$1/metrics.jsonl") -ge $2 ]]; do
    kill -0 "$launcher" 2>/dev/null || fail "$1 ended before step $2: $(cat err.* launcher.log)"
    sleep 0.02
  done
}

same_weights() {
  local name
  for name in model optimizer; do
    same_tensors "$1/checkpoints/latest/$name.safetensors" "$2/checkpoints/latest/$name.safetensors"
  done
}

# close_figures RUN RUN: every logged loss, and the test, to rounding; each step once.
close_figures() {
  "$LRA_PYTHON" - "$1" "$2" "$steps" <<'PYTHON' || fail "$1 and $2 have other figures"
import json, sys

def lines(run):
    found = [json.loads(text) for text in open(run + "/metrics.jsonl")]
    return {(line["kind"], line["step"]): line["loss"] for line in found}, len(found)

(one, _), (other, count) = lines(sys.argv[1]), lines(sys.argv[2])
assert one.keys() == other.keys() and len(other) == count, "the same lines, each once"
assert sum(kind == "train" for kind, _ in one) == int(sys.argv[3])
differences = [abs(one[key] - other[key]) / abs(one[key]) for key in one]
assert all(d < 1e-5 for d in differences), f"losses differ by {differences}"
print(f"losses differ by {max(differences):.1e} at most")
records = [json.load(open(run + "/record.json")) for run in sys.argv[1:3]]
for key in ("fingerprint", "tokens", "examples", "steps", "config_hash"):
    if key == "tokens" or records[0]["config_hash"] == records[1]["config_hash"]:
        assert records[0][key] == records[1][key], key
PYTHON
}

make_listops data/listops 400 50 50
export LRA_DATA=data
expect_code 0 lra train listops transformer --out alone-4 "${settings[@]}" --set train.accumulate=4
expect_code 0 lra train listops transformer --out alone-2 "${settings[@]}" --set train.accumulate=2
train launch 2 two
train start 2 two-in-two --set train.accumulate=2
train start 4 four
close_figures alone-2 two
close_figures alone-4 two-in-two
close_figures alone-4 four
[[ $(field two/record.json provenance ranks) == 2 ]] || fail "the record does not say 2 ranks"
! grep -q '"ranks"' alone-2/record.json || fail "the record of one process speaks of ranks"
[[ -z $(cat out.1 err.1 out.2 err.2 out.3 err.3) ]] || fail "other ranks speak: $(cat out.[1-3] err.[1-3])"
grep -q "done after $steps of $steps steps" out.0 || fail "rank 0 does not sum up: $(cat out.0 err.0)"
passed "1, 2 and 4 ranks: the same samples and dropout, and the same losses to rounding"

train start 2 two-again
same_weights two two-again
passed "2 ranks again: the same bits"

train launch 1 one-of-one --set train.accumulate=2
same_weights alone-2 one-of-one
passed "torchrun with one process is a plain run"

mkdir fresh
start 2 train listops transformer --data fresh --out fresh-run "${settings[@]}" \
  --set task.num_train=200 --set task.num_val=20 --set task.num_test=20 --set train.steps=2
expect_codes 0 0
passed "two ranks without data make it once"

# Two ranks with settings of their own.
expect_different() {
  local text=$1 rank
  shift
  for rank in 0 1; do
    env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$LRA_PROGRAM" train listops \
      transformer --out different "${settings[@]}" "${!1}" >"out.$rank" 2>"err.$rank" &
    tasks[rank]=$!
    shift
  done
  for rank in 0 1; do
    local code=0
    wait "${tasks[rank]}" || code=$?
    [[ $code == 2 && $(wc -l <"err.$rank") == 1 ]] && grep -q "$text" "err.$rank" ||
      fail "$text, rank $rank: $code, $(cat "err.$rank")"
  done
  [[ ! -e different ]] || fail "ranks that differ left a folder"
}
lra data make listops --train 399 --val 50 --test 50 --out other/listops --threads 1 --quiet >/dev/null
here=--data=data there=--data=other slow=--set=train.learning_rate=0.001 fast=--set=train.learning_rate=0.01
port=$(free_port)
expect_different "rank [01] of 2: the ranks have different data" here there
expect_different "rank [01] of 2: the ranks have different settings" slow fast
passed "ranks with other data or settings: one line each, exit code 2, no folder"

start 2 train listops transformer --out killed "${settings[@]}" --rank-timeout 60
wait_for_step killed 6
began=$SECONDS
kill -KILL "$(<pid.1)"
expect_codes 74
[[ $((SECONDS - began)) -lt 60 ]] || fail "the end took $((SECONDS - began)) s"
[[ $(wc -l <err.0) == 1 ]] || fail "not one line: $(cat err.0)"
grep -q "rank 0 of 2: rank 1 was lost after step [0-9]*; .*: .*lra train --resume killed$" err.0 ||
  fail "the loss is not said: $(cat err.0)"
[[ $(field killed/record.json status) == stopped ]] || fail "the record does not say stopped"
saved=$(readlink killed/checkpoints/latest)
[[ $saved == "step_$(field killed/record.json steps)" ]] || fail "the last step is not saved: $saved"
start 2 train --resume killed --threads 1 --quiet
expect_codes 0 0
same_weights two killed
passed "kill -9 of one rank: rank 0 saves and says it, and the resumed run has the same bits"

launch 2 train listops transformer --out first-killed "${settings[@]}" --rank-timeout 60
wait_for_step first-killed 6
kill -KILL "$(<pid.0)"
expect_codes 137 74
grep -q "rank 1 of 2: rank 0 was lost" err.1 || fail "the loss is not said: $(cat err.1)"
start 2 train --resume first-killed --threads 1 --quiet
expect_codes 0 0
same_weights two first-killed
passed "kill -9 of rank 0: the run resumes from its last checkpoint to the same bits"

for who in 0 1 torchrun; do
  begin=$([[ $who == torchrun ]] && echo launch || echo start)
  "$begin" 2 train listops transformer --out "stopped-$who" "${settings[@]}"
  wait_for_step "stopped-$who" 6
  if [[ $who == torchrun ]]; then kill -TERM "$launcher"; else kill -TERM "$(<"pid.$who")"; fi
  expect_codes 3 3
  [[ $(field "stopped-$who/record.json" status) == stopped ]] ||
    fail "stopped-$who: the record does not say stopped"
done
start 2 train --resume stopped-1 --threads 1 --quiet
expect_codes 0 0
same_weights two stopped-1
passed "SIGTERM to one rank, or to torchrun, saves and ends all with 3"

start 4 train --resume stopped-0 --threads 1 --quiet
expect_codes 0 0 0 0
[[ $(field stopped-0/record.json status) == done ]] || fail "not done"
[[ $(field stopped-0/record.json fingerprint) == "$(field two/record.json fingerprint)" ]] ||
  fail "another number of ranks changes the fingerprint"
expect_code 2 lra reproduce two --quiet
grep -q "was made by 2 processes" err || fail "reproduce does not say why: $(cat err)"
passed "another number of ranks goes on"

# The line is clear, names the variable, and nothing is left behind.
refused() {
  local text=$1
  shift
  expect_code 2 env "$@" "$LRA_PROGRAM" train listops transformer --out bad "${settings[@]}"
  [[ $(wc -l <err) == 1 ]] && grep -q "$text" err || fail "$*: $(cat err)"
  [[ ! -e bad ]] || fail "$*: a folder is left behind"
}
refused "RANK: is 'x'" RANK=x WORLD_SIZE=2
refused "RANK: is 2 and WORLD_SIZE 2" RANK=2 WORLD_SIZE=2
refused "WORLD_SIZE: is not set" RANK=0
refused "MASTER_PORT: is not set" RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
refused "SLURM_PROCID: is '-1'" SLURM_PROCID=-1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=1
start 2 train listops transformer --out bad "${settings[@]}" --set train.batch_size=7
expect_codes 2 2
for rank in 0 1; do
  grep -q "train.batch_size: 7 examples for 2 processes" "err.$rank" || fail "unclear: $(cat err.*)"
done
printf 'name = "no"\ntasks = ["listops"]\nmodels = ["transformer"]\nseeds = [0]\n' >suite.toml
expect_code 2 env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$LRA_PROGRAM" \
  suite run suite.toml --out bad
[[ $(wc -l <err) == 1 && ! -e bad ]] && grep -q "rank 0 of 2: this command starts its own processes" err ||
  fail "a suite under torchrun: $(cat err)"
expect_code 2 lra train listops transformer --out bad "${settings[@]}" --rank-backend nccl
[[ $(wc -l <err) == 1 && ! -e bad ]] && grep -q "nccl sums on GPUs" err || fail "NCCL on the CPU: $(cat err)"
passed "bad variables and a batch that cannot be shared: one line, exit code 2"

port=$(free_port)
expect_code 74 env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$LRA_PROGRAM" \
  train listops transformer --out lonely "${settings[@]}" --rank-timeout 2
[[ $(wc -l <err) == 1 ]] && grep -q "rank 0 of 2: did not connect within 2 s: rank 1" err ||
  fail "unclear: $(cat err)"
expect_code 74 env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$LRA_PROGRAM" \
  train listops transformer --out lonely "${settings[@]}" --rank-timeout 2
[[ $(wc -l <err) == 1 ]] &&
  grep -q "rank 1 of 2: cannot reach rank 0 at 127.0.0.1 port $port within 2 s" err ||
  fail "unclear: $(cat err)"
[[ ! -e lonely ]] || fail "a run that did not begin left a folder"
passed "a rank that does not come: said after --rank-timeout"

env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$LRA_PROGRAM" \
  train listops transformer --out lonely "${settings[@]}" 2>err &
lonely=$!
sleep 3  # longer than it takes to begin to wait; a signal before that ends it too
kill -TERM "$lonely"
began=$SECONDS code=0
wait "$lonely" || code=$?
[[ $code == 3 && $((SECONDS - began)) -lt 60 && $(wc -l <err) == 1 ]] ||
  fail "SIGTERM while rank 0 is absent: $code after $((SECONDS - began)) s, $(cat err)"
passed "a rank that waits for rank 0 can be stopped"

port=$(free_port)
for rank in 0 1; do
  env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$LRA_PROGRAM" train listops \
    transformer --out hung "${settings[@]}" --set train.steps=100000 --rank-timeout 3 2>"err.$rank" &
  tasks[rank]=$!
done
launcher=${tasks[0]}
wait_for_step hung 6
kill -STOP "${tasks[1]}"
code=0
wait "${tasks[0]}" || code=$?
kill -KILL "${tasks[1]}"
{ wait "${tasks[1]}"; } 2>/dev/null || true  # bash would report the kill
[[ $code == 74 ]] && grep -q "rank 0 of 2: rank 1 did not answer within 3 s after step" err.0 ||
  fail "a rank that hangs: $code, $(cat err.0)"
passed "a rank that hangs: said after --rank-timeout"

# The first attempt loses a rank; torchrun starts both again with the same command.
cat >once.sh <<'SCRIPT'
#!/usr/bin/env bash
if [[ $RANK == 0 || $TORCHELASTIC_RESTART_COUNT != 0 ]]; then exec "$LRA_PROGRAM" "$@"; fi
"$LRA_PROGRAM" "$@" &
until [[ -e restarted/checkpoints/step_8 ]]; do
  kill -0 $! 2>/dev/null || exit 1
  sleep 0.02
done
kill -KILL $!
wait $!
SCRIPT
chmod +x once.sh
expect_code 0 "$torchrun" --no-python --standalone --nproc-per-node 2 --max-restarts 1 ./once.sh \
  train listops transformer --out restarted "${settings[@]}" --rank-timeout 60
same_weights two restarted
expect_code 0 lra train listops transformer --out alone-2 "${settings[@]}" --set train.accumulate=2 --go-on
grep -q "done after $steps of $steps steps" out || fail "a run that is done is not shown: $(cat out)"
expect_code 2 lra train listops transformer --out alone-2 "${settings[@]}" --go-on
[[ $(wc -l <err) == 1 ]] && grep -q "alone-2: already holds a run with other settings: .*accumulate=1" err || fail "unclear: $(cat err)"
passed "torchrun starts the ranks again: the run goes on to the same bits; other settings are refused"

# The environment of two tasks of a step of srun.
slurm=(SLURM_JOB_ID=$((RANDOM + 1)) SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_NNODES=1 SLURM_NODELIST=here)
for rank in 0 1; do
  env "${slurm[@]}" SLURM_PROCID=$rank SLURM_LOCALID=$rank "$LRA_PROGRAM" \
    train listops transformer --out by-slurm "${settings[@]}" >"out.$rank" 2>"err.$rank" &
  tasks[rank]=$!
done
for rank in 0 1; do wait "${tasks[rank]}" || fail "task $rank: $(cat "err.$rank")"; done
same_weights two by-slurm
expect_code 0 env SLURM_JOB_ID=1 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 "$LRA_PROGRAM" \
  train listops transformer --out in-a-job "${settings[@]}" --set train.accumulate=2
same_weights alone-2 in-a-job
passed "a step of Slurm with two tasks, and a job of one task"
