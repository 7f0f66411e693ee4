"""Compiles TensorFlow graphs ahead of time into native code, and calls it on numpy arrays.

>>> import tfaot
>>> model = tfaot.compile("model.pb", feeds={"image": "f32[1,224,224,3]"})
>>> model.inputs["image"].shape
(1, 224, 224, 3)
>>> model(image=picture)["scores"]

The compiler is the program `tfaot`, which comes with this package. Neither compiling nor calling needs TensorFlow; only models
that are objects of TensorFlow, Keras or JAX need the library that they are of, and :func:`load` needs TensorFlow.
"""

from __future__ import annotations

from ._binary import VERSION as __version__
from ._binary import binary, cmake_dir
from ._errors import CallError, CompileError, Diagnostic, Error, SizeError
from ._function import Function
from ._graphs import Check, Rewritten, check, cluster, load, rewrite
from ._library import Size, TensorSpec
from ._model import Model, Report, compile

__all__ = [
    "CallError",
    "Check",
    "CompileError",
    "Diagnostic",
    "Error",
    "Function",
    "Model",
    "Report",
    "Rewritten",
    "Size",
    "SizeError",
    "TensorSpec",
    "__version__",
    "binary",
    "check",
    "cluster",
    "cmake_dir",
    "compile",
    "load",
    "rewrite",
]
