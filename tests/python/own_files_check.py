"""The reader of own data: what each format, layout and column becomes, and what is refused."""

import csv
import gzip
import io
import json
import os
import pathlib
import pickle
import resource
import struct
import sys
import tempfile
import unittest
import wave

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "lra"))

try:
    import pyarrow as pa
except ImportError:
    sys.exit(77)

import numpy as np
from _reading.errors import ReadError
from _reading.pickles import cifar_batch, limit_memory
from _reading.reading import Reading
from pyarrow import feather, parquet

TYPES = {0: "u1", 1: "u1", 2: "<u2", 3: "<u4", 4: "<f4", 5: "<f8"}
SPLITS = ["", "train", "val", "test"]


class Examples:
    """The examples of frames, decoded here once more."""

    def __init__(self, content, done):
        self.rows, self.done, file = [], done, io.BytesIO(content)
        while head := file.read(32):
            magic, count, towers, kind, channels, groups, rest = struct.unpack("<8s6I", head)
            assert magic == b"LRAROWS1" and rest == 0
            labels = np.frombuffer(file.read(4 * count), "<i4")
            splits = np.frombuffer(file.read(count), "u1")
            file.read(8 * groups * count)
            lengths = np.frombuffer(file.read(4 * towers * count), "<u4").reshape(towers, count)
            size = np.dtype(TYPES[kind]).itemsize * channels
            parts = []
            for tower in range(towers):
                flat = np.frombuffer(file.read(size * int(lengths[tower].sum())), TYPES[kind])
                cuts = np.cumsum(lengths[tower])[:-1] * channels
                parts.append(np.split(flat, cuts))
            for i in range(count):
                towers_of = [p[i].tobytes().decode() if kind == 0 else p[i].tolist() for p in parts]
                self.rows.append((SPLITS[splits[i]], done["labels"][labels[i]], towers_of))

    def of(self, split):
        return [(label, towers[0]) for found, label, towers in self.rows if found == split]

    def sizes(self):
        return [len(self.of(split)) for split in ("train", "val", "test")]

    def column(self, name):
        """(shape, role, why) of a column."""
        return next(tuple(row[2:]) for row in self.done["columns"] if row[0] == name)


def npy(path, *arrays):
    for stem, rows in zip(path, arrays, strict=True):
        np.save(stem, rows)


class Folder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.path = pathlib.Path(self._folder.name)

    def write(self, name, content):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def read(self, *files, **settings):
        names = ("label", "split", "sequences", "ignore")
        settings = {**dict.fromkeys(names, ""), "input": "auto", **settings}
        with tempfile.TemporaryFile() as out:
            done = Reading(settings, out, lambda rows: None).run([str(file) for file in files])
            out.seek(0)
            return Examples(out.read(), done)

    def refusal(self, *files, **settings):
        with self.assertRaises(ReadError) as caught:
            self.read(*files, **settings)
        return "; ".join(caught.exception.parts.values())

    def jsonl(self, name, rows):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def csv(self, name, header, rows):
        text = io.StringIO(newline="")
        csv.writer(text).writerows([header, *rows])
        return self.write(name, text.getvalue())


TEXTS = [
    {"text": f"a {'good' if i % 2 else 'bad'} film, number {i}", "label": "no yes".split()[i % 2]}
    for i in range(30)
]


class Tables(Folder):
    def expect_texts(self, found):
        self.assertEqual(
            [row[1:] for row in found.rows], [(t["label"], [t["text"]]) for t in TEXTS]
        )
        self.assertEqual(found.done["input"], "text")

    def test_every_format_of_tables_gives_the_same_texts(self):
        table = pa.Table.from_pylist(TEXTS)
        lines = "".join(json.dumps(row) + "\n" for row in TEXTS)
        parquet.write_table(table, self.path / "a.parquet", row_group_size=7)
        feather.write_feather(table, str(self.path / "a.feather"))
        with (
            pa.OSFile(str(self.path / "a.arrow"), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=4)
        self.write("a.jsonl", lines)
        self.write("b.json", lines)
        self.write("array.json", json.dumps(TEXTS))
        self.write("a.ndjson.gz", gzip.compress(lines.encode()))
        self.csv("a.csv", ["text", "label"], [list(row.values()) for row in TEXTS])
        self.write("b.csv.gz", gzip.compress((self.path / "a.csv").read_bytes()))
        zst = pa.BufferOutputStream()
        with pa.CompressedOutputStream(zst, "zstd") as stream:
            stream.write(lines.encode())
        self.write("a.jsonl.zst", zst.getvalue().to_pybytes())
        for name in sorted(os.listdir(self.path)):
            with self.subTest(name):
                self.expect_texts(self.read(self.path / name))

    def test_numbers_in_lists_keep_their_type(self):
        ids = self.jsonl(
            "a.jsonl", [{"tokens": [0, 70000, i], "label": 10 * (i % 3)} for i in range(6)]
        )
        found = self.read(ids)
        self.assertEqual((found.done["input"], found.done["largest"]), ("tokens", 70000))
        self.assertEqual(found.of("")[5], ("20", [0, 70000, 5]))
        values = self.jsonl("b.jsonl", [{"x": [[0.5, i], [1, 2]], "y": True} for i in range(6)])
        found = self.read(values)
        self.assertEqual((found.done["input"], found.done["channels"]), ("values", 2))
        self.assertEqual(found.of("")[3], ("true", [0.5, 3, 1, 2]))

    def test_a_number_that_becomes_real_later_is_read(self):
        rows = [{"x": [i, 2], "label": i % 2} for i in range(5)] + [{"x": [0.5, 1], "label": 0}]
        found = self.read(self.jsonl("a.jsonl", rows))
        self.assertEqual(found.done["input"], "values")
        self.assertEqual(found.of("")[-1], ("0", [0.5, 1]))

    def test_texts_that_look_like_dates_stay_texts(self):
        found = self.read(
            self.jsonl("a.jsonl", [{"text": "2020-01-02", "label": i % 2} for i in range(3)])
        )
        self.assertEqual(found.of("")[0], ("0", "2020-01-02"))

    def test_line_ends_quotes_and_separators_in_csv(self):
        path = self.write("a.csv", b'text,label\r\n"a,\r\n""b""",0\r\n"c",1\r\n')
        self.assertEqual(self.read(path).of(""), [("0", 'a,\n"b"'), ("1", "c")])
        path = self.write("b.csv", "sep=;\ntext;label\nx, y;0\nz;1\n")
        self.assertEqual(self.read(path).of(""), [("0", "x, y"), ("1", "z")])
        path = self.write("c.csv", "t0;t1;label\n0,5;-1,25;a\n1;2;b\n")
        self.assertEqual(self.read(path).of(""), [("a", [0.5, -1.25]), ("b", [1, 2])])
        path = self.write("d.tsv", "\ufefftext\tlabel\nx\t0\n")
        self.assertEqual(self.read(path).of(""), [("0", "x")])

    def test_a_column_for_each_position(self):
        path = self.csv("a.csv", ["t0", "t1", "label"], [[i, i + 1, i % 2] for i in range(4)])
        found = self.read(path)
        self.assertEqual((found.done["input"], found.of("")[3]), ("tokens", ("1", [3, 4])))
        self.assertEqual(found.column("t0 ... t1")[:2], ("2 positions", "sequence"))
        bare = self.write("b.csv", "1,2,0\n3,4.5,1\n")
        self.assertEqual(self.read(bare, label="c2").of(""), [("0", [1, 2]), ("1", [3, 4.5])])
        self.assertIn("has no column of labels", self.refusal(bare))
        counted = self.write("c.csv", "0,1,2\n3,4,0\n5,6,1\n")
        for label in ("2", "c2"):
            self.assertEqual(self.read(counted, label=label).of(""), [("0", [3, 4]), ("1", [5, 6])])

    def test_lists_in_cells_are_numbers(self):
        path = self.csv("a.csv", ["seq", "label"], [[f"[1, 2, {i}]", i % 2] for i in range(4)])
        self.assertEqual(self.read(path).of("")[3], ("1", [1, 2, 3]))
        path = self.csv("b.csv", ["tokens", "label"], [[f"3 {i}", i % 2] for i in range(4)])
        self.assertEqual(self.read(path).of("")[3], ("1", [3, 3]))
        path = self.csv(
            "c.csv", ["seq", "label"], [[f"[[1, 2], [0.5, {i}]]", i % 2] for i in range(4)]
        )
        self.assertEqual(self.read(path).of("")[3], ("1", [1, 2, 0.5, 3]))
        path = self.csv("d.csv", ["seq", "label"], [["[1 2 ... 9]", i % 2] for i in range(4)])
        self.assertIn("'...' is not a number", self.refusal(path))
        self.assertEqual(self.read(path, input="text").of("")[0], ("0", "[1 2 ... 9]"))

    def test_pairs_are_two_sequences(self):
        path = self.csv(
            "a.csv", ["sentence1", "sentence2", "label"], [[f"a{i}", f"bb{i}", i] for i in range(3)]
        )
        self.assertEqual(self.read(path).rows[2], ("", "2", ["a2", "bb2"]))

    def test_a_schema_gives_the_names_of_classes(self):
        info = {"info": {"features": {"coarse": {"_type": "ClassLabel", "names": ["cat", "dog"]}}}}
        table = pa.table({"text": ["x", "y", "z"], "coarse": [0, 1, 0]})
        table = table.replace_schema_metadata({"huggingface": json.dumps(info)})
        parquet.write_table(table, self.path / "a.parquet")
        found = self.read(self.path / "a.parquet")
        self.assertEqual([label for label, _ in found.of("")], ["cat", "dog", "cat"])
        words = pa.array(["b", "a", "b"]).dictionary_encode()
        parquet.write_table(
            pa.table({"text": ["x", "y", "z"], "label": words}), self.path / "b.parquet"
        )
        self.assertEqual(
            [label for label, _ in self.read(self.path / "b.parquet").of("")], ["b", "a", "b"]
        )

    def test_tensors_keep_their_shape(self):
        rows = np.arange(2 * 24 * 3, dtype=np.float32).reshape(2, 24, 3)
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(rows)
        parquet.write_table(pa.table({"x": tensors, "label": [0, 1]}), self.path / "a.parquet")
        found = self.read(self.path / "a.parquet")
        self.assertEqual((found.done["longest"], found.done["channels"]), (24, 3))
        self.assertEqual(found.of("")[1][1], rows[1].ravel().tolist())

    def test_nan_pads_series_of_unequal_lengths(self):
        rows = [[1.5, 2, 3], [4, np.nan, np.nan]]
        parquet.write_table(pa.table({"x": rows, "label": [0, 1]}), self.path / "a.parquet")
        found = self.read(self.path / "a.parquet")
        self.assertEqual(found.of(""), [("0", [1.5, 2, 3]), ("1", [4])])
        self.assertEqual((found.done["shortest"], found.done["longest"]), (1, 3))
        parquet.write_table(
            pa.table({"x": [[1.5], [np.nan, 2]], "label": [0, 1]}), self.path / "b.parquet"
        )
        self.assertIn(
            "b.parquet row 2; a value is NaN or infinite", self.refusal(self.path / "b.parquet")
        )

    def test_masks_and_lengths_cut_sequences(self):
        rows = [
            {"input_ids": [5, 6, 0], "attention_mask": [1, 1, 0], "label": 0},
            {"input_ids": [0, 7, 8], "attention_mask": [0, 1, 1], "label": 1},
        ]
        self.assertEqual(
            self.read(self.jsonl("a.jsonl", rows)).of(""), [("0", [5, 6]), ("1", [7, 8])]
        )
        rows[0]["attention_mask"] = [1, 0, 1]
        self.assertIn("the mask has holes", self.refusal(self.jsonl("b.jsonl", rows)))

    def test_cells_and_rows_that_cannot_be_read_are_named(self):
        rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}]
        for more, message in (
            ({"text": "c"}, "row 3; the label is missing"),
            ({"text": "", "label": 0}, "row 3; a sequence is empty"),
            ({"text": "c", "label": ""}, "row 3; the label is empty"),
            ({"text": [1], "label": 0}, "row 3; column 'text' holds another type"),
            ({"text": "a\0b", "label": 0}, "row 3; holds a zero byte"),
        ):
            self.assertIn(message, self.refusal(self.jsonl("a.jsonl", [*rows, more])), more)
        self.assertIn("element 1; is not an object", self.refusal(self.write("b.jsonl", "[1]\n")))
        self.assertIn(
            "row 2; is an array", self.refusal(self.write("b.jsonl", '{"text": "a"}\n[1]\n'))
        )
        self.assertIn(
            "'x' is not a number", self.refusal(self.write("c.csv", "t0,t1,label\n1,2,0\n3,x,1\n"))
        )
        self.assertIn(
            "Expected 2 columns", self.refusal(self.write("d.csv", "text,label\na,0\nb\n"))
        )
        joined = self.write("d.csv", "text,label\na,0\nb,1\n" * 2)
        self.assertIn("row 3; repeats the header", self.refusal(joined))
        self.assertIn("is not UTF-8", self.refusal(self.write("e.csv", b"text,label\n\xff,0\n")))
        self.assertIn(
            "is UTF-16", self.refusal(self.write("f.csv", "text,label\na,0\n".encode("utf-16")))
        )
        self.assertIn("is empty", self.refusal(self.write("g.csv", "")))
        self.assertIn("cannot be read", self.refusal(self.write("h.parquet", "x")))

    def test_objects_that_are_no_rows_are_refused_with_a_cure(self):
        path = self.write("a.json", json.dumps({"text": {"0": "a"}, "label": {"0": 1}}))
        self.assertIn("lines=True", self.refusal(path))


class Columns(Folder):
    def test_the_table_says_what_was_understood(self):
        rows = [["a", f"t{i}", i % 2, i] for i in range(3)]
        found = self.read(self.csv("a.csv", ["patient", "text", "label", "note"], rows))
        self.assertEqual(found.column("patient")[1:], ("group", "name"))
        self.assertEqual(found.column("text"), ("2 bytes", "sequence", "name"))
        self.assertEqual(found.column("label"), ("2 classes", "label", "name"))
        self.assertEqual(found.column("note")[1], "ignored")
        self.assertEqual(found.done["groups"], ["patient"])
        rows = [["a", f"t{i}", i % 2, "train" if i < 2 else "test"] for i in range(3)]
        path = self.csv("b.csv", ["user_id", "text", "label", "split_name"], rows)
        self.assertIn("--set task.split=split_name", self.refusal(path))
        found = self.read(path, split="split_name", ignore="user_id")
        self.assertEqual((found.done["groups"], found.sizes()), ([], [2, 0, 1]))
        self.assertEqual(self.read(path, split="split_name").done["groups"], ["user_id"])
        path = self.csv("c.csv", ["country_name", "text", "source", "label"], rows)
        self.assertEqual(self.read(path).done["groups"], [])

    def test_case_and_spaces_of_names_do_not_matter(self):
        found = self.read(self.write("a.csv", "Text, LABEL,Split\nx,0,train\ny,1,test\n"))
        self.assertEqual(found.sizes(), [1, 0, 1])
        twice = self.csv("b.csv", ["text", "Text", "label"], [["a", "b", 0]])
        self.assertIn("has columns 'text' and 'Text'; one", self.refusal(twice))

    def test_what_is_not_understood_is_asked_for_by_name(self):
        rows = [[i, "a", i % 2] for i in range(3)]
        self.assertIn(
            "--set task.ignore=name",
            self.refusal(self.csv("a.csv", ["x", "name", "label"], rows)).replace("NAME", "name"),
        )
        self.assertIn(
            "--set task.label=NAME", self.refusal(self.csv("b.csv", ["text", "tag"], [["a", 0]]))
        )
        self.assertIn(
            "--set task.split=fold",
            self.refusal(self.csv("c.csv", ["text", "label", "fold"], [["a", 0, 1]])),
        )
        self.assertIn(
            "--set task.split=part",
            self.refusal(self.csv("d.csv", ["text", "label", "part"], [["a", 0, "train"]])),
        )
        self.assertEqual(
            self.read(self.path / "c.csv", ignore="fold").column("fold")[1], "left out"
        )
        header = [f"f{i}" for i in range(12)]
        odd = self.csv(
            "e.csv", ["confidence", *header, "label"], [[7, *range(12), i % 2] for i in range(3)]
        )
        self.assertIn("would be positions of the sequence", self.refusal(odd))
        self.assertEqual(self.read(odd, ignore="confidence").done["longest"], 12)
        both = self.jsonl("f.jsonl", [{"text": "x", "tokens": [1], "label": 0}])
        self.assertIn("--set task.sequences=NAME", self.refusal(both))

    def test_an_index_is_no_position(self):
        for name in ("", "Unnamed: 0", "id"):
            path = self.csv(
                "a.csv", [name, "a", "b", "label"], [[i, 1, 2, i % 2] for i in range(3)]
            )
            self.assertEqual(self.read(path).column(name)[1], "id")
            self.assertEqual(self.read(path).done["longest"], 2)

    def test_a_later_column_that_would_be_read_is_refused(self):
        self.write("train.jsonl", '{"text": "a", "label": 0}\n{"text": "b", "label": 1}\n')
        late = self.jsonl("test.jsonl", [{"text": "x", "label": 1, "split": "test"}])
        self.assertIn("has the column 'split'", self.refusal(self.path / "train.jsonl", late))
        odd = self.jsonl("test.jsonl", [{"text": "x", "label": 1, "comment": "odd"}])
        self.assertEqual(self.read(self.path / "train.jsonl", odd).column("comment")[1], "ignored")

    def test_columns_of_several_files_are_matched_by_name(self):
        train = self.csv("train.csv", ["a", "b", "label"], [[i + 0.5, 2, i % 2] for i in range(4)])
        test = self.csv("test.csv", ["label", "b", "a"], [[1, 5, 6.5]])
        self.assertEqual(self.read(train, test).of("test"), [("1", [6.5, 5])])
        self.assertIn(
            "has no column 'b'",
            self.refusal(train, self.csv("test.csv", ["a", "g", "label"], [[1, 2, 0]])),
        )

    def test_padding_and_odd_ids_are_refused(self):
        rows = [{"x": [3, i, -100], "label": i % 2} for i in range(4)]
        self.assertIn("cut -100 from the ends", self.refusal(self.jsonl("a.jsonl", rows)))
        self.assertEqual(self.read(self.path / "a.jsonl", input="values").done["input"], "values")
        rows = [{"tokens": [3, -1, i], "label": i % 2} for i in range(4)]
        self.assertIn("row 1; a token is -1", self.refusal(self.jsonl("b.jsonl", rows)))
        rows = [{"input_ids": [3.0, i], "label": i % 2} for i in range(4)]
        self.assertIn("a token is 3.0", self.refusal(self.jsonl("c.jsonl", rows)))


class Arrays(Folder):
    def setUp(self):
        super().setUp()
        self.x = np.arange(60, dtype=np.float32).reshape(20, 3)
        self.y = np.arange(20) % 2
        self.rows = [(str(label), row) for label, row in zip(self.y, self.x.tolist(), strict=True)]

    def save(self, **arrays):
        np.savez(self.path / "a.npz", **arrays)
        return self.path / "a.npz"

    def test_names_of_splits_stand_before_or_after(self):
        for x, y in (
            ("{}_x", "{}_y"),
            ("x_{}", "y_{}"),
            ("X_{}", "y_{}"),
            ("{}X", "{}Y"),
            ("x{}", "y{}"),
            ("{}_images", "{}_labels"),
        ):
            names = {
                x.format("train"): self.x,
                y.format("train"): self.y,
                x.format("test"): self.x[:4],
                y.format("test"): self.y[:4],
            }
            found = self.read(self.save(**names))
            self.assertEqual(found.sizes(), [20, 0, 4], x)
            self.assertEqual(found.of("train"), self.rows)
        named = self.read(
            self.save(train_x=self.x, train_y=self.y, test_x=self.x, test_y=self.y),
            label="train_y",
            sequences="train_x",
        )
        self.assertEqual(named.sizes(), [20, 0, 20])

    def test_a_split_of_another_name_is_never_replaced_by_a_drawn_one(self):
        named = {"x_train": self.x, "y_train": self.y}
        for x, y in (("x_holdout", "y_holdout"), ("x_eval", "y_eval")):
            arrays = named | {x: self.x[:4], y: self.y[:4]}
            self.assertIn("names no split as others do", self.refusal(self.save(**arrays)))
        arrays = {"X1": self.x, "Y1": self.y, "X2": self.x[:4], "Y2": self.y[:4]}
        self.assertIn("names that tell splits", self.refusal(self.save(**arrays), label="Y1"))
        arrays = {"X_tr": self.x, "y_tr": self.y, "X_te": self.x[:4], "y_te": self.y[:4]}
        self.assertEqual(self.read(self.save(**arrays)).sizes(), [20, 0, 4])
        whole = named | {"x_test": self.x[:4], "y_test": self.y[:4], "classes": np.array(["a"])}
        found = self.read(self.save(**whole))
        self.assertEqual(found.done["ignored"][0][1], "names no split, as others do")

    def test_pictures_in_gray_are_positions_and_colors_come_last(self):
        gray = np.arange(20 * 64).reshape(20, 8, 8).astype(np.uint8)
        self.assertEqual(len(self.read(self.save(x=gray, y=self.y)).rows[0][2][0]), 64)
        floats = self.read(self.save(x=gray.astype(np.float32), y=self.y))
        self.assertEqual(floats.done["channels"], 8)
        colors = np.zeros((20, 3, 8, 8), np.uint8)
        self.assertIn("with the colors first", self.refusal(self.save(x=colors, y=self.y)))
        colors = np.zeros((20, 8, 8, 3), np.uint8)
        path = self.save(x=colors, y=self.y)
        self.assertIn("have 3 channels", self.refusal(path, input="tokens"))

    def test_arrays_that_cannot_be_examples_are_refused(self):
        for x, what in (
            (np.zeros((20, 0)), "has the shape [20, 0]"),
            (np.zeros((20, 3, 0)), "has the shape [20, 3, 0]"),
            (np.array([b"\xff"] * 20), "is not UTF-8"),
        ):
            self.assertIn(what, self.refusal(self.save(x=x, y=self.y)))
        found = self.read(self.save(x=self.x.astype(np.longdouble), y=self.y), input="values")
        self.assertEqual(len(found.rows), 20)

    def test_every_array_is_read_listed_or_refused(self):
        found = self.read(self.save(x=self.x, y=self.y, names=np.array(["a", "b"])))
        self.assertEqual(
            found.done["ignored"],
            [[f"{self.path}/a.npz array 'names'", "has 2 elements for 20 examples"]],
        )
        self.assertIn("has 19 elements", self.refusal(self.save(x=self.x, y=self.y[1:])))
        self.assertIn(
            "names no split as others do",
            self.refusal(self.save(x_train=self.x, y_train=self.y, mask=self.y)),
        )
        found = self.read(self.save(x_train=self.x, y_train=self.y, x_test=self.x))
        self.assertIn("has no labels", found.done["ignored"][0][1])

    def test_pairs_of_npy_files(self):
        np.save(self.path / "X_train.npy", self.x)
        np.save(self.path / "y_train.npy", self.y)
        found = self.read(self.path / "X_train.npy", self.path / "y_train.npy")
        self.assertEqual(found.of("train"), self.rows)
        self.assertEqual(self.read(self.path).of("train"), self.rows)

    def test_labels_as_a_column_and_one_hot(self):
        self.assertEqual(self.read(self.save(x=self.x, y=self.y[:, None])).of(""), self.rows)
        self.assertEqual(
            self.read(self.save(x=self.x, y=np.eye(2, dtype=int)[self.y])).of(""), self.rows
        )
        self.assertIn("several labels", self.refusal(self.save(x=self.x, y=np.ones((20, 2), int))))

    def test_types_orders_and_shapes(self):
        for kind in ("?", "u1", "<i2", ">i4", "<u8", "<f2", ">f8"):
            x = (self.x % 2).astype(kind)
            found = self.read(self.save(x=x, y=self.y))
            self.assertEqual([row for _, row in found.of("")], x.astype(float).tolist(), kind)
        self.assertEqual(
            self.read(self.save(x=np.asfortranarray(self.x), y=self.y)).of(""), self.rows
        )
        channels = self.x.reshape(20, 3, 1).repeat(2, 2)
        found = self.read(self.save(x=channels, y=self.y))
        self.assertEqual((found.done["longest"], found.done["channels"]), (3, 2))
        pictures = np.arange(20 * 12, dtype=np.uint8).reshape(20, 3, 4)
        found = self.read(self.save(images=pictures, labels=self.y))
        self.assertEqual(
            (found.done["longest"], found.done["channels"], found.done["input"]), (12, 1, "tokens")
        )
        colors = np.zeros((20, 3, 4, 3), np.uint8)
        found = self.read(self.save(images=colors, labels=self.y))
        self.assertEqual((found.done["longest"], found.done["channels"]), (12, 3))
        self.assertEqual(
            self.read(self.save(x=self.x, y=self.y, lengths=np.full(20, 2))).of("")[1],
            ("1", [3, 4]),
        )
        self.assertIn(
            "the length is 4; 0 to 3",
            self.refusal(self.save(x=self.x, y=self.y, lengths=np.full(20, 4))),
        )
        texts = self.read(self.save(text=np.array([f"é{i}" for i in range(20)]), y=self.y))
        self.assertEqual(texts.of("")[3], ("1", "é3"))
        wide = self.read(self.save(x=np.zeros((20, 2, 4096), np.float32), y=self.y))
        self.assertEqual(wide.done["channels"], 4096)
        self.assertIn(
            "at most 4,096",
            self.refusal(self.save(x=np.zeros((20, 2, 4097), np.float32), y=self.y)),
        )

    def test_objects_are_lists_and_texts_and_never_called(self):
        ragged = np.empty(20, object)
        ragged[:] = [list(range(1 + i % 3)) for i in range(20)]
        labels = self.y.astype(str).astype(object)
        found = self.read(self.save(x=ragged, y=labels))
        self.assertEqual(found.of("")[2], ("0", [0, 1, 2]))
        arrays = np.empty(20, object)
        arrays[:] = [np.arange(1 + i % 3) / 2 for i in range(20)]
        self.assertEqual(self.read(self.save(x=arrays, y=self.y)).of("")[2], ("0", [0, 0.5, 1]))

        class Evil:
            def __reduce__(self):
                return os.mkdir, (str(pathlib.Path(tempfile.gettempdir()) / "lra-evil"),)

        evil = np.empty(20, object)
        evil[:] = [Evil()] * 20
        self.assertIn("JSON Lines", self.refusal(self.save(x=evil, y=self.y)))
        self.assertFalse((pathlib.Path(tempfile.gettempdir()) / "lra-evil").exists())

    def test_damaged_archives_are_refused(self):
        path = self.save(x=self.x, y=self.y)
        content = path.read_bytes()
        path.write_bytes(content[:200])
        self.assertIn("is not an .npz file", self.refusal(path))
        np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(20, 99)), y=self.y)
        content = bytearray(path.read_bytes())
        content[5000] ^= 255
        path.write_bytes(content)
        self.assertIn("is damaged", self.refusal(path))

    def test_idx_files(self):
        images = np.arange(20 * 12, dtype=np.uint8).reshape(20, 3, 4)
        for name, rows in (
            ("train-images-idx3-ubyte", images),
            ("train-labels-idx1-ubyte", self.y.astype(np.uint8)),
            ("t10k-images-idx3-ubyte", images[:5]),
            ("t10k-labels-idx1-ubyte", self.y[:5].astype(np.uint8)),
        ):
            head = struct.pack(f">HBB{rows.ndim}I", 0, 8, rows.ndim, *rows.shape)
            self.write(name + ".gz", gzip.compress(head + rows.tobytes()))
        found = self.read(self.path)
        self.assertEqual(found.sizes(), [20, 0, 5])
        self.assertEqual(found.of("test")[1], ("1", images[1].ravel().tolist()))


class Layouts(Folder):
    def table(self, name, rows):
        self.csv(name, ["text", "label"], [list(row.values()) for row in rows])

    def test_the_clone_of_a_hub(self):
        self.write("README.md", "---\n")
        self.write(".gitattributes", "")
        (self.path / "data").mkdir()
        for split in ("train", "test"):
            parquet.write_table(
                pa.Table.from_pylist(TEXTS), self.path / f"data/{split}-00000-of-00001.parquet"
            )
        found = self.read(self.path)
        self.assertEqual(found.sizes(), [30, 0, 30])
        self.assertEqual(found.done["ignored"], [[f"{self.path}/README.md", "describes the data"]])

    def test_a_missing_shard_is_named(self):
        self.table("train-00000-of-00002.csv", TEXTS)
        self.assertIn("only 1 of the 2 files are there", self.refusal(self.path))

    def test_folders_of_save_to_disk(self):
        self.write("dataset_dict.json", '{"splits": ["train", "test"]}')
        for split in ("train", "test"):
            (self.path / split).mkdir()
            self.write(f"{split}/state.json", "{}")
            table = pa.Table.from_pylist(TEXTS)
            with (
                pa.OSFile(str(self.path / split / "data-00000-of-00001.arrow"), "wb") as file,
                pa.ipc.new_stream(file, table.schema) as writer,
            ):
                writer.write_table(table)
        self.assertEqual(self.read(self.path).sizes(), [30, 0, 30])

    def test_several_data_sets_are_asked_for(self):
        for name in ("a", "b"):
            self.table(f"{name}/train.csv", TEXTS)
        self.assertIn("holds several data sets: 'a' and 'b'", self.refusal(self.path))

    def test_a_test_without_labels_is_left_out(self):
        self.csv(
            "train.csv",
            ["id", "text", "target"],
            [[i, t["text"], i % 2] for i, t in enumerate(TEXTS)],
        )
        self.csv("test.csv", ["id", "text"], [[i, t["text"]] for i, t in enumerate(TEXTS)])
        self.csv("sample_submission.csv", ["id", "target"], [[i, 0] for i in range(3)])
        found = self.read(self.path)
        self.assertEqual(found.sizes(), [30, 0, 0])
        ignored = dict(found.done["ignored"])
        self.assertIn("has no labels", ignored[f"{self.path}/test.csv"])
        self.assertIn("has no column 'text'", ignored[f"{self.path}/sample_submission.csv"])
        glue = self.csv("dev.csv", ["id", "text", "target"], [[0, "a", -1], [1, "b", -1]])
        self.assertIn(
            "has no labels", dict(self.read(self.path / "train.csv", glue).done["ignored"])[glue]
        )

    def test_a_folder_for_each_class(self):
        for split, count in (("train", 6), ("test", 2)):
            for label in ("neg", "pos"):
                for i in range(count):
                    self.write(f"{split}/{label}/{i}.txt", f"{label} {i}\r\n")
        found = self.read(self.path)
        self.assertEqual(found.sizes(), [12, 0, 4])
        self.assertEqual(found.of("test")[0], ("neg", "neg 0\n"))

    def test_pictures_in_folders_and_columns(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("no Pillow")
        pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, "PNG")
        for label in ("a", "b"):
            self.write(f"classes/{label}/0.png", content.getvalue())
        found = self.read(self.path / "classes")
        self.assertEqual(
            found.of(""), [("a", pixels.ravel().tolist()), ("b", pixels.ravel().tolist())]
        )
        self.assertEqual(found.done["input"], "tokens")
        column = [{"bytes": content.getvalue(), "path": None}] * 2
        parquet.write_table(pa.table({"image": column, "label": [0, 1]}), self.path / "a.parquet")
        self.assertEqual(
            self.read(self.path / "a.parquet").of("")[0], ("0", pixels.ravel().tolist())
        )
        colors = io.BytesIO()
        Image.fromarray(np.stack([pixels] * 3, 2)).save(colors, "PNG")
        for label in ("a", "b"):
            self.write(f"colors/{label}/0.png", colors.getvalue())
        found = self.read(self.path / "colors")
        self.assertEqual((found.done["channels"], found.done["longest"]), (3, 12))
        small = io.BytesIO()
        Image.fromarray(pixels[:2]).save(small, "PNG")
        self.write("classes/b/1.png", small.getvalue())
        self.assertIn("classes/b/1.png; is a picture of 2 x 4 pixels; 3 x 4, as the first one",
                      self.refusal(self.path / "classes"))
        webp = io.BytesIO()
        Image.fromarray(np.stack([pixels] * 3, 2)).save(webp, "WEBP", lossless=True)
        for label in ("a", "b"):  # begins with RIFF, as recordings do
            self.write(f"webp/{label}/0.webp", webp.getvalue())
        self.assertEqual(self.read(self.path / "webp").done["channels"], 3)
        parquet.write_table(
            pa.table({"image": [{"bytes": b"\x89PNG", "path": None}], "label": [0]}),
            self.path / "b.parquet",
        )
        self.assertIn("cannot be decoded as a picture", self.refusal(self.path / "b.parquet"))

    def test_recordings(self):
        for label in ("a", "b"):
            (self.path / label).mkdir()
            for i in range(2):
                with wave.open(str(self.path / label / f"{i}.wav"), "wb") as file:
                    file.setparams((1, 2, 8000, 0, "NONE", ""))
                    file.writeframes(np.array([0, 16384, -16384] * (i + 1), "<i2").tobytes())
        try:
            import soundfile  # noqa: F401
        except ImportError:
            self.assertIn("-m pip install soundfile", self.refusal(self.path))
            return
        found = self.read(self.path)
        self.assertEqual(found.of("")[1], ("a", [0, 0.5, -0.5, 0, 0.5, -0.5]))
        soundfile.write(self.path / "b/2.wav", np.array([0.5, 0.25]), 8000, endian="BIG")
        self.assertEqual(self.read(self.path).of("")[-1], ("b", [0.5, 0.25]))

    def test_a_table_in_two_formats(self):
        self.write("D/D_TRAIN.ts", "")
        self.write("D/D_TRAIN.arff", "")
        said = self.refusal(self.path / "D")
        self.assertIn("D_TRAIN.ts; holds the same as 'D_TRAIN.arff', by its name", said)
        self.assertIn("name the files of one format", said)

    def test_series_of_the_archives(self):
        header = "#comment\n@problemName D\n@univariate true\n@classLabel true 1 2\n@data\n"
        train = self.write(
            "D_TRAIN.ts", header + "".join(f"{i}.5,2,?:{1 + i % 2}\n" for i in range(6))
        )
        test = self.write("D_TEST.ts", header + "1,2,3:1\n")
        found = self.read(train, test)
        self.assertEqual(found.sizes(), [6, 0, 1])
        self.assertEqual(found.of("train")[1], ("2", [1.5, 2]))
        two = self.write("E.ts", header + "1,2,3:4,5,6.5:1\n7,8:9,10:2\n")
        self.assertEqual(self.read(two).of(""), [("1", [1, 4, 2, 5, 3, 6.5]), ("2", [7, 9, 8, 10])])
        stamps = self.write("F.ts", "@timeStamps true\n@classLabel true a\n@data\n(0,1):a\n")
        self.assertIn("time stamps", self.refusal(stamps))
        tsv = self.write("G_TRAIN.tsv", "1\t0.5\t1.5\n2\t1\tNaN\n")
        test = self.write("G_TEST.tsv", "2\t3\t4\n")
        self.assertEqual(self.read(tsv, test).of("train"), [("1", [0.5, 1.5]), ("2", [1])])
        txt = self.write("H_TRAIN.txt", "  1.0000000e+00  5.0e-01 2\n  2.0000000e+00  1 3\n")
        found = self.read(txt, self.write("H_TEST.txt", "1 2 3\n"))
        self.assertEqual(found.of("train"), [("1", [0.5, 2]), ("2", [1, 3])])

    def test_arff(self):
        path = self.write(
            "D_TRAIN.arff",
            "@relation D\n@attribute a numeric\n@attribute b numeric\n@attribute target {1,2}\n@data\n1,2.5,1\n3,4,2\n",
        )
        try:
            import scipy.io  # noqa: F401
        except ImportError:
            self.assertIn("-m pip install scipy", self.refusal(path))
            return
        self.assertEqual(self.read(path).of(""), [("1", [1, 2.5]), ("2", [3, 4])])

    def test_labels_of_fasttext(self):
        path = self.write("a.txt", "__label__pos a fine film\n__label__neg a bad one\n")
        self.assertEqual(self.read(path).of(""), [("pos", "a fine film"), ("neg", "a bad one")])
        self.assertIn(
            "one __label__", self.refusal(self.write("b.txt", "__label__a __label__b x\n"))
        )

    def test_unknown_endings_say_what_the_bytes_are(self):
        for content, kind in (
            (b"PAR1xx", "Parquet"),
            (pickle.dumps([1]), "a pickle"),
            (b"\x89HDF", "HDF5"),
            (b"a,b\n", "text"),
            (b"SQLite format 3", "SQLite"),
        ):
            self.assertIn(f"its bytes are {kind}", self.refusal(self.write("a.dat", content)))
        self.write("only/a.h5", b"\x89HDF")
        self.assertIn("the bytes of 'a.h5' are HDF5", self.refusal(self.path / "only"))
        self.assertIn("does not exist", self.refusal(self.path / "none.csv"))

    def test_a_folder_of_another_name_than_a_split_is_refused(self):
        for split in ("train", "holdout"):
            for label in "ab":
                self.write(f"c/{split}/{label}/1.txt", b"some text")
        self.assertIn("its name says none", self.refusal(self.path / "c"))

    def test_json_that_no_column_can_hold_is_refused(self):
        for line, what in (
            ('{"text": "a \\ud800", "label": 1}', "is not UTF-8"),
            ('{"text": %s, "label": 1}' % ("[" * 2000 + "]" * 2000), "nested"),  # what of it depends on Python
            ('{"text": "a", "label": {"b": 1}}', "the label is of the type struct"),
        ):
            self.assertIn(what, self.refusal(self.write("a.jsonl", (line + "\n").encode() * 3)))

    def test_files_that_do_not_say_their_split(self):
        self.table("train.csv", TEXTS)
        self.table("b.csv", TEXTS)
        self.assertIn(
            "does not say which split it is",
            self.refusal(self.path / "train.csv", self.path / "b.csv"),
        )


class Pickles(unittest.TestCase):
    """Batches of CIFAR-10, as Python 2 and 3 pickle them."""

    def setUp(self):
        self.colors = np.arange(2 * 3072).astype(np.uint8).reshape(2, 3072)
        self.batch = {"batch_label": "testing batch", "labels": [3, 7], "data": self.colors}

    def expect_same(self, content):
        done, data = cifar_batch(content, "p")
        self.assertEqual((done["labels"], done["batch_label"]), ([3, 7], "testing batch"))
        self.assertEqual(data, self.colors.tobytes())

    def refusal(self, content):
        with self.assertRaises(ReadError) as caught:
            cifar_batch(content, "p")
        return "; ".join(caught.exception.parts.values())

    def test_every_protocol_and_kind_of_keys(self):
        keyed = {key.encode(): value for key, value in self.batch.items()}
        for protocol in (2, 3, 4, 5):
            for batch in (self.batch, keyed):
                content = pickle.dumps(batch, protocol)
                self.expect_same(content)
                if protocol == 2:  # as NumPy 1 writes it
                    self.expect_same(content.replace(b"numpy._core", b"numpy.core"))
        self.expect_same(
            b"\x80\x02}(U\x0bbatch_labelU\x0dtesting batchU\x06labels](K\x03K\x07eU\x04data"
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
            b"K\x02M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xff"
            b"J\xff\xff\xff\xffK\x00tb\x89T\x00\x18\x00\x00" + self.colors.tobytes() + b"tbu."
        )
        meta, data = cifar_batch(pickle.dumps({"label_names": ["cat", "dog"]}), "p")
        self.assertEqual((meta["label_names"], data), (["cat", "dog"], b""))

    def test_others_are_refused_by_what_they_are(self):
        for change, message in (
            ({"labels": [3]}, "has 1 labels for 2 images"),
            ({"labels": [3, 10]}, "label 1 is 10; 0 to 9"),
            ({"labels": [3, None]}, "label 1 is None; 0 to 9"),
            (
                {"data": self.colors.astype(np.float32)},
                "data is float32 [2, 3072]; uint8 [N, 3072]",
            ),
            ({"data": self.colors[:, :10]}, "data is uint8 [2, 10]"),
            ({"data": [1, 2]}, "data is <class 'list'>"),
        ):
            self.assertIn(message, self.refusal(pickle.dumps({**self.batch, **change})))
        self.assertIn("has no data", self.refusal(pickle.dumps({"labels": [1]})))
        self.assertIn("holds int", self.refusal(pickle.dumps(1)))

    def test_nothing_that_a_pickle_names_is_run(self):
        for call in (
            b"cos\nsystem\n",
            b"cposix\nsystem\n",
            b"c__builtin__\neval\n",
            b"cnumpy\nload\n",
        ):
            content = b"\x80\x02" + call + b"U\x04trueq\x00\x85R."
            self.assertIn("which is not NumPy's array or a plain value", self.refusal(content))

    def test_damage_anywhere_is_survived(self):
        good = pickle.dumps(self.batch, 2)
        before = resource.getrlimit(resource.RLIMIT_AS)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_AS, before)
        limit_memory()
        for i in [*range(0, 200), *range(len(good) - 60, len(good))]:
            for change in (0x01, 0x20, 0xFF):
                content = bytearray(good)
                content[i] ^= change
                for damaged in (bytes(content), good[:i]):
                    try:
                        cifar_batch(damaged, "p")
                    except ReadError as error:
                        self.assertNotIn("\n", str(error))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
