#!/usr/bin/env bash
# Every mistake gives its exit code, one line on standard error that names the place, nothing on
# standard output, and leaves the folders as they were.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

mkdir work outside
num_cases=0

# Every name and size; a lock file holds the process id of its last owner, of any number of digits.
snapshot() { find work ! -name .lock -printf '%p %s\n' -o -printf '%p\n' | sort; }

# refuse CODE PATTERN WORD...: "lra WORD..." in ./work. PATTERN is an extended regular expression
# that the message must match.
refuse() {
  local wanted=$1 pattern=$2 code=0
  shift 2
  snapshot >outside/before
  (cd work && timeout 60 "$LRA_PROGRAM" "$@" >../outside/out 2>../outside/err) || code=$?
  snapshot >outside/after
  [[ $code == "$wanted" ]] || fail "'lra $*' ended with $code, not $wanted: $(cat outside/err)"
  [[ ! -s outside/out ]] || fail "'lra $*' wrote to standard output: $(cat outside/out)"
  [[ $(wc -l <outside/err) == 1 ]] || fail "'lra $*' did not write one line: $(cat outside/err)"
  grep -Eq "^lra: .*$pattern" outside/err ||
    fail "'lra $*': '$(cat outside/err)' does not match '$pattern'"
  diff outside/before outside/after >&2 || fail "'lra $*' left something behind"
  num_cases=$((num_cases + 1))
}

# limits FIRST LAST: a pattern for a range in the words of any version of CLI11.
limits() { echo "[^0-9]$1[^0-9]+$2[^0-9]*$"; }

# section NAME: says how many cases went by since the last one.
section() {
  passed "$1: $num_cases mistakes"
  num_cases=0
}

words_and_flags() {
  refuse 2 "'trian'.*'train'" trian
  refuse 2 "'--sede'.*'--seed'" train listops transformer --sede 3
  refuse 2 "'mkae'.*'make'" data mkae listops
  refuse 2 "'extra'" info extra
  refuse 2 "" data
  refuse 2 "train TASK MODEL" train
  refuse 2 "train TASK MODEL" train listops
  refuse 2 "'lisops'.*'listops'" train lisops transformer
  refuse 2 "'transfomer'.*'transformer'" train listops transfomer
  refuse 2 "listops.toml.*'smal'.*'small'" train listops transformer --preset smal
  refuse 2 "unknown topic 'txet'.*'text'" help txet
  refuse 2 "did you mean 'train.steps'" help train.stpes
  refuse 2 "did you mean 'train.steps'" help stpes
  refuse 2 "unknown setting 'steps'; did you mean 'train.steps'" train listops transformer --set steps=5
  refuse 2 "'--steps' is a setting; give it as --set train.steps=VALUE" train listops transformer --steps 10
  refuse 2 "'--lr' is a setting; give it as --set train.learning_rate=VALUE" train --lr=1e-3 listops transformer
  refuse 2 "give it as --set train.batch_size=VALUE" train listops transformer --batch-size 8
  refuse 2 "give it as --set train.epochs=VALUE" train listops transformer --epochs 2
  refuse 2 "give it as .*--set mixer.rank=VALUE" train listops linformer --rank 8
  refuse 2 "give it as .*--set model.dropout=VALUE" train listops transformer --dropout 0
  refuse 2 "did you mean 'train.learning_rate'" train listops transformer --set lr=1e-3
  refuse 2 "did you mean 'train.learning_rate'" train listops transformer --set train.lr=1e-3
  refuse 2 "give it as --set train.batch_size=VALUE" train listops transformer --batchsize 8
  refuse 2 "give it as --set train.learning_rate=VALUE" train --resume runs/x --lr 1e-3
  refuse 2 "unexpected 'local'" train listops transformer local
  refuse 2 "unexpected 'text'; give it as --task text" bench text
  refuse 2 "a subcommand is missing; known: .*reach" analyze
  refuse 2 "--memory-limit: Value 2GB not in range 1 to 9223372036854775807" train listops transformer --memory-limit 2GB
  refuse 2 "unknown task 'cifar10'; did you mean 'image'" train cifar10 transformer
  refuse 2 "runs: there is no such folder" report
  refuse 2 "3 heads do not divide" train listops transformer --data unmade --set model.heads=3
  [[ ! -e unmade ]] || fail "data was made for a model that cannot be built"
  refuse 2 "unknown task 'transformer'; known: .*listops" train transformer listops --seed 3
  refuse 2 "--resume keeps what the run was started with; leave out --accept" train --resume runs/x --accept copies
  refuse 2 "nope" list nope
  refuse 2 "threads.*0.*$(limits 1 1024)" train listops transformer --threads 0
  refuse 2 "threads.*-1" info --threads -1
  refuse 2 "cuda" train listops transformer --device cuda
  refuse 2 "seed.*-1.*0 to" train listops transformer --seed -1
  refuse 2 "seed" train listops transformer --seed 99999999999999999999
  refuse 2 "model 'nope'" bench --models nope
  refuse 2 "task 'nope'" bench --task nope
  refuse 2 "lengths.*0.*$(limits 1 1000000000)" bench --lengths 0
  refuse 2 "lengths.*-1" bench --lengths 64,-1
  refuse 2 "batch" bench --batch 0
  refuse 2 "mode.*fly" bench --mode fly
  refuse 2 "split.*dev" eval run --split dev
  refuse 2 "model 'nope'" model compare text nope
  refuse 2 "out: is empty" data make listops --out ""
  refuse 2 "folder: is empty" data check listops ""
  refuse 2 "out: '~/x' begins with a ~ that the shell did not replace" data make listops --out "~/x"
  refuse 2 "unexpected '.*31m" $'\e[31m'
  ! grep -q $'\e' outside/err || fail "an escape sequence came through"
  section "words and flags"
}

closed_streams() {
  local code=0
  (cd work && "$LRA_PROGRAM" list >&- 2>../outside/err) || code=$?
  [[ $code == 74 ]] || fail "a result for a closed output ended with $code"
  # Messages must not go into the file that is opened first.
  (cd work && "$LRA_PROGRAM" data make listops --train 3 --val 2 --test 2 --out closed <&- >&- 2>&- || true)
  "$LRA_PROGRAM" data check listops work/closed --set task.num_train=3 --set task.num_val=2 \
    --set task.num_test=2 >outside/out || fail "data made with closed streams: $(cat outside/out)"
  rm -r work/closed
  section "closed streams"
}

settings() {
  local train=(train listops transformer --data data --out new --set)
  refuse 2 "train.stps.*'train.steps'" "${train[@]}" train.stps=3
  refuse 2 "'trian'.*'train.steps'" "${train[@]}" trian.steps=3
  refuse 2 "train.steps is 0; expected >= 1" "${train[@]}" train.steps=0
  refuse 2 "train.steps is a string; expected an integer" "${train[@]}" train.steps=abc
  refuse 2 "train.steps is a number; expected an integer" "${train[@]}" train.steps=1.5
  refuse 2 "key=value" "${train[@]}" train.steps
  refuse 2 "key=value" "${train[@]}" =3
  refuse 2 "train.steps" "${train[@]}" train.steps=
  refuse 2 "train.steps" "${train[@]}" train.steps=99999999999999999999
  refuse 2 "learning_rate is nan" "${train[@]}" train.learning_rate=nan
  refuse 2 "train.schedule.*rsqrt, cosine, constant" "${train[@]}" train.schedule=cosin
  refuse 2 "train.trim_padding" "${train[@]}" train.trim_padding=3
  refuse 2 "task.length is 0; expected >= 1" "${train[@]}" task.length=0
  refuse 2 "task.length is -1; expected >= 1" "${train[@]}" task.length=-1
  refuse 2 "min_length" "${train[@]}" task.min_length=1999
  refuse 2 "3 heads do not divide qkv_dim" "${train[@]}" model.heads=3
  refuse 2 "dropout is 1.*<= 0.999" "${train[@]}" model.dropout=1.0
  refuse 2 "mixer.rank" "${train[@]}" mixer.rank=4
  refuse 2 "mixer.causal.*sees no other token.*pooling=mean" train listops reformer --data data \
    --out new --set mixer.causal=true
  refuse 2 "5 micro-batches of 4.*train.batch_size" "${train[@]}" train.accumulate=5 \
    --set train.batch_size=4
  refuse 2 "train.epochs.*train.examples" "${train[@]}" train.epochs=1 --set train.examples=9
  refuse 2 "train.spike_factor.*more than 1" "${train[@]}" train.spike_factor=0.5
  refuse 2 "on_nonfinite.*stop, skip, roll_back" "${train[@]}" train.on_nonfinite=ignore
  refuse 2 "min_length" data make listops --out new --set task.min_lenght=3
  refuse 2 "section 'train'" data make listops --out new --set train.steps=3
  section "settings"
}

data_folders() {
  refuse 2 "nodata.*import" train text transformer --data nodata --out new
  refuse 2 "nodata: there is no such folder.*lra data make listops --out nodata/listops" train listops transformer --data nodata --out new
  refuse 2 "data/listops.*'listops'.*'text'" train text transformer --data data/listops --out new
  refuse 2 "data/listops.*'listops'.*'text'" data check text data/listops
  refuse 2 "empty.*manifest.json" data check listops empty
  refuse 2 "0 to 39" data show listops data/listops --index 40
  refuse 2 "0 to 39" data show listops data/listops --index -1
  refuse 2 "data/listops.*exists" data make listops --train 2 --val 2 --test 2 --out data/listops
  refuse 2 "file.*exists" data make listops --train 2 --val 2 --test 2 --out file
  refuse 74 "file.*Not a directory" data make listops --train 2 --val 2 --test 2 --out file/new
  refuse 74 "file.*Not a directory" data export listops data/listops --out file
  refuse 2 "cannot be generated.*help text$" data make text --out new
  refuse 2 "empty.*no file that can be read" data import text empty file --out new
  refuse 2 "train.*0.*$(limits 1 100000000)" data make listops --train 0 --out new
  refuse 74 "only .* free" data make listops --train 100000000 --out new \
    --set task.max_length=1000000
  refuse 2 "memory: .* more than now; .*available; .*train.accumulate.*bf16" \
    train listops linear_transformer --data data --out new --threads 1 --set train.steps=500 --set train.batch_size=2048 \
    --set model.layers=2 --memory-limit 1000000000
  cp -r work/data/listops work/damaged
  printf '\xff' | dd of="$(echo work/damaged/train*)" bs=1 seek=900 conv=notrunc status=none
  refuse 2 "damaged/train.*content hash.*damaged" data check listops damaged
  refuse 2 "damaged/train.*content hash.*damaged" train listops transformer --data damaged --out new
  truncate -s -1 "$(echo work/damaged/train*)"
  refuse 2 "damaged/train.*size in bytes" data check listops damaged
  cp -r work/data/listops work/cut
  truncate -s 300 work/cut/manifest.json
  refuse 2 "cut/manifest.json" data check listops cut
  cp -r work/data/listops work/climbing
  sed -i 's|"file": "train|"file": "../train|' work/climbing/manifest.json
  refuse 2 "climbing/manifest.json.*file" data check listops climbing
  section "data folders"
}

# tsv LINE: an official folder whose third training line is LINE.
tsv() {
  rm -rf work/tsv
  mkdir work/tsv
  local split
  for split in train val test; do
    printf 'Source\tTarget\r\n( ( ( [MAX 2 ) 3 ) ] )\t3\r\n' >work/tsv/basic_$split.tsv
  done
  printf '%s\r\n' "$1" >>work/tsv/basic_train.tsv
}

official_files() {
  local import=(data import listops tsv --out new)
  tsv $'( ( ( [MAX 2 ) x ) ] )\t3'
  refuse 2 "tsv/basic_train.tsv:3.*character" "${import[@]}"
  tsv $'( ( ( [MAX 2 ) 3 ) \t3'
  refuse 2 "tsv/basic_train.tsv:3" "${import[@]}"
  tsv $'( ( ( [MAX 2 ) 3 ) ] )\t2'
  refuse 2 "tsv/basic_train.tsv:3: target is 2.*evaluates to 3" "${import[@]}"
  tsv $'( ( ( [MAX 2 ) 3 ) ] )'
  refuse 2 "tsv/basic_train.tsv:3.*TAB" "${import[@]}"
  tsv $'( ( ( [MAX 2 ) 3 ) ] )\t33'
  refuse 2 "tsv/basic_train.tsv:3.*one digit" "${import[@]}"
  tsv $'( ( ( [FIRST 2 ) 3 ) ] )\t2'
  refuse 2 "tsv/basic_train.tsv:3.*FIRST" "${import[@]}"
  tsv $'\x1b[31mred\t2'
  refuse 2 "tsv/basic_train.tsv:3" "${import[@]}"
  sed -i '1s/.*/Target\tSource/' work/tsv/basic_train.tsv
  refuse 2 "tsv/basic_train.tsv:1.*header" "${import[@]}"
  rm work/tsv/basic_test.tsv
  refuse 2 "tsv: holds some of the official ListOps files.*'basic_test.tsv' is missing" "${import[@]}"
  refuse 2 "nowhere" data import text nowhere --out new
  refuse 2 "empty.*no file that can be read" data import text empty --out new
  section "official files"
}

hostile_archives() {
  "$LRA_PYTHON" - <<'PYTHON'
import io, tarfile

def archive(name, *members):
    with tarfile.open(f"work/{name}.tar.gz", "w:gz") as file:
        for path, kind in members:
            info = tarfile.TarInfo(path)
            info.type = kind
            info.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            text = b"a review" if kind == tarfile.REGTYPE else b""
            info.size = len(text)
            file.addfile(info, io.BytesIO(text))

good = ("aclImdb/train/neg/0_3.txt", tarfile.REGTYPE)
archive("climbing", good, ("aclImdb/../../train/neg/1_3.txt", tarfile.REGTYPE))
archive("absolute", good, ("/aclImdb/train/neg/1_3.txt", tarfile.REGTYPE))
archive("symlink", good, ("aclImdb/train/neg/1_3.txt", tarfile.SYMTYPE))
archive("hardlink", good, ("aclImdb/train/neg/1_3.txt", tarfile.LNKTYPE))
archive("device", good, ("aclImdb/train/neg/1_3.txt", tarfile.CHRTYPE))
archive("twice", good, ("aclImdb/train/neg/0_4.txt", tarfile.REGTYPE))
archive("none", ("README", tarfile.REGTYPE))
whole = open("work/none.tar.gz", "rb").read()
open("work/cut.tar.gz", "wb").write(whole[: len(whole) // 2])
open("work/plain.tar.gz", "w").write("not gzip at all\n" * 100)
PYTHON
  local import=(data import text --out new)
  refuse 2 "climbing.tar.gz.*leads out" "${import[@]}" climbing.tar.gz
  refuse 2 "absolute.tar.gz.*leads out" "${import[@]}" absolute.tar.gz
  refuse 2 "symlink.tar.gz.*is a link" "${import[@]}" symlink.tar.gz
  refuse 2 "hardlink.tar.gz.*is a link" "${import[@]}" hardlink.tar.gz
  refuse 2 "device.tar.gz.*special file" "${import[@]}" device.tar.gz
  refuse 2 "twice.tar.gz.*same number" "${import[@]}" twice.tar.gz
  refuse 2 "none.tar.gz.*no reviews" "${import[@]}" none.tar.gz
  refuse 2 "cut.tar.gz" "${import[@]}" cut.tar.gz
  refuse 2 "plain.tar.gz" "${import[@]}" plain.tar.gz
  section "archives"
}

run_folders() {
  refuse 2 "nothere: is not the folder of a run" train --resume nothere
  refuse 2 "empty: is not the folder of a run" train --resume empty
  echo x >work/a_file
  refuse 2 "a_file: is a file, not the folder of a run.*name the folder that holds" train --resume a_file
  local flag
  for flag in --seed=5 --preset=paper --out=other; do
    refuse 2 "resume.*${flag%%=*}" train --resume run "$flag"
  done
  refuse 2 "--resume" train listops transformer --resume run
  refuse 2 "run: already holds a run.*: .*lra train --resume run$" train listops transformer --data data --out run
  mkdir work/own
  echo mine >work/own/config.toml
  refuse 2 "own: is not a run folder and is not empty: it holds 'config.toml'" train listops transformer --data data --out own
  cp -r work/run work/lost
  rm work/lost/record.json
  refuse 2 "lost: is not a run folder and is not empty: it holds" train listops transformer --data data --out lost
  refuse 2 "memory: this run takes about" train listops transformer --data data --out new \
    --set model.embed_dim=65536 --set model.qkv_dim=65536
  # The run's data are no usual ones: others are not generated in their place.
  refuse 2 "empty: no data for listops; expected the data of the run" eval run --data empty
  refuse 2 "empty: no data for listops; expected the data of the run" analyze span run --data empty
  refuse 2 "empty: no data for listops; expected the data of the run" reproduce run --data empty --out new
  cp -r work/data work/torn
  rm work/torn/listops/manifest.json
  refuse 2 "torn/listops: holds .*shard. and no manifest.json" train listops transformer --data torn --out new
  refuse 74 "file/new.*Not a directory" train listops transformer --data data --out file/new
  refuse 74 "file.*Not a directory" train listops transformer --data data --out file
  refuse 2 "empty: is not the folder of a run" eval empty
  refuse 2 "checkpoints/nope" eval run --data data --checkpoint nope
  cp -r work/run work/bare
  rm -r work/bare/checkpoints
  refuse 2 "bare/checkpoints/latest/model.safetensors" eval bare --data data
  cp -r work/run work/garbage
  printf '\x00\xff[run\n' >work/garbage/config.toml
  refuse 2 "garbage/config.toml:1" train --resume garbage --data data
  refuse 2 "garbage/config.toml:1" eval garbage --data data
  cp work/run/config.toml work/garbage/config.toml
  sed -i 's/^steps = .*/stepz = 3/' work/garbage/config.toml
  refuse 2 "garbage/config.toml:[0-9]+.*stepz.*'train.steps'" eval garbage --data data
  cp -r work/run work/odd
  echo '{"schema": 999}' >work/odd/record.json
  refuse 2 "odd/record.json.*is not a run record" report odd
  refuse 2 "odd/record.json.*is not a run record" train --resume odd --data data
  cp work/run/record.json work/odd/record.json
  sed -i 's/^heads = .*/heads = 4/' work/odd/config.toml
  refuse 2 "odd/config.toml: differs from the settings that the run started with" eval odd --data data
  refuse 2 "odd/config.toml: differs from the settings that the run started with" train --resume odd --data data
  cp work/run/config.toml work/odd/config.toml
  printf '\xff' | dd of=work/odd/checkpoints/latest/model.safetensors bs=1 seek=9000 \
    conv=notrunc status=none
  refuse 2 "odd/checkpoints/latest/model.safetensors.*hash" eval odd --data data
  refuse 2 "empty.*no record.json" report empty
  refuse 2 "nothere: there is no such folder or file" report nothere
  refuse 2 "nothere: there is no such folder or file" report run nothere
  refuse 2 "format.*pdf" report run --format pdf
  refuse 2 "pdf" report run --out report.pdf
  refuse 74 "file: the folder cannot be made.*Not a directory" report run --out file/report.md
  section "run folders"
}

# After run_folders, which makes the damaged ones.
analyses() {
  (cd work && lra train listops linformer --data data --out signs --threads 1 --quiet \
    --set train.steps=1 --set train.batch_size=2 --set task.length=32 >/dev/null)
  refuse 2 "'spam'.*'span'" analyze spam run
  refuse 2 "" analyze
  refuse 2 "run" analyze span
  local kind
  for kind in span generalization convergence rollout embeddings controls transfer breakdown; do
    refuse 2 "nothere: is not the folder of a run" analyze "$kind" nothere
    refuse 2 "garbage/config.toml:[0-9]+.*stepz" analyze "$kind" garbage
  done
  for kind in span rollout embeddings generalization controls transfer breakdown; do
    refuse 2 "bare/checkpoints/latest/model.safetensors" analyze "$kind" bare
    refuse 2 "odd/checkpoints/latest/model.safetensors.*hash" analyze "$kind" odd
    refuse 2 "checkpoints/nope" analyze "$kind" run --checkpoint nope
  done
  refuse 2 "split.*dev" analyze span run --split dev
  refuse 2 "samples.*0.*$(limits 1 1000000000)" analyze span run --samples 0
  refuse 2 "count.*0" analyze rollout run --count 0
  refuse 2 "there is no example 999" analyze rollout run --data data --index 0,999
  refuse 2 "there is no example -1" analyze rollout run --data data --index=-1
  refuse 2 "index" analyze rollout run --data data --index x
  refuse 2 "thresholds.*'30'" analyze convergence run --thresholds 30
  refuse 2 "thresholds.*'0'" analyze convergence run --thresholds 0.3,0
  refuse 2 "thresholds.*''" analyze convergence run --thresholds "0.3,"
  refuse 2 "thresholds.*'nan'" analyze convergence run --thresholds nan
  refuse 2 "fields.*0" analyze controls run --data data --fields 16,0
  refuse 2 "lengths.*x" analyze controls run --data data --lengths x
  refuse 2 "positions.*sideways" analyze transfer run --data data --positions sideways
  refuse 2 "unknown task 'pathy'.*'pathx'" analyze transfer run --data data --to pathy
  refuse 2 "run: was trained with [0-9]+ token ids.*expected 256" analyze transfer run --data data
  refuse 2 "Linformer has no attention weights between tokens" analyze span signs --data data
  refuse 2 "no attention weights between tokens" analyze rollout signs --data data
  section "analyses"
}

# suite TEXT: writes work/suite.toml.
suite() { printf '%s\n' "$1" >work/suite.toml; }

suite_files() {
  local lists=$'tasks = ["listops"]\nmodels = ["local"]\nseeds = [0]'
  local run=(suite run suite.toml --out new --data data)
  refuse 2 "nothere.toml: there is no such file" suite run nothere.toml --out new
  mkfifo work/pipe.toml
  refuse 2 "pipe.toml" suite run pipe.toml --out new
  rm work/pipe.toml
  suite "$lists"$'\nfrobnicate = 3'
  refuse 2 "suite.toml:4.*frobnicate" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["local"]'
  refuse 2 "suite.toml.*'seeds' is missing" "${run[@]}"
  suite "$lists"$'\n[overrides]\ntrain.steps = 30'
  refuse 2 "suite.toml:4: unknown key 'overrides'; known: name, tasks.*set, bench, leave_out, accept, sweep, listops" "${run[@]}"
  suite "$lists"$'\n[set]\n"train.steps" = 30'
  refuse 2 "unknown setting 'train.steps'; write it without quotes: train.steps = VALUE" "${run[@]}"
  suite $'tasks = "listops"\nmodels = ["local"]\nseeds = [0]'
  refuse 2 "suite.toml:1.*tasks is not a list" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["local"]\nseeds = ["a"]'
  refuse 2 "suite.toml:3.*seeds.*wrong type" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["local"]\nseeds = [0, -1]'
  refuse 2 "suite.toml.*seeds holds -1" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["local"]\nseeds = [0, 0]'
  refuse 2 "suite.toml:3.*seeds has an entry twice" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["local", "local"]\nseeds = [0]'
  refuse 2 "suite.toml:2.*models has an entry twice" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = []\nseeds = [0]'
  refuse 2 "suite.toml:2.*models" "${run[@]}"
  suite $'tasks = ["listops"]\nmodels = ["lokal"]\nseeds = [0]'
  refuse 2 "'lokal'.*'local'" "${run[@]}"
  suite "$lists"$'\n[set.train]\nsteps = "many"'
  refuse 2 "suite.toml:5.*train.steps" "${run[@]}"
  suite "$lists"$'\n[bench]\ntask = "text"'
  refuse 2 "suite.toml.*'lengths' is missing" "${run[@]}"
  suite "$lists"$'\nleave_out = 3'
  refuse 2 "suite.toml:4: leave_out is not a list.*[[]leave_out" "${run[@]}"
  local leave_out="$lists"$'\n[[leave_out]]\ntasks = ["listops"]\n'
  suite "$leave_out"
  refuse 2 "suite.toml:4: 'models' is missing" "${run[@]}"
  local reason
  for reason in "" $'\nreason = "  "' $'\nreason = "a\\nb"' $'\nreason = "\\u001b[31m"'; do
    suite "$leave_out"'models = ["all"]'"$reason"
    refuse 2 "suite.toml:4: leave_out has no reason that fits a line" "${run[@]}"
  done
  suite "$leave_out"$'models = ["lokal"]\nreason = "long"'
  refuse 2 "suite.toml:4: leave_out names 'lokal'.*did you mean 'local'" "${run[@]}"
  suite "$leave_out"$'models = ["all"]\nreason = "long"\nseeds = [0]'
  refuse 2 "suite.toml:8: unknown key 'seeds'; known: tasks, models, reason" "${run[@]}"
  suite "$lists"$'\n[bench'
  refuse 2 "suite.toml:4" "${run[@]}"
  section "suite files"
}

mixer_runs() {
  "$LRA_PYTHON" - <<'PYTHON'
import json, struct

header = json.dumps({"x": {"dtype": "F32", "shape": [1, 2, 2], "data_offsets": [0, 16]}}).encode()
header += b" " * (-len(header) % 8)
for name, last in (("x", 4.0), ("nan", float("nan"))):
    with open(f"work/{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, 2, 3, last))

header = json.dumps({"x": {"dtype": "F32", "shape": [1, 3, 2], "data_offsets": [0, 24]},
                     "mask": {"dtype": "U8", "shape": [1, 3], "data_offsets": [24, 27]}}).encode()
header += b" " * (-len(header) % 8)
for name, mask in (("left", (0, 1, 1)), ("hole", (1, 0, 1)), ("right", (1, 1, 0))):
    with open(f"work/{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<6f3B", *range(6), *mask))
PYTHON
  local run=(mixer run local --in x.safetensors)
  refuse 2 "nan.safetensors.*'x'.*not finite" mixer run local --in nan.safetensors --out new
  for mask in left hole; do
    refuse 2 "$mask.safetensors.*'mask'.* has tokens after padding; expected padding on the right" \
      mixer run lru --in $mask.safetensors --out new
  done
  "$LRA_PROGRAM" mixer run lru --in work/right.safetensors --out right_y.safetensors --quiet
  refuse 2 "x.safetensors is the input file" "${run[@]}" --out x.safetensors
  refuse 2 "mixer.block is 9223372036854775807" "${run[@]}" --out new \
    --set mixer.block=9223372036854775807
  refuse 2 "max-length" "${run[@]}" --out new --max-length 1000000000
  refuse 2 "mixer.summary.*at most mixer.stride" mixer run sparse_transformer --in x.safetensors \
    --out new --set mixer.stride=4
  section "mixer run"
}

measurements() {
  local bench=(bench --models linear_transformer --batch 1 --preset small --threads 1 --windows 1)
  bench+=(--window-seconds 0 --quiet)
  (cd work && lra "${bench[@]}" --lengths 64 --out speed >/dev/null)
  refuse 2 "speed/text-linear_transformer-train/record.json: holds.*length 64.*--out" \
    "${bench[@]}" --lengths 96 --out speed
  refuse 2 "window-seconds.*nan.*0 to 3600" "${bench[@]}" --window-seconds nan
  refuse 2 "out: is empty" "${bench[@]}" --lengths 64 --out ""
  refuse 74 "file: the folder cannot be made" "${bench[@]}" --lengths 64 --out file
  refuse 2 "nope" "${bench[@]}" --lengths 64 --data nope
  refuse 2 "lengths: 9000 is beyond the examples of listops; expected at most" "${bench[@]}" \
    --task listops --data data --real-batch --lengths 64,9000
  section "bench"
}

full_disk() {
  local code=0
  lra info >/dev/full 2>outside/err || code=$?
  [[ $code == 74 ]] || fail "a full standard output ended with $code, not 74: $(cat outside/err)"
  mkdir full
  if ! mount -t tmpfs -o size=512k tmpfs full 2>/dev/null; then
    echo "left out: a full disk (no right to mount one)"
    return
  fi
  refuse 74 "full.*only .* free" data make listops --train 5000 --val 1 --test 1 --out ../full/data
  [[ -z $(ls -A full) ]] || fail "a full disk: $(ls -A full) is left"
  # Runs that a disk stops in the middle: tests/faults/full_disk.py.
  refuse 2 "full/run: only .* free; expected room for a checkpoint of" train listops transformer \
    --data data --out ../full/run --threads 1 --quiet --set train.steps=1 --set train.batch_size=2 \
    --set task.length=32
  [[ -z $(ls -A full) ]] || fail "training on a full disk left $(ls -A full)"
  umount full
  passed "a full disk"
}

# Names of folders that a shell would execute are completed as they are, and quoted.
hostile_names() {
  mkdir -p 'work/runs/$(touch hit)' work/runs/plain
  touch work/runs/{'$(touch hit)',plain}/record.json
  local typed
  for typed in "" 'runs/$(' runs/p; do
    (cd work && bash -c 'source <("$LRA_PROGRAM" completion); COMP_WORDS=(lra eval "$1") COMP_CWORD=2
      _lra; printf "%s\n" "${COMPREPLY[@]}"' bash "$typed") >>outside/names 2>outside/err
  done
  [[ $(grep -c '^runs' outside/names) == 4 && ! -e work/hit ]] || fail "completed $(cat outside/names outside/err)"
  [[ $(grep -cxF 'runs/\$\(touch\ hit\)' outside/names) == 2 ]] || fail "not quoted: $(cat outside/names)"
  rm -r work/runs
  passed "completion of hostile names"
}

# A limit on the size of files (ulimit -f, in KiB) stops what writes a larger one; nothing is lost.
file_limit() {
  local code=0
  (ulimit -f 16 && refuse 2 "File too large.*ulimit -f" data make listops --train 5000 --val 1 --test 1 --out large)
  (cd work && cp -r run limited && lra train --resume run --threads 1 --quiet --set train.steps=2 >/dev/null)
  (cd work && ulimit -f 64 && lra train --resume limited --threads 1 --quiet --set train.steps=2) \
    >outside/out 2>outside/err || code=$?
  [[ $code == 2 ]] || fail "training under a limit on the size of files ended with $code: $(cat outside/err)"
  grep -q "^lra: limited/.*File too large.*ulimit -f" outside/err || fail "$(cat outside/err)"
  (cd work && lra train --resume limited --threads 1 --quiet --set train.steps=2 >/dev/null)
  same_tensors work/run/checkpoints/latest/model.safetensors work/limited/checkpoints/latest/model.safetensors
  passed "a limit on the size of files"
}

make_listops work/data/listops 40 8 8
mkdir work/empty
touch work/file
(cd work && lra train listops transformer --data data --out run --threads 1 --quiet \
  --set train.steps=1 --set train.batch_size=2 --set task.length=32 >/dev/null)
words_and_flags
closed_streams
settings
data_folders
official_files
hostile_archives
run_folders
analyses
suite_files
mixer_runs
measurements
full_disk
file_limit
hostile_names
