"""Long Range Arena: data, layers, the trainer and the report of the program `lra`.

    lra.data      prepared data as NumPy arrays and batches; needs no torch
    lra.nn        the program's sequence layers as torch modules
    lra.arena     trains your own layer with the program's trainer, loads trained models
    lra.mixer     gives your layer a short name
    lra.results   records of runs as a table; lra.report writes the leaderboard,
                  lra.literature returns published results

Only the standard library is imported until more is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import arena as arena, data as data, nn as nn
    from ._program import Error as Error
    from ._records import literature as literature, report as report, results as results
    from ._source import mixer as mixer

__all__ = ["Error", "arena", "data", "literature", "mixer", "nn", "report", "results"]

_HOMES = {"Error": "_program", "mixer": "_source"} | dict.fromkeys(("literature", "report", "results"), "_records")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("._program", __name__).version()
    if name not in __all__:
        raise AttributeError(f"module 'lra' has no attribute {name!r}")
    home = importlib.import_module(f".{_HOMES.get(name, name)}", __name__)
    return getattr(home, name) if name in _HOMES else home


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
