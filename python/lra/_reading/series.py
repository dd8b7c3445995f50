"""Series of the archives (.ts, .arff) and texts of fastText, as record batches of Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import ReadError, need
from .source import Source
from .tables import BLOCK, head_of, message_of, open_stream, text_of


def lists_of(values: np.ndarray, counts: list[int]) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))


def _lines(path: str) -> Iterator[tuple[int, str]]:
    with open_stream(path) as stream:
        rest, number = b"", 0
        while True:
            block = stream.read(1 << 20)
            lines = (rest + block).split(b"\n")
            rest = lines.pop() if block else b""
            for line in lines:
                number += 1
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError:
                    raise ReadError(f"{path} line {number}", "is not UTF-8", "UTF-8") from None
            if not block:
                return


def _numbers(text: str, where: str) -> np.ndarray:
    cells = pc.split_pattern(pa.array([text]), ",").flatten()
    try:
        return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise ReadError(where, message_of(error), "numbers between commas") from None


def ts_batches(path: str, source: Source) -> Iterator[pa.RecordBatch]:
    """The format of timeseriesclassification.com: dimensions and the label between colons."""
    header: dict[str, str] = {}
    parts: list[str] = []
    counts: list[int] = []
    labels: list[str] = []
    size = 0
    is_data = False

    def batch() -> pa.RecordBatch:
        dims = source.channels["series"]
        values = _numbers(",".join(parts).replace("?", "nan"), path)
        if dims > 1:
            begin, turned = 0, []
            for count in counts:
                turned.append(values[begin : begin + count].reshape(dims, -1).T.ravel())
                begin += count
            values = np.concatenate(turned)
        return pa.RecordBatch.from_arrays(
            [lists_of(values, counts), pa.array(labels)], ["series", "label"]
        )

    for number, line in _lines(path):
        where = f"{path} line {number}"
        if not line or line.startswith(("#", "%")):
            continue
        if not is_data:
            if not line.startswith("@"):
                raise ReadError(where, "stands before @data", "a line that begins with @")
            key, _, value = line[1:].partition(" ")
            header[key.lower()] = value.strip()
            is_data = key.lower() == "data"
            if is_data and header.get("timestamps", "false").lower() == "true":
                raise ReadError(
                    path,
                    "has time stamps",
                    "series of values alone",
                    "aeon: load_from_ts_file, then numpy.savez",
                )
            if is_data and not header.get("classlabel", "").lower().startswith("true"):
                raise ReadError(
                    path,
                    "has no class labels (@classLabel true ...)",
                    "a data set of classification",
                )
            continue
        *dims, label = line.split(":")
        lengths = {dim.count(",") + 1 for dim in dims}
        if len(lengths) != 1:
            raise ReadError(where, "has dimensions of different lengths", "as many values in each")
        if source.channels.setdefault("series", len(dims)) != len(dims):
            raise ReadError(where, f"has {len(dims)} dimensions", str(source.channels["series"]))
        parts.extend(dims)
        counts.append(lengths.pop() * len(dims))
        labels.append(label.strip())
        size += len(line)
        if size >= BLOCK:
            yield batch()
            parts, counts, labels, size = [], [], [], 0
    if labels:
        yield batch()


def arff_batches(path: str, source: Source) -> Iterator[pa.RecordBatch]:
    """The nominal attribute holds the label; the numeric ones are the positions."""
    arff = need("scipy.io.arff", "scipy", path, ".arff files")
    try:
        rows, about = arff.loadarff(path)
    except NotImplementedError as error:
        raise ReadError(
            path,
            message_of(error),
            "numeric and nominal attributes",
            "use the .ts file of the archive",
        ) from None
    except Exception as error:  # of the parser
        raise ReadError(path, f"cannot be read: {message_of(error)}", "an .arff file") from None
    kinds = dict(zip(about.names(), about.types(), strict=True))
    nominal = [name for name, kind in kinds.items() if kind == "nominal"]
    numeric = [name for name, kind in kinds.items() if kind == "numeric"]
    if len(nominal) != 1:
        raise ReadError(path, f"has {len(nominal)} nominal attributes", "one, the class")
    values = np.stack([rows[name] for name in numeric], 1)
    label = pa.array([value.decode() for value in rows[nominal[0]]])
    source.label, source.label_why = nominal[0], "nominal attribute"
    source.channels["series"] = 1
    flat = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    yield pa.RecordBatch.from_arrays([flat, label], ["series", nominal[0]])


def fasttext_batches(path: str) -> Iterator[pa.RecordBatch]:
    """A text in each line, after its __label__."""
    texts, labels, size = [], [], 0
    for number, line in _lines(path):
        if not line:
            continue
        words = line.split(" ", 1)
        text = words[1] if len(words) > 1 else ""
        if not words[0].startswith("__label__") or text.startswith("__label__"):
            raise ReadError(
                f"{path} line {number}",
                "does not begin with one __label__",
                "__label__NAME and a text",
            )
        labels.append(words[0].removeprefix("__label__").rstrip(","))
        texts.append(text.strip())
        size += len(line)
        if size >= BLOCK:
            yield pa.RecordBatch.from_arrays([pa.array(texts), pa.array(labels)], ["text", "label"])
            texts, labels, size = [], [], 0
    if texts:
        yield pa.RecordBatch.from_arrays([pa.array(texts), pa.array(labels)], ["text", "label"])


def columns_of_numbers(path: str) -> bool:
    """True for the .txt of the UCR archive: numbers between spaces or commas."""
    first = text_of(head_of(path), path).split("\n", 1)[0].strip()
    return bool(re.fullmatch(r"[-+.\deE]+(?:(?:,|\s+)[-+.\deENa]+){2,}", first))


def ucr_text_batches(path: str, source: Source) -> Iterator[pa.RecordBatch]:
    """The class and the values of a series in each line, between spaces or commas."""
    parts: list[str] = []
    counts: list[int] = []
    labels: list[str] = []
    size = 0

    def batch() -> pa.RecordBatch:
        values = _numbers(",".join(parts), path)
        return pa.RecordBatch.from_arrays(
            [lists_of(values, counts), pa.array(labels)], ["series", "label"]
        )

    for _, line in _lines(path):
        if not line:
            continue
        label, *values = re.split(r"[,\s]+", line)
        labels.append(label)
        parts.append(",".join(values))
        counts.append(len(values))
        size += len(line)
        if size >= BLOCK:
            yield batch()
            parts, counts, labels, size = [], [], [], 0
    source.label_why = "first number of a line"
    if labels:
        yield batch()
