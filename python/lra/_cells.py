"""Classes that cells of a notebook define: their source, as a module that other processes import.

The module holds the statement that defines the class and, in turn, the newest statement at the top
of a cell that binds each global name it uses: imports, functions, other classes, constants.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import linecache
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ._code import CELL
from ._program import Error

_OF_MODULES = ("__name__", "__doc__", "__file__", "__builtins__", "__spec__")  # every one has its own


def module_of(made_by: Any) -> tuple[str, str]:
    """Name and text of a module for a class or function of this notebook. Raises Error."""
    name = made_by.__qualname__
    cells = _cells()
    if not cells:
        raise Error(f"{name} is defined at a prompt that keeps no source; write it to a file, import it")
    parts: dict[str, str] = {}
    _collect(name, name, cells, parts)
    if any("from __future__ import annotations" in cell for cell, _ in cells):
        parts = {"__future__": "from __future__ import annotations", **parts}
    text = "\n\n".join(dict.fromkeys(parts.values())) + "\n"
    return f"{CELL}{hashlib.sha256(text.encode()).hexdigest()[:8]}", text


def _cells() -> list[tuple[str, list[ast.stmt]]]:
    """Cells that ran, the newest first, as Python and its statements."""
    shell: Any = getattr(sys.modules["__main__"], "get_ipython", lambda: None)()
    found = []
    for cell in reversed(shell.user_ns["In"]) if shell else ():
        source = shell.transform_cell(cell)
        try:
            found.append((source, ast.parse(source).body))
        except SyntaxError:
            continue  # it did not run either
    return found


def _collect(
    name: str, user: str, cells: list[tuple[str, list[ast.stmt]]], parts: dict[str, str]
) -> None:
    """Adds the statement that binds `name`, after those that it needs itself, to `parts`."""
    if name in parts:
        return
    source = _statement(name, cells)
    if source is None:
        raise Error(f"{user} uses {name}, which no cell binds at its top level; define it there, or "
                    "write the class to a file")
    parts[name] = ""  # its place is found, after its own names
    for used in dict.fromkeys(_globals_of(compile(source, name, "exec"))):
        if used in vars(sys.modules["__main__"]) and used not in (name, *_OF_MODULES):
            _collect(used, name, cells, parts)
    del parts[name]
    parts[name] = source


def _statement(name: str, cells: list[tuple[str, list[ast.stmt]]]) -> str | None:
    """The source of the newest statement that binds the name as it is bound now."""
    live = _live_source(vars(sys.modules["__main__"])[name])
    for cell, statements in cells:
        for statement in reversed(statements):
            if name not in _bound(statement):
                continue
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
            source = "\n".join(cell.splitlines()[first - 1 : statement.end_lineno])
            if live is None or source in live:
                return source
    return None


def _live_source(value: Any) -> str | None:
    """The text of the cell that the code of a class or function is of, if it has any."""
    functions = [value, *(vars(value).values() if isinstance(value, type) else ())]
    codes = [code for f in functions if isinstance(code := getattr(f, "__code__", None), CodeType)]
    if getattr(value, "__module__", "") != "__main__" or not codes:
        return None
    return "".join(linecache.getlines(codes[0].co_filename)) or None


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top of a cell binds."""
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else [
        statement.target] if isinstance(statement, ast.AnnAssign) else []
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _globals_of(code: CodeType) -> Iterator[str]:
    """Global names that code reads, that of its functions and classes included."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval not in own:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)
