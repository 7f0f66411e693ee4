"""The structures of the C interface, as the headers that the compiler writes declare them."""

from __future__ import annotations

import ctypes

VERSION = 1
"""The ``abi_version`` of the models that this package calls (``TFAOT_ABI_VERSION``)."""


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
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, *[_POINTER] * 6, ctypes.POINTER(Executor), _POINTER)
_INIT = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER)
_CHECK = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_size_t)


class FunctionInfo(ctypes.Structure):
    """``tfaot_function_info``."""

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
        ("run", _RUN),
    ]


class ModelInfo(ctypes.Structure):
    """``tfaot_model_info``."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("function_count", ctypes.c_uint32),
        ("variable_count", ctypes.c_uint32),
        ("rank_count", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("functions", ctypes.POINTER(FunctionInfo)),
        ("variables", ctypes.POINTER(VariableInfo)),
        ("state_bytes", ctypes.c_size_t),
        ("state_align", ctypes.c_size_t),
        ("weights_bytes", ctypes.c_size_t),
        ("weights_align", ctypes.c_size_t),
        ("init", _INIT),
        ("weights_check", _CHECK),
    ]
