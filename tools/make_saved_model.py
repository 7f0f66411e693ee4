#!/usr/bin/env python3
"""Writes testdata/saved_model: a SavedModel that is not frozen, with TensorFlow's answer.

A dense layer, a table that is gathered from, and a loop that reads a variable; the variables are in the checkpoint.
"""
import os
import shutil
import sys

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


def main():
    out = os.path.join(os.path.dirname(__file__), "..", "testdata", "saved_model")
    shutil.rmtree(out, ignore_errors=True)
    model = Model()
    tf.saved_model.save(model, out, signatures=model.__call__)
    shutil.rmtree(os.path.join(out, "assets"), ignore_errors=True)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    i = np.array([4, 1, 0], np.int32)
    loaded = tf.saved_model.load(out).signatures["serving_default"](x=x, i=i)
    np.savez(os.path.join(out, "expect.npz"), **{k: v.numpy() for k, v in loaded.items()})
    np.savez(os.path.join(out, "feeds.npz"), serving_default_x=x, serving_default_i=i)


sys.exit(main())
