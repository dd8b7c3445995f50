#!/usr/bin/env bash
# A day of a suite on a busy SLURM cluster, a quarter of an hour in some seconds: nine runs on four processors, of which
# each quarter disturbs one (preempted, out of time, asked to save, killed) or a daemon of SLURM (started again). What
# failed is submitted again every two hours. The runs must end with the bits of undisturbed ones.
#
#     LRA_PROGRAM=build/lra LRA_PYTHON=.venv/bin/python tests/faults/slurm_day.sh [QUARTERS] [SECONDS]
#
# Real daemons, as in tests/e2e/slurm.sh; 96 quarters of 8 seconds take a quarter of an hour.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.bash"
source "$tests/e2e/slurm_cluster.bash"
quarters=${1:-96} seconds=${2:-8} data=$scratch/data
RANDOM=5
declare -A happened

cat >day.toml <<'TOML'
name = "day"
tasks = ["listops"]
models = ["local", "linear_transformer", "s4d"]
seeds = [0, 1, 2]
preset = "small"

[set.task]
length = 128
num_train = 512
num_val = 32
num_test = 32

[set.model]
layers = 2
heads = 2
embed_dim = 32
qkv_dim = 32
mlp_dim = 64

[set.train]
steps = 60000
eval_every = 15000
batch_size = 8
eval_examples = 16
test_examples = 16
checkpoint_every = 0
log_every = 100
TOML

# running: JOB_TASK of each.
running() { squeue --noheader --array --states=running --format=%i; }

# restart NAME COMMAND...: of a daemon, the last one that start_daemon was given.
restart() {
  local pid
  pid=$(<"$cluster/$1.pid")
  kill -TERM "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  start_daemon "$@"
}

# The process of a run, as its lock names it.
kill_a_run() {
  local pid
  pid=$(find day/listops-* -name .lock -size +0 -exec cut -d ' ' -f 1 {} + | shuf -n 1)
  [[ $(readlink "/proc/$pid/exe") == "$LRA_PROGRAM" ]] && kill -KILL "$pid"
}

disturb() {
  local all=() task what
  mapfile -t all < <(running)
  case $((RANDOM % 24)) in
    0) what="slurmctld started again" && restart slurmctld slurmctld -D ;;
    1) what="slurmd started again" && restart slurmd slurmd -D -N localhost ;;
    *)
      [[ ${#all[@]} -gt 0 ]] || return 0
      task=${all[RANDOM % ${#all[@]}]}
      # A task may have ended since.
      case $((RANDOM % 12)) in
        0) what=killed && kill_a_run || return 0 ;;
        1 | 2) what="asked to save" && scancel --batch --signal=USR1 "$task" || return 0 ;;
        3 | 4 | 5) what="out of time" && scancel --batch --signal=USR2 "$task" || return 0 ;;
        *) what=preempted && scontrol requeue "$task" || return 0 ;;
      esac
      ;;
  esac
  happened[$what]=$((${happened[$what]:-0} + 1))
}

submit() { lra suite submit day.toml --slurm --out day --data "$data" --time 1:00:00 >>submitted 2>&1; }

mkdir "$data"
start_cluster
submit || fail "submit: $(cat submitted)"
for ((quarter = 1; quarter <= quarters; ++quarter)); do
  sleep "$seconds"
  disturb
  if ((quarter % 8 == 0)); then
    submit || fail "submitted again: $(tail -n 3 submitted)"
    echo "after $((quarter / 4)) hours:$(states day.toml day)"
  fi
done
for what in preempted "out of time" "asked to save" killed "slurmctld started again" "slurmd started again"; do
  echo "${happened[$what]:-0} times: $what"
  ((quarters < 96 || ${happened[$what]:-0} > 0)) || fail "never $what"
done
for _ in 1 2 3; do
  within 600 no_jobs || fail "jobs that do not end: $(squeue)"
  submit || fail "submitted again: $(tail -n 3 submitted)"
done
[[ $(states day.toml day) == " 9 done" ]] || fail "not all done: $(states day.toml day)"
lra suite run day.toml --out plain --data "$data" --threads 1 --jobs 2 --quiet >/dev/null 2>err || fail "undisturbed: $(cat err)"
same_runs day plain
passed "nine runs of a disturbed day have the bits of undisturbed ones"
