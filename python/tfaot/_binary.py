"""The compiler's program: where it is, and how it is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Sequence

from ._errors import CompileError, Diagnostic, Error

VERSION = "0.1.0"
"""The version of this package, which is that of the compiler in it."""


def binary() -> str:
    """The path of the program ``tfaot``: what ``TFAOT_BINARY`` names, else the one in this package, else the one on ``PATH``."""
    named = os.environ.get("TFAOT_BINARY")
    if named:
        return named
    own = Path(__file__).parent / "bin" / "tfaot"
    if own.is_file():
        return str(own)
    found = shutil.which("tfaot")
    if found:
        return found
    raise Error("the program `tfaot` is neither in this package nor on PATH; TFAOT_BINARY can name it")


def cmake_dir() -> str:
    """The folder of ``tfaotConfig.cmake``, for ``-Dtfaot_DIR=`` in projects that compile models with this package."""
    own = Path(__file__).parent / "lib" / "cmake" / "tfaot"
    beside = Path(__file__).parents[2] / "cmake"  # in the repository
    for folder in (own, beside):
        if (folder / "tfaotConfig.cmake").is_file():
            return str(folder)
    raise Error("this package has no files for CMake")


def ask(arguments: Sequence[str], *, answers: Sequence[int] = (0,)) -> tuple[int, str, tuple[Diagnostic, ...]]:
    """Runs the compiler; its exit status, its standard output, and what it said.

    Raises :class:`CompileError` where the status is none of ``answers``.
    """
    command = [binary(), *arguments, "--error-format", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = done.stderr.decode(errors="replace")
    diagnostics = tuple(_diagnostics(said))
    if done.returncode not in answers:
        raise CompileError(diagnostics, said or f"{command[0]} ended with status {done.returncode}")
    return done.returncode, done.stdout.decode(errors="replace"), diagnostics


def _diagnostics(text: str):
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue  # a complaint about wrong usage is text
        if isinstance(value, dict) and "level" in value:
            yield Diagnostic.from_json(value)
