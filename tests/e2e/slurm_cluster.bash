# A SLURM cluster of one node on loopback, as the user who runs the test, in $scratch/cluster: munged,
# slurmctld and slurmd with keys, ports, sockets and folders of their own, so that several can run
# beside each other and beside a real one. Sourced after lib.bash, never run.
#
#   start_cluster [LINES]   starts it, with more lines of slurm.conf; the test is skipped (77) where
#                           the daemons are not installed or cannot be started
#   end_cluster             ends jobs and daemons; done by itself when the script ends
#
# In between, sbatch, srun, squeue, scontrol and scancel speak to it, through SLURM_CONF. A job may
# use num_cpus processors, whether or not the machine has as many.
num_cpus=4

# skip WHY
skip() {
  echo "skipped: $*"
  exit 77
}

cluster_settings() {
  local user controller_port node_port
  user=$(id -un) controller_port=$(free_port) node_port=$(free_port)
  cat <<SETTINGS
ClusterName=lra
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$controller_port
SlurmdPort=$node_port
AuthType=auth/munge
# A requeued job waits as long as a credential lives.
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
KillWait=10
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$num_cpus State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES State=UP
SETTINGS
}

# start_daemon NAME COMMAND...: in the background, to end with this shell however that ends. Its
# messages go to $cluster/NAME.log.
start_daemon() {
  local log=$cluster/$1.log
  shift
  PATH=$PATH:/usr/sbin:/sbin setpriv --pdeathsig TERM "$@" >"$log" 2>&1 </dev/null &
  daemons+=($!)
}

# within SECONDS COMMAND...: until it succeeds; false when it never does.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >"$cluster/within.out" 2>&1; do
    [[ $SECONDS -lt $deadline ]] || return 1
    sleep 0.1
  done
}

node_is_up() { [[ $(sinfo --noheader --format=%t) == idle ]]; }

start_cluster() {
  local program
  for program in munged slurmctld slurmd sbatch srun scontrol squeue setpriv; do
    PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null ||
      skip "no $program (Debian: slurmctld slurmd slurm-client munge)"
  done
  cluster=$scratch/cluster daemons=()
  mkdir -p "$cluster"/{state,spool}
  trap 'end_cluster; clean_up' EXIT
  head -c 128 /dev/urandom >"$cluster/munge.key"
  chmod 400 "$cluster/munge.key"
  cluster_settings >"$cluster/slurm.conf"
  printf '%s\n' "$@" >>"$cluster/slurm.conf"
  # slurmd 22 wants one, though nothing here uses it.
  echo 'CgroupPlugin=cgroup/v1' >"$cluster/cgroup.conf"
  export SLURM_CONF=$cluster/slurm.conf
  start_daemon munged munged --foreground --force --key-file="$cluster/munge.key" \
    --socket="$cluster/munge.socket" --pid-file="$cluster/munge.pid" --log-file="$cluster/munge.log" \
    --seed-file="$cluster/munge.seed" --num-threads=2
  within 10 test -S "$cluster/munge.socket" || skip "munged does not start: $(cat "$cluster/munged.log")"
  start_daemon slurmctld slurmctld -D
  start_daemon slurmd slurmd -D -N localhost
  within 30 node_is_up ||
    skip "the cluster does not start: $(tail -n 5 "$cluster"/{slurmctld,slurmd,within}.*)"
}

# None that waits, runs or completes.
no_jobs() { [[ -z $(squeue --noheader) ]]; }

end_cluster() {
  local daemon
  if [[ ${#daemons[@]} -eq 0 ]]; then return; fi
  scancel --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
  scancel --user="$(id -un)" 2>/dev/null || true
  within 20 no_jobs || true
  for daemon in "${daemons[@]}"; do kill -TERM "$daemon" 2>/dev/null || true; done
  for daemon in "${daemons[@]}"; do wait "$daemon" 2>/dev/null || true; done
  daemons=()
}

# states FILE OUT: " 3 done 1 running"
states() {
  lra suite status "$1" --out "$2" --json | "$LRA_PYTHON" -c '
import collections, json, sys
counts = collections.Counter(row["state"] for row in json.load(sys.stdin))
print("".join(f" {count} {state}" for state, count in sorted(counts.items())))'
}

# Every figure of a run, without times and what names the machine and the command.
result_of() {
  "$LRA_PYTHON" - "$1" <<'PYTHON'
import hashlib, json, pathlib, sys

run = pathlib.Path(sys.argv[1])
record = json.loads((run / "record.json").read_text())
kept = ("status", "task", "model", "seed", "fingerprint", "config_hash", "data_hash", "steps", "examples",
        "tokens", "weights_hash", "val", "best_val", "test", "val_curve", "baselines")
for name in kept:
    print(name, record[name])
for line in (run / "metrics.jsonl").read_text().splitlines():
    line = json.loads(line)
    for speed in ("tokens_per_s", "examples_per_s"):
        line.pop(speed, None)
    print(line)
for name in ("model", "optimizer"):
    file = run / f"checkpoints/latest/{name}.safetensors"
    print(name, hashlib.sha256(file.read_bytes()).hexdigest())
PYTHON
}

# same_runs OUT OUT: the runs of both, bit for bit.
same_runs() {
  local run
  for run in "$1"/*-s0; do
    cmp <(result_of "$run") <(result_of "$2/${run##*/}") >&2 ||
      fail "$run differs from that in $2: $(diff <(result_of "$run") <(result_of "$2/${run##*/}"))"
  done
}
