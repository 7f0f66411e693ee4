"""Registers tfaot with JAX: `JAX_PLATFORMS=tfaot python script.py` compiles and runs a program by tfaot.

JAX finds this module by the entry point `jax_plugins` and calls `initialize`. The plugin `libtfaot_pjrt.so` is beside this file, or where
`TFAOT_PJRT` says. Its platform is called `cpu`, so that JAX lowers programs as for its own backend; `jax.devices()[0].device_kind` is
`tfaot`. Where no platform is named, JAX takes its own backend, or one for a GPU.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

NAME = "tfaot"
LIBRARY = "libtfaot_pjrt.so"
# Below that of JAX's own backend for CPUs, which is 0: tfaot runs a program where somebody asks for it.
PRIORITY = -1
# The end of a serialized program: the object, facts as JSON, their number of bytes, and this.
MARK = b"TFAOTPJ3"


def library() -> Path | None:
    """The plugin's library; none where it is not installed."""
    named = os.environ.get("TFAOT_PJRT")
    path = Path(named) if named else Path(__file__).with_name(LIBRARY)
    return path if path.exists() else None


def initialize() -> None:
    """Registers the plugin, if its library is here."""
    from jax._src import xla_bridge

    from . import _jax_callbacks

    path = library()
    if path is None:
        return
    _load(path)
    # tells JAX that the platform is one that its authors of plugins stand behind, so that it does not warn
    xla_bridge._nonexperimental_plugins.add(NAME)
    xla_bridge.register_plugin(NAME, priority=PRIORITY, library_path=str(path), options=_options)
    xla_bridge.register_backend_initialization_hook(_serve_cpu)
    _jax_callbacks.register(str(path), NAME)


def _load(path: Path) -> None:
    """Loads the library before JAX does, with its own LLVM: TensorFlow has another one, whose symbols the process shows to all libraries."""
    # an allocator that is preloaded must serve the library too, and a library that prefers its own dependencies would not find it
    own = 0 if os.environ.get("LD_PRELOAD") else os.RTLD_DEEPBIND
    ctypes.CDLL(str(path), mode=os.RTLD_NOW | own)


def write_object(compiled, folder: str | Path) -> tuple[Path, Path]:
    """Writes the object of what `jax.jit(f).lower(...).compile()` returns and its C header, `program.o` and `program.h`, as `tfaot compile` does.

    The object is for this machine's processor. Raises `ValueError` for programs of JAX's own backend, and for those that call functions of
    this process.
    """
    data = compiled.runtime_executable().serialize()
    if data[-len(MARK) :] != MARK:
        raise ValueError("the program is not compiled by tfaot")
    end = len(data) - len(MARK) - 8
    begin = end - int.from_bytes(data[end : end + 8], "little")
    facts = json.loads(data[begin:end])
    if not facts["header"]:
        raise ValueError("the program calls functions of this process, which an object has not")
    paths = Path(folder, "program.o"), Path(folder, "program.h")
    # jaxlib puts facts of its own before the object
    paths[0].write_bytes(data[begin - facts["object_bytes"] : begin])
    paths[1].write_text(facts["header"])
    return paths


def _serve_cpu(backend) -> None:
    """Lets `jax.devices("cpu")` find tfaot's devices where JAX's own backend is not asked for; where it is, it takes the name itself."""
    from jax._src import xla_bridge

    if NAME in backend.platform_version:
        xla_bridge._backends.setdefault("cpu", backend)


def _options() -> dict[str, int]:
    """The number of devices, which is JAX's `jax_num_cpu_devices`, and of threads, `TFAOT_NUM_THREADS`."""
    import jax

    options = {}
    devices = getattr(jax.config, "jax_num_cpu_devices", -1)
    if devices and devices > 0:
        options["num_devices"] = devices
    threads = os.environ.get("TFAOT_NUM_THREADS")
    if threads:
        options["num_threads"] = int(threads)
    return options
