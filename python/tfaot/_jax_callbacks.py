"""Functions that JAX programs call: handlers of XLA's FFI, and callables of Python.

JAX hands what `jax.ffi.register_ffi_target` registers to a function for each platform; `register` gives it to the plugin's library too, and to
JAX's own backend for the platform `cpu`. `jax.pure_callback`, `io_callback` and `debug.callback` are calls of one handler, for which the
library calls `_call` with pointers to the arrays.
"""

from __future__ import annotations

import ctypes
import traceback

import numpy

MESSAGE_BYTES = 4096
STAGES = ("instantiate", "prepare", "initialize", "execute")
TOKEN = 17
# Callbacks of Python, which the library has a handler of its own for.
CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


class _Buffer(ctypes.Structure):
    """`XLA_FFI_Buffer`."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Message(ctypes.Structure):
    """Memory for the message of an error."""

    _fields_ = [("at", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


_Caller = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(_Buffer),
    ctypes.c_size_t,
    ctypes.POINTER(_Buffer),
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
)


def _dtypes() -> dict[int, numpy.dtype]:
    """Types by the numbers of XLA's FFI."""
    import ml_dtypes

    plain = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
    found = {number: numpy.dtype(name) for number, name in enumerate(plain, 1)}
    found |= {15: numpy.dtype("complex64"), 18: numpy.dtype("complex128")}
    small = {
        16: "bfloat16",
        19: "float8_e5m2",
        20: "float8_e4m3fn",
        21: "int4",
        22: "uint4",
        23: "float8_e4m3b11fnuz",
        24: "float8_e5m2fnuz",
        25: "float8_e4m3fnuz",
        26: "int2",
        27: "uint2",
        28: "float8_e4m3",
        29: "float8_e3m4",
        32: "float4_e2m1fn",
        33: "float8_e8m0fnu",
    }
    return found | {number: numpy.dtype(getattr(ml_dtypes, name)) for number, name in small.items()}


_DTYPES = _dtypes()


def _array(buffer: _Buffer) -> numpy.ndarray | None:
    """The memory of a buffer as an array; none for a token."""
    if buffer.dtype == TOKEN:
        return None
    dtype = _DTYPES[buffer.dtype]
    shape = tuple(buffer.dims[axis] for axis in range(buffer.rank))
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return numpy.empty(shape, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(buffer.data)
    return numpy.frombuffer(memory, dtype, count).reshape(shape)


def _run(function, args, arg_count: int, results, result_count: int) -> None:
    """Calls a callable with arrays, and copies what it returns."""
    # copies, as the memory is the program's again after the call
    given = [None if (one := _array(args[i])) is None else one.copy() for i in range(arg_count)]
    for one in given:
        if one is not None:
            one.flags.writeable = False
    made = tuple(function(*given))
    for i in range(result_count):
        to = _array(results[i])
        if to is not None:
            numpy.copyto(to, numpy.asarray(made[i]), casting="no")


@_Caller
def _call(function, args, arg_count, results, result_count, message, message_bytes) -> int:
    try:
        _run(ctypes.cast(function, ctypes.py_object).value, args, arg_count, results, result_count)
        return 0
    except BaseException as error:
        text = "".join(traceback.format_exception(error)).encode()
        # the end of a traceback has the exception
        text = f"{type(error).__name__}: {error}\n\nAt:\n".encode() + text
        text = text[: message_bytes - 1]
        ctypes.memmove(message, text, len(text))
        return 1


def _pointer(capsule) -> int:
    """The pointer in a capsule."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


class Handlers:
    """What the plugin's library knows of the functions that programs call."""

    def __init__(self, path: str):
        self._library = ctypes.CDLL(path)
        self._library.TfaotSetPythonCaller(_call)
        self._library.TfaotRegisterHandler.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
            _Message,
        ]
        self._library.TfaotRegisterType.argtypes = [
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.c_void_p,
            _Message,
        ]

    def register(self, name: str | bytes, function, api_version: int) -> None:
        """Registers a handler, or a dictionary of handlers by stage. Functions of the older interface are left out: programs that call
        them are refused."""
        if api_version != 1:
            return
        stages = function if isinstance(function, dict) else {"execute": function}
        pointers = (ctypes.c_void_p * 4)(*(_pointer(stages[stage]) if stage in stages else None for stage in STAGES))
        name = name.encode() if isinstance(name, str) else name
        self._check(self._library.TfaotRegisterHandler, name, len(name), pointers)

    def register_type(self, name: str, registration: dict) -> None:
        """Registers a type: pointers to its number and, where it has one, to an `XLA_FFI_TypeInfo`."""
        info, deleter = registration.get("type_info"), None
        if info is not None:
            # the deleter stands behind the size and the extensions
            deleter = ctypes.c_void_p.from_address(_pointer(info) + 2 * ctypes.sizeof(ctypes.c_void_p)).value
        text = name.encode()
        self._check(self._library.TfaotRegisterType, text, len(text), _pointer(registration["type_id"]), deleter)

    @staticmethod
    def _check(function, *args) -> None:
        memory = ctypes.create_string_buffer(MESSAGE_BYTES)
        if function(*args, _Message(ctypes.addressof(memory), MESSAGE_BYTES)):
            raise RuntimeError(memory.value.decode(errors="replace"))


def register(path: str, platform: str) -> None:
    """Lets the library at `path` have all functions that JAX has and gets for the platforms `cpu` and `platform`."""
    from jaxlib import xla_client

    handlers, jaxlib = Handlers(path), xla_client._xla

    for name, function in xla_client.custom_call_targets("Host").items():
        if isinstance(function, dict) and name not in CALLBACKS:
            handlers.register(name, function, 1)

    def of_cpu(name, function, platform, api_version=0, traits=0):
        jaxlib.register_custom_call_target(name, function, platform, api_version, traits)
        handlers.register(name, function, api_version)

    def type_of_cpu(name, registration):
        jaxlib.register_custom_type(name, registration)
        handlers.register_type(name, registration)

    def of_platform(name, function, platform, api_version=0, traits=0):
        handlers.register(name, function, api_version)

    xla_client.register_custom_type_handler("cpu", type_of_cpu)
    xla_client.register_custom_call_handler("cpu", of_cpu)
    xla_client.register_custom_type_handler(platform, handlers.register_type)
    xla_client.register_custom_call_handler(platform, of_platform)
