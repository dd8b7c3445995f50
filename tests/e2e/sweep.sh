#!/usr/bin/env bash
# A sweep: every setting with every seed, chosen by validation alone, only the chosen ones tested;
# stopped early by halving; killed in the middle and resumed to the same bits; extended by more
# settings; from the shell (lra tune), by job arrays' --only, and refused with one line.
repo=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
source "$repo/tests/e2e/lib.bash"

make_listops data/listops 64 16 8
cat >sweep.toml <<'TOML'
tasks = ["listops"]
models = ["transformer", "linear_transformer"]
seeds = [0, 1]

[set.train]
steps = 8
warmup_steps = 2
eval_every = 2
batch_size = 4
log_every = 1

[listops.task]
length = 64

[sweep.train]
learning_rate = [1e-5, 1e-3, 1e30]
TOML

sed 's/, "linear_transformer"//' sweep.toml >one.toml

# sweep OUT FILE [WORD...]: runs it; output in out and err.
sweep() { lra suite run "$2" --out "$1" --data data --threads 1 "${@:3}" >out 2>err; }

# states OUT FILE: the number of runs in each state.
states() {
  lra suite status "$2" --out "$1" --json | "$LRA_PYTHON" -c '
import collections, json, sys
print(*sorted(f"{n} {s}" for s, n in collections.Counter(row["state"] for row in json.load(sys.stdin)).items()), sep=", ")'
}

expect_states() {
  [[ $(states "$1" "$2") == "$3" ]] || fail "$1: states are '$(states "$1" "$2")', not '$3'"
}

# weights OUT...: a hash of each run of a sweep, by the name of its folder.
weights() {
  find "$1" -name record.json -path '*-s[01]/*' | sort | while read -r record; do
    echo "$(basename "$(dirname "$record")") $(field "$record" weights_hash) $(field "$record" steps)"
  done
}

# same_weights OUT OUT: of all runs of the Transformer.
same_weights() {
  diff <(weights "$1" | grep '^listops-transformer') <(weights "$2") >&2 || fail "$1 and $2 differ"
}

chosen_by_validation() {
  expect_states whole sweep.toml "12 waiting"
  sweep whole sweep.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  expect_states whole sweep.toml "4 done, 8 tried"
  [[ $(ls -d whole/*-s[01] | wc -l) == 4 && $(ls -d whole/tries/*-s[01] | wc -l) == 8 ]] ||
    fail "the chosen runs are not apart: $(ls whole whole/tries)"
  "$LRA_PYTHON" - <<'PYTHON' || fail "the choice"
import json, pathlib

runs = {path.parent: json.loads(path.read_text()) for path in pathlib.Path("whole").rglob("record.json")}
tries = {folder: run for folder, run in runs.items() if folder.parent.name == "tries"}
chosen = {folder: run for folder, run in runs.items() if folder not in tries}
assert len(tries) == 8 and all("test" not in run and "tuning" not in run for run in tries.values())


def score(model, rate):
    group = [run for run in runs.values() if run["model"] == model and run["config"]["train"]["learning_rate"] == rate]
    assert len(group) == 2
    return sum(run["val_curve"][-1]["accuracy"] if run["status"] != "diverged" else -1 for run in group) / 2


for folder, run in chosen.items():
    rate = run["config"]["train"]["learning_rate"]
    assert run["status"] == "done" and "test" in run, folder
    assert score(run["model"], rate) == max(score(run["model"], other) for other in (1e-5, 1e-3, 1e30)), folder
    own = [other for other in runs.values() if other["model"] == run["model"]]
    assert run["tuning"] == {"tried": 3, "steps": sum(other["steps"] for other in own),
                             "chosen_by": "mean validation accuracy of 2 seeds",
                             "varied": ["train.learning_rate"]}, run["tuning"]
PYTHON
  grep -qE 'transformer +learning_rate=1e\+30 .*diverged' out || fail "no table of settings: $(cat out)"
  grep -q 'not chosen: whole/tries' out || fail "where the others are is not said: $(cat out)"
  lra report whole --format csv >csv 2>err
  grep -q 'whole/tries: left out; runs of a sweep' err || fail "the report does not name them: $(cat err)"
  [[ $(grep -c ',done' csv) -le 4 ]] || fail "runs that were not chosen are reported: $(cat csv)"
  local before
  before=$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)
  sweep whole sweep.toml || fail "again, the sweep ended with $?: $(tail -n 3 err)"
  [[ $before == "$(find whole -path '*s[01]/*' -printf '%p %T@\n' | sort)" ]] ||
    fail "a finished sweep wrote to its runs"
  lra report whole --check | grep -q '12 records are consistent' || fail "$(lra report whole --check)"
  passed "a sweep chooses by validation, and tests only what it chose"
}

# The chosen run is that of a suite with this setting from the beginning.
same_as_alone() {
  local rate run
  for run in whole/*-s0; do
    rate=$(field "$run/record.json" config train learning_rate)
    lra train listops "$(field "$run/record.json" model)" --data data --threads 1 --quiet --out "alone/${run##*/}" \
      --set task.length=64 --set train.steps=8 --set train.warmup_steps=2 --set train.eval_every=2 \
      --set train.batch_size=4 --set train.log_every=1 --set "train.learning_rate=$rate" >/dev/null
    same_files {whole,alone}/"${run##*/}"/checkpoints/latest/model.safetensors
    [[ $(field "$run/record.json" test) == $(field "alone/${run##*/}/record.json" test) ]] ||
      fail "$run has another test than the same settings alone"
  done
  passed "a run that was chosen has the bits of one that was not in a sweep"
}

killed_in_the_middle() {
  "$LRA_PROGRAM" suite run one.toml --out killed --data data --threads 1 --quiet >killed.out 2>&1 &
  local pid=$!
  until [[ $(find killed/tries -name record.json 2>/dev/null | wc -l) -ge 3 ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the sweep ended early: $(cat killed.out)"
    sleep 0.02
  done
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
  expect_code 0 lra suite run one.toml --out killed --data data --threads 1 --jobs 2
  expect_states killed one.toml "2 done, 4 tried"
  same_weights whole killed
  passed "a sweep that was killed resumes, to the same choice and bits, also with --jobs"
}

halved() {
  sed 's/^\[sweep.train\]/[sweep]\nhalving = 2\n&/; s/1e30/3e-3, 1e-2/' one.toml >halved.toml
  sweep halved halved.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  expect_states halved halved.toml "2 done, 6 tried"
  # Two of four settings go on after 2 of 8 steps, and one of them after 4.
  [[ $(weights halved | awk '{print $3}' | sort -n | uniq -c | tr -s ' \n' ' ') == " 4 2 2 4 2 8 " ]] ||
    fail "steps: $(weights halved)"
  grep -q 'stopped early' out || fail "the table does not say who was stopped: $(cat out)"
  [[ $(field halved/listops-transformer-s0/record.json tuning steps) == 32 ]] ||
    fail "tuning: $(field halved/listops-transformer-s0/record.json tuning)"
  passed "halving stops hopeless settings, and resumes the others"
}

# The array tasks of a cluster each run one of the runs that are due; the next submission the rest.
by_name() {
  local run rounds=0
  while run=$(lra suite submit halved.toml --slurm --dry-run --out named --data data --json |
    "$LRA_PYTHON" -c 'import json, sys; print(*[run for job in json.load(sys.stdin)["submitted"] for run in job["runs"]])') && [[ -n $run ]]; do
    rounds=$((rounds + 1))
    for run in $run; do
      expect_code 0 lra suite run halved.toml --out named --data data --threads 1 --quiet --only "$run"
    done
  done
  lra suite submit halved.toml --slurm --dry-run --out named --data data --gres gpu:1 2>err >out
  grep -q 'warning: the runs get GPUs and use the CPU; add --device cuda' err || fail "no warning: $(cat err)"
  lra suite submit halved.toml --slurm --dry-run --out named --data data --device cuda 2>err >out
  grep -q 'warning: --device cuda without --gres' err || fail "no warning: $(cat err)"
  [[ $rounds == 4 ]] || fail "$rounds rounds, not three comparisons and the tests"
  sweep named halved.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  same_weights halved named
  passed "the rounds of a sweep as job arrays"
}

# A choice that changes, also while a run is in use: the run that goes back among the tries is no longer one of a tuned setting.
chosen_anew() {
  sed 's/1e-5, 1e-3, 1e30/1e30/; s/"transformer", //; s/\[0, 1\]/[0]/' sweep.toml >worst.toml
  sed 's/1e30/1e30, 1e-3/' worst.toml >better.toml
  sweep anew worst.toml && fail "a run that diverged ended well"
  local run=listops-linear_transformer
  [[ $(field anew/$run-s0/record.json tuning tried) == 1 ]] || fail "not chosen: $(cat out err)"
  local other=anew/tries/$run-learning_rate=0.001-s0/record.json
  expect_code 2 flock -o anew/$run-s0/.lock "$LRA_PROGRAM" suite run better.toml --out anew --data data --threads 1
  grep -q "in use" err && [[ -e $other ]] || fail "a run in use stops the others: $(cat err)"
  sweep anew better.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  [[ $(field anew/$run-s0/record.json tuning tried) == 2 ]] || fail "no other choice: $(cat out err)"
  sed 's/1e30, 1e-3/1e-3/' better.toml >shorter.toml
  sweep anew shorter.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  [[ $(field anew/$run-s0/record.json tuning tried) == 2 ]] || fail "a shorter list undoes what was tried: $(cat out err)"
  grep -q '"tuning"' "anew/tries/$run-learning_rate=1e+30-s0/record.json" && fail "a try says that it was chosen"
  passed "a run that is no longer chosen"
}

# A setting that cannot be built is not compared, so that nothing is chosen.
one_that_fails() {
  sed 's/1e-5, 1e-3, 1e30/1e-3/; s/"transformer", //; s/\[0, 1\]/[0]/' sweep.toml >fails.toml
  printf '[sweep.model]\nheads = [2, 3]\n' >>fails.toml
  expect_code 2 lra suite run fails.toml --out fails --data data --threads 1
  grep -q 'linear_transformer .*heads=3 .*failed' out || fail "no table of settings: $(cat out)"
  grep -q 'no setting is chosen.*out of \[sweep\] in fails.toml, then: .*suite run fails.toml --out fails' err ||
    fail "no advice: $(cat err)"
  passed "a sweep in which a setting fails"
}

# More settings: those that were tried are found again.
extended() {
  sed 's/1e30/1e30, 1e-4/' sweep.toml >more.toml
  cp -r whole extended
  sleep 0.1
  touch extended.begins
  sweep extended more.toml || fail "the sweep ended with $?: $(tail -n 3 err)"
  [[ $(field extended/listops-transformer-s0/record.json tuning tried) == 4 ]] || fail "not 4 were tried"
  [[ $(find extended -name config.toml -newer extended.begins | wc -l) == 4 ]] || fail "runs began again"
  passed "a sweep that is extended keeps its runs"
}

tuned() {
  local words=(tune listops transformer --data data --threads 1 --seeds 0,1
    --set task.length=64 --set train.steps=8 --set train.warmup_steps=2 --set train.eval_every=2
    --set train.batch_size=4 --set train.log_every=1 --set train.learning_rate=1e-5,1e-3,1e30)
  expect_code 0 lra "${words[@]}" --quiet --out tuned
  same_weights whole tuned
  expect_states tuned tuned/suite.toml "2 done, 4 tried"
  expect_code 0 lra "${words[@]}" --quiet --out tuned
  expect_code 2 lra "${words[@]}" --out tuned --set train.steps=9
  grep -q 'tuned/suite.toml: is a sweep with other models or settings' err || fail "$(cat err)"
  expect_states tuned tuned/suite.toml "2 done, 4 tried"
  expect_code 0 lra "${words[@]/1e30/1e30,1e-4}" --quiet --out tuned
  expect_states tuned tuned/suite.toml "2 done, 6 tried"
  [[ $(field tuned/listops-transformer-s0/record.json tuning tried) == 4 ]] || fail "a value was not added"
  lra suite status tuned/suite.toml | grep -q done || fail "the suite does not lie with its runs"
  mkdir theirs
  cp sweep.toml theirs/suite.toml
  expect_code 2 lra "${words[@]}" --out theirs
  grep -q "theirs/suite.toml: was not written by 'lra tune'" err || fail "$(cat err)"
  cmp sweep.toml theirs/suite.toml || fail "a suite of somebody else was overwritten"
  [[ $(lra suite submit tuned/suite.toml --slurm --dry-run --data data) == *tuned/slurm/* || ! -e runs ]] ||
    fail "the suite of lra tune has another folder than lra tune"
  expect_code 0 lra tune listops local --data data --threads 1 --quiet --out drawn --tries 3 \
    --set task.length=64 --set train.steps=2 --set train.warmup_steps=1 --set train.batch_size=4 \
    --set train.learning_rate=1e-4:1e-2:log --set train.schedule=constant,cosine
  [[ $(field drawn/listops-local-s0/record.json tuning tried) == 3 ]] || fail "not 3 draws"
  [[ $(field drawn/listops-local-s0/record.json tuning chosen_by) == "validation accuracy" ]] ||
    fail "$(field drawn/listops-local-s0/record.json tuning)"
  passed "lra tune"
}

# The suite and the commands of the documentation, with short runs.
documented() {
  local command num_documented=0 short="--data data --threads 1 --quiet --set task.length=64 --set train.steps=2
    --set train.eval_every=2 --set train.batch_size=4 --set train.warmup_steps=1"
  awk '/^```/ { inside = !inside; number += inside; next } inside && number == 2' "$repo/docs/sweeps.md" >documented.toml
  expect_states documented documented.toml "48 waiting"
  awk '/^```/ { inside = !inside; number += inside; next } inside && number == 1' "$repo/docs/sweeps.md" >commands
  [[ $(grep -c '^lra tune' commands) == 2 ]] || fail "the page has other commands: $(cat commands)"
  while read -r command; do
    command=${command/--tries 8/--tries 2}
    # shellcheck disable=SC2086
    expect_code 0 lra ${command#lra } $short --out "documented-$((++num_documented))" </dev/null
  done <commands
  [[ $(ls -d documented-2/*-s[012] | wc -l) == 6 ]] || fail "not two models with three seeds: $(ls documented-2)"
  passed "the suite and the commands of docs/sweeps.md"
}

# refuse PATTERN SED: the suite, edited so, is refused with one line, and nothing is written.
refuse() {
  sed "$2" sweep.toml >refused.toml
  expect_code 2 lra suite run refused.toml --out refused --data data
  [[ $(wc -l <err) == 1 ]] && grep -Eq "^lra: .*$1" err || fail "'$2' says: $(cat err)"
  [[ ! -e refused ]] || fail "'$2' left something behind: $(find refused)"
}

refused() {
  refuse 'refused.toml:16: train.learning_rate is an empty list' 's/^learning.*/learning_rate = []/'
  refuse 'no logarithm' 's/^learning.*/learning_rate = "0:1:log"/; s/^\[sweep/[sweep]\ntries = 2\n&/'
  refuse 'lower end below' 's/^learning.*/learning_rate = "1:0"/; s/^\[sweep/[sweep]\ntries = 2\n&/'
  refuse "unknown key 'train.lerning_rate'.*'train.learning_rate'" 's/^learning_rate/lerning_rate/'
  refuse 'refused.toml:16.*train.learning_rate' 's/^learning.*/learning_rate = [-1, 1]/'
  refuse 'lists have 3 combinations' 's/^\[sweep/[sweep]\ntries = 4\n&/'
  refuse 'say how often; expected tries = 8' 's/^learning.*/learning_rate = "1e-4:1e-2:log"/'
  refuse 'needs a validation before the last step.*train.eval_every=1' \
    's/^eval_every.*/eval_every = 8/; s/^\[sweep/[sweep]\nhalving = 2\n&/'
  refuse 'equal steps, and train.steps varies' 's/^learning.*/steps = [2, 4]/; s/^\[sweep/[sweep]\nhalving = 2\n&/'
  refuse 'train.eval_examples changes what the score' 's/^learning.*/eval_examples = [4, 8]/'
  refuse 'at most 2\^53' 's/^learning.*/batch_size = "16:99999999999999999999"/; s/^\[sweep/[sweep]\ntries = 2\n&/'
  refuse 'task.length changes the data' 's/^\[sweep.train/[sweep.task/; s/^learning.*/length = [32, 64]/'
  refuse 'text validates on its test set.*task.validation=heldout' 's/^tasks.*/tasks = ["text"]\npreset = "release"/; s/^\[listops/[text/'
  expect_code 2 lra tune listops local --data data --set train.steps=2
  grep -q 'no setting has several values' err || fail "$(cat err)"
  expect_code 2 lra tune local listops --data data --set train.learning_rate=1e-3,1e-2
  grep -q "unknown task 'local'" err || fail "$(cat err)"
  passed "sweeps that cannot work are refused with one line"
}

chosen_by_validation
same_as_alone
killed_in_the_middle
halved
by_name
extended
chosen_anew
one_that_fails
tuned
documented
refused
