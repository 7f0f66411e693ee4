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

    def reset():
        m.n.assign(0)
        m.ring.assign(tf.zeros_like(m.ring))
        return {}

    signatures = {
        "reset": (reset, {}),
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
    calls += [("reset", {}), ("push", dict(x=real(3))), ("count", {})]
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


# What an optimizer keeps of a variable, its numbers, and its attributes.
RULES = {
    "GradientDescent": ([], dict(alpha=0.3), [{}]),
    "ProximalGradientDescent": ([], dict(alpha=0.3, l1=0.2, l2=0.4), [{}]),
    "Momentum": (["accum"], dict(lr=0.2, momentum=0.8), [{}, {"use_nesterov": True}]),
    "KerasMomentum": (["accum"], dict(lr=0.2, momentum=0.8), [{}, {"use_nesterov": True}]),
    "Adam": (["m", "v"], dict(beta1_power=0.9, beta2_power=0.99, lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-3), [{}, {"use_nesterov": True}]),
    "AdamWithAmsgrad": (["m", "v", "vhat"], dict(beta1_power=0.9, beta2_power=0.99, lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-3), [{}]),
    "AdaMax": (["m", "v"], dict(beta1_power=0.9, lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-3), [{}]),
    "Adadelta": (["accum", "accum_update"], dict(lr=0.5, rho=0.9, epsilon=1e-3), [{}]),
    "Adagrad": (["accum"], dict(lr=0.5), [{}, {"update_slots": False}]),
    "AdagradV2": (["accum"], dict(lr=0.5, epsilon=0.01), [{}]),
    "AdagradDA": (["gradient_accumulator", "gradient_squared_accumulator"], dict(lr=0.5, l1=0.1, l2=0.2, global_step=3), [{}, {"l1": 0.0}]),
    "RMSProp": (["ms", "mom"], dict(lr=0.1, rho=0.9, momentum=0.5, epsilon=1e-3), [{}]),
    "CenteredRMSProp": (["mg", "ms", "mom"], dict(lr=0.1, rho=0.9, momentum=0.5, epsilon=1e-3), [{}]),
    "Ftrl": (["accum", "linear"], dict(lr=0.5, l1=0.3, l2=0.1, lr_power=-0.5), [{}, {"multiply_linear_by_lr": True}, {"lr_power": -0.7}]),
    "FtrlV2": (["accum", "linear"], dict(lr=0.5, l1=0.3, l2=0.1, l2_shrinkage=0.2, lr_power=-0.5), [{}, {"multiply_linear_by_lr": True}]),
    "ProximalAdagrad": (["accum"], dict(lr=0.5, l1=0.2, l2=0.4), [{}, {"l1": 0.0}]),
    "AddSign": (["m"], dict(lr=0.1, alpha=1.0, sign_decay=0.7, beta=0.9), [{}]),
    "PowerSign": (["m"], dict(lr=0.1, logbase=1.0, sign_decay=0.7, beta=0.9), [{}]),
}
DENSE_ONLY = ("GradientDescent", "Adam", "AdamWithAmsgrad", "AdaMax", "AddSign", "PowerSign")


def stepped(m, sparse):
    """A function that applies every rule to variables of its own and gives their values."""
    kept = {}
    for rule, (slots, numbers, attrs) in RULES.items():
        for i, attr in enumerate(attrs if not (sparse and rule in DENSE_ONLY) else []):
            names = ["var"] + slots
            # second moments are no less than the squares of first ones
            start = [real(4, 3, seed=len(kept) + j) * (1 if n in ("var", "linear", "mom") else 0.1) for j, n in enumerate(names)]
            start = [v if n in ("var", "linear", "mom", "m", "mg", "gradient_accumulator") else abs(v) + 0.2 for n, v in zip(names, start)]
            kept[rule, i] = [tf.Variable(v, name=f"{rule}_{i}_{n}") for n, v in zip(names, start)]
    setattr(m, "sparse" if sparse else "dense", list(kept.values()))

    def step(grad, indices=None):
        for (rule, i), variables in kept.items():
            slots, numbers, attrs = RULES[rule]
            attr = dict(numbers, **attrs[i])
            attr = {k: tf.constant(v, tf.int64 if k == "global_step" else tf.float32) if k in numbers else v for k, v in attr.items()}
            attr.update({n: v.handle for n, v in zip(["var"] + slots, variables)})
            if sparse:
                attr["indices"] = indices
            attr["delta" if rule.endswith("GradientDescent") and not sparse else "grad"] = grad
            getattr(tf.raw_ops, ("ResourceSparseApply" if sparse else "ResourceApply") + rule)(**attr)
        return {f"{rule}_{i}": tf.stack([v.read_value() for v in vs]) for (rule, i), vs in kept.items()}

    return step


@module
def training():
    """Every op of an optimizer's step, on whole variables and on rows of which one comes twice."""
    m = tf.Module()
    signatures = {"dense": (stepped(m, False), dict(grad=[4, 3])), "sparse": (stepped(m, True), dict(grad=[4, 3], indices=([4], tf.int32)))}
    calls = [("dense", dict(grad=real(4, 3, seed=i))) for i in range(3)]
    calls += [("sparse", dict(grad=real(4, 3, seed=i), indices=np.array([2, 0, 2, 3], np.int32))) for i in range(2)]
    return m, signatures, calls


@module
def no_gradient():
    """A step of which one gradient is 0 but for rounding: that of what is added before a normalisation."""
    m = tf.Module()
    m.w, m.b, m.scale = tf.Variable(real(6, 4)), tf.Variable(real(4, seed=2)), tf.Variable(real(4, seed=3) + 1.5)
    m.moments = [tf.Variable(tf.zeros_like(v)) for v in (m.w, m.b, m.scale)]

    def step(x, y):
        with tf.GradientTape() as tape:
            h = x @ m.w + m.b
            mean, variance = tf.nn.moments(h, 0)
            loss = tf.reduce_mean((tf.nn.batch_normalization(h, mean, variance, None, m.scale, 1e-3) - y) ** 2)
        variables = [m.w, m.b, m.scale]
        for v, moment, g in zip(variables, m.moments, tape.gradient(loss, variables)):
            moment.assign(moment * 0.9 + g)
            v.assign_sub(moment * 0.1)
        return {"loss": loss}

    return m, {"step": (step, dict(x=[5, 6], y=[5, 4]))}, [("step", dict(x=real(5, 6, seed=i), y=real(5, 4, seed=i + 9))) for i in range(3)]


@module
def recurrent():
    """Steps of recurrent layers: of Keras, one with a mask, and of a loop that stops where its values say. Their gradients keep values
    of every round."""
    import keras
    m, gru, lstm = tf.Module(), keras.layers.GRU(4), keras.layers.LSTM(3, return_sequences=True)
    sequence = keras.Input((5, 2))
    model = keras.Model(sequence, gru(lstm(keras.layers.Masking(0.0)(sequence))))
    for i, v in enumerate(model.trainable_variables):
        v.assign(real(*v.shape, seed=i))
    m.weights, m.w = [v.value for v in model.trainable_variables], tf.Variable(real(2, 2))

    def descend(loss, tape, variables):
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(g * 0.1)
        return {"loss": loss}

    def layers(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return descend(loss, tape, m.weights)

    def until(x):
        with tf.GradientTape() as tape:
            more = lambda i, h: (tf.reduce_sum(h) < 1.8) & (i < 12)
            count, h = tf.while_loop(more, lambda i, h: (i + 1, tf.nn.softplus(tf.linalg.matvec(m.w, h) + x)), (0, x))
            loss = tf.reduce_sum(h * h)
        return descend(loss, tape, [m.w]) | {"count": count}

    masked = lambda i: real(3, 5, 2, seed=i) * (np.arange(5)[:, None] < np.array([5, 2, 4])[:, None, None])
    calls = [("layers", dict(x=masked(i), y=real(3, 4, seed=i + 9))) for i in range(2)]
    calls += [("until", dict(x=real(2, seed=i))) for i in range(3)]
    return m, {"layers": (layers, dict(x=[3, 5, 2], y=[3, 4])), "until": (until, dict(x=[2]))}, calls


@module
def embeddings():
    """Steps of tf-keras's optimizers, the older ones too, for rows of a table: gradients of rows that are named twice are added first,
    and how many rows there are only the values say."""
    import tf_keras
    m, rules = tf.Module(), tf_keras.optimizers
    made = {"adam": rules.legacy.Adam(0.1), "momentum": rules.legacy.SGD(0.1, momentum=0.9), "rmsprop": rules.legacy.RMSprop(0.1),
            "ftrl": rules.legacy.Ftrl(0.1), "adagrad": rules.Adagrad(0.1), "clipped": rules.Adam(0.1, global_clipnorm=0.05)}
    m.tables, m.kept = [tf.Variable(real(8, 3, seed=i)) for i in range(len(made))], []
    for table, optimizer in zip(m.tables, made.values()):
        optimizer.build([table]) if hasattr(optimizer, "build") else optimizer._create_all_weights([table])
        numbers = [getattr(optimizer, "_learning_rate", None), *getattr(optimizer, "_hyper", {}).values()]
        m.kept.append([v for v in numbers if isinstance(v, tf.Variable)] + list(optimizer.variables() if callable(optimizer.variables) else optimizer.variables))

    def step(table, optimizer):
        def f(ids, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.nn.embedding_lookup(table, ids) - y) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, table), table)])
            return {"table": table.read_value()}
        return f, dict(ids=([5], tf.int32), y=[5, 3])

    signatures = {name: step(table, optimizer) for table, (name, optimizer) in zip(m.tables, made.items())}
    some = [[1, 4, 1, 7, 1], [0, 2, 3, 5, 6], [2, 2, 2, 2, 2]]
    return m, signatures, [(name, dict(ids=np.array(ids, np.int32), y=real(5, 3, seed=i))) for i, ids in enumerate(some) for name in made]


@module
def generators():
    """Ops that draw from a generator which is a variable."""
    m = tf.Module()
    m.g = tf.random.Generator.from_state([2**63 - 1, 7, 9], alg=1)
    m.near = tf.random.Generator.from_state([-3, 7, 9], alg=1)
    raw, h = tf.raw_ops, m.g.state.handle

    def raw_ops():
        return {
            "uniform": raw.StatefulUniform(resource=h, algorithm=1, shape=[5]),
            "normal": raw.StatefulStandardNormalV2(resource=h, algorithm=1, shape=[3, 2]),
            "truncated": raw.StatefulTruncatedNormal(resource=h, algorithm=1, shape=[6]),
            "int": raw.StatefulUniformInt(resource=h, algorithm=1, shape=[4], minval=tf.constant(-3, tf.int64), maxval=tf.constant(90, tf.int64)),
            "full": raw.StatefulUniformFullInt(resource=h, algorithm=1, shape=[4]),
        }

    def python(n):
        m.near.skip(n)
        return {"uniform": m.near.uniform([4], 1.0, 3.0), "normal": m.near.normal([3]), "int": m.near.uniform([5], 0, 9, tf.int32), "binomial": m.near.binomial([30, 2], [100.0, 7.0], [0.25, 0.75], tf.float32), "state": m.near.state.read_value()}

    def skipped():
        raw.RngSkip(resource=h, algorithm=1, delta=5)
        return {"state": m.g.state.read_value()}

    signatures = {"raw": (raw_ops, {}), "python": (python, dict(n=([], tf.uint64))), "skipped": (skipped, {})}
    calls = [("raw", {}), ("python", dict(n=np.uint64(3))), ("skipped", {}), ("raw", {}), ("python", dict(n=np.uint64(0)))]
    return m, signatures, calls


@module
def draws():
    """Ops that draw from a generator which nobody sees: their numbers are not TensorFlow's, so that there are no calls."""
    m = tf.Module()
    m.n = tf.Variable(0)

    def draw():
        x = tf.map_fn(lambda _: tf.random.uniform([]), tf.zeros([50]))
        return {
            "uniform": tf.random.uniform([2000]), "normal": tf.random.normal([2000]), "truncated": tf.random.truncated_normal([2000]),
            "int": tf.random.uniform([2000], -2, 5, tf.int32), "shuffled": tf.random.shuffle(tf.range(100)), "mapped": x,
            "classes": tf.random.categorical(tf.math.log([[0.1, 0.2, 0.7]]), 2000), "seeded": tf.random.uniform([4], seed=3), "other": tf.random.uniform([4], seed=4),
            "between": tf.raw_ops.ParameterizedTruncatedNormal(shape=[4, 500], means=[1.0] * 4, stdevs=[2.0], minvals=[-1.0] * 4, maxvals=[4.0]),
            "gamma": tf.random.gamma([1000], [2.5, 2.5], 2.0), "counts": tf.random.poisson([2000], 3.0),
        }

    def dropped(x):
        return {"y": tf.nn.dropout(x, 0.25)}

    def never(x):
        return {"y": tf.cond(tf.constant(False), lambda: tf.nn.dropout(x, 0.5), lambda: x * 2.0)}

    return m, {"draw": (draw, {}), "dropped": (dropped, dict(x=[1000])), "never": (never, dict(x=[3]))}, []


@module
def version1():
    """Variables of TensorFlow 1, by reference and as resources, which computations give their first values."""
    c = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        x = c.placeholder(tf.float32, [2], "x")
        old = c.get_variable("old", initializer=lambda: c.range(2.0) + 0.5, use_resource=False)
        total = c.get_variable("total", shape=[], initializer=c.zeros_initializer(), use_resource=False)
        new = c.get_variable("new", initializer=lambda: c.fill([2], 3.0), use_resource=True)
        noise = c.get_variable("noise", shape=[500], initializer=c.random_normal_initializer(2.0), use_resource=True)
        added = c.assign_add(old, x)
        with tf.control_dependencies([added]):
            # what reads a reference shares its memory; only this read is ordered
            after = old.read_value()
            with tf.control_dependencies([c.assign_sub(total, c.reduce_sum(after)), new.assign(after * 2.0)]):
                y = c.identity(total.read_value(), "y")
        noise_shift = c.assign_add(noise, c.fill([500], 1.0))
        mean = c.reduce_mean(noise_shift, name="mean")
        both = c.add(old, new, name="both")
        there = c.identity(c.is_variable_initialized(old), "there")
        init = c.global_variables_initializer()
    ends = {"step": ({"x": x}, {"y": y}), "look": ({}, {"both": both, "there": there}), "shift": ({}, {"mean": mean})}
    calls = [("look", {})] + [("step", dict(x=np.float32([i, 0.25]))) for i in range(3)] + [("look", {}), ("shift", {}), ("shift", {})]
    return graph, (init, ends), calls


@module
def tables():
    """Tables of each kind that calls look things up in, and one call that changes a table, which is refused."""
    m, look = tf.Module(), tf.lookup
    keys = lambda dtype=tf.int64: tf.cast(tf.constant([3, 500000, -7, 0, 12]), dtype)
    pairs = lambda k, v: look.KeyValueTensorInitializer(tf.cast(keys(), k), tf.cast(tf.constant([0.5, 9, -2, 4, 7]), v))
    m.fixed = look.StaticHashTable(pairs(tf.int32, tf.float32), -1.0)
    m.unnamed = look.StaticHashTable(pairs(tf.int64, tf.int64), -1, experimental_is_anonymous=True)
    m.many = look.StaticHashTable(look.KeyValueTensorInitializer(tf.range(2000, dtype=tf.int64) ** 2, tf.range(2000) * 3), 5)
    m.empty = look.experimental.MutableHashTable(tf.int64, tf.float32, 2.5)
    m.rows = look.experimental.MutableHashTable(tf.int64, tf.float32, tf.constant([0.25, 1.0]))
    m.rows.insert(keys(), real(5, 2))
    m.numbers = look.experimental.MutableHashTable(tf.int64, tf.int64, -5, experimental_is_anonymous=True)
    m.dense = look.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-100, deleted_key=-200, initial_num_buckets=16)
    m.unnamed_rows = look.experimental.MutableHashTable(tf.int64, tf.float32, tf.constant([0.25, 1.0]), experimental_is_anonymous=True)
    m.unnamed_dense = look.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-100, deleted_key=-200, initial_num_buckets=16, experimental_is_anonymous=True)
    for table, values in [(m.numbers, [1, 2, 3, 4, 5]), (m.dense, [1.5, 2, 3, 4, 5]), (m.unnamed_dense, [7, 8, 9, 10, 11])]:
        table.insert(keys(), tf.constant(values, table.value_dtype))
    m.unnamed_rows.insert(keys(), real(5, 2, seed=3))
    m.numbers.insert(keys()[:1], tf.constant([70], tf.int64))
    m.dense.remove(keys()[1:3])

    def find(x):
        every = [m.unnamed, m.empty, m.rows, m.numbers, m.dense, m.unnamed_rows, m.unnamed_dense]
        found = {f"y{i}": table.lookup(x) for i, table in enumerate(every)}
        return {"fixed": m.fixed.lookup(tf.cast(x, tf.int32)), "own": m.numbers.lookup(x, x * 2), **found}

    def inside(x):
        """In a branch and a loop, and tables of two thousand keys."""
        if x[0] > 0:
            y = m.many.lookup(x)
        else:
            y = m.many.lookup(x * x)
        for i in tf.range(3, dtype=tf.int64):
            y += m.many.lookup(x + i)
        return {"y": y, "size": m.many.size() + m.rows.size() * 100000}

    def change(x):
        m.numbers.insert(x, x)
        m.numbers.remove(x[:1])
        return {"y": m.numbers.lookup(x)}

    signatures = {"find": (find, dict(x=([6], tf.int64))), "inside": (inside, dict(x=([6], tf.int64))), "change": (change, dict(x=([6], tf.int64)))}
    some = np.array([3, -7, 500000, 1, 12, 0]), np.array([13, -3, 3, 2**40, -2**40, 4])
    squares = np.array([4, 9, 10, 1999**2, 1998**2, 1]), np.array([-5, 0, 1999, 2000, 3, 1])
    calls = [("find", dict(x=x)) for x in some] + [("inside", dict(x=x)) for x in squares]
    return m, signatures, calls


@module
def changing_tables():
    """Tables that calls change: keys that are new, known or named twice, tables that grow over several numbers of buckets, removed keys,
    the list of all keys in its order, rows as values, dense and anonymous tables, changes in branches and loops."""
    m, look, draw = tf.Module(), tf.lookup.experimental, np.random.default_rng(5)
    ints = lambda *all: tf.constant(all, tf.int64)
    m.numbers = look.MutableHashTable(tf.int64, tf.float32, -1.0)
    m.rows = look.MutableHashTable(tf.int32, tf.float32, [0.0, 5.0])
    m.dense = look.DenseHashTable(tf.int64, tf.int64, 7, -1, -2, initial_num_buckets=16)
    m.unnamed = look.MutableHashTable(tf.int64, tf.int64, -5, experimental_is_anonymous=True)
    m.large = look.MutableHashTable(tf.int64, tf.int32, -1)
    m.numbers.insert(ints(3, -5, 1 << 40), [1.0, 2.0, 3.0])
    m.dense.insert(ints(30, 50, 70), ints(1, 2, 3))
    m.dense.remove(ints(50))
    m.unnamed.insert(ints(7, 8), ints(70, 80))
    m.large.insert(ints(*(draw.permutation(400)[:300] * 7 - 500)), tf.range(300))

    def insert(k, v):
        m.numbers.insert(k, v)
        return {"size": m.numbers.size(), "found": m.numbers.lookup(k)}

    def remove(k):
        m.numbers.remove(k)
        m.dense.remove(k)
        return {"size": m.numbers.size(), "dense": m.dense.size()}

    def export():
        (keys, values), (rows_keys, rows) = m.numbers.export(), m.rows.export()
        return {"keys": keys, "values": values, "rows_keys": rows_keys, "rows": rows}

    def dense(k, v):
        old = m.dense.lookup(k)
        m.dense.insert(k, v)
        return {"old": old, "new": m.dense.lookup(k), "size": m.dense.size()}

    def rows(k, v, adds):
        if adds:
            m.rows.insert(k, v)
        else:
            m.rows.remove(k[:2])
        for i in tf.range(3):
            m.rows.insert(k[:1] + i, v[:1] * tf.cast(i, tf.float32))
        return {"found": m.rows.lookup(k[None] + 1), "own": m.rows.lookup(k + 2, dynamic_default_values=v), "size": m.rows.size()}

    def unnamed(k):
        m.unnamed.insert(k, k * 2)
        m.unnamed.remove(k[:1])
        return {"found": m.unnamed.lookup(k), "size": m.unnamed.size()}

    def large(k, v):
        before, (keys, values) = m.large.lookup(k), m.large.export()
        m.large.insert(tf.reshape(k, [8, 10]), tf.reshape(v, [8, 10]))
        m.large.remove(k[:7])
        return {"before": before, "keys": keys, "values": values, "after": m.large.export()[0]}

    count = [4], [None]
    signatures = {
        "insert": (insert, dict(k=(count[1], tf.int64), v=count[1])),
        "remove": (remove, dict(k=([3], tf.int64))),
        "export": (export, {}),
        "dense": (dense, dict(k=(count[0], tf.int64), v=(count[0], tf.int64))),
        "rows": (rows, dict(k=(count[0], tf.int32), v=[4, 2], adds=([], tf.bool))),
        "unnamed": (unnamed, dict(k=([2], tf.int64))),
        "large": (large, dict(k=([80], tf.int64), v=([80], tf.int32))),
    }
    keys = lambda n, low, high, dtype=np.int64: draw.integers(low, high, n).astype(dtype)
    calls = [("export", {}), ("insert", dict(k=np.array([3, 5, 7, 3]), v=real(4))), ("export", {}), ("remove", dict(k=np.array([5, 6, 70])))]
    for n in 1, 4, 9, 14:
        calls += [("insert", dict(k=keys(n, -40, 40), v=real(n, seed=n))), ("export", {})]
    calls += [("remove", dict(k=calls[-2][1]["k"][:3])), ("export", {})]
    calls += [("dense", dict(k=keys(4, 0, 20), v=keys(4, 0, 99))) for _ in range(3)]
    for i in range(4):
        calls += [("rows", dict(k=keys(4, 0, 6, np.int32), v=real(4, 2, seed=i), adds=np.array(i % 2 == 0))), ("export", {})]
    calls += [("unnamed", dict(k=np.array(k))) for k in ([7, 9], [9, 1], [1, 9])]
    return m, signatures, calls + [("large", dict(k=keys(80, -900, 3000), v=keys(80, 0, 99, np.int32))) for _ in range(2)]


@module
def growing_variables():
    """Variables whose declared shape leaves axes open and whose calls give them values of several sizes: joined, cut, filtered, emptied,
    in branches and loops, along inner axes and along two, changed in place, and one whose size stays."""
    m, draw = tf.Module(), np.random.default_rng(5)
    m.rows = tf.Variable(tf.zeros([0, 4]), shape=[None, 4])
    m.cache = tf.Variable(real(2, 3, 5), shape=[2, None, 5])
    m.numbers = tf.Variable([1, 2], shape=[None], dtype=tf.int64)
    m.both = tf.Variable(tf.ones([1, 2]), shape=[None, None])
    m.same = tf.Variable(tf.zeros([2, 3]), shape=[None, 3])

    def push(x):
        m.rows.assign(tf.concat([m.rows, x], 0))
        return {"sum": tf.reduce_sum(m.rows, 0), "shape": tf.shape(m.rows), "all": m.rows.read_value(), "sorted": tf.sort(m.rows, 0)}

    def drop():
        m.rows.assign(m.rows[1:])
        return {"mean": tf.reduce_mean(m.rows, 0), "n": tf.shape(m.rows)[0]}

    def clear():
        m.rows.assign(tf.zeros([0, 4]))
        m.numbers.assign([7])
        return {"shape": tf.shape(m.rows)}

    def attend(q):
        m.cache.assign(tf.concat([m.cache, q], 1))
        return {"y": tf.matmul(tf.nn.softmax(tf.matmul(q, m.cache, transpose_b=True)), m.cache)}

    def number(x):
        if x > 5:
            m.numbers.assign(tf.concat([m.numbers, x[None]], 0))
        m.numbers.assign_add(tf.ones_like(m.numbers))
        m.numbers.scatter_update(tf.IndexedSlices(x[None] * 2, [0]))
        return {"last": m.numbers[-1], "total": tf.reduce_sum(m.numbers), "first": m.numbers.sparse_read([0])}

    def kept(x):
        m.numbers.assign(tf.boolean_mask(x, x > 3))
        return {"all": m.numbers.read_value(), "size": tf.size(m.numbers)}

    def rounds(x, n):
        for i in tf.range(n):
            m.rows.assign(tf.concat([m.rows, (x * tf.cast(i, tf.float32))[None]], 0))
            if tf.shape(m.rows)[0] > 5:
                m.rows.assign(m.rows[2:])
        return {"all": m.rows.read_value()}

    def square(x):
        wide = tf.concat([tf.concat([m.both, m.both * x[0]], 0), tf.concat([m.both * x[1], m.both + 1], 0)], 1)
        m.both.assign(wide[:5, :7])
        return {"all": m.both.read_value(), "sum": tf.reduce_sum(m.both, 1), "shape": tf.shape(m.both)}

    def same(x):
        m.same.assign(m.same + x)
        return {"y": m.same.read_value()}

    signatures = {
        "push": (push, dict(x=[2, 4])), "drop": (drop, {}), "clear": (clear, {}), "attend": (attend, dict(q=[2, 1, 5])), "number": (number, dict(x=([], tf.int64))),
        "kept": (kept, dict(x=([5], tf.int64))), "rounds": (rounds, dict(x=[4], n=([], tf.int32))), "square": (square, dict(x=[2])), "same": (same, dict(x=[2, 3])),
    }
    calls = []
    for i in range(2):
        calls += [("push", dict(x=real(2, 4, seed=i))), ("push", dict(x=real(2, 4, seed=i + 5))), ("drop", {}), ("attend", dict(q=real(2, 1, 5, seed=i)))]
        calls += [("number", dict(x=np.int64(7))), ("number", dict(x=np.int64(3))), ("attend", dict(q=real(2, 1, 5, seed=i + 9))), ("same", dict(x=real(2, 3, seed=i)))]
        calls += [("rounds", dict(x=real(4, seed=i), n=np.int32(i + 3))), ("square", dict(x=real(2, seed=i))), ("square", dict(x=real(2, seed=i + 2)))]
        calls += [("kept", dict(x=draw.integers(0, 9, 5))), ("number", dict(x=np.int64(8))), ("clear", {}), ("push", dict(x=real(2, 4, seed=i + 3)))]
    return m, signatures, calls


@module
def lists():
    """Lists whose length only values tell: all their elements, what is computed of these, and elements one behind the other."""
    array = lambda n=0: tf.TensorArray(tf.float32, n, dynamic_size=True, clear_after_read=False, element_shape=None)

    def until(x, limit):
        """Rounds until a sum is large, at most 12, as a decoder stops."""
        i, kept = 0, array()
        while i < 12 and tf.reduce_sum(x) < limit:
            x, kept, i = x * 1.5, kept.write(i, x), i + 1
        all = kept.stack()
        return {"all": all, "rounds": i, "largest": tf.reduce_max(tf.concat([all, [x]], 0), 0), "scaled": all * 2 - 1}

    def joined(x, limit):
        """Rows of two numbers one behind the other, of those rounds in which the sum is odd."""
        n, kept = 0, array()
        for i in tf.range(9):
            if (tf.cast(x[0], tf.int32) + i) % 2 == 1 and tf.cast(i, tf.float32) < limit:
                kept, n = kept.write(n, x * tf.cast(i, tf.float32)), n + 1
        return {"all": kept.concat(), "mean": tf.reduce_sum(kept.stack()) / tf.cast(tf.maximum(n, 1), tf.float32)}

    def collatz(n):
        """Each number on the way to 1, and their order by size."""
        i, kept = 0, tf.TensorArray(tf.int32, 0, dynamic_size=True)
        while n > 1 and i < 40:
            kept, i = kept.write(i, n), i + 1
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        way = kept.stack()
        return {"way": way, "odd": tf.boolean_mask(way, way % 2 == 1), "highest": tf.reduce_max(way)}

    def rested(x):
        """Nothing counts these rounds: what they divide and multiply comes to rest."""
        i, kept, scale = 0, array(), tf.constant(1.0)
        while tf.reduce_max(tf.abs(x)) * scale > 0.01:
            x, scale, kept, i = x / 3.0, scale * 1.25, kept.write(i, x * scale), i + 1
        return {"all": kept.stack(), "rounds": i}

    signatures = {"rested": (rested, dict(x=[3])), "until": (until, dict(x=[4], limit=[])), "joined": (joined, dict(x=[2], limit=[])), "collatz": (collatz, dict(n=([], tf.int32)))}
    calls = [("until", dict(x=abs(real(4)), limit=np.float32(l))) for l in (50, 2.5, 1e9)]
    calls += [("joined", dict(x=np.float32([v, 2]), limit=np.float32(l))) for v, l in [(3, 9), (4, 6), (4, 0)]]
    calls += [("rested", dict(x=real(3) * np.float32(s))) for s in (1, 1e4, 1e-3)]
    calls += [("collatz", dict(n=np.int32(n))) for n in (2, 7, 27)]
    return tf.Module(), signatures, calls


def save_version1(out, graph, init, ends):
    c = tf.compat.v1
    info = lambda ts: {k: c.saved_model.build_tensor_info(t) for k, t in ts.items()}
    with c.Session(graph=graph) as session:
        session.run(init)
        builder = c.saved_model.Builder(out)
        signatures = {k: c.saved_model.build_signature_def(info(i), info(o), k) for k, (i, o) in ends.items()}
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()


def caller_version1(out, ends):
    """Calls signatures in a session of its own, over one state."""
    c = tf.compat.v1
    session = c.Session(graph=tf.Graph())
    with session.graph.as_default():
        c.saved_model.load(session, ["serve"], out)
    return lambda key, inputs: session.run({k: t.name for k, t in ends[key][1].items()}, {ends[key][0][k].name: v for k, v in inputs.items()})


def write(name):
    out = os.path.join(os.path.dirname(__file__), "..", "testdata", "modules", name)
    shutil.rmtree(out, ignore_errors=True)
    m, signatures, calls = MODULES[name]()
    if isinstance(m, tf.Graph):
        save_version1(f"{out}/saved_model", m, *signatures)
        return record(out, calls, caller_version1(f"{out}/saved_model", signatures[1]))
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
    call = lambda key, inputs: loaded.signatures[key](**{k: tf.constant(v) for k, v in inputs.items()})
    record(out, calls, lambda key, inputs: {k: v.numpy() for k, v in call(key, inputs).items()})


def record(out, calls, call):
    """Writes calls with their inputs and TensorFlow's answers."""
    with open(f"{out}/calls.jsonl", "w") as lines:
        for i, (key, inputs) in enumerate(calls):
            np.savez(f"{out}/in{i}.npz", **inputs)
            np.savez(f"{out}/out{i}.npz", **call(key, inputs))
            lines.write(json.dumps({"signature": key, "inputs": f"in{i}.npz", "expect": f"out{i}.npz"}) + "\n")


for wanted in sys.argv[1:] or MODULES:
    write(wanted)
