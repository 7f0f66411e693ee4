"""An installed wheel is all that a JAX program needs to run on tfaot.

The wheel is `TFAOT_WHEEL`, or else one that `tools/release` packs here of `TFAOT_BINARY` and `TFAOT_PJRT`, which may need LLVM's shared library.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

PROGRAM = """
import jax
import jax.numpy as jnp

print(jax.devices()[0].device_kind)
print(jax.jit(jax.grad(lambda x: jnp.sum(x * x)))(jnp.arange(3.0)).tolist())
"""


def release():
    """The module of `tools/release`, which has no suffix."""
    loader = SourceFileLoader("release", str(TOP / "tools" / "release"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def packed(folder: Path) -> Path:
    """A wheel in `folder` of the binary and the plugin that are here."""
    tools = release()
    tools.DIST = folder
    linker = shutil.which("ld.lld-22") or shutil.which("ld.lld")
    parts = [Path(path) for path in (os.environ["TFAOT_BINARY"], linker, os.environ["TFAOT_PJRT"])]
    return tools.wheel(tools.MACHINES["x86_64"], *parts)


class Wheel(unittest.TestCase):
    def test_an_installed_wheel_registers_the_plugin(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wheel = os.environ.get("TFAOT_WHEEL") or packed(folder)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "site", wheel]
            subprocess.run(pip, check=True)
            (folder / "program.py").write_text(PROGRAM)
            own = {key: value for key, value in os.environ.items() if not key.startswith("TFAOT_")}
            environment = {**own, "PYTHONPATH": str(folder / "site"), "JAX_PLATFORMS": "tfaot"}
            done = subprocess.run([sys.executable, "program.py"], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, check=True)
            self.assertEqual(done.stdout.split("\n"), ["tfaot", "[0.0, 2.0, 4.0]", ""])


if __name__ == "__main__":
    unittest.main()
