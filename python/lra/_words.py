"""Python's values in the words of the program, and the program's advice in words of Python."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAMES = "out|data|device|seed|preset|init-from|accept|checkpoint|threads|split|jobs"
_COMMAND = (r"(?:\S*/)?lra train ([\w.:]*\w) ([\w.:]*\w)"
            r"((?: --(?:json|quiet|go-on|init-partial|other-data)\b| --[\w-]+ [^\s;]+)*)")


def _literal(text: str) -> str:
    """A value of the command line as Python writes it."""
    if text in ("true", "false"):
        return text.title()
    return text if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text) else f'"{text}"'


# How messages name what a caller from Python writes otherwise; the first that fits counts.
_PHRASES = (
    (r"choose another --out, or resume it with: .*",
     "choose another out=, or pass resume=True to continue it, or overwrite=True to replace it"),
    (r"(?:\S*/)?lra train --resume '?([^\s']+)'?", r'lra.arena.resume("\1")'),
    (r"(?:\S*/)?lra data (make|import|fetch|check|prepare) (\w+)( \S+)? --out '?([^\s']+)'?"
     r"((?: --set \S+)*)",
     lambda m: f'lra.data.{"import_files" if m[1] == "import" else m[1]}("{m[2]}", ...{"" if not m[5] else ", "}'
               f'{m[5].strip()})'),
    (r"(?:\S*/)?lra data (check|prepare) (\w+)", r'lra.data.\1("\2", ...)'),
    (r"'lra train TASK MODEL --out FOLDER'", "lra.arena.train(task, mixer, out=...)"),
    (_COMMAND, lambda m: f'lra.arena.train("{m[1]}", "{m[2]}"{", ..." if m[3] else ""})'),
    (r"list them with: \S*lra list", "see lra.data.TASKS and lra.nn.mixers()"),
    (r"lra list tasks", "lra.data.TASKS"),
    (r"lra list models", "lra.nn.mixers()"),
    (r"; see 'lra --help' or 'lra help COMMAND'", ""),
    (r"--set mixer\.(\w+)=([\w.+-]+)", lambda m: f'arguments={{"{m[1]}": {_literal(m[2])}}}'),
    (r"--set mixer\.(\w+)", r'arguments={"\1": ...}'),
    (r"--set ([\w.]+)=([\w.+-]+)", lambda m: f'settings={{"{m[1]}": {_literal(m[2])}}}'),
    (r"--set ([\w.]+)", r'settings={"\1": ...}'),
    (r"--(go-on|resume)\b", "resume=True"),
    (r"--(init-partial|other-data|overwrite)\b", lambda m: m[1].replace("-", "_") + "=True"),
    (rf"^--({_NAMES}) ([^\s:]+)(?=: )",
     lambda m: f"{m[1].replace('-', '_')}={_literal(m[2])}"),
    (rf"--({_NAMES})\b", lambda m: m[1].replace("-", "_") + "="),
    (r"--set\b", "settings="),
)
_PATTERNS = [(re.compile(pattern), words) for pattern, words in _PHRASES]


def in_python(message: str) -> str:
    """A message of the program, with keyword arguments and functions instead of options."""
    message = message.removeprefix("lra: ")
    for pattern, words in _PATTERNS:
        message = pattern.sub(words, message)
    return message


def settings_words(settings: Mapping[str, Any] | Sequence[str] | None, prefix: str = "") -> list[str]:
    """--set KEY=VALUE for each setting; tables may be nested, None leaves the default, a list has KEY=VALUE."""
    if settings is not None and not isinstance(settings, Mapping):
        return [word for setting in settings for word in ("--set", setting)]
    words: list[str] = []
    for key, value in flat(settings or {}, prefix):
        words += ["--set", f"{key}={toml(value)}"]
    return words


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values: {"train": {"steps": 10}} gives "train.steps", 10. None is left out."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", plain(value)


def plain(value: Any) -> Any:
    """Numbers and lists of NumPy and torch as Python's; paths, devices and dtypes as text."""
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays, tensors
        return value.tolist()
    if isinstance(value, (list, tuple, range)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike) or type(value).__module__.partition(".")[0] == "torch":
        return str(value).removeprefix("torch.")
    raise TypeError(f"{value!r} is {type(value).__name__}; expected a number, a text or a list")


def toml(value: Any) -> str:
    """A plain value in the notation of --set."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def option_words(**options: Any) -> list[str]:
    """--name VALUE for each that is not None or False; for True the name alone."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        words += [] if value is True else [str(plain(value))]
    return words


def accept_words(accept: str | Sequence[str]) -> list[str]:
    """The option --accept for names of checks; nothing for none."""
    names = accept if isinstance(accept, str) else ",".join(accept)
    return ["--accept", names] if names else []
