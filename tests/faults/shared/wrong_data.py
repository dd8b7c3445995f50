"""Situations of wrong_input.py in which all files are there and can be read, and their contents are not
what a model should learn from: leaks, copies, labels that contradict something, texts that are none.

Each is (task, change, pattern, name): `change(folder)` spoils an official copy, and what the program says
matches the pattern."""
import base64
import gzip
import random
import struct
import zlib

CIFAR = "cifar-10-batches-bin/{}.bin"
RECORD = 3073
CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()


def png(pixels, side=32):
    """A gray picture."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + pixels[i:i + side] for i in range(0, len(pixels), side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def records(root, name):
    content = (root / CIFAR.format(name)).read_bytes()
    return [content[i:i + RECORD] for i in range(0, len(content), RECORD)]


def write_records(root, name, images):
    (root / CIFAR.format(name)).write_bytes(b"".join(images))


def image_situations():
    def test_from_train(root, relabel=0):
        images = records(root, "test_batch")
        images[:4] = [bytes([(image[0] + relabel) % 10]) + image[1:] for image in records(root, "data_batch_2")[:4]]
        write_records(root, "test_batch", images)

    def label_at(place):
        def change(root):
            for path in (root / "cifar-10-batches-bin").iterdir():
                images = [bytearray(image) for image in records(root, path.stem)]
                for image in images:
                    for plane in range(3):
                        image[1 + 1024 * plane + place] = 20 * image[0]
                write_records(root, path.stem, images)
        return change

    def missing_class(root):
        noise = random.Random(1)
        for path in (root / "cifar-10-batches-bin").iterdir():
            classes = 9 if path.stem == "test_batch" else 10
            write_records(root, path.stem, [bytes([k % classes]) + noise.randbytes(RECORD - 1) for k in range(90)])

    def pictures(left_out):
        def change(root):
            noise = random.Random(2)
            for split, count in (("train", 100), ("test", 90)):
                (root / split).mkdir()
                for k in range(count):
                    if not left_out(split, k):
                        (root / split / f"{k}_{CLASSES[k % 10]}.png").write_bytes(png(noise.randbytes(1024)))
            for path in (root / "cifar-10-batches-bin").iterdir():
                path.unlink()
            (root / "cifar-10-batches-bin").rmdir()
        return change

    def meta(root):
        (root / "cifar-10-batches-bin/batches.meta.txt").write_text("\n".join(CLASSES[::-1]) + "\n")

    yield ("image", lambda r: write_records(r, "data_batch_5", records(r, "data_batch_1")), "holds the images of",
           "data_batch_5 is data_batch_1")
    yield "image", test_from_train, "also in an earlier split", "a fifth of test is in train"
    yield ("image", lambda r: test_from_train(r, 1), "also in an earlier split|with two labels",
           "a fifth of test is in train with other labels")
    yield "image", label_at(0), "best single token", "the label in the first pixel"
    yield "image", label_at(1023), "best single token", "the label in the last pixel"
    yield "image", label_at(500), "best single token", "the label in pixel 500"
    yield "image", missing_class, "class 9 has 0 of the 90 examples of test", "no truck in test"
    yield "image", pictures(lambda split, k: split == "train" and k in (7, 8)), "numbers of 2 images are missing", "two pictures missing"
    yield ("image", pictures(lambda split, k: split == "test" and k % 10 == 3), "class 3 has 0",
           "no pictures of cats in test")
    yield "image", meta, "names the classes", "another order of the classes"


def review_files(root, split="*", label="*"):
    return sorted((root / "aclImdb").glob(f"{split}/{label}/*.txt"))


def text_situations():
    def rewrite(change):
        def all_of(root):
            for k, path in enumerate(review_files(root)):
                path.write_bytes(change(k, path.read_text()).encode())
        return all_of

    def prose(k, text):
        words = random.Random(k)
        return f"{k} " + " ".join(words.choice(["film", "plot", "actor", "scene"]) for _ in range(30))

    def wrong_rating(root):
        path = review_files(root, "train", "pos")[3]
        path.rename(path.with_name(path.name.split("_")[0] + "_2.txt"))

    def test_from_train(root):
        for label in ("neg", "pos"):
            for one, other in list(zip(review_files(root, "train", label), review_files(root, "test", label)))[:2]:
                other.write_text(one.read_text())

    def cleaned_test(root):
        for label in ("neg", "pos"):
            for one, other in zip(review_files(root, "train", label), review_files(root, "test", label)):
                other.write_text(one.read_text().upper().replace(" ", ",  ") + "!")

    def cut(k, _):
        words = random.Random(k)
        return (f"{k} " + " ".join(words.choice(["film", "plot", "actor", "scene"]) for _ in range(80)))[:250]

    def both_labels(root):
        for one, other in list(zip(review_files(root, "train", "neg"), review_files(root, "train", "pos")))[:3]:
            other.write_text(one.read_text())

    def uneven(root):
        for split in ("train", "test"):
            for label, count in (("neg", 60), ("pos", 5)):
                for path in review_files(root, split, label):
                    path.unlink()
                for k in range(count):
                    rating = 2 if label == "neg" else 9
                    (root / f"aclImdb/{split}/{label}/{k}_{rating}.txt").write_text(prose(1000 * count + k, "") + split)

    def packed(root):
        for path in review_files(root):
            path.write_bytes(gzip.compress(path.read_bytes()))

    yield "text", wrong_rating, "ratings of the other class", "a good review with two stars"
    yield "text", test_from_train, "also in an earlier split", "a fifth of test is in train"
    yield "text", cleaned_test, "also in an earlier split", "test is train, written another way"
    yield "text", rewrite(cut), "exactly 250 bytes", "texts that were cut"
    yield ("text", rewrite(lambda k, t: " ".join(str(7 * k + n) for n in range(20))), "hardly any letters",
           "ids of words in the place of texts")
    yield "text", both_labels, "with two labels|repeat an earlier", "texts with both labels"
    yield "text", uneven, "are uneven", "60 bad reviews, 5 good ones"
    yield "text", packed, "is a gzip file", "reviews packed by gzip"
    yield "text", rewrite(lambda k, t: t), "best single token", "the label in front of the text"
    yield "text", rewrite(lambda k, t: prose(k, t) + t[0]), "best single token", "the label behind the text"
    yield ("text", rewrite(lambda k, t: base64.b64encode(prose(k, t).encode()).decode()), "hardly any white space",
           "base64")
    yield ("text", rewrite(lambda k, t: f"<html><title>404 Not Found</title> /review/{k} is not here"),
           "is an HTML page", "HTML pages")
    yield ("text", rewrite(lambda k, t: f"Error 404: the page /review/{k} was not found"), "begin with",
           "error messages")
    yield "text", rewrite(lambda k, t: "404 Not Found"), "also in an earlier split", "one error page"
    yield "text", rewrite(lambda k, t: f"{k} ok"), "very short", "texts of a few bytes"


def retrieval_situations():
    def rewrite(change, splits=("train", "eval", "test")):
        def all_of(root):
            for split in splits:
                path = root / f"new_aan_pairs.{split}.tsv"
                rows = [line.split("\t") for line in path.read_text().splitlines()]
                path.write_text("".join("\t".join(row) + "\n" for row in change(rows)))
        return all_of

    def each(change):
        return rewrite(lambda rows: [change(*row) for row in rows])

    def from_train(root):
        lines = (root / "new_aan_pairs.train.tsv").read_text().splitlines()[:4]
        path = root / "new_aan_pairs.test.tsv"
        path.write_text("\n".join(lines + path.read_text().splitlines()[4:]) + "\n")

    def other_ids(root):
        lines = (root / "new_aan_pairs.train.tsv").read_text().splitlines()
        (root / "new_aan_pairs.train.only_ids.tsv").write_text(
            "".join("\t".join(line.split("\t")[:3]) + "\n" for line in lines[::-1]))

    yield "retrieval", from_train, "also in an earlier split", "a fifth of test is in train"
    yield "retrieval", other_ids, "does not name the papers", "another file of ids"
    yield "retrieval", each(lambda l, a, b, s, t: (l, "P1", b, s, t)), "name several texts", "one id for all"
    yield ("retrieval", each(lambda l, a, b, s, t: (l, a, b, s, "paper not found")), "name the text of another",
           "one text for all")
    yield "retrieval", each(lambda l, a, b, s, t: (l, a, b, s, s)), "pair a text with itself", "twice the first text"
    yield "retrieval", each(lambda l, a, b, s, t: (l, a, b, a, b)), "very short", "ids as texts"
    yield ("retrieval", each(lambda l, a, b, s, t: (l, a, b, f"/data/aan/papers/{a}.txt", f"/data/aan/papers/{b}.txt")),
           "hardly any white space", "names of files as texts")
    yield ("retrieval", each(lambda l, a, b, s, t: (l, a, b, s, t + l[0])), "best single token",
           "the label behind the second text")
    yield ("retrieval", rewrite(lambda rows: rows + [(str(1 - int(l[0])), b, a, t, s) for l, a, b, s, t in rows]),
           "with two labels", "pairs in both orders, with both labels")


def listops_situations():
    name = "listops-1000/basic_{}.tsv"

    def without_header(root):
        for split in ("train", "val", "test"):
            path = root / name.format(split)
            path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))

    def from_train(root):
        train, test = (root / name.format(split) for split in ("train", "test"))
        lines = test.read_text().splitlines(keepends=True)
        test.write_text("".join(lines[:1] + train.read_text().splitlines(keepends=True)[1:5] + lines[5:]))

    def few_values(root):
        """Trees of one operator over digits, so that there are enough."""
        draw = random.Random(4)
        for split in ("train", "val", "test"):
            lines = set()
            while len(lines) < 200:
                digits = [draw.randrange(10) for _ in range(4)]
                value = sum(digits) % 10
                if split == "test" and value not in (0, 9):
                    continue
                tree = "( ( ( ( ( [SM " + " ) ".join(map(str, digits)) + " ) ] )"
                lines.add(f"{tree}\t{value}\n")
            (root / name.format(split)).write_text("Source\tTarget\n" + "".join(sorted(lines)))

    yield "listops", without_header, "has no header", "files without a header"
    yield "listops", from_train, "also in an earlier split", "a fifth of test is in train"
    yield "listops", few_values, "8 classes are that few", "values 0 and 9 alone in test"


def pathfinder_situations():
    def metadata(root):
        return sorted(root.rglob("metadata/*.npy"))

    def leave_out(root):
        for path in metadata(root):
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:-4]))
        for path in root.rglob("splits.txt"):
            path.unlink()

    def redraw(pixel):
        def change(root):
            for path in root.rglob("*.png"):
                path.write_bytes(png(bytes(pixel() for _ in range(1024))))
        return change

    def one_label(root):
        for path in metadata(root):
            path.write_text("".join(" ".join(row[:3] + ["1"] + row[4:]) + "\n"
                                    for row in map(str.split, path.read_text().splitlines())))

    def without_val(root):
        for path in root.rglob("splits.txt"):
            path.write_text(path.read_text().replace(" val\n", " train\n"))

    noise = random.Random(3)
    yield "pathfinder", leave_out, "in none of its metadata", "metadata without the last images"
    yield "pathfinder", redraw(lambda: noise.randrange(256)), "two white discs", "noise"
    yield "pathfinder", redraw(lambda: 255 - noise.randrange(20)), "two white discs", "pictures that are nearly white"
    yield "pathfinder", redraw(lambda: 255 * (noise.randrange(9) == 0)), "two white discs", "dots"
    yield "pathfinder", one_label, "have one label", "all labels are 1"
    yield "pathfinder", without_val, "assigns no image to val", "splits.txt without val"


def situations():
    for of_task in (image_situations, text_situations, retrieval_situations, listops_situations, pathfinder_situations):
        yield from of_task()
