"""Losses and gradients of regions in local terms, by jax.shard_map: see README.md. usage: make_manual.py

Each row of the table in docs/manual-regions.md is one region, with the parameters v and w and the data x; the loss is
the sum of the squares of what it returns. test/e2e/check_manual.py has the same regions.
"""

import json
import os
import pathlib

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

jax.config.update("jax_enable_x64", True)
OUT = pathlib.Path(__file__).resolve().parent / "manual"


def index(axes):
    return lax.axis_index(axes).astype(jnp.float64) + 1.0


def varying(value, axes="i"):
    return lax.pcast(value, axes, to="varying")


def partial(value):
    return jnp.where(lax.axis_index("i") == 0, varying(value), 0.0)


# name -> (the specs of v, w and x, that of the result, the region)
ROWS = {
    "psum": (P("i"), P(), P(), P(), lambda v, w, x: lax.psum(jnp.tanh(v), "i")),
    "psum of partial": (P(), P(), P(), P(),
                        lambda v, w, x: lax.psum(partial(v) + partial(v) @ varying(w) * 2.0, "i")),
    "psum of invariant": (P(), P(), P(), P(), lambda v, w, x: jnp.tanh(lax.psum(varying(w), "i"))),
    "pvary": (P("i"), P(), P(), P("i"), lambda v, w, x: jnp.tanh(v @ w)),
    "pvary written": (P("i"), P(), P(), P("i"), lambda v, w, x: v * varying(w) * index("i")),
    "invariant as split": (P("i"), P(), P(), P("i"), lambda v, w, x: varying(w)),
    "partial as result": (P("i"), P(), P(), P(), lambda v, w, x: lax.psum(v.T @ v, "i")),
    "pgather": (P("i"), P(), P(), P("i"),
                lambda v, w, x: jnp.tanh((lambda all: all.T @ all)(lax.all_gather(v, "i", axis=0, tiled=True)) * index("i"))),
    "psum_scatter": (P("i"), P(), P(), P(None, "i"),
                     lambda v, w, x: lax.psum_scatter(jnp.tanh(v), "i", scatter_dimension=1, tiled=True)),
    "pswap": (P("i"), P(), P(), P(None, "i"),
              lambda v, w, x: jnp.tanh(lax.all_to_all(v, "i", split_axis=1, concat_axis=0, tiled=True) * index("i"))),
    "ppermute": (P("i"), P(), P(), P("i"),
                 lambda v, w, x: jnp.tanh(lax.ppermute(v, "i", [(0, 1), (1, 0)]) * index("i"))),
    "ppermute of some": (P("i"), P(), P(), P("i"),
                         lambda v, w, x: jnp.tanh(lax.ppermute(v, "i", [(0, 1)]) * index("i")) + v),
    "pmax": (P("i"), P(), P("i"), P("i"), lambda v, w, x: v * lax.pmax(x, "i")),
    "two axes": (P(("i", "j")), P(), P(), P(), lambda v, w, x: lax.psum(jnp.tanh(v), ("i", "j"))),
    "one of two axes": (P(("i", "j")), P(), P(), P("i"),
                        lambda v, w, x: lax.psum(jnp.tanh(v) * index(("i", "j")), "j")),
    "nested": (P("i", "j"), P("j"), P(), P("i"), lambda v, w, x: jnp.tanh(lax.psum(v @ w, "j"))),
}


def main():
    OUT.mkdir(exist_ok=True)
    mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    random = np.random.default_rng(7)
    draw = lambda *shape: np.round(random.standard_normal(shape) * 64) / 64
    given = {"v": draw(8, 4), "w": draw(4, 4), "x": draw(8, 4)}
    rows = {}
    for name, (v_spec, w_spec, x_spec, out_spec, region) in ROWS.items():
        mapped = jax.shard_map(region, mesh=mesh, in_specs=(v_spec, w_spec, x_spec), out_specs=out_spec)

        def loss(v, w, x):
            return jnp.sum(mapped(v, w, x) ** 2)

        value, (v, w) = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(*given.values())
        rows[name] = {"loss": float(value), "v": np.asarray(v).ravel().tolist(), "w": np.asarray(w).ravel().tolist()}
    text = json.dumps({"given": {k: a.ravel().tolist() for k, a in given.items()}, "rows": rows})
    (OUT / "rows.json").write_text(text.replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    main()
