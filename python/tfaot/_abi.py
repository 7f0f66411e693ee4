"""The structures of the C interface, as the headers that the compiler writes declare them (``TFAOT_ABI_1`` to ``TFAOT_ABI_3``)."""

from __future__ import annotations

import ctypes

ABI = 1
"""The ``abi_version`` of a model of one function of fixed sizes that has its constants and no variables."""
ABI_OF_MODULES = 2
"""That of a model of several functions, of sizes that vary, or with variables."""
ABI_OF_FILES = 3
"""That of a model whose weights are in a file."""


class Executor(ctypes.Structure):
    """``tfaot_executor``."""

    _fields_ = [("self", ctypes.c_void_p), ("num_threads", ctypes.c_int32), ("parallel_for", ctypes.c_void_p)]


class TensorInfo(ctypes.Structure):
    """``tfaot_tensor_info``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("field", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]


_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Executor))


class ModelInfo(ctypes.Structure):
    """``tfaot_model_info``."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("arg_count", ctypes.c_uint32),
        ("result_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("args", ctypes.POINTER(TensorInfo)),
        ("results", ctypes.POINTER(TensorInfo)),
        ("variables", ctypes.POINTER(TensorInfo)),
        ("workspace_bytes", ctypes.c_size_t),
        ("workspace_align", ctypes.c_size_t),
        ("flops", ctypes.c_int64),
        ("run", _RUN),
    ]


class SizeInfo(ctypes.Structure):
    """``tfaot_size_info``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("least", ctypes.c_int64),
        ("most", ctypes.c_int64),
        ("is_result", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class VariableInfo(ctypes.Structure):
    """``tfaot_variable_info``."""

    _fields_ = [("tensor", TensorInfo), ("offset", ctypes.c_size_t)]


_POINTER = ctypes.c_void_p
_RUN_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.POINTER(Executor))


class EntryInfo(ctypes.Structure):
    """``tfaot_entry_info``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("arg_count", ctypes.c_uint32),
        ("result_count", ctypes.c_uint32),
        ("size_count", ctypes.c_uint32),
        ("changes_state", ctypes.c_uint32),
        ("args", ctypes.POINTER(TensorInfo)),
        ("results", ctypes.POINTER(TensorInfo)),
        ("sizes", ctypes.POINTER(SizeInfo)),
        ("axes", ctypes.POINTER(ctypes.c_int32)),
        ("workspace_bytes", ctypes.c_size_t),
        ("workspace_align", ctypes.c_size_t),
        ("flops", ctypes.c_int64),
        ("run", _RUN_ENTRY),
    ]


_INIT = ctypes.CFUNCTYPE(None, _POINTER)


class ModuleInfo(ctypes.Structure):
    """``tfaot_module_info``."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("entry_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("entries", ctypes.POINTER(EntryInfo)),
        ("variables", ctypes.POINTER(VariableInfo)),
        ("state_bytes", ctypes.c_size_t),
        ("state_align", ctypes.c_size_t),
        ("init", _INIT),
    ]


_CHECK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_INIT_WITH = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER)
_RUN_WITH = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.POINTER(Executor)
)


class WeightsInfo(ctypes.Structure):
    """``tfaot_weights_info``."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("module", ctypes.POINTER(ModuleInfo)),
        ("weights_bytes", ctypes.c_size_t),
        ("weights_align", ctypes.c_size_t),
        ("check", _CHECK),
        ("runs", ctypes.POINTER(_RUN_WITH)),
        ("init", _INIT_WITH),
    ]
