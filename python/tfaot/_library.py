"""A compiled model as a shared library: what it says of itself, and its calls, through the C interface."""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

import numpy as np

from . import _abi
from ._errors import Error

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
    shape: tuple[int | None, ...]
    """Its shape, with ``None`` for a size that varies from call to call; scalars have ``()``."""
    most: tuple[int, ...]
    """The largest shape."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes, in the largest shape."""
        return int(np.prod(self.most, dtype=np.int64)) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape is this one, in what does not vary."""
        return len(shape) == len(self.shape) and all(want in (None, have) for have, want in zip(shape, self.shape))


@dataclass(frozen=True)
class Size:
    """A size that varies from call to call."""

    name: str
    """Its name, such as ``batch``."""
    least: int
    """The smallest."""
    most: int
    """The largest."""
    is_result: bool
    """Whether the call says it; else the shapes of the inputs do."""
    is_check: bool = False
    """Whether it is no size, but a check of ``--checked``, which its name tells; a call in which it fails raises."""


def _spec(info: _abi.TensorInfo, axes: Sequence[int]) -> TensorSpec:
    most = tuple(info.dims[i] for i in range(info.rank))
    shape = tuple(None if axis >= 0 else n for n, axis in zip(most, axes))
    count = int(np.prod(most, dtype=np.int64))
    dtype = _dtype(info.dtype, info.bytes // count if count else 1)
    spec = TensorSpec(info.field.decode(), info.name.decode(), dtype, shape, most)
    if spec.nbytes != info.bytes:
        raise Error(f"the library says {info.bytes} bytes of `{spec.name}`, which is {spec}")
    return spec


def aligned(size: int, align: int) -> np.ndarray:
    """Memory of a size in bytes at a multiple of ``align``."""
    align = max(align, 1)
    block = np.empty(size + align, np.uint8)
    begin = -block.ctypes.data % align
    return block[begin : begin + size]


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


class Entry:
    """A function of a library."""

    def __init__(self, info: _abi.FunctionInfo, call: Callable[..., int]) -> None:
        self.name = info.name.decode()
        self._call = call
        every = [info.sizes[i] for i in range(info.size_count)]
        self.sizes = [Size(s.name.decode(), s.least, s.most, bool(s.is_result), s.is_result == 2) for s in every]
        self.arg_axes: list[list[int]] = []
        """For each axis of each argument the number of its size, or -1."""
        self.result_axes: list[list[int]] = []
        """The same of the results."""
        at = 0
        for infos, count, kept in ((info.args, info.arg_count, self.arg_axes), (info.results, info.result_count, self.result_axes)):
            for tensor in infos[:count]:
                kept.append([info.axes[at + i] if info.axes else -1 for i in range(tensor.rank)])
                at += tensor.rank
        self.args = [_spec(info.args[i], axes) for i, axes in enumerate(self.arg_axes)]
        self.results = [_spec(info.results[i], axes) for i, axes in enumerate(self.result_axes)]
        self.changes_state = bool(info.changes_state)
        self.flops = int(info.flops)
        self.workspace_bytes = int(info.workspace_bytes)
        self.workspace_align = int(info.workspace_align)

    def run(self, args: list[int], results: list[int], sizes: list[int], workspace: np.ndarray, pool: Pool | None) -> int:
        """Calls the code with the addresses of arrays; its ``TFAOT_E`` code, or 0. ``sizes`` has each size of the caller's, and
        gets what the call says. Other Python threads run meanwhile."""
        every = (ctypes.c_void_p * max(len(args), 1))(*args)
        each = (ctypes.c_void_p * max(len(results), 1))(*results)
        numbers = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
        executor = ctypes.byref(pool.executor) if pool else None
        code = self._call(every, each, numbers, workspace.ctypes.data, executor)
        sizes[:] = numbers[: len(sizes)]
        return code


class Library:
    """A loaded model; ``weights`` is their file, where they are in one."""

    def __init__(
        self, path: str | os.PathLike[str], name: str, weights: str | os.PathLike[str] | None = None
    ) -> None:
        self.path = Path(path)
        self._handle = handle = ctypes.CDLL(os.path.abspath(path))
        try:
            describe = getattr(handle, f"{name}_info")
            supported = getattr(handle, f"{name}_supported")
        except AttributeError:
            raise Error(f"`{path}` is no compiled model of the name `{name}`") from None
        describe.restype = ctypes.c_void_p
        self.supported = bool(supported())
        self.weights_path: Path | None = None
        """The file of the weights, where they are in one."""
        self._weights: np.ndarray | None = None
        self.state: np.ndarray | None = None
        """The variables, where functions use some."""
        self.variables: dict[str, np.ndarray] = {}
        """Each variable in ``state``, by TensorFlow's name."""
        self._info = info = self._described(describe())
        if info.weights_bytes:
            self.load_weights(weights if weights is not None else self.path.with_name(f"{name}.weights"))
        elif weights is not None:
            raise Error(f"`{path}` has its weights, and takes no others")
        self.name = info.name.decode()
        self.source = info.source.decode()
        self.target = info.target.decode()
        self.entries = [Entry(one, self._caller(one)) for one in info.functions[: info.function_count]]
        if info.state_bytes:
            self._take_state(info)
        self.reset()

    def _described(self, at: int) -> _abi.ModelInfo:
        """Reads the description at an address."""
        version = ctypes.c_uint32.from_address(at).value
        if version != _abi.VERSION:
            told = f"`{self.path}` has version {version} of the C interface"
            raise Error(f"{told}, and this package calls version {_abi.VERSION}")
        info = _abi.ModelInfo.from_address(at)
        if info.rank_count:
            raise Error(f"`{self.path}` is for {info.rank_count} ranks that call it together, which this package does not")
        return info

    def _take_state(self, info: _abi.ModelInfo) -> None:
        self.state = state = aligned(int(info.state_bytes), int(info.state_align))
        for variable in info.variables[: info.variable_count]:
            spec = _spec(variable.tensor, [-1] * variable.tensor.rank)
            begin = int(variable.offset)
            self.variables[spec.name] = state[begin : begin + spec.nbytes].view(spec.dtype).reshape(spec.most)

    def _caller(self, info: _abi.FunctionInfo) -> Callable[..., int]:
        """Calls of a function, with the state and the weights of this library."""

        def call(args, results, sizes, workspace, executor):
            weights = self._weights  # another thread may map others meanwhile
            return info.run(args, results, sizes, _address(self.state), _address(weights), workspace, executor, None)

        return call

    def reset(self) -> None:
        """Gives every variable its first value."""
        if self.state is not None and self._info.init(_address(self.state), _address(self._weights)):
            raise Error(f"the variables of `{self.path}` have no first values in its file of weights (TFAOT_E_WEIGHTS)")

    def self_test(self) -> int:
        """Runs the self-test; its ``TFAOT_E`` code, or 0."""
        name = self.name
        try:
            size, test = getattr(self._handle, f"{name}_selftest_bytes"), getattr(self._handle, f"{name}_selftest")
        except AttributeError:
            raise Error(f"`{self.path}` has no self-test; `tfaot compile --self-test` adds one") from None
        size.restype = ctypes.c_size_t
        workspace = aligned(size(), int(self._info.weights_align))
        memory = [workspace.ctypes.data] if self._weights is None else [_address(self._weights), workspace.ctypes.data]
        return int(test(*map(ctypes.c_void_p, memory)))

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Maps a file of weights, which calls from now on read."""
        if not self._info.weights_bytes:
            raise Error(f"`{self.path}` has its weights, and takes no others")
        try:
            weights = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise Error(f"the weights can't be read: {error}") from None
        if self._info.weights_check(weights.ctypes.data, weights.nbytes):
            raise Error(f"`{path}` has not the weights of `{self.path}` (TFAOT_E_WEIGHTS)")
        self._weights, self.weights_path = weights, Path(path)


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
        self.executor = _abi.Executor(self._pool, threads, functions[2])

    def close(self) -> None:
        """Ends the threads; no call may use them meanwhile."""
        pool, self._pool = self._pool, None
        if pool:
            self._end(pool)

    def __del__(self) -> None:
        # at the end of the process, ctypes may be gone before
        if getattr(self, "_pool", None) and threading is not None:
            self.close()
