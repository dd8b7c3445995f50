#!/usr/bin/env bash
# Every command in the table of docs/data.md, "Your own data", on a small copy of the layout that it names; what they
# print; and one model on what they wrote.
page=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../docs/data.md")
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
"$LRA_PYTHON" -c 'import pyarrow' 2>/dev/null || exit 77
export LRA_INTERPRETER=$LRA_PYTHON

make_layouts() {
  "$LRA_PYTHON" - <<'PYTHON'
import csv, gzip, json, os, random, struct
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from PIL import Image

draw = random.Random(0)
words = "a the film plot scene actor long short quiet loud bright dark slow quick odd plain".split()

def texts(count):
    rows = []
    for i in range(count):
        label = draw.randrange(2)
        middle = " ".join(draw.choice(words) for _ in range(draw.randrange(8, 20)))
        rows.append({"text": f"{i} {middle} {('bad', 'good')[label]}", "label": label})
    return rows

def series(count):
    labels = np.array([i % 2 for i in range(count)])
    time = np.arange(24)
    noise = np.random.default_rng(count).normal(size=(count, 24))
    return (np.sin((0.2 + 0.2 * labels[:, None]) * time) + 0.5 * noise).astype(np.float32), labels

train, test = texts(80), texts(30)
for name, rows in (("train", train), ("test", test)):
    with gzip.open(f"{name}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    for folder in ("clone/data", "imdb/plain_text"):
        os.makedirs(folder, exist_ok=True)
        parquet.write_table(pa.Table.from_pylist(rows), f"{folder}/{name}-00000-of-00001.parquet")
open("clone/README.md", "w").write("---\nlicense: mit\n---\n")
(x, y), (u, v) = series(80), series(40)
np.savez("arrays.npz", x_train=x, y_train=y, x_test=u, y_test=v)
for name, rows in (("X_train", x), ("y_train", y), ("X_test", u), ("y_test", v)):
    np.save(name, rows)
for name, rows, labels in (("TRAIN", x, y), ("TEST", u, v)):
    with open(f"Gun_{name}.ts", "w") as file:
        file.write("@problemName Gun\n@univariate true\n@classLabel true a b\n@data\n")
        for row, label in zip(rows, labels):
            file.write(",".join(map(str, row)) + ":" + "ab"[label] + "\n")
os.mkdir("mnist")
for name, count in (("train", 80), ("t10k", 30)):
    labels = np.array([i % 2 for i in range(count)], np.uint8)
    images = np.random.default_rng(count).integers(0, 128, (count, 6, 6)).astype(np.uint8) + 90 * labels[:, None, None]
    for kind, rows in (("images-idx3", images), ("labels-idx1", labels)):
        with gzip.open(f"mnist/{name}-{kind}-ubyte.gz", "wb") as file:
            file.write(struct.pack(f">HBB{rows.ndim}I", 0, 8, rows.ndim, *rows.shape) + rows.tobytes())
    for i, (image, label) in enumerate(zip(images, labels)):
        folder = f"birds/{'train' if name == 'train' else 'test'}/{('crow', 'swan')[label]}"
        os.makedirs(folder, exist_ok=True)
        Image.fromarray(image).save(f"{folder}/{i}.png")
os.mkdir("contest")
for name, header, rows in (
    ("train", ["id", "text", "target"], [[i, row["text"], row["label"]] for i, row in enumerate(train)]),
    ("test", ["id", "text"], [[i, row["text"]] for i, row in enumerate(test)]),
    ("sample_submission", ["id", "target"], [[i, 0] for i in range(30)]),
):
    with open(f"contest/{name}.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
with open("texts.txt", "w") as file:
    file.writelines(f"__label__{('neg', 'pos')[row['label']]} {row['text']}\n" for row in train)
PYTHON
}

# expect_splits FOLDER TRAIN VAL TEST
expect_splits() {
  local found
  found=$("$LRA_PYTHON" - "$1" <<'PYTHON'
import json, sys
splits = json.load(open(sys.argv[1] + "/manifest.json"))["splits"]
print(*(sum(shard["num_examples"] for shard in splits.get(name, [])) for name in ("train", "val", "test")))
PYTHON
)
  [[ $found == "$2 $3 $4" ]] || fail "$1 has $found examples, not $2 $3 $4"
}

import_layouts() {
  local command count=0
  while read -r command; do
    expect_code 0 bash -c "${command/#lra/$LRA_PROGRAM} --quiet"
    cp out "said-$(basename "${command##* }")"
    count=$((count + 1))
  done < <(grep -oE '`lra data import [^`]+`' "$page" | tr -d '`' | grep -E 'custom (train\.jsonl|clone|arrays|X_train|mnist|Gun|birds|contest|texts)|text imdb ')
  [[ $count == 10 ]] || fail "the page has $count commands, not 10"
  for name in tables clone arrays gun files; do
    expect_splits "data/$name" 72 8 "$([[ $name == tables || $name == clone ]] && echo 30 || echo 40)"
  done
  for name in mnist birds; do expect_splits "data/$name" 72 8 30; done
  for name in contest texts; do expect_splits "data/$name" 64 8 8; done
  expect_splits data/text 80 0 30
  [[ $(field data/arrays/manifest.json settings input) == values ]] || fail "series are no values"
  [[ $(field data/birds/manifest.json settings input) == tokens ]] || fail "gray pictures are no tokens"
  grep -q "contest/test.csv: has no labels" said-contest || fail "$(cat said-contest)"
  grep -q "sample_submission.csv: has no column 'text'" said-contest || fail "$(cat said-contest)"
  grep -qE "column 'label' int64, 2 classes, label, name" said-tables || fail "$(cat said-tables)"
  passed "ten layouts"
}

train_on_them() {
  for name in gun birds contest; do
    expect_code 0 lra train "custom:$name" linear_transformer --data data --out "runs/$name" --threads 1 --quiet \
      --set train.steps=4 --set train.eval_every=4 --set train.batch_size=8 --set train.class_weights=balanced \
      --set train.label_smoothing=0.1
  done
  expect_code 0 lra eval runs/gun --data data --predictions predicted.csv --quiet
  grep -q '^  macro F1 ' out && grep -q '^  AUC ' out || fail "$(cat out)"
  [[ $(wc -l <predicted.csv) == 41 ]] || fail "predictions of $(wc -l <predicted.csv) lines"
  head -n 2 predicted.csv | grep -qE '^0,[0-9]+,"[ab]","[ab]",[0-9.e-]+,[0-9.e-]+$' || fail "$(head -n 2 predicted.csv)"
  expect_code 2 lra eval runs/gun --data data --predictions predicted.csv --quiet
  passed "class weights, label smoothing, and the prediction of each example"
  expect_code 0 lra report runs --format text
  for name in gun birds contest; do grep -q "^$name " out || fail "the report lacks $name: $(cat out)"; done
  passed "a model on three of them"
}

refusals() {
  printf 'PAR1' >a.dat
  expect_code 2 lra data import custom a.dat --out none
  grep -q 'its bytes are Parquet' err || fail "$(cat err)"
  LRA_INTERPRETER=/bin/false expect_code 2 lra data import custom arrays.npz --out none
  grep -q "'/bin/false' could not be run as Python" err || fail "$(cat err)"
  mkdir numpy && touch numpy/__init__.py && echo 'raise SystemExit' >json.py
  expect_code 0 lra data import custom arrays.npz --out data/again --quiet
  [[ $(wc -l <err) == 0 && ! -e none && -z $(find . -name '.lra-import*') ]] || fail "something is left: $(ls -a)"
  passed "refusals, and modules of the user's"
}

make_layouts
import_layouts
train_on_them
refusals
