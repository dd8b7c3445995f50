# Helpers of the scripts in this folder: a scratch folder, failing loudly, and queries on a run.
# Sourced, never run.
set -euo pipefail

: "${LRA_PROGRAM:?names the program to test}" "${LRA_PYTHON:?names a Python}"
LRA_PROGRAM=$(realpath "$LRA_PROGRAM")
# Links are not followed: Python finds its environment by the location of the link.
LRA_PYTHON=$(realpath -s "$(command -v "$LRA_PYTHON")")
unset LRA_DATA LRA_KERNELS SLURM_JOB_ID

tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
scratch=$(mktemp -d)
clean_up() {
  local pid
  for pid in $(jobs -p); do kill -KILL "$pid" 2>/dev/null || true; done
  wait
  if [[ -d $scratch/full ]]; then umount "$scratch/full" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

passed() { echo "ok: $*"; }

lra() { "$LRA_PROGRAM" "$@"; }

# expect_code CODE COMMAND...: runs it with output in ./out and ./err; fails unless it ends so.
expect_code() {
  local wanted=$1 code=0
  shift
  "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || fail "'$*' ended with $code, not $wanted: $(tail -n 5 out err)"
}

# refused WORDS COMMAND...: it ends with 2 and says these words, in one line and one of advice.
refused() {
  local words=$1
  shift
  expect_code 2 "$@"
  grep -q -- "$words" err || fail "'$*' does not say '$words': $(cat err)"
  [[ $(wc -l <err) -le 2 ]] || fail "more than one line: $(cat err)"
}

# field FILE KEY...: the value at that place of a JSON file.
field() {
  "$LRA_PYTHON" - "$@" <<'PYTHON'
import json, sys

value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[int(key) if isinstance(value, list) else key]
print(value)
PYTHON
}

free_port() {
  PYTHONPATH="$tests/faults/shared" "$LRA_PYTHON" -c 'import runs; print(runs.free_port())'
}

# child_of PROCESS: the first one; nothing when there is none.
child_of() {
  local children
  children=$(cat "/proc/$1/task/$1/children" 2>/dev/null) || true
  echo "${children%% *}"
}

# tensors FILE: the data of a safetensors file, without the header, which also says whose it is.
tensors() {
  "$LRA_PYTHON" - "$1" <<'PYTHON'
import struct, sys

content = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(content[8 + struct.unpack("<Q", content[:8])[0]:])
PYTHON
}

same_tensors() { cmp <(tensors "$1") <(tensors "$2") >&2 || fail "$1 and $2 hold other tensors"; }

same_files() { cmp "$1" "$2" >&2 || fail "$1 and $2 differ"; }

# make_listops FOLDER TRAIN VAL TEST: generated data, the same every time.
make_listops() {
  lra data make listops --train "$2" --val "$3" --test "$4" --out "$1" --threads 1 --quiet >/dev/null
}

# make_reviews FOLDER: an official aclImdb with 40 made-up reviews; the first words give the rating
# away. One is empty of ASCII, one has a TAB and a line end.
make_reviews() {
  local split label i rating
  for split in train test; do
    for label in neg pos; do
      mkdir -p "$1/aclImdb/$split/$label"
      for i in {0..9}; do
        rating=$((1 + i % 4))
        if [[ $label == pos ]]; then rating=$((rating + 6)); fi
        printf 'A %s film, review %d of %s.<br />It runs for %d minutes.' "$label" "$i" "$split" \
          $((60 + 7 * i)) >"$1/aclImdb/$split/$label/${i}_$rating.txt"
      done
    done
  done
  printf '\xe6\x98\xa0\xe7\x94\xbb' >"$1/aclImdb/train/pos/0_7.txt"
  printf 'one\ttwo\nthree' >"$1/aclImdb/test/neg/0_1.txt"
}
