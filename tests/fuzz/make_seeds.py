#!/usr/bin/env python3
"""Writes small inputs of every kind into corpus/TARGET, for fuzzing to begin with.

    tests/fuzz/make_seeds.py [FOLDER]

The files it writes are named seed_*; inputs that once failed stand beside them under other names.
The same call gives the same bytes.
"""
import bz2
import gzip
import io
import json
import lzma
import pathlib
import struct
import sys
import tarfile
import types
import unittest.mock
import zlib

HASH = "0123456789abcdef0123456789abcdef"


def listops_tsv():
    header = "Source\tTarget\r\n"
    return [
        header + "( ( ( [MAX 4 ) 7 ) ] )\t7\r\n",
        header + "[MIN 4 7 ]\t4\n[MED 1 5 9 ]\t5\n[SM 9 9 ]\t8\n",
        '"Source"\t"Target"\n"[MAX 2 [MIN 8 3 X X"\t"3"\n',
        header + "( ( ( [FIRST 4 ) 7 ) ] )\t4\r\n",
    ]


def pairs_tsv():
    five = "0.0\ta\tb\ttext one\ttext two\r\n1\tc\td\t\t'\n"
    return ["\x0d" + five, "\xfd" + five * 3, "\x00" + "1.0\tc\td\n0\te\tf", "\x02" + "1\tc\t" + "d" * 50]


def cifar_record(label):
    return bytes([label]) + bytes((label * 20 + i * 7) % 256 for i in range(3072))


def cifar_binary():
    return [cifar_record(3), cifar_record(9) + cifar_record(0), b"", cifar_record(10)]


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_file(width, height, depth, colour, rows, extra=b"", interlace=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
        + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    )


def png():
    palette = png_chunk(b"PLTE", bytes(range(12)))
    return [
        png_file(3, 2, 8, 0, b"\0\1\2\3\1\4\5\6"),
        png_file(5, 2, 1, 0, b"\0\xa0\2\x50"),
        png_file(2, 2, 8, 2, b"\0" + bytes(6) + b"\4" + bytes(range(6))),
        png_file(4, 1, 2, 3, b"\0\x1b", palette),
        png_file(2, 2, 8, 0, b"\0\1\0\2\0\3\4", interlace=1),
        png_file(1, 1, 16, 0, b"\0\1\2"),
        png_file(1, 1, 8, 6, b"\0\1\2\3\4"),
        png_file(1, 1, 8, 0, b"\0\1", png_chunk(b"tRNS", b"\0\1")),
        png_file(65, 1, 8, 0, b"\0" + bytes(65)),
    ]


PATHFINDER_LINE = "imgs/0 sample_0.png 0 1 1.8 6 2.0 5 1.5 4 1"


def pathfinder_text():
    second = PATHFINDER_LINE.replace("_0", "_1").replace(" 0 1 ", " 1 0 ")
    return [PATHFINDER_LINE + "\n" + second + "\n", PATHFINDER_LINE, "imgs/0 ../x 0 1 1 1 1 1 1 1 1\n",
            PATHFINDER_LINE + "9" * 400, PATHFINDER_LINE.replace(" 1 1.8", " 2 1.8")]


def pathfinder_npy():
    fields = PATHFINDER_LINE.split(" ")

    def table(version, descr, cells, rows=1):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, 11), }}   \n"
        return bytes([version]) + header.encode() + cells

    narrow = b"".join(f.encode().ljust(14, b"\0") for f in fields)
    wide = b"".join(f.encode("utf-32-le").ljust(56, b"\0") for f in fields)
    return [table(1, "|S14", narrow), table(2, "<U14", wide), table(3, "|S14", narrow * 2, 2),
            table(1, "|S14", narrow.replace(b"i", b" ", 1)), b"\x09\x01\x00\x10\x00{'descr': "]


def tar():
    def archive(items, form):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as file:
            for name, content, kind, target in items:
                info = tarfile.TarInfo(name)
                info.size, info.type, info.linkname = len(content), kind, target
                file.addfile(info, io.BytesIO(content))
        return out.getvalue()[:-8192]  # without most of the padding

    plain = [("aclImdb/train/neg/0_3.txt", b"bad", tarfile.REGTYPE, ""), ("folder", b"", tarfile.DIRTYPE, "")]
    tars = [archive(plain, form) for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT)]
    tars.append(archive([("long/" * 30 + "name", b"x", tarfile.REGTYPE, "")], tarfile.PAX_FORMAT))
    tars.append(archive([("long/" * 30 + "name", b"x", tarfile.REGTYPE, "")], tarfile.GNU_FORMAT))
    for name, kind, target in (("a", tarfile.SYMTYPE, "/etc"), ("a", tarfile.LNKTYPE, "b"), ("a", tarfile.FIFOTYPE, ""),
                               ("../a", tarfile.REGTYPE, ""), ("/a", tarfile.REGTYPE, "")):
        tars.append(archive([(name, b"", kind, target)], tarfile.USTAR_FORMAT))
    tars.append(archive([(f"f{i}", b"", tarfile.REGTYPE, "") for i in range(7)], tarfile.USTAR_FORMAT))
    tars.append(archive([("ab", bytes(70000), tarfile.REGTYPE, "")], tarfile.USTAR_FORMAT)[:2048])
    tars.append(archive([("ab", bytes(6000), tarfile.REGTYPE, "")], tarfile.USTAR_FORMAT)[:2048])
    packed = [gzip.compress(tars[0], mtime=0), bz2.compress(tars[0]), lzma.compress(tars[0])]
    return tars + packed + [packed[0][:60], b"no archive"]


def own_frames():
    def frame(kind, lengths, elements, splits=None, labels=None, groups=(), channels=1, towers=1):
        count = len(lengths) // towers
        labels = labels or list(range(count))
        head = struct.pack("<8s6I", b"LRAROWS1", count, towers, kind, channels, len(groups), 0)
        table = struct.pack(f"<{count}i", *labels) + bytes(splits or [1] * count)
        table += b"".join(struct.pack(f"<{count}Q", *group) for group in groups)
        return head + table + struct.pack(f"<{len(lengths)}I", *lengths) + elements

    text = frame(0, [1, 2], b"abc")
    floats = frame(4, [1, 2], struct.pack("<6f", *range(6)), splits=[0, 3], groups=[(5, 6)], channels=2)
    pairs = frame(2, [1, 1, 2, 0], bytes(8), towers=2)
    return [text, floats, pairs, text + floats, frame(5, [1], bytes(8)), frame(1, [], b""), text[:-1], text[:40], b"x" * 32,
            frame(0, [1], b"a", splits=[4]), frame(0, [1], b"a", labels=[-1]), frame(6, [1], b"a"),
            frame(0, [1 << 31], b"a"), text.replace(struct.pack("<I", 2), struct.pack("<I", 1 << 30), 1)]


def shard():
    def one(choice, examples, towers, width, tokens, labels=None, version=2):
        unit = 8 if version == 1 else 64
        sequences = examples * towers
        per = tokens // max(1, sequences)
        offsets = [i * per for i in range(sequences)] + [tokens]
        labels = labels if labels is not None else list(range(examples))
        body = struct.pack("<8sIIQQQQQQ", b"LRASHARD", version, width, examples, sequences, tokens, 0, 0, 0)
        body += struct.pack(f"<{examples}i", *labels)
        body += bytes(-len(body) % unit) + struct.pack(f"<{sequences + 1}Q", *offsets)
        return bytes([choice]) + body + bytes(-len(body) % unit) + bytes(range(tokens * width))

    good = one(0, 2, 1, 1, 10)
    return [one(0, 2, 1, 1, 10, version=1), one(0, 2, 1, 1, 10, version=3), good[:150] + b"x" + good[151:], good, one(3, 3, 2, 2, 12), one(0, 0, 1, 1, 0), one(0, 1, 1, 1, 3, [-1]), one(32, 1, 1, 1, 3),
            good[:-1], good[:40], one(0, 2, 1, 1, 10).replace(b"LRASHARD", b"LRASHART"),
            good.replace(struct.pack("<Q", 5), struct.pack("<Q", 50), 1)]


def manifest():
    shard_info = {"file": "train-0.shard", "num_examples": 2, "num_tokens": 10, "num_bytes": 106, "xxh3": HASH}
    whole = {
        "schema": 2, "task": "text", "task_version": 1, "source": "imported", "source_hash": HASH, "num_towers": 1,
        "token_bytes": 1, "token_offset": 1, "settings": {"seed": "1"},
        "splits": {"test": [dict(shard_info, file="test-0.shard")], "train": [shard_info]},
        "side_files": {"names.txt": {"num_bytes": 5, "xxh3": HASH}}, "notes": ["sample 17 drawn again"],
    }
    changes = [{}, {"schema": 1}, {"source": "x"}, {"num_towers": 3}, {"task_version": -1}, {"splits": {"dev": []}},
               {"side_files": {".x": {}}}, {"splits": {"val": [dict(shard_info, file="../x")]}},
               {"splits": {"val": [dict(shard_info, xxh3="x")]}}, {"more": 1}, {"settings": {"a": 1}}]
    # The target adds the hash and closes the object.
    return [json.dumps(dict(whole, **change), indent=2)[:-len("\n}")] for change in changes]


def safetensors():
    def header(shape, offsets, dtype="F32", **more):
        return dict({"dtype": dtype, "shape": shape, "data_offsets": offsets}, **more)

    def joined(entries, size):
        return json.dumps(entries).encode() + b"\0" + bytes(size)

    good = {"__metadata__": {"step": "5"}, "a": header([2, 3], [0, 24]), "b": header([], [24, 26], "BF16"),
            "c": header([0, 5], [26, 26], "I64")}
    text = json.dumps({"a": header([1], [0, 4])}).encode()
    text += b" " * (-len(text) % 8)
    return [
        joined(good, 26), struct.pack("<Q", len(text)) + text + bytes(4),
        joined({"a": header([2], [0, 8]), "b": header([2], [4, 12])}, 12),
        joined({"a": header([2], [4, 12])}, 12), joined({"a": header([2], [0, 8])}, 4),
        joined({"a": header([1 << 40, 1 << 40], [0, 8])}, 8), joined({"a": header([-1], [0, 8])}, 8),
        joined({"a": header([2], [8, 0])}, 8), joined({"a": header([2], [0, 8, 9])}, 8),
        joined({"a": header([2], [0, 8], "F31")}, 8), joined({"a": header([1 << 63], [0, 8])}, 8),
        joined({"a": header([2], [0, 4])}, 8), joined({"a": header([1] * 65, [0, 4])}, 4),
        joined({"__metadata__": {"a": 1}}, 0), joined({"a": header([1], [0, 4], x=1)}, 4),
        b"\xff" * 16, struct.pack("<Q", 3) + b"{} ", struct.pack("<Q", 8) + b" {}     ",
    ]


def toml():
    return [
        'flag = true\nsteps = 10\nrate = 0.5\nkind = "b"\n',
        "steps = 0\n", "kind = 'c'\n", "rate = 1\n", "rate = nan\n", "step = 1\n", "flag = 1\n", "steps = 1.5\n",
        "rate = '1'\n", "kind = 5\n",
        '[train]\nsteps = 1_000\n"odd key" = [1, 2.5, "x", {a = 1, "b c" = inf}]\n[train.deep]\nx = -1e300\n',
        "a.b.c = 1\na.b.d = '''\nline\n'''\n[[list]]\nx = 0x1F\n[[list]]\n", "day = 1979-05-27\n", "a = [1, ",
        'text = "\\u00e9\\n\\t\\\\ \\""\n',
    ]


def config_override():
    lines = ["train.steps=100", "train.rate=1e-3", "model.name=plain word", "a.b.c=[1, 'x']", "flag=true",
             "t={x = 1}", "file=/tmp/a b", "n=-5", "q=\"x\"", "empty="]
    return ["\x1e".join(lines), "train=5", "a=1\x1ea.b=2", "=", "a", "v=1\nx=2", "odd key=1"]


def json_text():
    return ['{"a": [1, -2, 2.5e10, "x\\u00e9\\n", true, null], "b": {"c": {}}, "d": "nan", "e": ["x", "y"]}',
            '{"a": 1, "a": 2}', "[" * 20 + "]" * 20, "18446744073709551615", "-9223372036854775808", "1e999",
            '["\\ud800"]', json.dumps({str(i): i for i in range(50)}), '{"inf": "inf", "low": "-inf", "n": -0.0}',
            "\xff", "", '{"a": tru']


def run_record():
    evaluation = {"step": 5, "loss": 1.5, "accuracy": 0.5, "num_examples": 10}
    measurement = {"mode": "train", "dtype": "F32", "length": 5, "batch": 1, "steps_per_s": 1.5, "tokens_per_s": 10.0,
                   "slowest_steps_per_s": 1.0, "fastest_steps_per_s": 2.0, "windows": 3, "peak_resident_bytes": 9,
                   "peak_tensor_bytes": 8, "model_flops": 7, "gemm_flops_per_s": 6.5}
    whole = RECORD | {"train": evaluation, "val_curve": [evaluation], "measurements": [measurement],
                      "baselines": {"majority": 0.1}, "config": {"model": {"layers": 2, "kind": "x", "l": [1, 2.5]}}}
    changes = [{}, {"schema": 2}, {"status": "odd"}, {"kind": "x"}, {"train": dict(evaluation, accuracy=2)},
               {"train_seconds": -1}, {"more": 1}, {"config": {"a": None}}, {"seed": -1}, {"test": None}]
    return [json.dumps(whole | change) for change in changes]


def analysis_record():
    run = {key: RECORD[key] for key in ("schema", "task", "task_title", "task_version", "model", "model_title",
                                        "preset", "seed", "config_hash", "data_hash", "fingerprint")}
    about = run | {"checkpoint": "last", "step": 5, "split": "val", "num_examples": 10,
                   "choices": {"CLS": "left out"}}
    figures = {"mean": 1.5, "deviation": 0.5, "uniform": 3, "layers": [1.5], "heads": [[1, 2.0]]}
    evaluation = {"step": 5, "loss": 1.5, "accuracy": 0.5, "num_examples": 10}
    results = {
        "span": {"tokens": figures, "with_cls": figures, "pixels": figures, "mean_length": 10,
                 "least_row_sum": 0.9, "largest_row_sum": 1},
        "generalization": {"train": evaluation, "test": evaluation, "gap": 0.1, "gap_error": 0.01},
        "convergence": {"eval_every": 5, "thresholds": [{"accuracy": 0.3, "step": 5, "seconds": 1.5},
                                                        {"accuracy": 0.4}], "best": evaluation, "last_step": 5},
        "rollout": {"examples": [{"index": 1, "label": 0, "prediction": 1, "picture": "a.png", "cls_weight": 0.5,
                                  "entropy": 0.5, "top": [{"position": 3, "text": "x", "weight": 0.5}]}]},
        "embeddings": {"vocabulary": 4, "positions": 5, "width": 6, "matrices": "m", "token_picture": "t",
                       "position_picture": "p", "token_min": 0, "position_min": -0.5, "by_intensity": [],
                       "by_distance": [0.5], "vertical": [], "horizontal": []},
        "controls": {"scores": [{"change": "none", "value": "", "score": evaluation, "refused": ""},
                                {"change": "length", "value": "9", "refused": "too long"}],
                     "baselines": {"majority": 0.5}},
        "transfer": {"task": "pathx", "task_title": "Path-X", "task_version": 1, "data_hash": HASH,
                     "scores": [{"change": "positions", "value": "stretched", "score": evaluation,
                                 "refused": ""}]}}
    whole = [about | {"kind": kind, kind: result, "provenance": RECORD["provenance"]}
             for kind, result in results.items()]
    changes = [{"schema": 2}, {"kind": "rollout"}, {"span": None}, {"more": 1}, {"choices": {"a": 1}},
               {"span": results["span"] | {"tokens": figures | {"heads": [1]}}},
               {"span": results["span"] | {"tokens": figures | {"mean": "nan"}}}]
    return [json.dumps(record) for record in whole + [whole[0] | change for change in changes]]


RECORD = {
    "schema": 1, "kind": "train", "status": "done", "failure": "", "task": "text", "task_title": "Text",
    "task_version": 1, "model": "local", "model_title": "Local", "preset": "small", "seed": 1, "validation": "own",
    "checkpoint": "best", "data_source": "generated", "data_hash": HASH, "config_hash": HASH, "weights_hash": HASH,
    "fingerprint": HASH, "num_parameters": 10, "base_parameters": 10, "division": "apples-to-apples",
    "division_reason": "", "published_setting": True, "steps": 5, "planned_steps": 5, "preset_steps": 5,
    "test_split_examples": 5, "examples": 5, "tokens": 5, "train_seconds": 1.5, "total_seconds": 2.5, "train_tokens_per_s": 3.5,
    "peak_resident_bytes": 1000, "train": None, "val": None, "test": None, "best_val": None, "val_curve": [],
    "measurements": [], "baselines": {}, "config": {},
    "provenance": {"lra_version": "0.1.0", "git_revision": "unknown", "git_dirty": "", "compiler": "g++",
                   "torch_version": "", "processor": "x", "isa": "avx512", "device": "cpu", "threads": 1,
                   "kernels": {"attention": "avx512"}, "host_os": "Linux", "started_utc": "", "finished_utc": "",
                   "command": ["lra", "train"]},
}


def metrics_lines():
    lines = '{"step": 1, "kind": "train"}\n{"step": 200}\nbroken\n{"step": "x"}\n{"step": 2}\n{"st'
    return ["\x05" + lines, "\xff" + lines]


def review_names():
    return ["train/neg/0_3.txt\ntest/pos/12499_10.txt\n", "aclImdb/train/pos/01_3.txt\nx/neg/1_1.txt\n1_1.txt\n",
            "train/neg/999999999_1.txt\ntrain/neg/1234567890_1.txt\ntrain/neg/1.txt"]


def terminal_text():
    return ["plain", "caf\u00e9 \u6f22\u5b57 e\u0301 \U0001f600", "a\tb\nc\x1b[31m\x7f", b"\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80 \xc2\x9b", "\u200b\u202e\ufeff"]


def event_file():
    return ["\x05train/loss\0some text", "\x00\0", "\xfftag\0" + "long " * 60,
            "\x01val/accuracy\0model.depth\0\x012\0task\0\x00listops\0trim\0\x02\0", "\x02\0" + "n\0\x01\0" * 40]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus")
    makers = [listops_tsv, pairs_tsv, cifar_binary, png, pathfinder_text, pathfinder_npy, tar, shard, own_frames,
              manifest, safetensors, toml, config_override, json_text, run_record, analysis_record, metrics_lines, review_names,
              terminal_text, event_file]
    for maker in makers:
        folder = root / {"json_text": "json"}.get(maker.__name__, maker.__name__)
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(maker()):
            if isinstance(content, str):
                code = "utf-8" if maker is terminal_text else "latin-1"
                content = content.encode(code)
            (folder / f"seed_{number:02}").write_bytes(content)


if __name__ == "__main__":
    main()
