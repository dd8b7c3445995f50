"""Mistakes of the user, as the program prints them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any


class ReadError(Exception):
    """What is wrong with the data: where, what, what was expected, and what to do."""

    def __init__(self, where: str, what: str, expected: str = "", advice: str = "") -> None:
        super().__init__(f"{where}: {what}")
        self.parts = {"where": where, "what": what, "expected": expected, "advice": advice}


def quoted(names: Sequence[str], most: int = 8) -> str:
    """'a', 'b' and 3 more"""
    shown = [f"'{name}'" for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def need(module: str, package: str, where: str, what: str) -> Any:
    """Imports a package that only some formats need. Raises ReadError with its pip command."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ReadError(
            where,
            f"{what} are read by the Python package {package}, which '{sys.executable}' does not have",
            advice=f"install it with: {sys.executable} -m pip install {package}",
        ) from None
