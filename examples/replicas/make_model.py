"""Exports one step of training, twice: for four devices that have a quarter of the batch each, and for one that has all of it.

usage: python make_model.py [FOLDER]
"""
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

BATCH, INPUTS, HIDDEN, OUTPUTS, RATE = 32, 12, 24, 3, 0.2


def loss(weights, x, y):
    w1, b1, w2, b2 = weights
    hidden = jnp.tanh(x @ w1 + b1)
    return jnp.mean((hidden @ w2 + b2 - y) ** 2)


def step(x, y, w1, b1, w2, b2, mean):
    value, slopes = jax.value_and_grad(loss)((w1, b1, w2, b2), x, y)
    value, slopes = mean((value, slopes))
    return (value, *(w - RATE * s for w, s in zip((w1, b1, w2, b2), slopes)))


def alone(x, y, w1, b1, w2, b2):
    return step(x, y, w1, b1, w2, b2, lambda all: all)


def shared(x, y, w1, b1, w2, b2):
    return step(x, y, w1, b1, w2, b2, lambda all: jax.lax.pmean(all, "ranks"))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    shapes = [(BATCH, INPUTS), (BATCH, OUTPUTS), (INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,)]
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("ranks",))
    cut = jax.shard_map(
        shared,
        mesh=mesh,
        in_specs=(P("ranks"), P("ranks"), P(), P(), P(), P()),
        out_specs=(P(),) * 5,
        check_vma=False,
    )
    for name, function in [("shared", jax.jit(lambda x, y, w1, b1, w2, b2: cut(x, y, w1, b1, w2, b2))), ("alone", jax.jit(alone))]:
        (folder / f"{name}.jax").write_bytes(jax.export.export(function)(*args).serialize())


if __name__ == "__main__":
    main()
