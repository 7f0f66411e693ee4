"""Compiled models."""

from __future__ import annotations

import contextlib
import html
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence, Union

import numpy as np

from . import _binary, _sources
from ._errors import CallError, CompileError, Diagnostic, SizeError
from ._function import _CODES, Function, _listed, _specs
from ._library import Library, Pool, Size, TensorSpec

Dims = Union[int, str, Mapping[str, Union[int, str]], None]
Signature = Union[str, Sequence[str], None]
Feeds = Union[Mapping[str, Union[str, None]], Iterable[str], None]

_FILES = ("obj", "header", "shared", "metadata")


def graph_flags(*, signature: Signature, feeds: Feeds, fetches: Iterable[str] | None, dims: Dims) -> list[str]:
    """The command line's flags that say which part of a graph is meant."""
    flags: list[str] = []
    signatures = (signature,) if isinstance(signature, str) else signature or ()
    flags += [word for name in signatures for word in ("--signature", name)]
    pairs = feeds.items() if isinstance(feeds, Mapping) else ((name, None) for name in feeds or ())
    flags += [word for name, kind in pairs for word in ("--feed", f"{name}={kind}" if kind else name)]
    flags += [word for name in fetches or () for word in ("--fetch", name)]
    sizes = dims.items() if isinstance(dims, Mapping) else () if dims is None else (("", dims),)
    flags += [word for name, size in sizes for word in ("--dim", f"{name}={size}" if name else str(size))]
    return flags


_MOST = 64
"""The largest size that is taken for one that nobody told, until a call needs more."""


def _open_flags(most: Mapping[int, int]) -> list[str]:
    """Flags for sizes that nobody told: any up to a bound, which may be larger for axes at some places."""
    places = [f"?[{place}]=1..{size}" for place, size in sorted(most.items())]
    return [word for size in (*places, f"?=1..{_MOST}") for word in ("--dim", size)]


def compile(  # noqa: A001, the verb of the command line
    model: Any,
    *,
    signature: Signature = None,
    feeds: Feeds = None,
    fetches: Iterable[str] | None = None,
    dims: Dims = None,
    input_signature: Sequence[Any] | None = None,
    name: str | None = None,
    cpu: str | Sequence[str] | None = None,
    weights: str | None = None,
    math: str | None = None,
    quantized: str | None = None,
    threads: int = 1,
    weights_file: bool = False,
    self_test: int | str | Path | None = None,
    flags: Sequence[str] = (),
) -> Model:
    """Compiles a whole model for this machine and loads it.

    ``model`` is the path of a graph (a ``.pb``, ``.pbtxt``, SavedModel folder, TF.js ``model.json``, StableHLO), of a ``.keras`` or
    ``.h5`` file where Keras is installed, or a ``keras.Model``, ``tf.function``, ``ConcreteFunction`` or ``jax.export.Exported``.

    - ``signature``: which signature of a SavedModel, several, or ``"all"``.
    - ``feeds``, ``fetches``: inputs and outputs, where the model does not say them; a mapping gives types,
      ``{"x": "f32[1,224,224,3]"}``.
    - ``dims``: the sizes that the model leaves open: a number for all of them, or ``{"batch": 8}``. A range,
      ``{"batch": "1..64"}``, leaves them open to each call. Those that are not told are open from 1 to 64. Without ``dims``, a call that
      needs more compiles the model again; one of a model with variables or a file of weights raises :class:`SizeError`. A model that
      can't be compiled for open sizes takes one example a call, as :attr:`Model.diagnostics` says then.
    - ``input_signature``: what a ``tf.function`` without one is traced with.
    - ``name``: the prefix of files and symbols.
    - ``cpu``: the processor, or several, between which the code picks; by default this machine's.
    - ``weights``, ``math``: fewer bits, as ``--weights`` and ``--math`` say (``"bf16"``, ``"int8"``).
    - ``quantized``: how products of values that the model quantises are computed, as ``--quantized`` says (``"off"``: on floats).
    - ``threads``: how many threads a call may use.
    - ``weights_file``: whether the weights are in a file, so that :meth:`Model.load_weights` can replace them.
    - ``self_test``: a seed, or the path of an npz file of inputs: the code then has a self-test, for :meth:`Model.self_test` and programs
      in other languages.
    - ``flags``: further flags of ``tfaot compile``.

    Raises :class:`CompileError` with everything that blocks it.
    """
    folder = _Folder()
    path = _sources.as_file(model, folder.path, input_signature)
    part = graph_flags(signature=signature, feeds=feeds, fetches=fetches, dims=dims)
    name = name or _sources.model_name(model)
    how = ["--name", name] if name else []
    if cpu is None and not any(flag.split("=")[0] in ("--cpu", "--target") for flag in flags):
        cpu = "native"
    if cpu is not None:
        how += ["--cpu", cpu if isinstance(cpu, str) else ",".join(cpu)]
    how += ["--weights", weights] if weights else []
    how += ["--math", math] if math else []
    how += ["--quantized", quantized] if quantized else []
    how += ["--weights-file"] if weights_file else []
    how += [] if self_test is None else ["--self-test", str(self_test)]
    emit = [*_FILES, "pool-shared"] if threads > 1 else list(_FILES)
    source = _Source(folder, path, part, [*how, *flags], emit)
    source.is_open = dims is None or isinstance(dims, Mapping)
    source.may_grow = dims is None
    library, diagnostics = source.compile()
    pool = Pool(library.path.parent / "libtfaot_pool.so", threads) if threads > 1 else None
    return Model(library, pool=pool, source=source, diagnostics=diagnostics)


class _Folder:
    """A folder that is removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tfaot-"))
        weakref.finalize(self, shutil.rmtree, self.path, True)


class _Source:
    """What a model was made of: for its report, for further files, and for larger sizes than it has code for."""

    def __init__(self, folder: _Folder, path: Path, part: list[str], how: list[str], emit: list[str]) -> None:
        self.folder = folder
        self.path = path
        self._told = part
        self.how = how
        self._emit = emit
        self.is_open = False
        """Whether sizes that nobody told are open."""
        self.may_grow = False
        """Whether their bounds follow what calls need."""
        self._most: dict[int, int] = {}
        self._count = 0

    @property
    def part(self) -> list[str]:
        """The flags that say which part of a graph is meant, and in which sizes."""
        return [*self._told, *(_open_flags(self._most) if self.is_open else ())]

    def compile(self) -> tuple[Library, tuple[Diagnostic, ...]]:
        """Makes the library, and says what the compiler said."""
        try:
            return self._compiled()
        except CompileError as refused:
            if not self.is_open:
                raise
            self.is_open = self.may_grow = False
            try:
                library, diagnostics = self._compiled()
            except CompileError:
                raise refused from None
            told = f"it takes one example a call, since it can't be compiled for sizes that are open: {refused.message}"
            return library, (*diagnostics, Diagnostic("note", told, code=refused.code, node=refused.blockers[0].node))

    def _compiled(self) -> tuple[Library, tuple[Diagnostic, ...]]:
        out = self.folder.path / f"out{self._count or ''}"
        self._count += 1
        command = ["compile", str(self.path), "-o", str(out), "--emit", ",".join(self._emit), *self.part, *self.how]
        _, made, diagnostics = _binary.ask(command)
        files = {Path(line).suffix: Path(line) for line in made.splitlines() if "tfaot_pool" not in line}
        return Library(files[".so"], files[".h"].stem, files.get(".weights")), diagnostics

    def enlarge(self, function: Function, wanted: Mapping[str, int]) -> Library:
        """The library for calls with sizes beyond the bounds that were taken."""
        most, places = dict(self._most), function.places()
        for name, length in wanted.items():
            for place in places[name]:
                most[place] = max(most.get(place, _MOST), 1 << (length - 1).bit_length())
        # a size at several places has one bound
        for _ in places:
            for shared in places.values():
                largest = max(most.get(place, _MOST) for place in shared)
                most.update({place: largest for place in shared})
        before, self._most = self._most, most
        try:
            return self._compiled()[0]
        except CompileError:
            self._most = before
            raise


class Report:
    """The page of ``tfaot report``: shown by notebooks, or written to a file."""

    def __init__(self, page: str) -> None:
        self.html = page
        """The whole page."""

    def save(self, path: str | Path) -> Path:
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="640" style="border:0"></iframe>'


class Model:
    """A compiled model.

    A model of one function is called itself. One of several signatures has them in :attr:`signatures`, and is called where there is
    but one of them. Calls from several threads may overlap, each with memory of its own; calls of a model with variables wait for
    one another.
    """

    def __init__(
        self,
        library: Library,
        *,
        pool: Pool | None = None,
        source: _Source | None = None,
        diagnostics: tuple[Diagnostic, ...] = (),
    ) -> None:
        self._source, self._pool = source, pool
        self.diagnostics = diagnostics
        """What the compiler assumed, and what it warned of."""
        self._enlarging = threading.Lock()
        self._take(library)

    def _take(self, library: Library) -> None:
        """Takes the code of a library from now on."""
        self._library = library
        self._lock = threading.Lock() if library.state is not None else contextlib.nullcontext()
        self.signatures: dict[str, Function] = {entry.name: Function(entry, self._pool, self._lock) for entry in library.entries}
        """The functions by the names of their signatures; a single function has the name of the model."""

    @property
    def name(self) -> str:
        """The prefix of its symbols."""
        return self._library.name

    @property
    def target(self) -> str:
        """What it was compiled for."""
        return self._library.target

    def _only(self) -> Function:
        if len(self.signatures) > 1:
            raise TypeError(f"{self.name} has several functions, in .signatures: {_listed(self.signatures)}")
        return next(iter(self.signatures.values()))

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """The inputs by name, in their order."""
        return self._only().inputs

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """The outputs by name, in their order."""
        return self._only().outputs

    @property
    def sizes(self) -> dict[str, Size]:
        """The sizes that vary from call to call, by name."""
        return self._only().sizes

    @property
    def flops(self) -> int:
        """Floating-point operations of a call, in its largest sizes."""
        return self._only().flops

    @property
    def workspace_bytes(self) -> int:
        """The memory that a call needs besides its arguments and results."""
        return self._only().workspace_bytes

    @property
    def library(self) -> Path:
        """The shared library, which lives as long as this object unless :meth:`save` keeps it."""
        return self._library.path

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """The variables that functions change, by TensorFlow's names: arrays over the memory that calls read and write."""
        return dict(self._library.variables)

    def reset(self) -> None:
        """Gives every variable its first value."""
        with self._lock:
            self._library.reset()

    def __repr__(self) -> str:
        named = [f"{name}({_specs(f.inputs)}) -> {{{_specs(f.outputs)}}}" for name, f in self.signatures.items()]
        if len(named) > 1:
            return f"<tfaot.Model {self.name}: {'; '.join(named)}>"
        return f"<tfaot.Model {self.name}({named[0].partition('(')[2]}>"

    def __call__(self, *args: Any, out: Mapping[str, np.ndarray] | None = None, **named: Any) -> dict[str, np.ndarray]:
        """Calls the code, as :meth:`Function.__call__` says. A model of several functions has them in :attr:`signatures`.

        Where a size that :func:`compile` was not told is beyond its bound, the model is compiled again for larger ones."""
        function = self._only()
        try:
            return function(*args, out=out, **named)
        except SizeError as beyond:
            keeps = self._library.state is not None or self._library.weights_path is not None
            if self._source is None or not self._source.may_grow or keeps or min(beyond.sizes.values()) < 1:
                raise
            with self._enlarging:
                if self._only() is function:
                    self._take(self._source.enlarge(function, beyond.sizes))
        return self._only()(*args, out=out, **named)

    def self_test(self) -> None:
        """Calls the code on inputs that it has, and compares the results with answers that it has. Raises :class:`CallError` where they
        differ or a call fails, and :class:`Error` where the code has no self-test."""
        code = self._library.self_test()
        if code:
            raise CallError(code, _CODES.get(code, f"the code returned {code}"))

    def load_weights(self, path: str | Path) -> None:
        """Takes the weights of a file from now on, which ``tfaot weights`` or :func:`compile` with ``weights_file`` made: calls that run
        meanwhile end with those that they began with. Raises :class:`Error` where they are another model's."""
        self._library.load_weights(path)

    def save(self, path: str | Path, emit: Sequence[str] = _FILES) -> list[Path]:
        """Writes files for programs without Python to a folder: object, C header, shared library and metadata, or what ``emit``
        lists of the kinds of ``tfaot compile --emit``, and the weights where they are in a file. Returns their paths."""
        beside = self._library.weights_path
        if self._source is None:
            kept = [file for file in (self.library, beside) if file is not None]
            return [Path(shutil.copy2(file, _folder(path))) for file in kept]
        if set(emit) <= set(_FILES):
            name, made = self.name, self.library.parent
            names = {"obj": f"{name}.o", "header": f"{name}.h", "shared": self.library.name, "metadata": f"{name}.json"}
            saved = [Path(shutil.copy2(made / names[kind], _folder(path))) for kind in emit]
            return saved + ([Path(shutil.copy2(beside, _folder(path) / f"{name}.weights"))] if beside else [])
        source = self._source
        command = ["compile", str(source.path), "-o", str(path), "--emit", ",".join(emit), *source.part, *source.how]
        if "--name" not in source.how:
            command += ["--name", self.name]
        return [Path(line) for line in _binary.ask(command)[1].splitlines()]

    def report(self, path: str | Path | None = None, *, flags: Sequence[str] = ()) -> Report:
        """The page of ``tfaot report`` about the graph; it is written to ``path`` too, where that is given."""
        if self._source is None:
            raise CompileError((), "a model that was loaded from a library has no graph to report about")
        with tempfile.TemporaryDirectory(prefix="tfaot-") as folder:
            page = Path(folder) / "report.html"
            _binary.ask(["report", str(self._source.path), "-o", str(page), *self._source.part, *flags])
            report = Report(page.read_text(encoding="utf-8"))
        if path is not None:
            report.save(path)
        return report


def _folder(path: str | Path) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
