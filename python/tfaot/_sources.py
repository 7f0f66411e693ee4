"""Models as files that the compiler reads: what is an object of TensorFlow, Keras or JAX is saved to a folder first.

No library is imported here unless the caller's model is of it, which means that it is imported already, or is a Keras file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Sequence

from ._errors import Error

_KERAS_FILES = (".keras", ".h5", ".hdf5")


def as_file(model: Any, folder: Path, input_signature: Sequence[Any] | None = None) -> Path:
    """The path of what the compiler reads for ``model``, which may be a new file in ``folder``.

    ``input_signature`` are the arguments that a ``tf.function`` without input signature is traced with.
    """
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        return _of_keras(_keras_file(path), folder) if path.suffix in _KERAS_FILES and path.is_file() else path
    if _is_keras(model):
        return _of_keras(model, folder)
    if _is_exported(model):
        path = folder / "exported.mlirbc"
        path.write_bytes(model.mlir_module_serialized)
        return path
    if hasattr(model, "get_concrete_function"):
        return _of_function(_concrete(model, input_signature), folder)
    if hasattr(model, "structured_input_signature") and hasattr(model, "graph"):
        return _of_function(model, folder)
    raise TypeError(
        f"a {type(model).__qualname__} is no model: a path, a keras.Model, a tf.function, a ConcreteFunction or a "
        "jax.export.Exported is"
    )


def model_name(model: Any) -> str | None:
    """A name for what has one as an object; of files the compiler makes one itself."""
    if isinstance(model, (str, os.PathLike)):
        return None
    own = getattr(model, "name", None) or getattr(model, "fun_name", None) or getattr(model, "__name__", None)
    own = own.decode() if isinstance(own, bytes) else own
    if not isinstance(own, str):
        return "model"
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in own).strip("_").lower()
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")


def _is_keras(model: Any) -> bool:
    libraries = [sys.modules.get(name) for name in ("keras", "tf_keras")]
    tensorflow = sys.modules.get("tensorflow")
    libraries.append(getattr(tensorflow, "keras", None))
    classes = [getattr(library, "Model", None) for library in libraries if library is not None]
    return any(isinstance(c, type) and isinstance(model, c) for c in classes)


def _is_exported(model: Any) -> bool:
    return hasattr(model, "mlir_module_serialized") and hasattr(model, "in_avals")


def _keras_file(path: Path) -> Any:
    try:
        import keras
    except ImportError:
        raise Error(f"`{path}` is a file of Keras, which is not installed: `pip install keras tensorflow`") from None
    return keras.saving.load_model(path, compile=False)


def _of_keras(model: Any, folder: Path) -> Path:
    path = folder / "saved_model"
    if type(model).__module__.split(".")[0] == "tf_keras" or not hasattr(model, "export"):
        import tensorflow as tf

        tf.saved_model.save(model, str(path))
        return path
    import inspect

    quiet = {"verbose": False} if "verbose" in inspect.signature(model.export).parameters else {}
    model.export(str(path), format="tf_saved_model", **quiet)
    return path


def _concrete(function: Any, input_signature: Sequence[Any] | None) -> Any:
    if input_signature is not None:
        return function.get_concrete_function(*input_signature)
    if getattr(function, "input_signature", None) is not None:
        return function.get_concrete_function()
    raise TypeError(
        "the tf.function has no input signature: pass input_signature=[tf.TensorSpec(shape, dtype), ...], or what "
        "get_concrete_function() returns"
    )


def _of_function(concrete: Any, folder: Path) -> Path:
    import tensorflow as tf

    path = folder / "saved_model"
    holder = tf.Module()
    # what is not an attribute of the module is not saved with it
    holder.variables_of_function = list(concrete.variables)
    holder.captures_of_function = [c for c in getattr(concrete, "captured_inputs", []) if hasattr(c, "_shared_name")]
    tf.saved_model.save(holder, str(path), signatures={"serving_default": concrete})
    return path
