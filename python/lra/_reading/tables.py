"""CSV, JSON, JSON Lines, Parquet, Feather and Arrow IPC as record batches of Arrow."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import ReadError

BLOCK = 8 << 20  # bytes read or decoded at a time


def open_stream(path: str) -> pa.NativeFile:
    """The bytes of a file; those that .gz, .zst, .bz2 and .lz4 hold."""
    return pa.input_stream(path, compression="detect")


def head_of(path: str, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, decompressed. Raises ReadError if it cannot be read."""
    try:
        with open_stream(path) as stream:
            return stream.read(size)
    except OSError as error:
        raise ReadError(path, f"cannot be read: {message_of(error)}") from None


def message_of(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def text_of(head: bytes, path: str) -> str:
    """The start of a text file. Raises ReadError for UTF-16 and other encodings."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ReadError(path, "is UTF-16", "UTF-8", "save it as UTF-8")
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start > len(head) - 4:  # a character that the block cut
            return head[: error.start].decode("utf-8-sig")
        raise ReadError(
            path, f"is not UTF-8 (byte {error.start})", "UTF-8", "save it as UTF-8"
        ) from None


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class CsvFormat:
    """Separator and header of a CSV file, told from its first record."""

    def __init__(self, path: str, settings: dict[str, str]) -> None:
        text = text_of(head_of(path), path)
        plain = re.sub(r"\.(gz|zst|bz2|lz4)$", "", path.lower())
        self.skip = 0
        self.decimal_comma = False
        found = re.match(r"sep=(.)\r?\n", text)
        if found:
            self.separator, self.skip = found[1], 1
            text = text[found.end() :]
        elif plain.endswith((".tsv", ".tab")):
            self.separator = "\t"
        else:
            first = re.sub(r'"(?:[^"]|"")*"', "", text.split("\n", 1)[0])
            self.separator = next((mark for mark in ",;\t" if mark in first), ",")
        self.decimal_comma = self.separator == ";"
        record = next(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator), None)
        if not record:
            raise ReadError(path, "is empty", "a header and rows")
        counted = record == [str(i) for i in range(len(record))] and (
            len(record) > 2 or settings["label"] in ("0", "1")
        )
        wanted = [
            s for s in re.split(",", ",".join((settings["label"], settings["sequences"]))) if s
        ]
        numbered = any(re.fullmatch(r"c\d+", s) and s not in record for s in wanted)
        numbers = all(is_number(field.strip().replace(",", ".")) for field in record)
        self.has_header = counted or not (numbers or numbered)
        self.names = record
        if counted and numbered or not self.has_header:
            self.names = [f"c{i}" for i in range(len(record))]

    def read_options(self, block: int) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.ReadOptions(
            use_threads=False,
            block_size=block,
            skip_rows=self.skip + self.has_header,
            column_names=[f"c{i}" for i in range(len(self.names))],
        )


def _refuse_repeated_header(batch: pa.RecordBatch, names: list[str], path: str, done: int) -> None:
    """Files that were joined with their headers have them among the rows."""
    for row in pc.indices_nonzero(pc.equal(batch.column(0), names[0])).to_pylist():
        if [column[row].as_py() for column in batch.columns] == names:
            raise ReadError(
                f"{path} row {done + row + 1}",
                "repeats the header",
                "an example",
                "remove this line: files were joined with their headers",
            )


def csv_batches(path: str, layout: CsvFormat) -> Iterator[pa.RecordBatch]:
    """Every column as text: what is a number is decided by all of its cells."""
    from pyarrow import csv as arrow_csv

    places = [f"c{i}" for i in range(len(layout.names))]
    parse = arrow_csv.ParseOptions(delimiter=layout.separator, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(column_types={place: pa.string() for place in places})
    block, done = BLOCK // 2, 0
    while True:
        try:
            skipped = done
            with open_stream(path) as stream:
                reader = arrow_csv.open_csv(stream, layout.read_options(block), parse, convert)
                for batch in reader:
                    if skipped >= batch.num_rows:
                        skipped -= batch.num_rows
                        continue
                    batch, skipped = batch.slice(skipped), 0
                    if layout.has_header:
                        _refuse_repeated_header(batch, layout.names, path, done)
                    done += batch.num_rows
                    yield pa.RecordBatch.from_arrays(batch.columns, layout.names)
            return
        except pa.ArrowInvalid as error:
            if "straddling" in str(error) and block < 1 << 30:  # a row is larger than a block
                block *= 8
                continue
            raise ReadError(
                path, message_of(error), "rows of " + str(len(places)) + " fields"
            ) from None


def _lines(path: str) -> Iterator[bytes]:
    """Blocks of whole lines."""
    with open_stream(path) as stream:
        rest = b""
        while block := stream.read(BLOCK):
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                rest += block
                continue
            yield rest + block[:cut]
            rest = block[cut:]
        if rest.strip():
            yield rest


def _arrow_of_block(block: bytes) -> pa.RecordBatch:
    from pyarrow import json as arrow_json

    options = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)

    def read(schema: pa.Schema | None) -> pa.Table:
        parse = arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
        return arrow_json.read_json(pa.BufferReader(block), options, parse)

    table = read(None)
    dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    if dates:  # Arrow takes texts for dates
        table = read(pa.schema([(name, pa.string()) for name in dates]))
    return table.combine_chunks().to_batches()[0]


def batch_of_objects(rows: list[dict[str, Any]], path: str, row0: int) -> pa.RecordBatch:
    """Objects whose keys and types may differ; scalars of unlike types become texts."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns.append(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if not any(isinstance(value, (list, dict)) for value in values):
                texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
                columns.append(pa.array(texts, pa.string()))
                continue
            try:
                columns.append(pa.array(values, pa.list_(pa.float64())))
                continue
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                pass
            for i, value in enumerate(values):
                try:
                    pa.array([values[0], value])
                except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                    raise ReadError(
                        f"{path} row {row0 + i}",
                        f"column '{name}' holds another type than the rows before: {message_of(error)}",
                        "texts, or lists of numbers with as many channels at every position",
                    ) from None
            raise ReadError(path, f"column '{name}' holds unlike types", "one type") from None
    return pa.RecordBatch.from_arrays(columns, names)


def _objects_of_block(block: bytes, path: str, row0: int) -> pa.RecordBatch:
    rows = []
    for number, line in enumerate(block.splitlines(), row0):
        if not line.strip():
            continue
        where = f"{path} row {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ReadError(
                where, f"is not JSON: {message_of(error)}", "a JSON object on each line"
            ) from None
        if not isinstance(row, dict):
            raise ReadError(
                where,
                f"is {'an array' if isinstance(row, list) else 'not an object'}",
                "a JSON object on each line",
                "pandas: to_json(FILE, orient='records', lines=True)",
            )
        rows.append(row)
    return batch_of_objects(rows, path, row0)


def json_lines_batches(path: str) -> Iterator[pa.RecordBatch]:
    row = 1
    for block in _lines(path):
        if row == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        try:
            batch = _arrow_of_block(block)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            batch = _objects_of_block(block, path, row)  # says which row, or takes unlike types
        yield batch
        row += batch.num_rows


def json_array_batches(path: str) -> Iterator[pa.RecordBatch]:
    """An array of objects, a few at a time."""
    decoder = json.JSONDecoder()
    skip = re.compile(r"[\s,]*")
    with open_stream(path) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig")
        buffer, at, row, size = text.read(BLOCK).lstrip()[1:], 0, 1, 0
        rows: list[dict[str, Any]] = []
        ended = False
        while True:
            at = skip.match(buffer, at).end()  # type: ignore[union-attr]
            if buffer[at : at + 1] == "]":
                break
            try:
                value, end = decoder.raw_decode(buffer, at)
            except ValueError as error:
                more = "" if ended else text.read(BLOCK)
                if not more:
                    where = f"{path} element {row + len(rows)}"
                    raise ReadError(
                        where, f"is not JSON: {message_of(error)}", "an array of objects"
                    ) from None
                buffer, at = buffer[at:] + more, 0
                continue
            if not isinstance(value, dict):
                raise ReadError(
                    f"{path} element {row + len(rows)}", "is not an object", "an array of objects"
                )
            rows.append(value)
            size += end - at
            at = end
            if size >= BLOCK:
                yield batch_of_objects(rows, path, row)
                row, rows, size = row + len(rows), [], 0
    if rows:
        yield batch_of_objects(rows, path, row)


def json_batches(path: str) -> Iterator[pa.RecordBatch]:
    """JSON Lines or an array of objects, whatever the ending says."""
    start = text_of(head_of(path), path).lstrip()
    if start.startswith("["):
        return json_array_batches(path)
    try:
        first, end = json.JSONDecoder().raw_decode(start)
    except ValueError:
        return json_lines_batches(path)
    if (
        isinstance(first, dict)
        and all(isinstance(v, (dict, list)) for v in first.values())
        and not start[end:].strip()
    ):
        if any(isinstance(v, dict) for v in first.values()) or all(
            isinstance(v, list) and v and isinstance(v[0], dict) for v in first.values()
        ):
            raise ReadError(
                path,
                f"is one object with the keys {quoted_keys(first)}",
                "an object for each example",
                "pandas: to_json(FILE, orient='records', lines=True)",
            )
    return json_lines_batches(path)


def quoted_keys(value: dict[str, Any]) -> str:
    return ", ".join(f"'{key}'" for key in list(value)[:5])


def class_names_of(schema: pa.Schema) -> dict[str, list[str]]:
    """Names of the classes in columns that a hub's schema declares as class labels."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    if not metadata:
        return {}
    features = json.loads(metadata).get("info", {}).get("features", {})
    return {
        name: list(feature["names"])
        for name, feature in features.items()
        if isinstance(feature, dict)
        and feature.get("_type") == "ClassLabel"
        and feature.get("names")
    }


def parquet_schema(path: str) -> pa.Schema:
    from pyarrow import parquet

    try:
        return parquet.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise ReadError(path, f"cannot be read: {message_of(error)}", "a Parquet file") from None


def parquet_batches(path: str) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                about = file.metadata.row_group(group)
                bytes_each = max(1, about.total_byte_size // max(1, about.num_rows))
                rows = int(np.clip(BLOCK // bytes_each, 1, 1 << 16))
                yield from file.iter_batches(rows, [group], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ReadError(path, f"cannot be read: {message_of(error)}", "a Parquet file") from None


def open_arrow(path: str) -> Any:
    """Arrow IPC: the format of files (Feather), or that of streams (save_to_disk)."""
    try:
        source = pa.OSFile(path)
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)
    except (pa.ArrowException, OSError) as error:
        raise ReadError(
            path, f"cannot be read: {message_of(error)}", "an Arrow IPC or Feather file"
        ) from None


def arrow_batches(path: str) -> Iterator[pa.RecordBatch]:
    reader = open_arrow(path)
    try:
        if hasattr(reader, "num_record_batches"):
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
        else:
            yield from reader
    except (pa.ArrowException, OSError) as error:
        raise ReadError(
            path, f"cannot be read: {message_of(error)}", "an Arrow IPC or Feather file"
        ) from None
