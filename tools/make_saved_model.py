#!/usr/bin/env python3
"""Writes SavedModels that are not frozen to testdata/, with TensorFlow's answers: all of them, or those that are named.

saved_model: a dense layer, a table that is gathered from, and a loop that reads a variable; the variables are in the checkpoint.
keras3:      a Keras 3 model as `tf.saved_model.save` writes it: two handles of each variable, one of which is restored.
signatures:  two signatures over the same weights, none of which is `serving_default`.
marked:      two functions with `jit_compile=True`: the first reads a variable and changes another, the second reads that one.
"""
import os
import shutil
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np
import tensorflow as tf


class Model(tf.Module):
    def __init__(self):
        rng = np.random.default_rng(7)
        self.w = tf.Variable(rng.normal(size=(4, 3)).astype(np.float32), name="dense/kernel")
        self.b = tf.Variable(rng.normal(size=3).astype(np.float32), name="dense/bias")
        self.same_name = tf.Variable(rng.normal(size=(5, 3)).astype(np.float32), name="dense/kernel")

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x"), tf.TensorSpec([3], tf.int32, name="i")])
    def __call__(self, x, i):
        y = tf.nn.relu(x @ self.w + self.b)
        for _ in tf.range(3):
            y = y * 0.5 + tf.reduce_sum(self.same_name, 0)
        return {"y": y, "rows": tf.gather(self.same_name, i)}


def folder(name):
    out = os.path.join(os.path.dirname(__file__), "..", "testdata", name)
    shutil.rmtree(out, ignore_errors=True)
    return out


def answer(out, signature, feeds, names):
    """Calls a signature as TensorFlow loads it; keys of the feeds are `names` of them."""
    shutil.rmtree(os.path.join(out, "assets"), ignore_errors=True)
    results = tf.saved_model.load(out).signatures[signature](**feeds)
    np.savez(os.path.join(out, "expect.npz"), **{k: v.numpy() for k, v in results.items()})
    np.savez(os.path.join(out, "feeds.npz"), **{names.get(k, k): v for k, v in feeds.items()})


def saved_model(out):
    model = Model()
    tf.saved_model.save(model, out, signatures=model.__call__)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    answer(out, "serving_default", {"x": x, "i": np.array([4, 1, 0], np.int32)}, {"x": "serving_default_x", "i": "serving_default_i"})


def keras3(out):
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(2)])
    for i, w in enumerate(model.weights):
        w.assign(w.numpy() + 0.1 * i)
    tf.saved_model.save(model, out)
    answer(out, "serving_default", {"inputs": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}, {})


def signatures(out):
    module = tf.Module()
    module.w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), name="w")
    module.unused = tf.Variable(1.0, name="unused")
    x = tf.TensorSpec([None, 4], tf.float32, name="x")
    scale = tf.TensorSpec([], tf.float32, name="scale")
    score = tf.function(lambda x, scale: {"logits": (x @ module.w) * scale, "best": tf.argmax(x @ module.w, 1)})
    embed = tf.function(lambda x: {"vector": tf.tanh(x @ module.w)})
    tf.saved_model.save(module, out, signatures={"score": score.get_concrete_function(x, scale), "embed": embed.get_concrete_function(x)})
    x = np.linspace(-2, 1, 8, dtype=np.float32).reshape(2, 4)
    answer(out, "score", {"x": x, "scale": np.float32(0.5)}, {})


def marked(out):
    module = tf.Module()
    module.w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), name="w")
    module.seen = tf.Variable(np.zeros(3, np.float32), name="seen")

    @tf.function(jit_compile=True)
    def count(x):
        y = tf.nn.relu(x @ module.w) + module.seen
        module.seen.assign_add(tf.reduce_sum(y, 0))
        return tf.nn.softmax(tf.tanh(y) * 2.0 - 1.0)

    @tf.function(jit_compile=True)
    def weigh(y):
        return tf.exp(y) * module.seen + tf.sqrt(tf.abs(y)) - 3.0

    @tf.function(input_signature=[tf.TensorSpec([2, 4], tf.float32, name="x")])
    def serve(x):
        y = count(x)
        return {"y": y, "z": weigh(y)}

    module.serve = serve
    tf.saved_model.save(module, out, signatures=serve)
    answer(out, "serving_default", {"x": np.linspace(-2, 1, 8, dtype=np.float32).reshape(2, 4)}, {})


MADE = {f.__name__: f for f in (saved_model, keras3, signatures, marked)}

for name in sys.argv[1:] or MADE:
    MADE[name](folder(name))
