"""Situations of wrong_input.py that show in many examples alone: labels that mean nothing, splits that are
unlike, pictures in another order of their pixels, values that are none.

Each is (task, write, pattern, name): `write(folder)` leaves a source there and ends with the words that
`lra data import TASK` takes, and what the program says matches the pattern."""
import csv
import json
import math
import random

from shared.wrong_data import CIFAR, RECORD

BATCHES = [f"data_batch_{n}" for n in range(1, 6)] + ["test_batch"]
IMAGES_PER_BATCH, REVIEWS, TEST_REVIEWS = 1200, 6000, 1200
WAVE = [round(35 * math.sin(k / 5) + 10 * math.sin(k / 37)) for k in range(4000)]
STRIPS = [bytes(min(255, max(0, level + w)) for w in WAVE) for level in range(256)]
WORDS = "film plot actor scene camera music story ending dialogue cast".split()
KINDS = ["a weak", "a great"]


def photo(draw, label):
    """A smooth picture, 32 x 32, with its sky at the top; brighter for some labels than for others."""
    level, start = 50 + 9 * label + draw.randrange(40), draw.randrange(3900)
    return b"".join(STRIPS[level + 31 - y][start + y // 2:start + y // 2 + 32] for y in range(32))


def image_situations():
    def write(change, relabel=lambda draw, label: label):
        def into(root):
            draw = random.Random(7)
            for name in BATCHES:
                labels = [k % 10 for k in range(IMAGES_PER_BATCH)]
                images = (bytes([relabel(draw, label)]) + change(photo(draw, label), name == "test_batch")
                          for label in labels)
                path = root / CIFAR.format(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"".join(image.ljust(RECORD, b"\0") for image in images))
            return [path.parent]
        return into

    def planes(pixels, _=None):
        return pixels * 3

    def only_test(change):
        return lambda pixels, is_test: planes(pixels.translate(change) if is_test else pixels)

    order = random.Random(8).sample(range(1024), 1024)
    inverted, darker = bytes(255 - v for v in range(256)), bytes(4 * v // 5 for v in range(256))
    flat = bytes(120 + (v - 120) // 2 for v in range(256))
    yield ("image", write(planes, lambda draw, label: draw.randrange(10)), "are labels shuffled",
           "labels that are shuffled")
    other_order, other_direction = "pixels or colors in another order", "transposed, inverted or upside down"
    yield ("image", write(lambda p, _: bytes(v for v in p for _ in range(3))), other_order,
           "the colors of a pixel beside each other")
    yield ("image", write(lambda p, _: planes(bytes(p[i] for i in order))), other_order, "pixels in a fixed order")
    yield ("image", write(lambda p, _: planes(b"".join(p[x::32] for x in range(32)))), other_direction,
           "rows in the place of columns")
    yield "image", write(lambda p, _: planes(p[::-1])), other_direction, "pictures that are turned around"
    yield "image", write(lambda p, _: planes(p.translate(inverted))), other_direction, "inverted pictures"
    for change, name in ((inverted, "inverted"), (darker, "darker"), (flat, "of less contrast")):
        yield ("image", write(only_test(change)), "unlike those of train|" + other_direction,
               f"pictures of the test that are {name}")


def review(draw, label):
    """A text that three times in four says what its label means."""
    words = [draw.choice(WORDS) for _ in range(draw.randrange(20, 60))]
    kind = KINDS[label if draw.random() < 0.75 else 1 - label]
    return f"{draw.randrange(10 ** 9)}: {kind} film. " + " ".join(words).capitalize() + "!"


def text_situations():
    def write(relabel=lambda draw, label: label, change=lambda text, is_test: text):
        def into(root):
            draw = random.Random(9)
            for split, count in (("train", REVIEWS), ("test", TEST_REVIEWS)):
                root.mkdir(parents=True, exist_ok=True)
                with open(root / f"{split}.csv", "w", encoding="utf-8", newline="") as file:
                    rows = csv.writer(file)
                    rows.writerow(["text", "label"])
                    for k in range(count):
                        rows.writerow([change(review(draw, k % 2), split == "test"), relabel(draw, k % 2)])
            return [root / "train.csv", root / "test.csv"]
        return into

    def flip(draw, label):
        return 1 - label if draw.random() < 0.4 else label

    yield "text", write(lambda draw, label: draw.randrange(2)), "are labels shuffled", "labels that are shuffled"
    yield "text", write(flip), "are labels shuffled, or partly wrong", "four labels of ten that are wrong"
    yield ("text", write(change=lambda text, is_test: text[:len(text) // 2] if is_test else text),
           "unlike those of train", "a test of half texts")
    yield ("text", write(change=lambda text, is_test: text.upper() if is_test else text), "unlike those of train",
           "a test in capital letters")


def custom_situations():
    def write(change, count=200):
        def into(root):
            draw = random.Random(10)
            root.mkdir(parents=True, exist_ok=True)
            for split, size in (("train", count), ("val", 40), ("test", 40)):
                rows = []
                for k in range(size):
                    row = {"values": [round(draw.gauss(0, 1), 4) for _ in range(12)], "label": k % 4}
                    rows += [json.dumps(row) for row in change(draw, split, k, row)]
                (root / f"{split}.jsonl").write_text("\n".join(rows) + "\n")
            return [root / f"{split}.jsonl" for split in ("train", "val", "test")]
        return into

    def mark_missing(draw, _split, _k, row):
        row["values"] = [-999 if draw.random() < 0.05 else v for v in row["values"]]
        return [row]

    def other_unit(_draw, split, _k, row):
        return [row | {"values": [1000 * v for v in row["values"]]}] if split == "test" else [row]

    def channels_first(draw, _split, _k, row):
        return [row | {"values": [[draw.random() for _ in range(100)] for _ in range(3)]}]

    def few_tests(_draw, split, k, row):
        return [row] if split != "test" or k < 2 else []

    def lost_class(_draw, split, k, row):
        return [row] if split != "test" or k % 4 != 3 else []

    def other_words(_draw, split, k, row):
        words = ("true", "false") if split == "test" else ("True", "False")
        return [row | {"label": words[k % 2]}]

    def tokens(change_ids, **more):
        def change(draw, split, k, row):
            ids = [draw.randrange(50) for _ in range(10)]
            return [{"tokens": change_ids(ids, split, k), "label": row["label"], **more}]
        return change

    def late_split(_draw, _split, k, row):
        return [row | {"split": "test"}] if k > 9 else [row]

    def as_set(_draw, split, _k, row):
        return [row | {"set": split}]

    def named_splits(_draw, split, _k, row):
        return [row | {"part": split}]

    def in_two_cases(_draw, _split, k, row):
        return [row | {"label": ("Yes", "no", "yes")[k % 3]}]

    def other_shares(_draw, split, k, row):
        return [row | {"label": row["label"] if split == "train" else int(k % 20 == 0)}]

    def other_key(_draw, split, _k, row):
        return [{"features" if split == "test" else "values": row["values"], "label": row["label"]}]

    yield "custom", write(late_split), "'split', which the first row does not have", "a split that later rows name"
    yield "custom", write(as_set), "does it name the split", "a split under another name"
    yield "custom", write(named_splits), "'part' is not read, and names splits", "a column that names splits"
    yield "custom", write(in_two_cases), "'Yes' and 'yes' differ only in letter case", "a label in two spellings"
    yield "custom", write(other_shares), "were all files there", "classes with other shares of the test"
    yield "custom", write(other_key), "has no column 'values'", "a test under other names"
    yield ("custom", write(tokens(lambda ids, _split, k: [-1] + ids if k == 3 else ids)), "a token is -1",
           "one token that is no id")
    yield ("custom", write(tokens(lambda ids, _split, k: ids[:5 + k % 5] + [-100] * 3)), "if it is padding",
           "padding with -100")
    yield ("custom", write(tokens(lambda ids, _split, k: ids + [16000000] if k == 3 else ids)),
           "different token ids occur", "one id far above the others")
    yield ("custom", write(tokens(lambda ids, _split, k: ids + [60 + k % 4])), "'best single token' alone is right on 100",
           "the label as the last token")
    yield ("custom", write(tokens(lambda ids, _split, k: ids, attention_mask=[1] * 10)), "which positions are padding",
           "a mask")

    def csv_files(header, test_header=None, index=False, shards=""):
        def into(root):
            draw = random.Random(11)
            root.mkdir(parents=True, exist_ok=True)
            for split, names in (("train", header), ("test", test_header or header)):
                rows = [",".join([*([str(k)] if index else []), *(f"{draw.gauss(0, 1):.4f}" for _ in range(3)),
                                  str(k % 2)]) for k in range(100)]
                (root / f"{split}{shards}.csv").write_text("\n".join([names, *rows]) + "\n")
            return [root]
        return into

    yield "custom", csv_files("a,b,c,label", "a,b,d,label"), "has no column 'c'", "a test with another column"
    yield "custom", csv_files(",a,b,c,label", index=True), "is it the number of the row", "an index in the table"
    yield "custom", csv_files("n,a,b,c,label", index=True), "counts the examples", "rows that are counted"
    yield "custom", csv_files("a,b,c,label", shards="-00000-of-00002"), "1 of the 2 files", "a file that is missing"

    yield "custom", write(mark_missing), "does it mark what is missing", "-999 where a value is missing"
    yield "custom", write(other_unit), "in another unit", "a test in another unit"
    yield "custom", write(channels_first), r"\[N, C, L\]", "channels in the place of positions"
    yield "custom", write(few_tests), "uncertain by 50%", "a test of two examples"
    yield "custom", write(lost_class), "class 3 has 0 of the 30 examples of test", "no example of a class in the test"
    yield "custom", write(other_words), "has the label 'true'.*'False' and 'True'", "labels written in another way"


def situations():
    for of_task in (image_situations, text_situations, custom_situations):
        yield from of_task()
