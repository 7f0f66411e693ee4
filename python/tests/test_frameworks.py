"""The package beside TensorFlow, Keras and JAX: objects of theirs compiled, and graphs that TensorFlow loads."""

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import tfaot

RANDOM = np.random.default_rng(5)


def near(test, have, want):
    want = np.asarray(want)
    test.assertEqual(have.shape, want.shape)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(want).max())))


def network():
    image = keras.Input((12, 12, 3), name="image")
    size = keras.Input((2,), name="size")
    x = keras.layers.Conv2D(8, 3, activation="relu")(image)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Concatenate()([x, size])
    return keras.Model([image, size], keras.layers.Dense(4, activation="softmax", name="scores")(x), name="small_net")


class Keras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        keras.utils.set_random_seed(1)
        cls.model = network()
        cls.image = RANDOM.standard_normal((3, 12, 12, 3), np.float32)
        cls.size = RANDOM.standard_normal((3, 2), np.float32)
        cls.want = cls.model.predict([cls.image, cls.size], verbose=0)

    def judge(self, compiled):
        self.assertEqual(sorted(compiled.inputs), ["image", "size"])
        (have,) = compiled(image=self.image, size=self.size).values()
        near(self, have, self.want)

    def test_a_model(self):
        compiled = tfaot.compile(self.model, dims=3)
        self.assertEqual(compiled.name, "small_net")
        self.judge(compiled)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("keras", "h5"):
                path = Path(folder) / f"net.{ending}"
                self.model.save(path)
                self.judge(tfaot.compile(path, dims=3))

    def test_a_saved_model_is_rewritten_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            saved, fast = Path(folder) / "saved", Path(folder) / "fast"
            self.model.export(str(saved), format="tf_saved_model", verbose=False)
            made = tfaot.rewrite(saved, fast, dims=3, flags=["--tf-xla-flags=--tf_xla_min_cluster_size=1"])
            self.assertTrue(made.library.is_file())
            function = made.load().signatures["serving_default"]
            (have,) = function(image=tf.constant(self.image), size=tf.constant(self.size)).values()
            near(self, have.numpy(), self.want)
            ops = {n.op for f in function.graph.as_graph_def().library.function for n in f.node_def}
            ops |= {n.op for n in function.graph.as_graph_def().node}
            self.assertTrue(any(op.startswith("Tfaot") or "Fast" in op or "cluster" in op.lower() for op in ops), ops)


class Functions(unittest.TestCase):
    def test_a_function_with_variables(self):
        weights = tf.Variable(RANDOM.standard_normal((5, 3), np.float32))
        x = RANDOM.standard_normal((4, 5), np.float32)

        @tf.function
        def scores(x):
            return {"scores": tf.nn.softmax(x @ weights), "best": tf.argmax(x @ weights, axis=1)}

        spec = [tf.TensorSpec((4, 5), tf.float32, name="x")]
        want = scores(x)
        for compiled in (
            tfaot.compile(scores, input_signature=spec),
            tfaot.compile(scores.get_concrete_function(*spec)),
            tfaot.compile(tf.function(scores.python_function, input_signature=spec)),
        ):
            have = compiled(x=x)
            near(self, have["scores"], want["scores"])
            np.testing.assert_array_equal(have["best"], want["best"])
        self.assertTrue(tfaot.check(scores, input_signature=spec))

    def test_a_function_without_signature_is_asked_for_one(self):
        with self.assertRaisesRegex(TypeError, "input_signature"):
            tfaot.compile(tf.function(lambda x: x))

    def test_what_blocks_a_function(self):
        @tf.function(input_signature=[tf.TensorSpec((2,), tf.string)])
        def lower(x):
            return tf.strings.lower(x)

        with self.assertRaises(tfaot.CompileError) as caught:
            tfaot.compile(lower)
        self.assertTrue(caught.exception.blockers)


@unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is not installed")
class Jax(unittest.TestCase):
    def test_an_exported_function(self):
        import jax
        import jax.numpy as jnp

        def layer(x, w):
            return jnp.tanh(x @ w), x.sum()

        x = RANDOM.standard_normal((4, 5)).astype(np.float32)
        w = RANDOM.standard_normal((5, 3)).astype(np.float32)
        exported = jax.export.export(jax.jit(layer))(x, w)
        have = list(tfaot.compile(exported)(x, w).values())
        for one, want in zip(have, layer(x, w)):
            near(self, one, want)


if __name__ == "__main__":
    unittest.main()
