"""Compiled functions, called on numpy arrays."""

from __future__ import annotations

from collections import deque
from typing import Any, ContextManager, Iterable, Mapping

import numpy as np

from ._errors import CallError, SizeError
from ._library import Entry, Pool, Size, TensorSpec, aligned

_CODES = {
    1: "this machine lacks instructions that the code was compiled for (TFAOT_E_CPU)",
    2: "a size is outside of its bounds (TFAOT_E_SIZE)",
    3: "a size that the call says would be beyond its bound (TFAOT_E_BOUND)",
    4: "the weights are not those of this code (TFAOT_E_WEIGHTS)",
    5: "a function that the model calls says that it failed (TFAOT_E_CALL)",
    7: "a value is not as a node takes it (TFAOT_E_CHECK)",
    8: "a result is not the answer that the library has (TFAOT_E_SELFTEST)",
    6: "the ranks of the model did not meet (TFAOT_E_RANKS)",
}


class Function:
    """A function of a compiled model."""

    def __init__(self, entry: Entry, pool: Pool | None, lock: ContextManager[Any]) -> None:
        self._entry, self._pool, self._lock = entry, pool, lock
        self._workspaces: deque[np.ndarray] = deque()
        self.inputs: dict[str, TensorSpec] = {spec.field: spec for spec in entry.args}
        """The inputs by name, in their order."""
        self.outputs: dict[str, TensorSpec] = {spec.field: spec for spec in entry.results}
        """The outputs by name, in their order."""
        self.sizes: dict[str, Size] = {size.name: size for size in entry.sizes}
        """The sizes that vary from call to call, by name."""
        self._fields = {spec.name: field for field, spec in self.inputs.items()}

    @property
    def name(self) -> str:
        """The signature's name."""
        return self._entry.name

    @property
    def changes_state(self) -> bool:
        """Whether a call changes variables."""
        return self._entry.changes_state

    @property
    def flops(self) -> int:
        """Floating-point operations of a call, in its largest sizes."""
        return self._entry.flops

    @property
    def workspace_bytes(self) -> int:
        """The memory that a call needs besides its arguments and results."""
        return self._entry.workspace_bytes

    def __repr__(self) -> str:
        return f"<tfaot.Function {self.name}({_specs(self.inputs)}) -> {{{_specs(self.outputs)}}}>"

    def __call__(self, *args: Any, out: Mapping[str, np.ndarray] | None = None, **named: Any) -> dict[str, np.ndarray]:
        """Calls the code; the outputs by name.

        Inputs are given in their order or by name (also by TensorFlow's name, ``**{"input:0": x}``). Arrays of the right type that
        are contiguous are read where they lie; others that are not contiguous are copied. Nothing is converted between types,
        except Python's own numbers and lists. ``out`` has arrays that results are written to, each of the right shape.

        Raises ``TypeError`` and ``ValueError`` where arguments do not fit, :class:`CallError` where the code refuses.
        """
        inputs = self._inputs(args, named)
        sizes = self._sizes(inputs)
        results = self._results(sizes, out or {})
        workspace = self._workspaces.pop() if self._workspaces else self._workspace()
        addresses = [[array.ctypes.data for array in arrays] for arrays in (inputs, results.values())]
        with self._lock:
            code = self._entry.run(*addresses, sizes, workspace, self._pool)
        self._workspaces.append(workspace)
        if code:
            raise CallError(code, self._failed_check(sizes) if code == 7 else _CODES.get(code, f"the code returned {code}"))
        return {field: self._cut(field, array, sizes) for field, array in results.items()}

    def _failed_check(self, sizes: list[int]) -> str:
        """What is wrong in a call whose check failed: the node and why."""
        failed = [size.name for size, value in zip(self._entry.sizes, sizes) if size.is_check and value]
        return f"{failed[0]} (TFAOT_E_CHECK)" if failed else _CODES[7]

    def _workspace(self) -> np.ndarray:
        return aligned(self._entry.workspace_bytes, self._entry.workspace_align)

    def _inputs(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[np.ndarray]:
        if len(args) > len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} inputs, and {len(args)} were given")
        given = dict(zip(self.inputs, args))
        for key, value in named.items():
            field = self._fields.get(key, key)
            if field not in self.inputs:
                raise TypeError(f"{self.name} has no input `{key}`; it has {_listed(self.inputs)}")
            if field in given:
                raise TypeError(f"the input `{field}` is given twice")
            given[field] = value
        missing = [field for field in self.inputs if field not in given]
        if missing:
            raise TypeError(f"{self.name} wants {_listed(missing)}")
        return [_fitting(given[field], spec) for field, spec in self.inputs.items()]

    def _sizes(self, inputs: list[np.ndarray]) -> list[int]:
        """The sizes of a call by the shapes of its inputs; 0 for those that the call says."""
        found: list[int | None] = [None] * len(self.sizes)
        for array, axes, spec in zip(inputs, self._entry.arg_axes, self._entry.args):
            for length, axis in zip(array.shape, axes):
                if axis < 0:
                    continue
                size = self._entry.sizes[axis]
                if found[axis] not in (None, length):
                    raise ValueError(f"`{size.name}` is {found[axis]} by inputs before `{spec.field}`, which has {length}")
                found[axis] = length
        given = [(size, length) for size, length in zip(self._entry.sizes, found) if length is not None]
        outside = {size.name: length for size, length in given if not size.least <= length <= size.most}
        if outside:
            told = [f"`{s.name}` is {n}, and may be {s.least} to {s.most}" for s, n in given if s.name in outside]
            raise SizeError("; ".join(told), outside)
        return [length or 0 for length in found]

    def places(self) -> dict[str, set[int]]:
        """For each size of an input the places of its axes in shapes."""
        found: dict[str, set[int]] = {}
        for axes in self._entry.arg_axes:
            for place, axis in enumerate(axes):
                if axis >= 0:
                    found.setdefault(self._entry.sizes[axis].name, set()).add(place)
        return found

    def _shape(self, field: str, sizes: list[int]) -> tuple[int, ...] | None:
        """The shape of an output for the sizes of a call; none where the call says it."""
        spec, axes = self.outputs[field], self._entry.result_axes[list(self.outputs).index(field)]
        if any(axis >= 0 and self._entry.sizes[axis].is_result for axis in axes):
            return None
        return tuple(most if axis < 0 else sizes[axis] for most, axis in zip(spec.most, axes))

    def _results(self, sizes: list[int], out: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        shapes = {field: self._shape(field, sizes) for field in self.outputs}
        for field, array in out.items():
            spec = self.outputs.get(field)
            if spec is None:
                raise TypeError(f"{self.name} has no output `{field}`; it has {_listed(self.outputs)}")
            if shapes[field] is None:
                raise ValueError(f"`{field}` is {spec}, and only the call says its sizes: it can't be written to an array of yours")
            if array.dtype != spec.dtype or array.shape != shapes[field]:
                raise ValueError(f"`{field}` is {spec.dtype}{list(shapes[field])}, and out has {array.dtype}{list(array.shape)}")
            if not (array.flags.c_contiguous and array.flags.writeable):
                raise ValueError(f"out has an array for `{field}` that is not contiguous, or can't be written to")

        def room(field: str, spec: TensorSpec) -> np.ndarray:
            shape = shapes[field]
            return np.empty(spec.most if shape is None else shape, spec.dtype)

        return {field: out[field] if field in out else room(field, spec) for field, spec in self.outputs.items()}

    def _cut(self, field: str, array: np.ndarray, sizes: list[int]) -> np.ndarray:
        """An output in the sizes that the call said: it is dense in them, from the beginning of its memory."""
        if self._shape(field, sizes) is not None:
            return array
        axes = self._entry.result_axes[list(self.outputs).index(field)]
        shape = tuple(most if axis < 0 else sizes[axis] for most, axis in zip(array.shape, axes))
        return array.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _specs(specs: Mapping[str, TensorSpec]) -> str:
    return ", ".join(f"{field}: {spec}" for field, spec in specs.items())


def _fitting(value: Any, spec: TensorSpec) -> np.ndarray:
    """The array that the code reads: ``value`` itself where it may be."""
    plain = isinstance(value, (bool, int, float, complex, list, tuple))
    array = np.asarray(value, spec.dtype if plain else None)
    if array.dtype != spec.dtype:
        raise TypeError(f"`{spec.field}` is {spec}, and {array.dtype} was given; use .astype to convert it")
    if not spec.fits(array.shape):
        raise ValueError(f"`{spec.field}` is {spec}, and the shape {list(array.shape)} was given")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)
