#!/usr/bin/env bash
# A suite on a SLURM cluster: submitted as a job array, preempted, queued again, taken up; submitted
# again; with a run that fails; a sweep in rounds. The cluster is a real one of one node, see slurm_cluster.bash.
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
source "$here/lib.bash"
source "$here/slurm_cluster.bash"

# Names that a shell, sbatch and SLURM's log patterns each read in their own way.
out="$scratch/runs of 'me' \"you\" %A;\$(touch hit)#"
data="$scratch/data \$HOME"$'\n'"'"
mkdir "$data"

write_suites() {
  cat >small.toml <<'TOML'
name = "small 'suite'; $(touch hit)"
tasks = ["listops", "pathfinder"]
models = ["local", "linear_transformer"]
seeds = [0]
preset = "small"

[set.model]
layers = 1
heads = 2
embed_dim = 16
qkv_dim = 16
mlp_dim = 16

[set.train]
steps = 30
warmup_steps = 2
eval_every = 15
batch_size = 2
eval_examples = 8
test_examples = 8
checkpoint_every = 10
log_every = 1

[listops.task]
length = 64
num_train = 64
num_val = 16
num_test = 16

[pathfinder.task]
num_images = 80
TOML
  # Long enough to be met at work; saved at its two validations, else only when asked to.
  sed 's/^steps = .*/steps = 8000/; s/^eval_every = .*/eval_every = 4000/
    s/^checkpoint_every = .*/checkpoint_every = 0/; s/^tasks = .*/tasks = ["listops"]/
    s/^models = .*/models = ["local", "linear_transformer", "transformer"]/
    /^\[pathfinder.task\]/,$d; s/^name = .*/name = "long"/' small.toml >long.toml
}

# submit FILE OUT [OPTION...]: output in out and err; the jobs' numbers in `job`.
submit() {
  local file=$1 folder=$2
  shift 2
  lra suite submit "$file" --slurm --out "$folder" --data "$data" "$@" >out 2>err ||
    fail "submit ended with $?: $(cat err)"
  job=$(sed -n 's/^job \([0-9]*\): .*/\1/p' out | tr '\n' ' ')
}

has_states() { [[ $(states "$1" "$2") == "$3" ]]; }

expect_states() {
  has_states "$@" || fail "$2: states are '$(states "$1" "$2")', not '$3'"
}

# logs OUT: the end of each.
logs() { tail -n 15 "$1"/slurm/*.log; }

# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local seconds=$1 what=$2
  shift 2
  within "$seconds" "$@" ||
    fail "$what: not within $seconds s; $(squeue --states=all; cat "$cluster/within.out")"
}

# Variables of srun that the program needs to find the other processes of a run.
tasks_of_srun() {
  local name
  srun -n 2 env >env
  for name in SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2 \
    SLURM_NODEID=0 SLURM_JOB_NODELIST=localhost SLURM_STEP_NODELIST=localhost; do
    grep -qx $name env || fail "srun does not say $name: $(grep SLURM env)"
  done
  passed "srun -n 2 numbers its processes"
}

# Two processes that srun starts train one run: the weights of one process with as many micro-batches.
ranks_of_srun() {
  local set train=(train listops linear_transformer --data "$data" --threads 1)
  for set in task.length=64 task.num_train=64 task.num_val=16 task.num_test=16 model.layers=1 \
    model.heads=2 model.embed_dim=16 model.qkv_dim=16 model.mlp_dim=16 train.steps=6 train.batch_size=4 \
    train.warmup_steps=2 train.eval_every=3 train.eval_examples=8 train.test_examples=8; do
    train+=(--set "$set")
  done
  srun -n 2 "$LRA_PROGRAM" "${train[@]}" --out two-ranks >out 2>err || fail "srun: $(cat err)"
  lra "${train[@]}" --out one-rank --set train.accumulate=2 >out 2>err || fail "one process: $(cat err)"
  [[ $(field two-ranks/record.json provenance ranks) == 2 ]] || fail "the record does not say 2 ranks"
  [[ $(field two-ranks/record.json weights_hash) == "$(field one-rank/record.json weights_hash)" ]] ||
    fail "two processes of srun end with other weights than one"
  passed "srun -n 2 lra train"
}

# example N: the N-th block of code of docs/clusters.md that is a script of bash, or a loop.
example() {
  awk -v wanted="$1" '/^```/ { inside = !inside; if (inside) number++; next } inside && number == wanted' \
    "$here/../../docs/clusters.md"
}

# The script of the documentation, with two processes instead of eight GPUs: SLURM's signal before the
# end of the time saves the run, and the same script resumes it.
ranks_of_torchrun() {
  local torchrun
  torchrun=$(dirname "$LRA_PYTHON")/torchrun
  [[ -x $torchrun ]] || torchrun=$(command -v torchrun)
  example 5 | sed "s|exec torchrun|exec $torchrun|; s|^  lra |  $LRA_PROGRAM |; s| --gres=gpu:8||; s|=64|=2|
    s|per-node 8|per-node 2|; s|--device cuda --threads 8|--threads 1 --data '$scratch/data'|
    s|text s4d --preset published|listops local --set task.length=64 --set train.steps=100000 --set train.eval_every=100000 --set train.log_every=1|
    s|^#SBATCH --time=24:00:00|#SBATCH --time=10|" >ranks.sbatch
  grep -q "per-node 2.*no-python" ranks.sbatch || fail "the example has changed: $(cat ranks.sbatch)"
  make_listops data/listops 64 16 8
  local id
  id=$(sbatch --parsable ranks.sbatch)
  wait_for 60 "the first steps of two ranks" test -s runs/text-s4d/metrics.jsonl
  scancel --batch --signal=TERM "$id"
  wait_for 60 "the end of the job" no_jobs
  [[ $(field runs/text-s4d/record.json status) == stopped ]] || fail "not saved: $(cat ./*.log)"
  [[ $(field runs/text-s4d/record.json provenance ranks) == 2 ]] || fail "not two ranks"
  local steps
  steps=$(field runs/text-s4d/record.json steps)
  id=$(sbatch --parsable ranks.sbatch)
  wait_for 60 "more steps" eval "[[ \$(wc -l <runs/text-s4d/metrics.jsonl) -gt $((steps + 5)) ]]"
  scancel --batch --signal=TERM "$id"
  wait_for 60 "the end of the job" no_jobs
  [[ $(field runs/text-s4d/record.json steps) -gt $steps ]] || fail "it did not go on after step $steps"
  passed "the script with torchrun saves before its time is over, and resumes"
}

# A refusal takes one line, and nothing is submitted.
refused() {
  local line="$1"
  shift
  expect_code "$@"
  [[ $(wc -l <err) == 1 && $(cat err) == *"$line"* ]] || fail "'$*' says: $(cat err)"
}

refusals() {
  refused "program not found on PATH" 2 env PATH=/nowhere "$LRA_PROGRAM" suite submit small.toml \
    --slurm --out no
  refused "Invalid partition" 2 lra suite submit small.toml --slurm --out no --partition=nowhere
  refused "control character" 2 lra suite submit small.toml --slurm --out $'two\nlines'
  refused "backslash" 2 lra suite submit small.toml --slurm --out 'back\slash'
  refused "is not an option of sbatch" 2 lra suite submit small.toml --slurm --out no --sbatch-arg mem=8G
  refused "a limit of 60 s" 2 lra suite submit small.toml --slurm --out no --time 1
  refused "a limit of 7200 s" 2 lra suite submit small.toml --slurm --out no --time 0-2 \
    --signal-seconds 7200
  refused "a limit of 90 s" 2 lra suite submit small.toml --slurm --out no --time 1:30 \
    --signal-seconds 100
  refused "a limit of 3601 s" 2 lra suite submit small.toml --slurm --out no --time 1:0:1 \
    --signal-seconds 3700
  refused "slurm is required" 2 lra suite submit small.toml --out no
  refused "did you mean 'listops-local-s0'" 2 lra suite run small.toml --out no --only listops-local-s1
  : >file
  refused "file/" 74 lra suite submit small.toml --slurm --out file/runs
  refused "in use" 2 flock -o no/.lock "$LRA_PROGRAM" suite submit small.toml --slurm --out no
  [[ -z $(squeue --noheader) ]] || fail "a refused suite was submitted: $(squeue)"
  passed "what is refused is refused in one line"
}

# The script with a program that never listens: USR1 does not end it, USR2 queues the task again.
deaf_to_early_saves() {
  local signal wanted code script
  mkdir fake
  printf '#!/bin/sh\nexec sleep 3\n' >fake/program
  printf '#!/bin/sh\necho "$1 $2" >>fake/requeued\n' >fake/scontrol
  chmod +x fake/program fake/scontrol
  sed "s|^$LRA_PROGRAM suite run|fake/program suite run|" "$1" >fake/script
  grep -q '^fake/program' fake/script || fail "the program is not in the script: $(cat "$1")"
  for signal in USR1 USR2; do
    PATH="$PWD/fake:$PATH" SLURM_ARRAY_TASK_ID=0 SLURM_JOB_ID=1 bash fake/script >fake/log 2>&1 &
    script=$!
    until [[ -n $(child_of "$script") ]]; do sleep 0.02; done
    kill "-$signal" "$script"
    code=0
    wait "$script" || code=$?
    wanted=0
    if [[ $signal == USR2 ]]; then wanted=140; fi
    [[ $code == "$wanted" ]] || fail "$signal ended the script with $code: $(cat fake/log)"
  done
  [[ $(cat fake/requeued) == "requeue 1" ]] || fail "not queued again once: $(cat fake/requeued)"
  rm -r fake
}

# Before there is a cluster.
dry_run() {
  expect_code 0 env PATH=/nowhere "$LRA_PROGRAM" suite submit small.toml --slurm --out "$out" \
    --data "$data" --dry-run --partition main --gres gpu:1 --device cuda
  bash -n "$out/slurm/array-1.sbatch" || fail "bash cannot read the script"
  grep -q '^#SBATCH --partition=main' "$out/slurm/array-1.sbatch" || fail "no partition in the script"
  grep -q '^#SBATCH --gres=gpu:1' "$out/slurm/array-1.sbatch" || fail "no --gres in the script"
  grep -q -- '--device cuda' "$out/slurm/array-1.sbatch" || fail "no --device in the script"
  deaf_to_early_saves "$out/slurm/array-1.sbatch"
  expect_states small.toml "$out" " 4 waiting"
  [[ -z $(ls "$data") ]] || fail "a dry run made data"
  passed "a dry run writes the script alone"
}

# Four tasks that start at once on no data at all.
four_runs() {
  scontrol update partitionname=main state=down
  submit small.toml "$out" --partition main --time 10 --sbatch-arg=--comment="a 'b' \$(touch hit)"
  [[ $(wc -w <<<"$job") == 2 ]] || fail "not two jobs for four runs: $(cat out)"
  expect_states small.toml "$out" " 4 queued"
  submit small.toml "$out"
  [[ -z $job && $(cat out) == *"4 queued"*"nothing to submit"* ]] || fail "queued runs: $(cat out)"
  scontrol update partitionname=main state=up
  wait_for 90 "four runs" has_states small.toml "$out" " 4 done"
  wait_for 30 "the end of the job" no_jobs
  [[ -z $(find "$data" -name '*.turn' -o -name '*.lock') ]] || fail "a lock was left: $(ls "$data")"
  [[ $(find . -name hit) == "" ]] || fail "a name was run as a command"
  submit small.toml "$out"
  [[ -z $job && $(cat out) == *"4 done"*"nothing to submit"* ]] || fail "done runs: $(cat out)"
  lra suite run small.toml --out plain --data "$data" --threads 1 >leaderboard 2>err ||
    fail "the undisturbed suite ended with $?: $(cat err)"
  same_runs "$out" plain
  lra suite run small.toml --out "$out" --data "$data" >leaderboard 2>err || fail "no leaderboard: $(cat err)"
  grep -q 'Linear Transformer' leaderboard || fail "not on the leaderboard: $(cat leaderboard)"
  passed "four runs of a job array equal those of a suite, and none is submitted twice"
}

steps_of() { wc -l <"long/listops-$1-s0/metrics.jsonl"; }
is_at_step() { [[ $(steps_of "$1") -ge $2 ]]; }
has_checkpoint() { [[ -e long/listops-$1-s0/checkpoints/latest ]]; }

# task_of MODEL: JOB_TASK of its run, which is the one that says so in its log.
task_of() {
  local log
  log=$(grep -l "listops $1 seed 0" long/slurm/*.log)
  basename "$log" .log
}

# One run is asked to save and goes on; then it is told that its time is over: it saves, stops and
# queues itself again. The second is preempted by SLURM. The third is killed. All at work at once.
disturbed_runs() {
  local model
  submit long.toml long --time 10
  for model in local linear_transformer transformer; do
    wait_for 60 "the first steps of $model" is_at_step $model 20
  done
  scancel --batch --signal=USR1 "$(task_of local)"
  scontrol requeue "$(task_of linear_transformer)"
  kill -KILL "$(cut -d ' ' -f 1 long/listops-transformer-s0/.lock)"
  wait_for 20 "what USR1 asks for" has_checkpoint local
  scancel --batch --signal=USR2 "$(task_of local)"
  wait_for 90 "two runs" has_states long.toml long " 2 done 1 failed"
  wait_for 30 "the end of the job" no_jobs
  grep -q 'listops-local-s0 is saved; its task is queued again' long/slurm/*.log ||
    fail "not queued again: $(logs long)"
  for model in local linear_transformer; do
    grep -q "listops $model seed 0: resumes, it was stopped" long/slurm/*.log ||
      fail "$model did not go on where it was: $(logs long)"
  done
  [[ $(field long/listops-transformer-s0/record.json failure) == *"signal 9"* ]] ||
    fail "the record does not say how the run ended"
  submit long.toml long
  [[ $(cat out) == *"2 done, 1 to submit"* ]] || fail "after a failure: $(cat out)"
  wait_for 90 "the failed run" has_states long.toml long " 3 done"
  lra suite run long.toml --out long-plain --data "$data" --threads 1 --jobs 2 >leaderboard 2>err ||
    fail "the undisturbed suite ended with $?: $(cat err)"
  same_runs long long-plain
  passed "runs that are saved, preempted, requeued or killed end with the bits of undisturbed ones"
}

# Each round is submitted by a job that waits for the one before; a cancelled round is the last.
sweep_in_rounds() {
  { sed '/^\[pathfinder.task\]/,$d; s/^tasks = .*/tasks = ["listops"]/; s/^models = .*/models = ["local"]/
    s/^name = .*/name = "sweep"/' small.toml
    printf '[sweep]\nhalving = 2\n[sweep.train]\nlearning_rate = [1e-4, 1e-3, 1e-2, 3e-2]\n'; } >sweep.toml
  submit sweep.toml sweep --time 10
  [[ $(cat out) == *"submits the next round of the sweep"* ]] || fail "no next round: $(cat out)"
  wait_for 120 "all rounds" has_states sweep.toml sweep " 1 done 3 tried"
  wait_for 30 "the end of the job" no_jobs
  [[ $(ls sweep/slurm/next-round-*.log | wc -l) == 3 ]] || fail "rounds: $(ls sweep/slurm)"
  grep -q 'nothing to submit' sweep/slurm/next-round-*.log || fail "the last round: $(cat sweep/slurm/next-round-*.log)"
  lra suite run sweep.toml --out sweep-plain --data "$data" --threads 1 >table 2>err || fail "the sweep: $(cat err)"
  same_runs sweep sweep-plain
  scontrol update partitionname=main state=down
  submit sweep.toml cancelled
  # shellcheck disable=SC2086
  scancel $job
  scontrol update partitionname=main state=up
  wait_for 30 "the end of the next round" no_jobs
  [[ -z $(ls cancelled/slurm/*.log cancelled/tries 2>/dev/null) ]] || fail "a cancelled sweep went on: $(ls cancelled/*)"
  passed "the rounds of a sweep follow each other"
}

write_suites
dry_run
# Arrays of three tasks at most: four runs need two.
start_cluster MaxArraySize=3
tasks_of_srun
refusals
four_runs
ranks_of_srun
ranks_of_torchrun
disturbed_runs
sweep_in_rounds
end_cluster
[[ -z $(find "$cluster" -name '*.pid') ]] || fail "a daemon did not end: $(ls "$cluster")"
passed "the daemons have ended"
