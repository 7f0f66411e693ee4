#!/usr/bin/env python3
"""Writes src/opdef/tensorflow.txt: the op definitions and CPU kernels of the TensorFlow that is installed.

Run by hand with a Python that has tensorflow==2.21.0:  tools/make_op_definitions.py
The file is committed: neither the build nor the tests need TensorFlow. One line an op, fields apart by tabs:
name (`!` after it: stateful), inputs, outputs, type attributes with their defaults, CPU kernel, the defaults of other attributes.
"""
import os
import urllib.parse

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "opdef", "tensorflow.txt")
NAMES = {1: "f32", 2: "f64", 3: "s32", 4: "u8", 5: "s16", 6: "s8", 7: "string", 8: "c64", 9: "s64", 10: "pred", 11: "q8",
         12: "qu8", 13: "q32", 14: "bf16", 15: "q16", 16: "qu16", 17: "u16", 18: "c128", 19: "f16", 20: "resource",
         21: "variant", 22: "u32", 23: "u64", 24: "f8e5m2", 25: "f8e4m3fn", 26: "f8e4m3fnuz", 27: "f8e4m3b11fnuz",
         28: "f8e5m2fnuz", 29: "s4", 30: "u4", 31: "s2", 32: "u2"}


def arg(a):
    if a.type_list_attr:
        kind = "@" + a.type_list_attr
    else:
        kind = NAMES[a.type] if a.type else "$" + a.type_attr
        if a.number_attr:
            kind = a.number_attr + "*" + kind
    return a.name + ":" + kind + ("&" if a.is_ref else "")


def type_attr(a):
    if a.type == "type":
        default = NAMES[a.default_value.type] if a.HasField("default_value") else ""
    else:
        default = ",".join(NAMES[t] for t in a.default_value.list.type) if a.HasField("default_value") else ""
    return a.name + ("" if a.type == "type" else "*") + ("=" + default if a.HasField("default_value") else "")


def other_default(a):
    """`name=kind:value` of an attribute that is no type and has a default."""
    v = a.default_value
    kind = v.WhichOneof("value")
    if kind == "list":
        numbers = v.list.i and "I:" + ",".join(map(str, v.list.i)) or v.list.f and "F:" + ",".join(repr(float(f)) for f in v.list.f)
        text = numbers or v.list.s and "S:" + ",".join(urllib.parse.quote(s, safe="") for s in v.list.s) or "E:"
    elif kind == "shape":
        text = "D:" + ("?" if v.shape.unknown_rank else ",".join(str(d.size) for d in v.shape.dim))
    elif kind == "s":
        text = "s:" + urllib.parse.quote(v.s, safe="")
    elif kind in ("i", "f", "b"):
        text = f"{kind}:{str(getattr(v, kind)).lower()}"
    else:
        # Tensors and functions, which no lowering looks at.
        return None
    return f"{a.name}={text}"


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    on_cpu = {}
    for k in kernels.get_all_registered_kernels().kernel:
        if k.device_type in ("CPU", "DEFAULT"):
            on_cpu.setdefault(k.op, {}).setdefault(k.device_type, set()).update(k.host_memory_arg)
    lines = [f"# The ops of TensorFlow {tf.__version__}: name (! stateful), inputs, outputs, type attributes, CPU kernel (- none, + one, with its host memory arguments), defaults of other attributes.",
             "# Generated from the op and kernel registries of the pip package by tools/make_op_definitions.py; not edited by hand."]
    for op in sorted(ops.op, key=lambda o: o.name):
        devices = on_cpu.get(op.name, {})
        host = devices.get("CPU", devices.get("DEFAULT"))
        kernel = "-" if host is None else "+" + ",".join(sorted(host))
        types = [type_attr(a) for a in op.attr if a.type in ("type", "list(type)")]
        others = [other_default(a) for a in op.attr if a.type not in ("type", "list(type)") and a.HasField("default_value")]
        fields = [op.name + ("!" if op.is_stateful else ""), *(" ".join(map(arg, args)) for args in (op.input_arg, op.output_arg)), " ".join(types), kernel, " ".join(filter(None, others))]
        lines.append("\t".join(fields))
    with open(OUT, "w") as f:
        f.write("\n".join(lines) + "\n")


main()
