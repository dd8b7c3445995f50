"""Labels as the numbers of classes, in the order in which they are first seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .cells import Where, is_list
from .errors import ReadError
from .tables import is_number

_MOST_CLASSES = 10_000
_MOST_BYTES = 500


def are_missing(column: pa.Array) -> bool:
    """True if no row has a label: all are null, empty or -1, as in tests of competitions."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type) or column.null_count == len(column):
        return True
    if is_list(column.type) or pa.types.is_boolean(column.type):
        return False
    values = pc.unique(column).to_pylist()
    return all(value in (None, "", -1, "-1") for value in values)


def _one_each(column: pa.Array, where: Where) -> pa.Array:
    """Labels [N, 1], or the place of the one in each row of [N, K]."""
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths == 1).all():
        return column.flatten()
    count = int(lengths[0]) if len(lengths) else 0
    values = np.zeros(0)
    if (lengths == count).all() and not pa.types.is_string(column.type.value_type):
        values = (
            column.flatten().cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, count)
        )
    is_hot: Any = values.size and ((values == 0) | (values == 1)).all(1) & (values.sum(1) == 1)
    if values.size and is_hot.all():
        return pa.array(values.argmax(1))
    row = int(np.flatnonzero(~is_hot)[0]) if values.size else 0
    raise ReadError(
        where(row),
        "has several labels",
        "one label an example, or one-hot labels [N, K]",
        "keep one label each; several labels an example are not offered",
    )


class Labels:
    """The classes that were seen, and where each was first."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.first: list[str] = []
        self._codes: dict[str, int] = {}

    def _name(self, value: Any, classes: list[str], where: Callable[[], str]) -> str:
        if value is None or value == "":
            raise ReadError(
                where(),
                "the label is missing" if value is None else "the label is empty",
                "a name or a number",
                "leave the row out of the file",
            )
        if isinstance(value, bool):
            return "true" if value else "false"
        if classes and isinstance(value, int):
            if not 0 <= value < len(classes):
                raise ReadError(
                    where(), f"the label is {value}", f"0 to {len(classes) - 1}, as the schema says"
                )
            return classes[value]
        text = str(value)
        if isinstance(value, float) or ("." in text and is_number(text)):
            number = float(text)
            return str(int(number)) if number.is_integer() else text
        if len(text.encode()) > _MOST_BYTES:
            raise ReadError(
                where(),
                f"the label has {len(text.encode())} bytes",
                f"a name of at most {_MOST_BYTES}",
                "name the column of labels with --set task.label=NAME",
            )
        return text

    def codes_of(self, column: pa.Array, classes: list[str], where: Where) -> NDArray[np.int32]:
        if is_list(column.type):
            column = _one_each(column, where)
        if pa.types.is_nested(column.type):
            raise ReadError(where(0), f"the label is of the type {column.type}", "a name or a number")
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        places = column.indices.to_numpy(zero_copy_only=False)
        if column.indices.null_count:
            self._name(None, [], lambda: where(pc.index(column.indices.is_null(), True).as_py()))
        values, codes = column.dictionary.to_pylist(), np.zeros(len(column.dictionary), np.int32)
        for i in np.unique(places):
            first = partial(lambda place: where(int(np.argmax(places == place))), i)
            name = self._name(values[i], classes, first)
            if name not in self._codes:
                self._codes[name] = len(self.names)
                self.names.append(name)
                self.first.append(first())
                if len(self.names) > _MOST_CLASSES:
                    raise ReadError(
                        "labels",
                        f"there are over {_MOST_CLASSES:,} different ones",
                        "the names or numbers of classes",
                        "name their column with --set task.label=NAME",
                    )
            codes[i] = self._codes[name]
        return codes[places]
