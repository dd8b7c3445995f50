#!/usr/bin/env bash
# Data survives export and import unchanged, folder and archive are the same, and the checks tell
# good data from bad.
docs=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../docs")
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

hash_of() { field "$1" hash; }

expect_same_hash() {
  [[ $(hash_of "$1") == "$(hash_of "$2")" ]] || fail "$1 and $2 name different hashes"
}

json() {
  local file=$1
  shift
  lra "$@" --json --quiet >"$file" || fail "lra $* ended with $?"
}

listops_round_trip() {
  json made.json data make listops --train 300 --val 30 --test 30 --seed 7 --out made
  json exported.json data export listops made --out official
  json imported.json data import listops official --out imported
  expect_same_hash made.json imported.json
  json three.json data import listops official/listops-1000/basic_{test,train,val}.tsv --out three
  expect_same_hash made.json three.json
  json again.json data export listops imported --out official_again
  diff -r official official_again || fail "ListOps: two exports differ"
  tr -d '\r' <official/listops-1000/basic_train.tsv >unix.tsv
  mv unix.tsv official/listops-1000/basic_train.tsv
  json unix.json data import listops official --out unix
  expect_same_hash made.json unix.json
  expect_code 0 lra data check listops made
  json other.json data make listops --train 300 --val 30 --test 30 --seed 8 --out other
  [[ $(hash_of made.json) != "$(hash_of other.json)" ]] || fail "two seeds, one dataset"
  passed "ListOps: make, export and import keep the hash $(hash_of made.json)"
}

# follow_tfds_splits FOLDER: the script of docs/data.md gives the 100 images of one metadata file the split that
# md5sum gives them, and the import follows it.
follow_tfds_splits() {
  local images name number=0 rest
  sed -n '/^```python tfds_splits.py$/,/^```$/p' "$docs/data.md" | sed '1d;$d' >tfds_splits.py
  "$LRA_PYTHON" tfds_splits.py "$1"
  while read -r images name rest; do
    number=$((number + 1))
    echo "$(printf 'hard%s_%s_%d' "$images" "$name" $number | md5sum) $images/$name"
  done <"$1/metadata/0.npy" | sort | awk '{ print $3, NR <= 80 ? "train" : NR <= 90 ? "val" : "test" }' >expected_splits
  diff expected_splits "$1/splits.txt" || fail "another split than TensorFlow Datasets'"
  json path_tfds.json data import pathfinder "$1" --out path_tfds
  [[ $(hash_of path_tfds.json) != "$(hash_of path_back.json)" ]] || fail "splits.txt is not followed"
}

pathfinder_round_trip() {
  json path_made.json data make pathfinder --train 80 --val 10 --test 10 --seed 7 --out path
  json path_out.json data export pathfinder path --out path_official
  json path_back.json data import pathfinder path_official --out path_back
  expect_same_hash path_made.json path_back.json
  expect_code 0 lra data check pathfinder path
  expect_code 0 lra data show pathfinder path --png sheet.png
  [[ $(head -c 4 sheet.png | tail -c 3) == PNG ]] || fail "the contact sheet is no PNG"
  : >path_official/pathfinder32/curv_contour_length_14/imgs/0/sample_17.png
  json path_cut.json data import pathfinder path_official --out path_cut
  expect_code 0 lra data check pathfinder path_cut --set task.num_images=100
  grep -q 'sample_17.png: empty file' out || fail "the empty image is not reported"
  expect_code 2 lra data check pathfinder path --set task.difficulty=easy
  json path_other.json data make pathfinder --train 80 --val 10 --test 10 --set task.split_seed=1 --out path_other
  expect_code 0 lra data check pathfinder path_other
  expect_code 0 lra data show pathfinder path_other
  expect_code 2 lra data show pathfinder path_other --set task.split_seed=2
  head -c 300 path_official/pathfinder32/curv_contour_length_14/imgs/0/sample_18.png >damaged
  mv damaged path_official/pathfinder32/curv_contour_length_14/imgs/0/sample_18.png
  json path_damaged.json data import pathfinder path_official --out path_damaged
  expect_code 2 lra data check pathfinder path_damaged --set task.num_images=100
  follow_tfds_splits path_official/pathfinder32/curv_contour_length_14
  passed "Pathfinder: make, export and import keep the hash $(hash_of path_made.json)"
}

# text_round_trip SOURCE: a folder that holds aclImdb.
text_round_trip() {
  json folder.json data import text "$1" --out text_folder
  tar -C "$1" -czf reviews.tar.gz aclImdb/train/neg aclImdb/train/pos aclImdb/test
  json archive.json data import text reviews.tar.gz --out text_archive
  expect_same_hash folder.json archive.json
  json text_exported.json data export text text_folder --out text_official
  for part in {train,test}/{neg,pos}; do
    diff -r "$1/aclImdb/$part" "text_official/aclImdb/$part" || fail "reviews changed: $part"
  done
  json text_again.json data import text text_official --out text_again
  expect_same_hash folder.json text_again.json
  passed "text: folder, archive and export keep the hash $(hash_of folder.json)"
}

text_checks() {
  local sizes=(--set task.num_train=20 --set task.num_test=20)
  expect_code 0 lra data check text text_folder "${sizes[@]}"
  expect_code 0 lra data check text text_folder
  grep -q 'not the published size (25,000)' out || fail "data check does not say that it is small"
  expect_code 2 lra data check text text_folder "${sizes[@]}" --set task.num_test=21
  grep -q 'WRONG' out || fail "data check does not say what is wrong"
  printf '\xff\xfe' >reviews/aclImdb/train/neg/3_4.txt
  expect_code 2 lra data import text reviews --out text_bad
  grep -q '3_4.txt: is UTF-16' err || fail "the import does not name the review: $(cat err)"
  printf 'cut caf\xc3' >reviews/aclImdb/train/neg/3_4.txt
  json bad.json data import text reviews --out text_bad
  expect_code 2 lra data check text text_bad "${sizes[@]}"
  grep -q 'train example 3' out || fail "data check does not name the review: $(cat out)"
  passed "text: the checks tell good from bad"
}

# The files of Nangia and Bowman: expressions and values that another program wrote.
published_listops() {
  local name
  for name in nangia_bowman_test_d8 nangia_bowman_test_d14; do
    if [[ ! -e ${LRA_TEST_DATA:-none}/$name.tsv ]]; then
      echo "left out: there is no $name.tsv in LRA_TEST_DATA"
      continue
    fi
    published_file "$LRA_TEST_DATA/$name.tsv" "$name"
  done
}

# published_file FILE NAME: a line is the value, TAB, the expression; the benchmark's files have a
# header and the columns exchanged, four of the operators, and at least two arguments for each.
published_file() {
  mkdir "$2"
  "$LRA_PYTHON" - "$1" "$2" <<'PYTHON'
import sys

def in_benchmark(source):
    counts = []
    for word in source.replace("(", " ").replace(")", " ").split():
        if word == "]":
            if counts.pop() < 2:
                return False
        elif word.startswith("["):
            if word not in ("[MIN", "[MAX", "[MED", "[SM"):
                return False
            if counts:
                counts[-1] += 1
            counts.append(0)
        elif counts:
            counts[-1] += 1
    return "[" in source

rows = [line.rstrip("\r\n").split("\t") for line in open(sys.argv[1], newline="")]
rows = [(source, target) for target, source in rows if in_benchmark(source)]
assert len(rows) > 100, f"{len(rows)} expressions in {sys.argv[1]}"
for split, part in (("train", rows[100:]), ("val", rows[:50]), ("test", rows[50:100])):
    with open(f"{sys.argv[2]}/basic_{split}.tsv", "w", newline="") as file:
        file.write("Source\tTarget\r\n" + "".join(f"{s}\t{t}\r\n" for s, t in part))
PYTHON
  json "$2.json" data import listops "$2" --out "$2-data" --set task.length=100000
  passed "$2: $(field "$2.json" splits train) published values agree with ours"
}

shown_examples() {
  expect_code 0 lra data show listops made --split val --index 3
  grep -Eq '(MIN|MAX|MED|SM) = [0-9]' out || fail "data show prints no expression: $(cat out)"
  json shown.json data show listops made --split val --index 3
  [[ $(field shown.json label) == [0-9] ]] || fail "data show: no label"
  expect_code 0 lra data show text text_archive --split test --index 0
  expect_code 2 lra data show listops made --split val --index 30
  grep -q '0 to 29' err || fail "data show does not name the range: $(cat err)"
  passed "data show"
}

listops_round_trip
pathfinder_round_trip
make_reviews reviews
text_round_trip reviews
text_checks
shown_examples
published_listops
if [[ -d ${LRA_TEST_DATA:-none}/aclImdb && -z ${LRA_QUICK-} ]]; then
  rm -rf text_*
  text_round_trip "$LRA_TEST_DATA"
  expect_code 0 lra data check text text_archive
  passed "text: the official reviews pass the checks"
else
  echo "left out: LRA_TEST_DATA has no aclImdb, or LRA_QUICK is set"
fi
