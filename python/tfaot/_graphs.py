"""Questions about graphs, and graphs for TensorFlow."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Sequence

from . import _binary, _sources
from ._errors import Diagnostic, Error
from ._library import Library
from ._model import Dims, Feeds, Model, Signature, graph_flags


@dataclass(frozen=True)
class Check:
    """Whether a whole graph compiles. True where it does."""

    compilable: bool
    """The answer."""
    blockers: tuple[Diagnostic, ...]
    """Everything that must change before it does."""
    warnings: tuple[Diagnostic, ...]
    """What compiled code leaves out, such as printing."""

    def __bool__(self) -> bool:
        return self.compilable


def check(
    model: Any,
    *,
    signature: Signature = None,
    feeds: Feeds = None,
    fetches: Iterable[str] | None = None,
    dims: Dims = None,
    input_signature: Sequence[Any] | None = None,
    flags: Sequence[str] = (),
) -> Check:
    """Says whether the whole model can be compiled, and everything that blocks it. The arguments are those of
    :func:`tfaot.compile`.

    Raises :class:`CompileError` where the graph can't be read at all.
    """
    part = graph_flags(signature=signature, feeds=feeds, fetches=fetches, dims=dims)
    said = _asked("check", model, input_signature, [*part, *flags], answers=(0, 1))
    return Check(
        compilable=said["compilable"],
        blockers=tuple(Diagnostic.from_json(d, "error") for d in said["blockers"]),
        warnings=tuple(Diagnostic.from_json(d, "warning") for d in said["warnings"]),
    )


def cluster(
    model: Any,
    *,
    signature: Signature = None,
    feeds: Feeds = None,
    fetches: Iterable[str] | None = None,
    dims: Dims = None,
    input_signature: Sequence[Any] | None = None,
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    """The clusters that TensorFlow's auto-clustering would form, and why other nodes are in none: the document of
    ``tfaot cluster --json``. The arguments are those of :func:`tfaot.compile`."""
    part = graph_flags(signature=signature, feeds=feeds, fetches=fetches, dims=dims)
    return _asked("cluster", model, input_signature, [*part, *flags])


def _asked(verb: str, model: Any, signature: Sequence[Any] | None, flags: Sequence[str], answers=(0,)) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tfaot-") as folder:
        path = _sources.as_file(model, Path(folder), signature)
        status, text, diagnostics = _binary.ask([verb, str(path), "--json", *flags], answers=answers)
    try:
        return json.loads(text)
    except ValueError:
        raise _binary.CompileError(diagnostics, f"tfaot {verb} ended with status {status}") from None


@dataclass(frozen=True)
class Rewritten:
    """A graph for TensorFlow, with its clusters in it."""

    path: Path
    """The file or folder."""
    library: Path | None
    """The library of compiled clusters; none for other modes than ``native``."""
    diagnostics: tuple[Diagnostic, ...]
    """What was left out of clusters, with its reason."""

    def load(self) -> Any:
        """See :func:`tfaot.load`."""
        return load(self.path)


def rewrite(
    saved_model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    mode: str = "native",
    signature: Signature = None,
    feeds: Feeds = None,
    fetches: Iterable[str] | None = None,
    dims: Dims = None,
    threads: int | None = None,
    flags: Sequence[str] = (),
) -> Rewritten:
    """Writes a SavedModel or GraphDef again, with the clusters of TensorFlow's auto-clustering compiled.

    ``out`` must not exist where it is a folder. ``mode`` is ``native``, ``xla`` or ``annotate``; ``flags`` are further flags of
    ``tfaot rewrite``.
    """
    command = ["rewrite", os.fspath(saved_model), "-o", os.fspath(out), "--mode", mode]
    command += graph_flags(signature=signature, feeds=feeds, fetches=fetches, dims=dims)
    command += ["--threads", str(threads)] if threads is not None else []
    diagnostics = _binary.ask([*command, *flags])[2]
    path = Path(out)
    return Rewritten(path, _library_of(path), diagnostics)


def _library_of(path: Path) -> Path | None:
    """The library of compiled clusters that lies with a rewritten graph."""
    beside = path / "assets.extra" / "libtfaot.so" if path.is_dir() else path.with_suffix(".so")
    return beside if beside.is_file() else None


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """Loads what was compiled or rewritten.

    - A rewritten SavedModel: its library is registered with TensorFlow, then ``tf.saved_model.load(path, **options)`` loads it.
    - A rewritten GraphDef: the library is registered, and the ``GraphDef`` is returned.
    - A shared library of ``tfaot compile --emit shared``: a :class:`Model`; ``name`` is its prefix where the file has another name,
      ``weights`` their file, where they are in one that is not ``NAME.weights`` beside the library.
    """
    path = Path(path)
    if path.is_file() and path.suffix in (".so", ".dylib"):
        name = options.pop("name", path.stem[3:] if path.stem.startswith("lib") else path.stem)
        return Model(Library(path, name, options.pop("weights", None)))
    try:
        import tensorflow as tf
    except ImportError:
        raise Error("rewritten graphs are loaded by TensorFlow, which is not installed: `pip install tensorflow`") from None
    library = _library_of(path)
    if library is not None:
        tf.load_op_library(os.path.abspath(library))
    if path.is_dir():
        return tf.saved_model.load(os.fspath(path), **options)
    return tf.compat.v1.GraphDef.FromString(path.read_bytes())
