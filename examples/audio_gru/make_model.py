"""Writes the SavedModel `model`: a GRU over blocks of 64 samples that keeps its hidden values in a variable.

process(x) gives the block filtered; reset() begins a new piece. Also writes `in.f32`, eight blocks, and `out.f32`, what TensorFlow
makes of them block after block.
"""
import sys

import numpy as np
import tensorflow as tf

BLOCK, UNITS = 64, 12


class Filter(tf.Module):
    def __init__(self):
        r = np.random.default_rng(3)
        number = lambda *dims: tf.constant(r.normal(0, 0.5, dims).astype(np.float32))
        self.w, self.u, self.b = number(1, 3 * UNITS), number(UNITS, 3 * UNITS), number(3 * UNITS)
        self.out = number(UNITS, 1)
        self.hidden = tf.Variable(tf.zeros([1, UNITS]), name="hidden")

    def cell(self, x, h):
        xz, xr, xn = tf.split(tf.reshape(x, [1, 1]) @ self.w + self.b, 3, axis=1)
        hz, hr, hn = tf.split(h @ self.u, 3, axis=1)
        z, r = tf.sigmoid(xz + hz), tf.sigmoid(xr + hr)
        return z * h + (1 - z) * tf.tanh(xn + r * hn)

    @tf.function(input_signature=[tf.TensorSpec([BLOCK], name="x")])
    def process(self, x):
        h, y = self.hidden.read_value(), tf.zeros([BLOCK])
        for i in tf.range(BLOCK):
            h = self.cell(x[i], h)
            y = tf.tensor_scatter_nd_update(y, [[i]], tf.reshape(h @ self.out, [1]))
        self.hidden.assign(h)
        return {"y": y}

    @tf.function(input_signature=[])
    def reset(self):
        self.hidden.assign(tf.zeros([1, UNITS]))
        return {"hidden": self.hidden.read_value()}


if __name__ == "__main__":
    model = Filter()
    tf.saved_model.save(model, sys.argv[1], signatures={"process": model.process, "reset": model.reset})
    t = np.arange(8 * BLOCK) / 8000
    x = (0.6 * np.sin(2 * np.pi * 440 * t) + 0.3 * np.sin(2 * np.pi * 1210 * t)).astype(np.float32)
    y = [model.process(tf.constant(block))["y"].numpy() for block in x.reshape(-1, BLOCK)]
    x.tofile("in.f32")
    np.concatenate(y).astype(np.float32).tofile("out.f32")
