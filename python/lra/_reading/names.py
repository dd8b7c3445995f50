"""Names in common use: of splits in the names of files and arrays, and of columns."""

from __future__ import annotations

import os
import re

LABELS = ("label", "labels", "class", "target", "targets", "y", "sentiment", "category")
TOKENS = ("tokens", "tokens1", "tokens2", "input_ids")
PICTURES = ("image", "images", "img", "picture", "pictures")
SEQUENCES = (
    *(
        "text",
        "review",
        "sentence",
        "content",
        "document",
        "tokens",
        "input_ids",
        "values",
        "x",
        "data",
    ),
    *("sequence", "features", "series", "inputs", "audio", "recording", *PICTURES),
)
PAIRS = (
    *(("text1", "text2"), ("sentence1", "sentence2"), ("premise", "hypothesis")),
    *(("question1", "question2"), ("tokens1", "tokens2"), ("x1", "x2")),
)
LENGTHS = ("lengths", "length", "attention_mask", "input_mask", "padding_mask", "mask")
# A column that may name the split under another name, which only its user knows.
MAYBE_SPLITS = (
    *("set", "partition", "fold", "subset", "usage", "is_test", "is_train", "is_val", "kfold"),
    *("is_valid", "is_validation"),
)
IDS = ("", "unnamed: 0", "__index_level_0__", "index", "id", "idx", "row", "row_id", "guid", "uid")
# Columns that name a thing whose examples are alike (the check `groups`).
GROUPS = ("user", "subject", "patient", "session", "recording", "speaker", "file")
_SPLITS = {
    **dict.fromkeys(("train", "training", "tr"), "train"),
    **dict.fromkeys(("test", "testing", "te", "t10k"), "test"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
}


def plain(name: str) -> str:
    return name.strip().lower()


def is_id(name: str) -> bool:
    return (
        plain(name) in IDS
        or bool(re.search(r"([_\- ]id|_file|_path|_name)$", plain(name)))
        or name.endswith("Id")
    )


def is_group(name: str) -> bool:
    return re.sub(r"[_\- ]?(id|name)$", "", plain(name)) in GROUPS


def split_of_word(word: str) -> str:
    """'train', 'val' or 'test' for a name in common use, such as 'validation'; else ''."""
    return _SPLITS.get(word.strip().lower(), "")


def split_of_file(path: str) -> str:
    """The only split that a word of the file's name is: 'train' of 'a/train-00000-of-00002.csv'."""
    words = re.split(r"[-_. ]", os.path.basename(path))
    found = {split_of_word(word) for word in words} - {""}
    return found.pop() if len(found) == 1 else ""


def parted(name: str) -> tuple[str, str]:
    """The split in the name of an array, and the rest: x_train, train_x, trainX, Xtrain."""
    words = [word for word in re.split(r"[_\-. ]+|(?<=[a-z0-9])(?=[A-Z])", name) if word]
    if len(words) > 1:
        for place, rest in ((0, words[1:]), (-1, words[:-1])):
            if split := split_of_word(words[place]):
                return split, "_".join(rest)
    found = re.fullmatch(r"([A-Za-z])(train|test|val|valid)", name)
    return (split_of_word(found[2]), found[1]) if found else ("", name)
