"""JAX programs by tfaot's plugin beside JAX's own backend: the same function, the same arrays, two devices of one process.

`TFAOT_PJRT` names the plugin's library; `tools/jax_tests` runs JAX's own tests.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import installed_plugin  # noqa: F401

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
TFAOT, CPU = jax.devices("tfaot")[0], jax.devices("cpu")[0]
FLOATS, INTS = ("float32", "float64", "bfloat16"), ("int32", "uint8")

UNARY = {
    "sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh, "exp": jnp.exp, "log1p": lambda x: jnp.log1p(jnp.abs(x)), "sqrt": lambda x: jnp.sqrt(jnp.abs(x)),
    "logistic": jax.nn.sigmoid, "relu": jax.nn.relu, "gelu": jax.nn.gelu, "softmax": jax.nn.softmax, "sum": jnp.sum, "mean": lambda x: jnp.mean(x, 0),
    "max": lambda x: jnp.max(x, 1), "cumsum": lambda x: jnp.cumsum(x, 0), "sort": lambda x: jnp.sort(x, 1), "transpose": jnp.transpose,
    "reverse": lambda x: x[::-1], "window": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"), "tril": jnp.tril,
    "gram": lambda x: x @ x.T, "grad": lambda x: jax.grad(lambda y: jnp.sum(jnp.tanh(y) ** 2))(x), "erf": jax.scipy.special.erf,
    "argmax": lambda x: jnp.argmax(x, 1), "roll": lambda x: jnp.roll(x, 1, 0), "variance": lambda x: jnp.var(x, 1), "concat": lambda x: jnp.concatenate([x, x], 1),
    "take": lambda x: jnp.take(x, jnp.array([1, 0, 2]), 0), "where": lambda x: jnp.where(x > 0, x, -x), "pad": lambda x: jnp.pad(x, 1), "floor": jnp.floor,
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros_like(x[0]), x), "vmap": lambda x: jax.vmap(lambda y: y / (1 + jnp.sum(y * y)))(x),
    "norm": lambda x: x / (1e-3 + jnp.linalg.norm(x.astype(jnp.float32), axis=1, keepdims=True)).astype(x.dtype), "prod": lambda x: jnp.prod(x, 0),
    "logsumexp": lambda x: jax.scipy.special.logsumexp(x, 1), "flip": lambda x: jnp.flip(x, 1), "clip": lambda x: jnp.clip(x, -0.5, 0.5),
}
WHOLE = {
    "sum": jnp.sum, "cumsum": lambda x: jnp.cumsum(x, 1), "sort": lambda x: jnp.sort(x, 1), "max": lambda x: jnp.max(x, 0), "gram": lambda x: x @ x.T,
    "shift": lambda x: x << 1, "or": lambda x: x | 5, "divide": lambda x: x // 3, "remainder": lambda x: x % 5, "float": lambda x: x / 7, "sign": jnp.sign,
    "bincount": lambda x: jnp.bincount(jnp.clip(x.ravel(), 0, 9).astype(jnp.int32), length=10), "argsort": lambda x: jnp.argsort(x, 1),
    "one_hot": lambda x: jax.nn.one_hot(x[0] % 4, 4), "population": lax.population_count, "unique": lambda x: jnp.unique(x, size=4),
    "set": lambda x: x.at[1].set(3), "add_at": lambda x: x.at[:, 0].add(2), "gather": lambda x: x[jnp.array([2, 1, 1]), 1], "any": lambda x: jnp.any(x > 3, 1),
}
BINARY = {
    "add": jnp.add, "multiply": jnp.multiply, "subtract": jnp.subtract, "maximum": jnp.maximum, "divide": jnp.true_divide, "less": jnp.less,
    "matmul": lambda x, y: x @ y.T, "outer": lambda x, y: jnp.outer(x[0], y[0]), "einsum": lambda x, y: jnp.einsum("ij,kj->ik", x, y),
    "atan2": jnp.arctan2, "hypot": jnp.hypot, "power": lambda x, y: jnp.power(jnp.abs(x), y), "select": lambda x, y: jnp.where(x > y, x, y),
    "convolve": lambda x, y: jnp.convolve(x[0], y[0]), "dynamic": lambda x, y: lax.dynamic_update_slice(x, y[:1], (1, 0)),
    "while": lambda x, y: lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] + y, s[1] + 1), (x, 0))[0],
    "cond": lambda x, y: lax.cond(jnp.sum(x) > 0, lambda: x + y, lambda: x - y), "dense": lambda x, y: jax.nn.relu(x @ y.T + 1).sum(0),
    "vjp": lambda x, y: jax.vjp(lambda a: jnp.sin(a) * y, x)[1](y)[0], "jvp": lambda x, y: jax.jvp(jnp.exp, (x,), (y,))[1],
    "hessian": lambda x, y: jax.hessian(lambda a: jnp.sum(a**3) * y[0, 0])(x[0]), "remat": lambda x, y: jax.grad(lambda a: jnp.sum(jax.checkpoint(jnp.sin)(a) * y))(x),
}
PROGRAMS = {
    "normal": lambda: jax.random.normal(jax.random.key(3), (5, 7)), "uniform": lambda: jax.random.uniform(jax.random.key(0), (9,)),
    "gamma": lambda: jax.random.gamma(jax.random.key(1), 2.0, (6,)), "permutation": lambda: jax.random.permutation(jax.random.key(4), 20),
    "categorical": lambda: jax.random.categorical(jax.random.key(5), jnp.ones((3, 4)), axis=1), "linspace": lambda: jnp.linspace(0, 1, 17),
    "cholesky": lambda: jnp.linalg.cholesky(jnp.eye(6) * 3 + 0.1), "solve": lambda: jnp.linalg.solve(jnp.eye(5) * 2 + 0.3, jnp.arange(5.0)),
    "inverse": lambda: jnp.linalg.inv(jnp.eye(4) + 0.2), "determinant": lambda: jnp.linalg.det(jnp.eye(5) + 0.1), "singular": lambda: jnp.linalg.svd(jnp.arange(12.0).reshape(3, 4), compute_uv=False),
    "eigenvalues": lambda: jnp.linalg.eigvalsh(jnp.eye(4) + 0.5), "fft": lambda: jnp.fft.fft(jnp.arange(12.0)), "rfft2": lambda: jnp.fft.rfft2(jnp.arange(24.0).reshape(4, 6)),
    "ifft": lambda: jnp.fft.ifft(jnp.arange(8.0) + 1j), "interpolate": lambda: jnp.interp(jnp.linspace(0, 3, 9), jnp.arange(4.0), jnp.array([0.0, 2, 1, 5])),
    "resize": lambda: jax.image.resize(jnp.arange(16.0).reshape(4, 4), (7, 5), "bilinear"), "polynomial": lambda: jnp.polyval(jnp.arange(5.0), jnp.arange(4.0)),
    "convolution": lambda: lax.conv_general_dilated(jnp.ones((2, 3, 8, 8)), jnp.ones((4, 3, 3, 3)), (1, 1), "SAME"), "trapezoid": lambda: jnp.trapezoid(jnp.arange(9.0) ** 2),
    "associative": lambda: lax.associative_scan(jnp.multiply, jnp.arange(1.0, 8.0)), "map": lambda: lax.map(lambda x: x * x, jnp.arange(6.0)),
    "complex": lambda: jnp.exp(1j * jnp.arange(5.0)), "triangular": lambda: jax.scipy.linalg.solve_triangular(jnp.eye(4) + jnp.tril(jnp.ones((4, 4))), jnp.arange(4.0), lower=True),
    "top_k": lambda: lax.top_k(jnp.array([3.0, 1.0, 4.0, 1.0, 5.0]), 3), "histogram": lambda: jnp.histogram(jnp.arange(20.0), 5)[0], "digamma": lambda: jax.scipy.special.digamma(jnp.arange(1.0, 6.0)),
    "lgamma": lambda: jax.scipy.special.gammaln(jnp.arange(1.0, 9.0)), "bessel": lambda: jax.scipy.special.i0(jnp.arange(4.0)), "quantile": lambda: jnp.quantile(jnp.arange(11.0), jnp.array([0.2, 0.7])),
}


def arrays(dtype: str, count: int) -> list:
    random = np.random.default_rng(7)
    if dtype in INTS:
        return [random.integers(0, 9, (3, 4)).astype(dtype) for _ in range(count)]
    return [np.asarray(random.standard_normal((3, 4)), jnp.dtype(dtype)) for _ in range(count)]


class TestPlugin(unittest.TestCase):
    def both(self, function, args: list, tolerance: float) -> None:
        """Compares the results on tfaot's device with those on JAX's."""
        answers = []
        for device in (TFAOT, CPU):
            with jax.default_device(device):
                own = [jax.device_put(a, device) for a in args]
                answers.append([np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*own))])
        ours, theirs = answers
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            wide = "complex128" if np.iscomplexobj(a) else "float64"
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=tolerance, atol=tolerance)

    def table(self, table: dict, dtypes: tuple, count: int) -> None:
        for dtype in dtypes:
            tolerance = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 3e-2}.get(dtype, 1e-6)
            for name, function in table.items():
                with self.subTest(function=name, dtype=dtype):
                    self.both(function, arrays(dtype, count), tolerance)

    def test_functions_of_one_array(self) -> None:
        self.table(UNARY, FLOATS, 1)

    def test_functions_of_integers(self) -> None:
        self.table(WHOLE, INTS, 1)

    def test_functions_of_two_arrays(self) -> None:
        self.table(BINARY, FLOATS, 2)

    def test_programs(self) -> None:
        for name, function in PROGRAMS.items():
            with self.subTest(program=name):
                self.both(function, [], 2e-5)

    def test_the_device_says_what_it_is(self) -> None:
        self.assertEqual((TFAOT.platform, TFAOT.device_kind), ("cpu", "tfaot"))
        self.assertIn("tfaot ", TFAOT.client.platform_version)

    def test_eager_arithmetic_and_copies(self) -> None:
        with jax.default_device(TFAOT):
            x = jnp.arange(6.0).reshape(2, 3)
            self.assertEqual((x.T + 1)[2, 1], 6)
            whole = np.asfortranarray(np.arange(12).reshape(3, 4))
            np.testing.assert_array_equal(np.asarray(jax.device_put(whole, TFAOT)), whole)
            np.testing.assert_array_equal(np.asarray(jax.device_put(x, CPU)), np.asarray(x))

    def test_donated_arrays_are_gone(self) -> None:
        with jax.default_device(TFAOT):
            x = jax.device_put(np.arange(4.0), TFAOT)
            y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
            np.testing.assert_array_equal(np.asarray(y), [1, 2, 3, 4])
            self.assertTrue(x.is_deleted())

    def test_a_compiled_program_says_what_it_costs_and_is_serialized(self) -> None:
        from jax.experimental import serialize_executable

        with jax.default_device(TFAOT):
            compiled = jax.jit(lambda a: a @ a.T).lower(jnp.ones((8, 4))).compile()
            self.assertGreaterEqual(compiled.cost_analysis()["flops"], 2 * 8 * 8 * 4)
            self.assertEqual(compiled.memory_analysis().output_size_in_bytes, 8 * 8 * 8)
            self.assertIn("HloModule", compiled.as_text())
            again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled), execution_devices=[TFAOT])
            np.testing.assert_array_equal(np.asarray(again(jnp.ones((8, 4)))), np.full((8, 8), 4.0))

    def test_calls_from_several_threads_overlap(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with jax.default_device(TFAOT):
            function = jax.jit(lambda a: jnp.sin(a) @ a.T)
            args = [jax.device_put(np.full((64, 64), float(i)), TFAOT) for i in range(8)]
            wanted = [np.asarray(function(a)) for a in args]
            with ThreadPoolExecutor(8) as pool:
                for _ in range(20):
                    for got, want in zip(pool.map(function, args), wanted):
                        np.testing.assert_array_equal(np.asarray(got), want)

    def test_the_page_runs(self) -> None:
        page = (Path(__file__).parents[2] / "docs" / "pjrt.md").read_text()
        program = page.split("```python\n")[1].split("```")[0]
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "JAX_PLATFORMS": "tfaot"}, capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "tfaot\nTrue\nTrue 224\n", done.stderr)

    def test_the_object_of_the_page_is_linked_into_a_program_in_c(self) -> None:
        page = (Path(__file__).parents[2] / "docs" / "pjrt.md").read_text()
        page = page.split("## The object of a program\n")[1]
        program, main = (page.split(f"```{language}\n")[1].split("```")[0] for language in ("python", "c"))
        with tempfile.TemporaryDirectory() as folder:
            own = {**os.environ, "JAX_PLATFORMS": "tfaot", "PYTHONPATH": str(Path(__file__).parents[1])}
            registered = "from tfaot import jax_plugin\njax_plugin.initialize()\n"
            subprocess.run([sys.executable, "-c", registered + program], env=own, cwd=folder, check=True)
            Path(folder, "main.c").write_text(main)
            subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "main.c", "program.o", "-lm", "-o", "main"], cwd=folder, check=True)
            done = subprocess.run([Path(folder, "main")], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "0.3173 0.3334 0.3493\n0.3151 0.3352 0.3497\n")

    def test_what_is_not_supported_is_refused_by_name(self) -> None:
        with jax.default_device(TFAOT), self.assertRaisesRegex(Exception, "No such compile option"):
            jax.jit(lambda a: a + 1).lower(1.0).compile(compiler_options={"xla_nothing": True})


if __name__ == "__main__":
    unittest.main()
