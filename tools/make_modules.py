#!/usr/bin/env python3
"""Writes SavedModels whose calls change variables to testdata/modules/, with TensorFlow's answers: all of them, or those that are named.

A folder has `saved_model/`, `calls.jsonl` (signature, inputs and expected results of each call, in order over one state), and
the arrays. They are small: a module has many signatures instead of many modules one.
"""
import json
import os
import shutil
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import tensorflow as tf

MODULES = {}


def module(f):
    """Registers a function that returns a tf.Module, {signature: function of named tensors} and calls (signature, inputs)."""
    MODULES[f.__name__] = f
    return f


def real(*shape, seed=7):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@module
def variables():
    """Every op that reads or changes a variable, and the order that control edges give them."""
    m = tf.Module()
    m.ring, m.n, m.never = tf.Variable(tf.zeros([4, 3])), tf.Variable(0), tf.Variable(real(3, 3))
    m.table = tf.Variable(real(5, 2, seed=1))

    def push(x):
        i = m.n.assign_add(1) - 1
        m.ring.scatter_nd_update([[i % 4]], x[None])
        return {"mean": tf.reduce_mean(m.ring, 0) * m.never[0]}

    def order(x):
        before = m.n.read_value()
        m.n.assign(before * 2)
        between = m.n.read_value()
        m.n.assign_sub(x)
        return {"before": before, "between": between, "after": m.n.read_value()}

    def rows(i, x):
        m.table.scatter_add(tf.IndexedSlices(x, i))
        m.table.scatter_update(tf.IndexedSlices(x[:1] * 2, i[:1]))
        m.table.scatter_mul(tf.IndexedSlices(x + 2, i))
        m.table.scatter_max(tf.IndexedSlices(x, i))
        m.table.scatter_min(tf.IndexedSlices(x + 1, i))
        m.table.scatter_sub(tf.IndexedSlices(x, i))
        m.table.scatter_div(tf.IndexedSlices(x + 3, i))
        return {"table": m.table.read_value()}

    def places(i, x):
        m.table.scatter_nd_add(i, x)
        m.table.scatter_nd_sub(i[:1], x[:1] * 3)
        tf.raw_ops.ResourceScatterNdMax(ref=m.table.handle, indices=i, updates=x)
        tf.raw_ops.ResourceScatterNdMin(ref=m.table.handle, indices=i, updates=x + 1)
        m.table[1:4:2, 0].assign([5.0, 6.0])
        return {"rows": m.table.sparse_read([4, 0]), "picked": m.table.gather_nd([[1, 0], [3, 1]]), "shape": tf.raw_ops.VariableShape(input=m.table.handle)}

    signatures = {
        "push": (push, dict(x=[3])),
        "order": (order, dict(x=([], tf.int32))),
        "rows": (rows, dict(i=([3], tf.int32), x=[3, 2])),
        "places": (places, dict(i=([2, 2], tf.int32), x=[2])),
        "count": (lambda: {"n": m.n + 0, "there": tf.raw_ops.VarIsInitializedOp(resource=m.n.handle)}, {}),
    }
    calls = [("push", dict(x=real(3, seed=i))) for i in range(6)] + [("count", {}), ("order", dict(x=np.int32(5))), ("count", {})]
    for seed in (3, 4):
        calls += [("rows", dict(i=np.array([4, 1, 2], np.int32), x=real(3, 2, seed=seed)))]
        calls += [("places", dict(i=np.array([[2, 1], [0, 0]], np.int32), x=real(2, seed=seed)))]
    return m, signatures, calls


@module
def flow():
    """Variables that change inside of branches, loops, maps and calls."""
    m = tf.Module()
    m.a, m.b, m.only_read = tf.Variable(real(3)), tf.Variable(1.0), tf.Variable(real(3, seed=2))

    @tf.function
    def bump(v, by):
        v.assign_add(by)
        return v * 2.0

    def branch(x):
        if tf.reduce_sum(x) > 0.0:
            m.a.assign(x + m.only_read)
            y = bump(m.b, 1.0)
        elif m.b > 2.0:
            m.b.assign(-m.b)
            y = m.b + 0.0
        else:
            y = tf.reduce_sum(m.only_read)
        return {"y": y, "a": m.a.read_value()}

    def loop(n):
        for i in tf.range(n):
            m.a.assign(m.a * 0.5 + m.only_read)
            if m.b > 0.0:
                m.b.assign_sub(tf.cast(i, tf.float32))
        return {"a": m.a.read_value(), "b": m.b.read_value()}

    def until(limit):
        while m.b < limit:
            m.b.assign_add(1.5)
        return {"b": m.b.read_value()}

    def mapped(x):
        def one(row):
            m.b.assign_add(tf.reduce_sum(row))
            return row * m.b
        return {"y": tf.map_fn(one, x)}

    def switch(i):
        def add(): m.b.assign_add(10.0); return m.b + 0.0
        def negate(): m.b.assign(-m.b); return m.b + 1.0
        return {"y": tf.switch_case(i, [add, negate, lambda: m.b + 2.0])}

    signatures = {
        "branch": (branch, dict(x=[3])),
        "loop": (loop, dict(n=([], tf.int32))),
        "until": (until, dict(limit=[])),
        "mapped": (mapped, dict(x=[4, 3])),
        "switch": (switch, dict(i=([], tf.int32))),
    }
    calls = [("branch", dict(x=np.float32([1, 2, 3]))), ("branch", dict(x=-np.float32([1, 2, 3]))), ("branch", dict(x=-np.float32([1, 2, 3])))]
    calls += [("loop", dict(n=np.int32(3))), ("until", dict(limit=np.float32(4))), ("loop", dict(n=np.int32(0))), ("mapped", dict(x=real(4, 3)))]
    calls += [("switch", dict(i=np.int32(i))) for i in (0, 1, 2)] + [("loop", dict(n=np.int32(5)))]
    return m, signatures, calls


def write(name):
    out = os.path.join(os.path.dirname(__file__), "..", "testdata", "modules", name)
    shutil.rmtree(out, ignore_errors=True)
    m, signatures, calls = MODULES[name]()
    functions = {}
    for key, (f, spec) in signatures.items():
        spec = {k: v if isinstance(v, tuple) else (v, tf.float32) for k, v in spec.items()}
        spec = {k: tf.TensorSpec(dims, dtype, name=k) for k, (dims, dtype) in spec.items()}
        functions[key] = tf.function(f).get_concrete_function(**spec)
    tf.saved_model.save(m, f"{out}/saved_model", signatures=functions)
    for left in ("assets", "fingerprint.pb"):
        path = f"{out}/saved_model/{left}"
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    loaded = tf.saved_model.load(f"{out}/saved_model")
    with open(f"{out}/calls.jsonl", "w") as lines:
        for i, (key, inputs) in enumerate(calls):
            got = loaded.signatures[key](**{k: tf.constant(v) for k, v in inputs.items()})
            np.savez(f"{out}/in{i}.npz", **inputs)
            np.savez(f"{out}/out{i}.npz", **{k: v.numpy() for k, v in got.items()})
            lines.write(json.dumps({"signature": key, "inputs": f"in{i}.npz", "expect": f"out{i}.npz"}) + "\n")


for wanted in sys.argv[1:] or MODULES:
    write(wanted)
