"""Mutated safetensors files: is our verdict that of the official package, or stricter for a known reason?

    LRA_PROGRAM=build/lra python3 tests/faults/safetensors_mutations.py [--quick] [--build FOLDER]

Files of several shapes and types are changed by bytes (flips, cuts, insertions) and by meaning (types,
shapes, offsets, repeated and unknown keys, odd JSON). What both accept must hold the same tensors and
metadata. What the official reader refuses and ours accepts is a fault; what only ours refuses must be one
of the reasons below. --quick tries 500 and records nothing; the full form tries 5,000 and writes
docs/results/scorecard/19-safetensors.json.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from shared import result
from shared.tiny_run import BUILD, report

try:
    import safetensors
except ImportError:
    print("skipped: no safetensors package")
    sys.exit(77)

# Files that our reader refuses and the official one accepts, by our message.
STRICTER = {
    "the header's length is no multiple of 8": r"a header of \d+ bytes; expected a multiple of 8",
    "white space before the first brace": r"expected '{' at byte 8",
    "a key appears twice": r"appears twice",
    "an unknown field of a tensor": r"unknown field",
    "a type that we do not read": r"\.dtype' is '(U16|U32|U64|C64|F4|F6_E2M3|F6_E3M2|F8_E5M2|F8_E4M3|F8_E8M0)'",
    "metadata that is null": r"__metadata__' is null",
    "more than 64 dimensions": r"is too long; expected at most 64",
    "sizes whose product overflows before a zero": r"overflows",
}
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
OTHER_TYPES = ["U16", "U32", "U64", "F8_E5M2", "F8_E4M3", "F8_E8M0", "C64", "F4", "f32", "F31", "", "F32 "]


def base_file(chance):
    """Header (names to entries, in order) and data of a good file."""
    header, data, shapes = {}, b"", ([], [3], [2, 3], [0], [2, 0, 4], [1, 1, 1, 2], [5, 7])
    if chance.random() < 0.6:
        header["__metadata__"] = {"format": "pt", "käse": "\"{}\n"}
    for i in range(chance.randrange(0, 6)):
        dtype, shape, count = chance.choice(list(SIZES)), chance.choice(shapes), 1
        for size in shape:
            count *= size
        begin, data = len(data), data + chance.randbytes(count * SIZES[dtype])
        header[chance.choice(["a", "b.weight", "ö", "with space", "x" * 40]) + str(i)] = {
            "dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    if chance.random() < 0.3:  # a reader may not rely on the order of the header
        items = list(header.items())
        chance.shuffle(items)
        header = dict(items)
    return header, data


def assemble(header_bytes, data, pad=b" ", align=8):
    """The file."""
    short = -len(header_bytes) % align
    header_bytes += (pad * 8)[:short]
    return len(header_bytes).to_bytes(8, "little") + header_bytes + data


def text_of(header):
    return json.dumps(header, ensure_ascii=False).encode()


def by_bytes(content, chance):
    """Flips, cuts, insertions and repetitions, mostly where the header is."""
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        reach = len(content) if chance.random() < 0.2 else min(len(content), 300)
        at = chance.randrange(max(1, reach))
        kind = chance.randrange(6)
        if kind == 0 and content:
            content[min(at, len(content) - 1)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del content[at:at + chance.randrange(1, 9)]
        elif kind == 2:
            content[at:at] = chance.choice((b" ", b"\0", b",", b"\"", b"{", b"}", b"0", b"-", b"\xff", b"\n", b"1e1"))
        elif kind == 3:
            del content[len(content) - chance.randrange(1, 9):]
        elif kind == 4:
            content += chance.randbytes(chance.randrange(1, 9))
        elif len(content) > 8:
            content[chance.randrange(8)] = chance.randrange(256)
    return bytes(content)


def spoil_entry(entry, chance):
    """Changes what a tensor's entry says."""
    begin, end = entry["data_offsets"]
    numbers = [-1, 0, 1, 7, 8, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1.0, 1.5, -0.0,
               1e2, None, True, "1", [], {}]
    change = chance.randrange(10)
    if change == 0:
        entry["dtype"] = chance.choice(OTHER_TYPES + list(SIZES) + [None, 3, ["F32"], {"F32": 1}])
    elif change == 1:
        entry["shape"] = entry["shape"] + [chance.choice(numbers)]
    elif change == 2:
        entry["shape"] = [chance.choice(numbers) for _ in range(chance.randrange(0, 4))]
    elif change == 3:
        entry["shape"] = chance.choice([[1] * 65 + entry["shape"], None, 3, {}, "3", [[3]]])
    elif change == 4:
        entry["data_offsets"] = [begin + chance.randrange(-3, 4), end + chance.randrange(-3, 4)]
    elif change == 5:
        entry["data_offsets"] = chance.choice([[end, begin], [begin], [begin, end, end], None, begin, {}, [0, 0],
                                               [chance.choice(numbers), end], [begin, chance.choice(numbers)]])
    elif change == 6:
        del entry[chance.choice(list(entry))]
    elif change == 7:
        entry[chance.choice(["extra", "Dtype", "shape ", ""])] = chance.choice([1, None, [], {"a": 1}, "x"])
    elif change == 8:
        entry["shape"] = list(reversed(entry["shape"]))
    else:
        entry["shape"] = chance.choice([[1 << 32, 1 << 32, 0], [(1 << 63) - 1, 3, 0], [0, 1 << 62, 8], [1 << 60, 16]])


def by_meaning(header, data, chance):
    """A header that says something else."""
    names = [name for name in header if name != "__metadata__"]
    change = chance.randrange(9)
    if change <= 3 and names:
        spoil_entry(header[chance.choice(names)], chance)
        return assemble(text_of(header), data)
    if change == 4:
        header["__metadata__"] = chance.choice([None, [], "x", {}, {"a": 1}, {"a": None}, {"a": {"b": "c"}},
                                                {"": ""}, {"a": "\u0000"}, {"dtype": "F32"}, 3, {"a": ["x"]}])
        return assemble(text_of(header), data)
    if change == 5 and names:
        text = text_of(header)
        entry = text_of({chance.choice(names): header[chance.choice(names)]})[1:-1]
        return assemble(text[:-1] + b", " + entry + b"}", data)
    if change == 6 and names:
        return assemble(odd_json(text_of(header), chance), data)
    if change == 7:
        return assemble(text_of(header), data, chance.choice((b" ", b"\t", b"\n", b"\0", b"x", b"\r")),
                        chance.choice((1, 2, 4, 8, 16, 64)))
    size = chance.choice((0, 1, 2, 7, 8, 100_000_000, 100_000_001, 1 << 32, 1 << 63, (1 << 64) - 1))
    return size.to_bytes(8, "little") + text_of(header) + data


def odd_json(text, chance):
    """JSON that some parsers take."""
    return chance.choice((
        lambda t: b" " + t, lambda t: b"\n" + t, lambda t: b"\xef\xbb\xbf" + t, lambda t: t + b",",
        lambda t: t + b"{}", lambda t: t[:-1] + b",}", lambda t: t.replace(b'"', b"'"),
        lambda t: b"[" + t + b"]", lambda t: t + b"//", lambda t: b"/**/" + t,
        lambda t: t.replace(b'"dtype"', b'"dtype", "dtype"', 1), lambda t: t.replace(b'"dtype"', b'"\\u0064type"', 1),
        lambda t: t.replace(b'"dtype": "', b'"dtype": "F32", "dtype": "', 1),
        lambda t: t.replace(b'{"', b'{"\\ud800', 1), lambda t: t.replace(b'{"', b'{"\xc0\x80', 1),
        lambda t: t.replace(b'{"', b'{"\x01', 1), lambda t: t.replace(b'{"', b'{"\\u0000', 1),
        lambda t: t.replace(b'{"', b'{"\\ud83d\\ude00', 1), lambda t: t.replace(b'{"', b'{"\\x', 1),
        lambda t: t.replace(b"[0", b"[00", 1), lambda t: t.replace(b"[0", b"[-0", 1), lambda t: t.replace(b"[0", b"[0.0", 1),
        lambda t: t.replace(b"[0", b"[0e0", 1), lambda t: t.replace(b"[0", b"[+0", 1), lambda t: t.replace(b"[0", b"[0x0", 1),
        lambda t: t.replace(b"[0", b"[NaN", 1), lambda t: t.replace(b"[0,", b"[0 ,", 1), lambda t: t.replace(b":", b"=", 1),
        lambda t: t.replace(b"{", b"{" * 200, 1), lambda t: t[:-1], lambda t: b"{}", lambda t: b"null",
    ))(text)


def mutated(chance):
    """One file to judge; one in twenty is left good."""
    header, data = base_file(chance)
    kind = chance.random()
    if kind < 0.05:
        return assemble(text_of(header), data)
    if kind < 0.40:
        return by_bytes(assemble(text_of(header), data), chance)
    return by_meaning(header, data, chance)


def official(content, path):
    """None when it refuses; else what it finds, in the words of safetensors_verdicts."""
    try:
        tensors = safetensors.deserialize(content)
        with safetensors.safe_open(path, "np") as file:
            metadata = file.metadata() or {}
    except (safetensors.SafetensorError, ValueError):
        return None
    found = [f"{name.encode().hex()}|{info['dtype']}|{'x'.join(map(str, info['shape']))}|"
             f"{hashlib.sha256(bytes(info['data'])).hexdigest()}" for name, info in tensors]
    return sorted(found + [f"{key.encode().hex()}={value.encode().hex()}" for key, value in metadata.items()])


def compare(ours, theirs):
    """(kind, detail): equal verdicts, a known reason, or a fault."""
    if ours.startswith("accepted"):
        if theirs is None:
            return "fault", "we accept what the official reader refuses"
        found = sorted(ours.split()[1:])
        return ("both accept", "") if found == theirs else ("fault", f"we read {found}, it reads {theirs}")
    if theirs is None:
        return "both refuse", ""
    for reason, pattern in STRICTER.items():
        if re.search(pattern, ours):
            return reason, ""
    return "fault", f"only we refuse: {ours}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", default=BUILD)
    arguments = parser.parse_args()
    count, chance = 500 if arguments.quick else 5000, random.Random(19)
    kinds, problems = collections.Counter(), []
    with tempfile.TemporaryDirectory() as root:
        path = pathlib.Path(root) / "a.safetensors"
        with subprocess.Popen([f"{arguments.build}/tests/faults/safetensors_verdicts"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            for number in range(count):
                content = mutated(chance)
                path.write_bytes(content)
                reader.stdin.write(f"{path}\n")
                reader.stdin.flush()
                kind, detail = compare(reader.stdout.readline().rstrip("\n"), official(content, path))
                kinds[kind] += 1
                if kind == "fault":
                    problems.append(f"file {number}: {detail}; {content[:300]!r}")
            reader.stdin.close()
    print("; ".join(f"{kind}: {number}" for kind, number in kinds.most_common()))
    if not kinds["both accept"] or not kinds["both refuse"]:
        problems.append("not both verdicts occurred: the mutations say nothing")
    if not arguments.quick:
        stricter = {f"only we refuse, {reason}": kinds[reason] for reason in STRICTER if kinds[reason]}
        figures = {"files": count, "official package": safetensors.__version__, "both accept": kinds["both accept"],
                   "both refuse": kinds["both refuse"], **stricter, "other differences": kinds["fault"]}
        result.record(19, "safetensors", figures, "red" if problems else "green",
                      "LRA_PROGRAM=build/lra python3 tests/faults/safetensors_mutations.py")
    return report(problems)


if __name__ == "__main__":
    sys.exit(main())
