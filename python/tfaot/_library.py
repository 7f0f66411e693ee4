"""A compiled model as a shared library: its description, and its call, through the C interface.

The structures are those of the header that the compiler writes (``TFAOT_ABI_1``, and ``TFAOT_ABI_3`` where the weights are in a file).
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from ._errors import Error

ABI = 1
"""The ``abi_version`` of a model of one function that has its constants."""
ABI_OF_FILES = 3
"""That of a model whose weights are in a file."""


class _Executor(ctypes.Structure):
    _fields_ = [("self", ctypes.c_void_p), ("num_threads", ctypes.c_int32), ("parallel_for", ctypes.c_void_p)]


class _TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("field", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]


_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Executor))


class _ModelInfo(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("arg_count", ctypes.c_uint32),
        ("result_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("args", ctypes.POINTER(_TensorInfo)),
        ("results", ctypes.POINTER(_TensorInfo)),
        ("variables", ctypes.POINTER(_TensorInfo)),
        ("workspace_bytes", ctypes.c_size_t),
        ("workspace_align", ctypes.c_size_t),
        ("flops", ctypes.c_int64),
        ("run", _RUN),
    ]


class _EntryInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("arg_count", ctypes.c_uint32),
        ("result_count", ctypes.c_uint32),
        ("size_count", ctypes.c_uint32),
        ("changes_state", ctypes.c_uint32),
        ("args", ctypes.POINTER(_TensorInfo)),
        ("results", ctypes.POINTER(_TensorInfo)),
        ("sizes", ctypes.c_void_p),
        ("axes", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
        ("workspace_align", ctypes.c_size_t),
        ("flops", ctypes.c_int64),
        ("run", ctypes.c_void_p),
    ]


class _ModuleInfo(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("entry_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("entries", ctypes.POINTER(_EntryInfo)),
    ]


_CHECK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_POINTER = ctypes.c_void_p
_RUN_WITH = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.POINTER(_Executor)
)


class _WeightsInfo(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("module", ctypes.POINTER(_ModuleInfo)),
        ("weights_bytes", ctypes.c_size_t),
        ("weights_align", ctypes.c_size_t),
        ("check", _CHECK),
        ("runs", ctypes.POINTER(_RUN_WITH)),
        ("init", ctypes.c_void_p),
    ]


# TensorFlow's DataType numbers. Types that numpy lacks are its unsigned integers of the same width, as bits; so is bfloat16 where
# the package ml_dtypes is not installed.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    29: "int8",
    30: "uint8",
}
_BITS = {"bfloat16": "uint16", "float8_e5m2": "uint8", "float8_e4m3fn": "uint8"}


def _dtype(number: int, size: int) -> np.dtype:
    name = _DTYPES.get(number)
    if name in _BITS:
        try:
            import ml_dtypes
        except ImportError:
            name = _BITS[name]
        else:
            return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name if name else f"u{size}")


@dataclass(frozen=True)
class TensorSpec:
    """What an input or output is."""

    field: str
    """Its name in calls: that of the signature, else of the node, made a valid identifier."""
    name: str
    """TensorFlow's name, such as ``input:0``."""
    dtype: np.dtype
    """The type of its elements."""
    shape: tuple[int, ...]
    """Its shape; scalars have ``()``."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def _spec(info: _TensorInfo) -> TensorSpec:
    shape = tuple(info.dims[i] for i in range(info.rank))
    count = int(np.prod(shape, dtype=np.int64))
    dtype = _dtype(info.dtype, info.bytes // count if count else 1)
    spec = TensorSpec(info.field.decode(), info.name.decode(), dtype, shape)
    if spec.nbytes != info.bytes:
        raise Error(f"the library says {info.bytes} bytes of `{spec.name}`, which is {spec.dtype}{list(shape)}")
    return spec


class Library:
    """A loaded model; ``weights`` is their file, where they are in one."""

    def __init__(
        self, path: str | os.PathLike[str], name: str, weights: str | os.PathLike[str] | None = None
    ) -> None:
        self.path = Path(path)
        handle = ctypes.CDLL(os.path.abspath(path))
        try:
            describe = getattr(handle, f"{name}_info")
            supported = getattr(handle, f"{name}_supported")
        except AttributeError:
            raise Error(f"`{path}` is no compiled model of the name `{name}`") from None
        describe.restype = ctypes.c_void_p
        at = describe()
        version = ctypes.c_uint32.from_address(at).value
        self._of_file: _WeightsInfo | None = None
        if version == ABI:
            entry = info = _ModelInfo.from_address(at)
            self._run = info.run
        elif version == ABI_OF_FILES:
            self._of_file = _WeightsInfo.from_address(at)
            info = self._of_file.module.contents
            entry = info.entries[0]
            if info.entry_count > 1 or info.variable_count or entry.size_count:
                raise Error(f"`{path}` has several functions, variables or sizes that vary, which are for programs in C")
        else:
            told = f"`{path}` has version {version} of the C interface"
            raise Error(f"{told}, and this package knows version {ABI} and version {ABI_OF_FILES}")
        self._handle = handle
        self.weights_path: Path | None = None
        """The file of the weights, where they are in one."""
        self._weights: np.ndarray | None = None
        if self._of_file is not None:
            self.load_weights(weights if weights is not None else self.path.with_name(f"{name}.weights"))
        elif weights is not None:
            raise Error(f"`{path}` has its weights, and takes no others")
        self.supported = bool(supported())
        self.name = info.name.decode()
        self.source = info.source.decode()
        self.target = info.target.decode()
        self.args = [_spec(entry.args[i]) for i in range(entry.arg_count)]
        self.results = [_spec(entry.results[i]) for i in range(entry.result_count)]
        self.flops = int(entry.flops)
        self.workspace_bytes = int(entry.workspace_bytes)
        self._align = max(int(entry.workspace_align), 1)

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Maps a file of weights, which calls from now on read."""
        if self._of_file is None:
            raise Error(f"`{self.path}` has its weights, and takes no others")
        try:
            weights = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise Error(f"the weights can't be read: {error}") from None
        if self._of_file.check(weights.ctypes.data, weights.nbytes):
            raise Error(f"`{path}` has not the weights of `{self.path}` (TFAOT_E_WEIGHTS)")
        self._weights, self.weights_path = weights, Path(path)

    def workspace(self) -> np.ndarray:
        """Memory for one call at a time."""
        block = np.empty(self.workspace_bytes + self._align, np.uint8)
        begin = -block.ctypes.data % self._align
        return block[begin : begin + self.workspace_bytes]

    def run(self, args: list[int], results: list[int], workspace: np.ndarray, pool: Pool | None) -> int:
        """Calls the code with the addresses of arrays; its ``TFAOT_E`` code, or 0. Other Python threads run meanwhile."""
        every = ctypes.c_void_p * max(len(args), 1)
        each = ctypes.c_void_p * max(len(results), 1)
        executor = ctypes.byref(pool.executor) if pool else None
        if self._of_file is None:
            return self._run(every(*args), each(*results), workspace.ctypes.data, executor)
        weights = self._weights  # another thread may map others meanwhile
        run = self._of_file.runs[0]
        return run(every(*args), each(*results), None, None, weights.ctypes.data, workspace.ctypes.data, executor)


class Pool:
    """The pool of threads that the compiler ships (``--emit pool-shared``), loaded."""

    def __init__(self, path: str | os.PathLike[str], threads: int) -> None:
        functions = (ctypes.c_void_p * 3).in_dll(ctypes.CDLL(os.path.abspath(path)), "tfaot_pool_functions")
        start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32)(functions[0])
        self._end: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions[1])
        self._pool = start(threads)
        self._process = os.getpid()
        if not self._pool:
            raise Error(f"the system does not start {threads} threads")
        self.executor = _Executor(self._pool, threads, functions[2])

    def close(self) -> None:
        """Ends the threads; no call may use them meanwhile."""
        pool, self._pool = self._pool, None
        if pool:
            self._end(pool)

    def __del__(self) -> None:
        # at the end of the process, ctypes may be gone before
        if getattr(self, "_pool", None) and threading is not None:
            self.close()
