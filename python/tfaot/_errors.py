"""What goes wrong, as exceptions that carry the compiler's diagnostics."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping

_WORD = r"'?([^\s,;`']+)'?"
_DIMS = re.compile(rf"--dim {_WORD}(?: --dim {_WORD})*")
_FEED = r"'?([^\s,;`'=]+(?:=(?:\w*\[[^\]]*\](?:<=\w+)?|\{[^}]*\}|[\w.]+))?)'?"
_OPTIONS = (
    (re.compile(rf"--feed {_FEED}"), lambda word: f"feeds={_mapping([word])}" if "=" in word else f'feeds=["{word}"]'),
    (re.compile(rf"--fetch {_WORD}"), lambda word: f'fetches=["{word}"]'),
    (re.compile(rf"--signature {_WORD}"), lambda word: f'signature="{word}"'),
    (re.compile(rf"--bound {_WORD}"), lambda word: f'flags=["--bound", "{word}"]'),
    (re.compile(rf"--rounds {_WORD}"), lambda word: f'flags=["--rounds", "{word}"]'),
)


def _mapping(words: list[str]) -> str:
    def value(text: str) -> str:
        return text if re.fullmatch(r"\d+|[A-Z]", text) else f'"{text}"'

    split = [word.split("=", 1) for word in words]
    return "{" + ", ".join(f'"{name}": {value(text)}' for name, text in split) + "}"


def _in_python(text: str) -> str:
    """The text with options of the command line as arguments of this package."""

    def dims(found: re.Match[str]) -> str:
        words = re.findall(rf"--dim {_WORD}", found.group())
        return f"dims={_mapping(words)}" if all("=" in word for word in words) else f"dims={words[-1]}"

    text = _DIMS.sub(dims, text)
    for option, told in _OPTIONS:
        text = option.sub(lambda found, told=told: told(found.group(1)), text)
    return text


@dataclass(frozen=True)
class Diagnostic:
    """One problem, warning or note of the compiler."""

    level: str
    """``error``, ``warning`` or ``note``."""
    message: str
    """One sentence."""
    code: str | None = None
    """The stable code, such as ``TFA0207``; ``tfaot explain CODE`` says more. Notes have none."""
    node: str | None = None
    """The node of the graph that it is about."""
    op: str | None = None
    """That node's op."""
    function: str | None = None
    """The function of the graph that holds the node."""
    file: str | None = None
    """The file as it was given to the compiler."""
    line: int | None = None
    """The line of a text file, from 1."""
    column: int | None = None
    """The column, from 1."""
    notes: tuple[str, ...] = field(default=())
    """Facts that explain it."""
    help: str | None = None
    """What to do about it."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any], level: str | None = None) -> Diagnostic:
        """A line of ``--error-format json``, or a blocker of ``check --json``."""
        known = {key: value.get(key) for key in ("code", "node", "op", "function", "file", "line", "column")}
        message = _in_python(value.get("message", value.get("reason", "")))
        notes = tuple(_in_python(note) for note in value.get("notes") or ())
        help = value.get("help")
        help = _in_python(help) if help else None
        return cls(level=level or value.get("level", "note"), message=message, notes=notes, help=help, **known)

    def __str__(self) -> str:
        code = f"[{self.code}]" if self.code else ""
        lines = [f"{self.level}{code}: {self.message}"]
        places = [self.function and f"function `{self.function}`", self.node and f"node `{self.node}` ({self.op})"]
        place = ", ".join(part for part in places if part)
        if place:
            lines.append(f"  --> {place}")
        lines.extend(f"   | {note}" for note in self.notes)
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)


class Error(Exception):
    """What this package raises, besides ``TypeError`` and ``ValueError`` for arguments that do not fit."""


class CompileError(Error):
    """The compiler refused: the graph or an option is at fault."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...], text: str = "") -> None:
        self.diagnostics = diagnostics
        """All that the compiler said, warnings and notes included."""
        self.blockers = tuple(d for d in diagnostics if d.level == "error")
        """The errors: everything that must change before the graph compiles."""
        first = self.blockers[0] if self.blockers else None
        self.code = first.code if first else None
        """The code of the first error."""
        self.message = first.message if first else text.strip()
        """Its sentence."""
        self.help = first.help if first else None
        """What to do about it."""
        super().__init__("\n".join(str(d) for d in self.blockers) or self.message)


class SizeError(ValueError):
    """The arrays of a call have sizes beyond those that the code was compiled for."""

    def __init__(self, message: str, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        """What the call asks for, by the names of sizes."""
        super().__init__(message)


class CallError(Error):
    """Compiled code returned a code instead of results."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        """The value of the ``TFAOT_E`` macro of the C header."""
        super().__init__(message)
