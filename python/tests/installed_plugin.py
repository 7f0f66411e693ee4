"""Shows tfaot's plugin to JAX as an installed package would, beside JAX's own backend; to be imported before JAX."""

import os
import sys
import tempfile
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "tfaot,cpu"
DIST = tempfile.TemporaryDirectory()
INFO = Path(DIST.name) / "tfaot_plugin-0.dist-info"
INFO.mkdir()
(INFO / "METADATA").write_text("Metadata-Version: 2.1\nName: tfaot-plugin\nVersion: 0\n")
(INFO / "entry_points.txt").write_text("[jax_plugins]\ntfaot = tfaot.jax_plugin\n")
sys.path.insert(0, DIST.name)
