"""Functions that JAX programs call on tfaot's plugin: callbacks of Python and handlers in C++, in the order of the program.

`TFAOT_PJRT` names the plugin's library. The handlers are compiled with `c++` against the headers that jaxlib has.
"""

import ctypes
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import installed_plugin  # noqa: F401

# The table of virtual functions of a class of LLVM, as another LLVM in the process would have it.
FOREIGN_LLVM = """
static void trap() { __builtin_trap(); }
extern "C" void (*_ZTVN4llvm6legacy11PassManagerE[])() = {0, 0, trap, trap, trap, trap, trap, trap, trap, trap};
"""


def built(source: str, *options: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    """The library that C++ source compiles to, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        file, library = Path(folder, "source.cc"), Path(folder, "source.so")
        file.write_text(source)
        subprocess.run(["c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *options, file, "-o", library], check=True)
        return ctypes.CDLL(str(library), mode=mode)


# All libraries that are loaded from now on find it, as they find TensorFlow's.
built(FOREIGN_LLVM, mode=ctypes.RTLD_GLOBAL)

import jax

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_default_device", jax.devices("tfaot")[0])

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import io_callback  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
SOURCE = r"""
#include <cstdint>
#include <memory>
#include <string>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error scale(ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> y, float factor, int64_t offset, std::string_view text,
                        ffi::Span<const int64_t> list, ffi::Dictionary nested) {
  auto inner = nested.get<int8_t>("u");
  if (text == "fail") return ffi::Error(ffi::ErrorCode::kAborted, "asked to fail");
  if (!inner.has_value()) return ffi::Error::InvalidArgument("no nested attribute");
  float more = static_cast<float>(offset + *inner + list[0] + list[1]);
  for (size_t i = 0; i < x.element_count(); i++) y->typed_data()[i] = x.typed_data()[i] * factor + more;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Scale, scale, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().Attr<float>("factor")
    .Attr<int64_t>("offset").Attr<std::string_view>("text").Attr<ffi::Span<const int64_t>>("list").Attr<ffi::Dictionary>("nested"));

struct Counter {
  static ffi::TypeId id;
  int64_t count;
  explicit Counter(int64_t start) : count(start) {}
  ~Counter() { deleted++; }
  static int64_t deleted;
};
ffi::TypeId Counter::id = {0};
int64_t Counter::deleted = 0;
static ffi::TypeInfo info = ffi::MakeTypeInfo<Counter>();
extern "C" void* CounterId() { return &Counter::id; }
extern "C" void* CounterInfo() { return &info; }
extern "C" int64_t Deleted() { return Counter::deleted; }

static ffi::ErrorOr<std::unique_ptr<Counter>> start(int64_t first) { return std::make_unique<Counter>(first); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(Start, start, ffi::Ffi::BindInstantiate().Attr<int64_t>("first"));

using Number = ffi::BufferR0<ffi::S64>;
static ffi::Error count(Counter* counter, ffi::Result<Number> y) {
  y->typed_data()[0] = counter->count++;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, count, ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<Number>());
"""


class Callbacks(unittest.TestCase):
    def test_values_come_back(self):
        def f(x):
            y = jax.pure_callback(lambda a: np.cumsum(a), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
            return jax.pure_callback(lambda a: (a.T, a.sum()), (jax.ShapeDtypeStruct((3, 2), x.dtype), SCALAR), y.reshape(2, 3))

        x = jnp.arange(6, dtype=jnp.float32)
        turned, total = jax.jit(f)(x)
        np.testing.assert_array_equal(turned, np.cumsum(x).reshape(2, 3).T)
        self.assertEqual(total, np.cumsum(x).sum())
        for dtype in ("bfloat16", "int8", "bool", "complex64", "float8_e4m3fn", "uint4"):
            x = jnp.arange(4).astype(dtype)
            np.testing.assert_array_equal(jax.jit(lambda x: jax.pure_callback(lambda a: a[::-1], x, x))(x), x[::-1])

    def test_effects_are_ordered_and_counted(self):
        log = []

        def note(tag):
            return lambda *x: log.append((tag, *map(float, x)))

        @jax.jit
        def f(x):
            def cond(c):
                jax.debug.callback(note("test"), c)
                return c < 3

            def body(c):
                io_callback(note("round"), None, c, ordered=True)
                return jax.lax.cond(c > 1, lambda: (io_callback(note("big"), None, c, ordered=True), c + 1)[1], lambda: c + 1)

            io_callback(note("first"), None, ordered=True)
            x = jax.lax.while_loop(cond, body, x)
            y = jax.lax.scan(lambda c, a: (io_callback(note("step"), None, a, ordered=True), (c + a, a))[1], x, jnp.arange(2.0))
            io_callback(note("last"), None, y[0], ordered=True)
            return y[0]

        for _ in range(2):
            log.clear()
            self.assertEqual(f(1.0), 4)
            jax.effects_barrier()
            self.assertEqual(
                [entry for entry in log if entry[0] != "test"],
                [("first",), ("round", 1), ("round", 2), ("big", 2), ("step", 0), ("step", 1), ("last", 4)],
            )
            self.assertEqual([entry[1] for entry in log if entry[0] == "test"], [1, 2, 3])

    def test_errors_keep_their_message(self):
        def f(x):
            return jax.pure_callback(lambda a: 1 / 0, SCALAR, x)

        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, "ZeroDivisionError"):
            jax.block_until_ready(jax.jit(f)(1.0))
        self.assertEqual(jax.jit(lambda x: x + 1)(1.0), 2)

    def test_callbacks_run_programs(self):
        inner = jax.jit(lambda x: x * 2)
        f = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(inner(a)), SCALAR, x) + 1)
        self.assertEqual(f(3.0), 7)

    def test_one_of_several_devices_calls(self):
        mesh = Mesh(np.array(jax.devices("tfaot")), ["d"])
        log = []

        def f(x):
            io_callback(lambda a: log.append(float(a)), None, x.sum(), ordered=False)
            return x + io_callback(lambda a: a.max(), SCALAR, x, ordered=False)

        x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("d")))
        np.testing.assert_array_equal(jax.jit(f)(x), np.arange(4.0) + 3)
        self.assertEqual(log, [6])
        g = jax.shard_map(lambda x: (jax.debug.callback(lambda a: log.append(a.tolist()), x), x)[1], mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec("d"))
        log.clear()
        jax.block_until_ready(jax.jit(g)(x))
        self.assertEqual(sorted(log), [[0, 1], [2, 3]])


class Handlers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = built(SOURCE, f"-I{jax.ffi.include_dir()}")
        pointer = lambda name: jax.ffi.pycapsule(getattr(cls.library, name))  # noqa: E731
        jax.ffi.register_ffi_target("scale", pointer("Scale"), platform="cpu")
        for name in ("CounterId", "CounterInfo"):
            getattr(cls.library, name).restype = ctypes.c_void_p
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        type_id, info = (capsule(getattr(cls.library, name)(), None, None) for name in ("CounterId", "CounterInfo"))
        jax.ffi.register_ffi_type("counter", {"type_id": type_id, "type_info": info}, platform="cpu")
        jax.ffi.register_ffi_target("count", {"instantiate": pointer("Start"), "execute": pointer("Count")}, platform="cpu")

    def scale(self, x, text="ok", **more):
        call = jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype), **more)
        return call(x, factor=np.float32(1.5), offset=2, text=text, list=np.array([3, 4]), nested={"u": np.int8(-1)})

    def test_attributes_and_arrays(self):
        x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
        np.testing.assert_array_equal(jax.jit(self.scale)(x), x * 1.5 + 8)
        f = jax.jit(lambda x: self.scale(x, input_output_aliases={0: 0}) + x)
        np.testing.assert_array_equal(f(x), x * 2.5 + 8)

    def test_errors_have_code_and_message(self):
        with self.assertRaisesRegex(jax.errors.JaxRuntimeError, "ABORTED: asked to fail"):
            jax.block_until_ready(jax.jit(lambda x: self.scale(x, "fail"))(jnp.ones(3)))
        with self.assertRaisesRegex(Exception, "no function is registered for the custom call `nobody`"):
            jax.jit(lambda x: jax.ffi.ffi_call("nobody", SCALAR)(x))(1.0)

    def test_a_call_keeps_a_state(self):
        with jax.enable_x64(True):
            f = jax.jit(lambda: jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((), jnp.int64), has_side_effect=True)(first=5))
            self.assertEqual([int(f()) for _ in range(3)], [5, 6, 7])
            del f
            jax.clear_caches()
        self.assertGreaterEqual(self.library.Deleted(), 1)

    def test_kernels_of_jaxlib_run(self):
        a = jnp.array([[1.0, 2.0], [0.0, 3.0]])
        x = jax.scipy.linalg.solve_sylvester(a, a, jnp.ones((2, 2)))
        np.testing.assert_allclose(a @ x + x @ a, np.ones((2, 2)), atol=1e-5)


if __name__ == "__main__":
    unittest.main()
