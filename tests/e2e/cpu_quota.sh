#!/usr/bin/env bash
# In a control group whose CPU quota is half a processor the program and torch in Python compute with
# one thread and say why; OMP_NUM_THREADS and --threads count more.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
checkout=$(realpath "$OLDPWD")

leave_group() {
  if [[ -n ${group-} ]]; then rmdir "$group" 2>/dev/null || true; fi
  clean_up
}
trap leave_group EXIT

# Makes a group of version 1, or of version 2 if the root hands the controller down.
make_group() {
  group=/sys/fs/cgroup/cpu/lra-$$
  if mkdir "$group" 2>/dev/null && echo 50000 >"$group/cpu.cfs_quota_us"; then return; fi
  group=/sys/fs/cgroup/lra-$$
  mkdir "$group" 2>/dev/null && echo "50000 100000" 2>/dev/null >"$group/cpu.max"
}
if ! make_group || ! (echo "$BASHPID" >"$group/cgroup.procs") 2>/dev/null; then
  echo "skipped: no right to make a control group with a CPU quota"
  exit 77
fi

# in_group COMMAND...
in_group() (
  echo "$BASHPID" >"$group/cgroup.procs"
  exec "$@"
)

unset OMP_NUM_THREADS
in_group "$LRA_PROGRAM" info --json >info.json
[[ $(field info.json threads) == 1 ]] || fail "a quota of half a processor: $(cat info.json)"
[[ $(field info.json threads_by) == "CPU quota of 0.5 processors" ]] || fail "$(cat info.json)"
passed "the quota decides"

OMP_NUM_THREADS=3 in_group "$LRA_PROGRAM" info --json >info.json
[[ $(field info.json threads) == 3 && $(field info.json threads_by) == OMP_NUM_THREADS ]] || fail "$(cat info.json)"
in_group "$LRA_PROGRAM" info --json --threads 2 >info.json
[[ $(field info.json threads) == 2 && $(field info.json threads_by) == --threads ]] || fail "$(cat info.json)"
passed "the user's number decides"

export PYTHONPATH=$checkout/python LRA_BUILD
LRA_BUILD=$(dirname "$LRA_PROGRAM")
cat >threads.py <<'PYTHON'
import torch

import lra

lra.nn.mixers()
print(torch.get_num_threads())
PYTHON
[[ $(in_group "$LRA_PYTHON" threads.py) == 1 ]] || fail "torch beside lra.nn does not keep to the quota"
# Not the number itself: MKL makes it that of cores, if it is more.
export OMP_NUM_THREADS=2
[[ $(in_group "$LRA_PYTHON" threads.py) == $("$LRA_PYTHON" -c 'import torch; print(torch.get_num_threads())') ]] ||
  fail "OMP_NUM_THREADS does not count in Python"
passed "torch in Python"
