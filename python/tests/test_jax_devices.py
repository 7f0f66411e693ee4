"""JAX programs on four devices by tfaot's plugin beside JAX's own backend: the same function, arrays and shardings in one process.

`TFAOT_PJRT` names the plugin's library. What is random is drawn from fixed seeds.
"""

import os
import random
import tempfile
import unittest
from pathlib import Path

import installed_plugin  # noqa: F401

import jax

jax.config.update("jax_num_cpu_devices", 4)

import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.experimental.compilation_cache import compilation_cache
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

BACKENDS = [jax.devices("tfaot"), jax.devices("cpu")]

# Of x f32[4,8] and y f32[8,4]; results are f32[4,8] again, so that they follow each other.
STEPS = {
    "sine": lambda x, y: jnp.sin(x), "scale": lambda x, y: x * 0.5 + 1, "select": lambda x, y: jnp.where(x > 0, x, -2 * x),
    "clip": lambda x, y: jnp.clip(x, -1, 1), "add": lambda x, y: x + y.T, "matmul": lambda x, y: (x @ y) @ y.T / 8,
    "softmax": lambda x, y: jax.nn.softmax(x, 1), "center": lambda x, y: x - x.mean(0), "sort": lambda x, y: jnp.sort(x, 0),
    "cumsum": lambda x, y: jnp.cumsum(x, 1) / 4, "reverse": lambda x, y: x[::-1], "roll": lambda x, y: jnp.roll(x, 1, 1),
    "transpose": lambda x, y: x.T.reshape(4, 8), "gather": lambda x, y: x[jnp.array([3, 1, 0, 1])], "pad": lambda x, y: jnp.pad(x, 1)[:4, 2:],
    "scan": lambda x, y: lax.scan(lambda c, v: (c + v, c * 0.5 + v), x[0], x)[1], "cond": lambda x, y: lax.cond(x[0, 0] > 0, lambda: x + 1, lambda: x * 2),
    "while": lambda x, y: lax.fori_loop(0, 3, lambda i, v: v * 0.5 + x, x), "window": lambda x, y: lax.reduce_window(x, 0.0, lax.add, (3, 1), (1, 1), "SAME"),
    "gradient": lambda x, y: jax.grad(lambda a: jnp.sum(jnp.tanh(a @ y) ** 2))(x), "vmap": lambda x, y: jax.vmap(lambda v: v / (1 + v @ v))(x),
    "update": lambda x, y: x.at[1, 2:5].set(0.5), "concatenate": lambda x, y: jnp.concatenate([x[2:], x[:2]]), "random": lambda x, y: x + jax.random.uniform(jax.random.key(3), (4, 8)),
    "outer": lambda x, y: jnp.einsum("ij,kj->ik", x, x) @ x / 8, "convert": lambda x, y: x.astype(jnp.int32).astype(jnp.float32),
}
SPECS = [P(), P("i"), P("j"), P("i", "j"), P("j", "i"), P(None, "i"), P(None, "j"), P(("i", "j")), P(None, ("j", "i"))]
# What each device computes of its part, with the parts' specifications.
BY_HAND = {
    "psum": (lambda x: lax.psum(x, "i"), P("i", "j"), P(None, "j")), "pmean of both": (lambda x: lax.pmean(x, ("i", "j")), P("i", "j"), P()),
    "pmax": (lambda x: lax.pmax(x, "j"), P("i", "j"), P("i")), "all_gather": (lambda x: lax.all_gather(x, "i", tiled=True).sum(0, keepdims=True), P("i"), P("i")),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]), P("i"), P("i")), "one way": (lambda x: lax.ppermute(x, "j", [(0, 1)]), P(None, "j"), P(None, "j")),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "j", scatter_dimension=1, tiled=True), P("i"), P("i", "j")),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), P("i"), P(None, "i")), "axis_index": (lambda x: x + lax.axis_index("i") * 2 + lax.axis_index("j"), P("i", "j"), P("i", "j")),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, v: lax.ppermute(v, "j", [(0, 1), (1, 0)]) + 1, x), P("i", "j"), P("i", "j")),
    "norm": (lambda x: x / jnp.sqrt(lax.psum(jnp.sum(x * x), ("i", "j"))), P(("i", "j")), P(("i", "j"))),
}


def array(*dims: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(dims).astype("float32")


class TestDevices(unittest.TestCase):
    def both(self, run) -> None:
        """Compares what `run` returns for a mesh of tfaot's devices with that for JAX's: values, and how they are divided."""
        answers = []
        for devices in BACKENDS:
            mesh = Mesh(np.array(devices).reshape(2, 2), ("i", "j"), axis_types=(AxisType.Auto, AxisType.Auto))
            answers.append(jax.tree.leaves(run(mesh)))
        for ours, theirs in zip(*answers, strict=True):
            self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-5, atol=2e-5)

    def test_random_programs_of_sharded_arrays(self) -> None:
        for seed in range(int(os.environ.get("TFAOT_DRAWS", "40"))):
            draw = random.Random(seed)
            names = draw.sample(sorted(STEPS), draw.randint(1, 4))
            specs = [draw.choice(SPECS) for _ in range(3)]
            constraint, stated = draw.random() < 0.3, draw.random() < 0.5

            def program(x, y, mesh):
                for name in names:
                    x = STEPS[name](x, y)
                    if constraint:
                        x = lax.with_sharding_constraint(x, NamedSharding(mesh, specs[2]))
                return x

            def run(mesh):
                x, y = (jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip((array(4, 8), array(8, 4)), specs))
                out = {"out_shardings": NamedSharding(mesh, specs[2])} if stated else {}
                result = jax.jit(lambda x, y: program(x, y, mesh), **out)(x, y)
                if stated:
                    self.assertTrue(result.sharding.is_equivalent_to(NamedSharding(mesh, specs[2]), 2))
                return result

            with self.subTest(seed=seed, names=names, specs=specs):
                self.both(run)

    def test_programs_by_hand(self) -> None:
        for name, (function, given, wanted) in BY_HAND.items():
            with self.subTest(function=name):
                self.both(lambda mesh: jax.jit(shard_map(function, mesh=mesh, in_specs=given, out_specs=wanted, check_vma=False))(array(4, 8)))

    def test_parts_by_hand_inside_of_whole_arrays(self) -> None:
        def run(mesh):
            part = shard_map(lambda x: lax.psum(jnp.sin(x), "i"), mesh=mesh, in_specs=P("i", "j"), out_specs=P(None, "j"))
            step = jax.jit(lambda x: jnp.sort(part(jnp.cumsum(x, 0)) @ x[:2].T, 0) + lax.scan(lambda c, v: (c + part(v).sum(), c), 0.0, jnp.stack([x, x]))[0])
            return step(jax.device_put(array(4, 8), NamedSharding(mesh, P("i"))))

        self.both(run)

    def test_a_training_step_of_a_batch_in_parts(self) -> None:
        def run(mesh):
            x, y, w = array(8, 6), array(8, 3), array(6, 3)
            loss = lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)
            step = jax.jit(lambda w, x, y: w - 0.1 * jax.grad(loss)(w, x, y), donate_argnums=0)
            w = jax.device_put(w, NamedSharding(mesh, P()))
            batch = [jax.device_put(a, NamedSharding(mesh, P(("i", "j")))) for a in (x, y)]
            for _ in range(3):
                w = step(w, *batch)
            return w

        self.both(run)

    def test_pmap(self) -> None:
        for devices in BACKENDS:
            result = jax.pmap(lambda x: x - lax.pmean(x, "b"), axis_name="b", devices=devices)(array(4, 3))
            np.testing.assert_allclose(result, array(4, 3) - array(4, 3).mean(0), rtol=1e-5, atol=1e-6)

    def test_parts_along_one_axis_by_hand(self) -> None:
        steps = {
            "sum": (lambda x: lax.psum(x, "i"), P("i"), P()), "product": (lambda x: x @ x.T + lax.axis_index("i"), P("i"), P("i")),
            "constraint": (lambda x: jnp.sin(lax.with_sharding_constraint(x, P(None, "j"))) @ jnp.ones((8, 4)), P("i"), P("i")),
            "sums": (lambda x: lax.with_sharding_constraint(x, P("j")).sum(0, keepdims=True) * lax.psum(x.sum(), "i"), P(None, "i"), P(None, "i")),
        }
        for name, (function, given, wanted) in steps.items():
            for spec in SPECS[:6]:
                with self.subTest(step=name, spec=spec):
                    def run(mesh):
                        # in an order in which positions are not the devices' numbers
                        mesh = Mesh(mesh.devices.ravel()[[0, 3, 2, 1]].reshape(2, 2), ("i", "j"), axis_types=(AxisType.Auto, AxisType.Auto))
                        part = shard_map(function, mesh=mesh, in_specs=given, out_specs=wanted, axis_names={"i"}, check_vma=False)
                        return jax.jit(part)(jax.device_put(array(4, 8), NamedSharding(mesh, spec)))

                    self.both(run)

    def test_callbacks_see_whole_arrays_once_or_each_shard(self) -> None:
        like = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
        programs = {
            "whole": lambda x, call, note, mesh: call(x * 2), "sum": lambda x, call, note, mesh: call(x.sum(0)), "loop": lambda x, call, note, mesh: lax.map(call, x),
            "vmap": lambda x, call, note, mesh: jax.vmap(call)(x), "vmap of columns": lambda x, call, note, mesh: jax.vmap(call, 1, 1)(jnp.sin(x)),
            "by hand": lambda x, call, note, mesh: shard_map(call, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i", "j"))(x),
            "by hand in part": lambda x, call, note, mesh: shard_map(lambda x: call(lax.psum(x, "i")), mesh=mesh, in_specs=P("i"), out_specs=P())(x),
            "effect": lambda x, call, note, mesh: (note(x + 1), x)[1], "effect of rows": lambda x, call, note, mesh: (jax.vmap(note)(x), x)[1],
            "parts": lambda x, call, note, mesh: (note(x, partitioned=True), x)[1], "parts of a sine": lambda x, call, note, mesh: (note(jnp.sin(x), partitioned=True), x)[1],
            "parts in a function": lambda x, call, note, mesh: jax.jit(lambda x: (note(x * 2, x.sum(), partitioned=True), x)[1])(x),
            "parts of a constraint": lambda x, call, note, mesh: (note(lax.with_sharding_constraint(jnp.sort(x), NamedSharding(mesh, P("j"))), partitioned=True), x)[1],
        }
        for name, program in programs.items():
            for spec in (P("i"), P(None, "j"), P("i", "j"), P()):
                logs = [[], []]

                def run(mesh):
                    log = logs[0 if mesh.devices.flat[0] in BACKENDS[0] else 1]
                    seen = lambda x: log.append(np.asarray(x).round(4).tolist())
                    call = lambda x: jax.pure_callback(lambda a: (seen(a), np.cos(a))[1], like(x), x, vmap_method="sequential")
                    note = lambda *x, **options: jax.debug.callback(lambda *x: [seen(a) for a in x], *x, **options)
                    y = jax.jit(lambda x: program(x, call, note, mesh))(jax.device_put(array(4, 8), NamedSharding(mesh, spec)))
                    jax.block_until_ready(y)
                    jax.effects_barrier()
                    return y

                with self.subTest(program=name, spec=spec):
                    self.both(run)
                    self.assertEqual(*[sorted(map(str, log)) for log in logs])

    def test_results_have_a_sharding_whatever_operations_they_are_of(self) -> None:
        functions = {"erf": lax.erf, "acosh": jnp.arccosh, "asinh": jnp.arcsinh, "cosh": jnp.cosh, "sinh": jnp.sinh, "top_k": lambda x: lax.top_k(x, 2)}
        for name, function in functions.items():
            with self.subTest(function=name):
                self.both(lambda mesh: jax.jit(function)(jax.device_put(1 + abs(array(4, 8)), NamedSharding(mesh, P("i")))))

    def test_programs_of_several_devices_come_out_of_the_cache(self) -> None:
        mesh = Mesh(np.array(BACKENDS[0]), "i")
        part = lambda x: jnp.sin(x) + lax.psum(x.sum(), "i")
        with tempfile.TemporaryDirectory() as folder:
            jax.config.update("jax_compilation_cache_dir", folder)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            try:
                answers = []
                for _ in range(2):
                    jax.clear_caches()
                    y = jax.jit(shard_map(part, mesh=mesh, in_specs=P("i"), out_specs=P("i")))(array(4, 8))
                    answers.append((np.asarray(y).tolist(), y.sharding))
                    self.assertEqual(len(list(Path(folder).glob("*-cache"))), 1)
                self.assertEqual(*answers)
            finally:
                jax.config.update("jax_compilation_cache_dir", None)
                compilation_cache.reset_cache()

    def test_devices_have_one_result_of_a_callback(self) -> None:
        mesh, calls = Mesh(np.array(BACKENDS[0]), "i"), []
        count = lambda x: jax.pure_callback(lambda a: (calls.append(a.shape), np.float32(len(calls)))[1], jax.ShapeDtypeStruct((), jnp.float32), x)
        y = jax.jit(lambda x: count(x) + 0 * x)(jax.device_put(array(4, 8), NamedSharding(mesh, P("i"))))
        np.testing.assert_array_equal(y, np.ones((4, 8)))
        self.assertEqual(calls, [(4, 8)])

    def test_parts_that_no_sharding_states_are_refused(self) -> None:
        mesh = Mesh(np.array(BACKENDS[0]), "i")
        x = jax.device_put(array(4, 8), NamedSharding(mesh, P("i")))
        note = lambda x: jax.debug.callback(print, x, partitioned=True)
        for program in (lambda x: note(jnp.sort(x, 0)), lambda x: note(jnp.sort(x, 0) * 2), lambda x: lax.map(note, x)):
            with self.assertRaisesRegex(Exception, "a partitioned callback gets an array of which each device has the whole"):
                jax.jit(program)(x)


if __name__ == "__main__":
    unittest.main()
