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
    "varying one axis at a time": (P(None, "j"), P(), P("i"), P("i", "j"), lambda v, w, x: jnp.tanh(
        w.sum(1)[:, None] * v.sum(1)[None, :] + x.sum(1)[:, None])),
    "nested": (P("i", "j"), P("j"), P(), P("i"), lambda v, w, x: jnp.tanh(lax.psum(v @ w, "j"))),
}


# The networks of JAX's shard_map guide (https://docs.jax.dev/en/latest/notebooks/shard_map.html), in small.
SIZES = (16, 8, 8, 8, 4)  # of the features before, between and after the layers
BATCH, MICROBATCHES = 8, 4


def dense(h, weight, bias):
    return h @ weight + bias


def predict(params, h, layer):
    for weight, bias in params[:-1]:
        h = jax.nn.relu(layer(h, weight, bias))
    return layer(h, *params[-1])


def squares(prediction, y):
    return jnp.sum((prediction - y) ** 2)


def mapped(shape, names, specs, result, function):
    axes = (jax.sharding.AxisType.Auto,) * len(names)
    return jax.shard_map(function, mesh=jax.make_mesh(shape, names, axis_types=axes), in_specs=specs, out_specs=result)


def gathered(weight, axis):
    return lax.all_gather(weight, axis, axis=0, tiled=True)


def shared(h, weight, bias):
    return lax.psum_scatter(h @ weight, "tensor", scatter_dimension=1, tiled=True) + bias


def plain(params, x, y):
    return squares(predict(params, x, dense), y)


def data(params, x, y):
    return mapped((2,), ("fsdp",), (P(), P("fsdp"), P("fsdp")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, dense), y), "fsdp"))(params, x, y)


def fsdp(params, x, y):
    layer = lambda h, weight, bias: dense(h, gathered(weight, "fsdp"), gathered(bias, "fsdp"))
    return mapped((2,), ("fsdp",), (P("fsdp"), P("fsdp"), P("fsdp")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, layer), y), "fsdp"))(params, x, y)


def tensor(params, x, y):
    return mapped((2,), ("tensor",), (P("tensor"), P(None, "tensor"), P(None, "tensor")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, shared), y), "tensor"))(params, x, y)


def fsdp_tensor(params, x, y):
    layer = lambda h, weight, bias: shared(h, gathered(weight, "fsdp"), gathered(bias, "fsdp"))
    return mapped((2, 2), ("fsdp", "tensor"), (P(("tensor", "fsdp")), P("fsdp", "tensor"), P("fsdp", "tensor")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, layer), y), ("fsdp", "tensor")))(params, x, y)


def block(array, number, count):
    return lax.dynamic_slice_in_dim(array, number * (array.shape[1] // count), array.shape[1] // count, 1)


def fsdp_ring(params, x, y):
    turn_to_next = [(0, 1), (1, 0)]

    def layer(h, weight, bias):
        index = lax.axis_index("fsdp")
        product = block(h, index, 2) @ weight
        weight = lax.ppermute(weight, "fsdp", turn_to_next)
        return product + block(h, (index - 1) % 2, 2) @ weight + gathered(bias, "fsdp")

    return mapped((2,), ("fsdp",), (P("fsdp"), P("fsdp"), P("fsdp")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, layer), y), "fsdp"))(params, x, y)


def tensor_ring(params, x, y):
    turn_to_next = [(0, 1), (1, 0)]

    def layer(h, weight, bias):
        index = lax.axis_index("tensor")
        sums = lax.ppermute(h @ block(weight, (index - 1) % 2, 2), "tensor", turn_to_next)
        return sums + h @ block(weight, index, 2) + bias

    return mapped((2,), ("tensor",), (P("tensor"), P(None, "tensor"), P(None, "tensor")), P(),
                  lambda p, x, y: lax.psum(squares(predict(p, x, layer), y), "tensor"))(params, x, y)


def pipeline(params, x, y):
    stages = 2

    def middle(h, weights, biases):
        stage, rows = lax.axis_index("stages"), BATCH // MICROBATCHES
        received, finished = lax.pcast(jnp.zeros((rows, h.shape[1])), "stages", to="varying"), []
        for turn in range(MICROBATCHES + stages - 1):
            own = jnp.where(stage == 0, h[turn * rows:(turn + 1) * rows], received) if turn < MICROBATCHES else received
            for weight, bias in zip(weights, biases):
                own = jax.nn.relu(dense(own, weight, bias))
            if turn >= stages - 1:
                finished.append(jnp.where(stage == stages - 1, own, 0.0))
            received = lax.ppermute(own, "stages", [(i, i + 1) for i in range(stages - 1)])
        return lax.psum(jnp.concatenate(finished), "stages")

    h = jax.nn.relu(dense(x, *params[0]))
    weights, biases = (jnp.stack(list(parts)) for parts in zip(*params[1:-1]))
    h = mapped((stages,), ("stages",), (P(), P("stages"), P("stages")), P(), middle)(h, weights, biases)
    return squares(dense(h, *params[-1]), y)


def networks():
    """Loss and gradient, and the losses of three steps of SGD, which all networks agree on."""
    random = np.random.default_rng(11)
    draw = lambda *shape: np.round(random.standard_normal(shape) * 32) / 64
    params = [(draw(i, o), draw(o)) for i, o in zip(SIZES, SIZES[1:])]
    x, y = draw(3 * BATCH, SIZES[0]), draw(3 * BATCH, SIZES[-1])
    reference = None
    for network in (plain, data, fsdp, tensor, fsdp_tensor, fsdp_ring, tensor_ring, pipeline):
        step = jax.jit(jax.value_and_grad(lambda p, x, y: network(p, x, y) / BATCH))
        now, losses, first = params, [], None
        for turn in range(3):
            rows = slice(turn * BATCH, (turn + 1) * BATCH)
            loss, gradient = step(now, x[rows], y[rows])
            first = first or [np.asarray(leaf).ravel().tolist() for leaf in jax.tree.leaves(gradient)]
            losses.append(float(loss))
            now = jax.tree.map(lambda p, g: p - 0.1 * g, now, gradient)
        reference = reference or (losses, first)
        np.testing.assert_allclose(losses, reference[0], rtol=1e-12)
        for own, other in zip(first, reference[1]):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
    names = [f"fc{i}.{what}" for i in range(len(params)) for what in ("weight", "bias")]
    leaves = [leaf.ravel().tolist() for layer in params for leaf in layer]
    return {"params": dict(zip(names, leaves)), "x": x.ravel().tolist(), "y": y.ravel().tolist(),
            "losses": reference[0], "gradients": dict(zip(names, reference[1]))}


def main():
    OUT.mkdir(exist_ok=True)
    (OUT / "networks.json").write_text(json.dumps(networks()).replace('], "', '],\n"') + "\n")
    mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    random = np.random.default_rng(7)
    draw = lambda *shape: np.round(random.standard_normal(shape) * 64) / 64
    given = {"v": draw(8, 4), "w": draw(4, 4), "x": draw(8, 4)}
    rows = {}
    for name, (v_spec, w_spec, x_spec, out_spec, region) in ROWS.items():
        row = jax.shard_map(region, mesh=mesh, in_specs=(v_spec, w_spec, x_spec), out_specs=out_spec)

        def loss(v, w, x):
            return jnp.sum(row(v, w, x) ** 2)

        value, (v, w) = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(*given.values())
        rows[name] = {"loss": float(value), "v": np.asarray(v).ravel().tolist(), "w": np.asarray(w).ravel().tolist()}
    text = json.dumps({"given": {k: a.ravel().tolist() for k, a in given.items()}, "rows": rows})
    (OUT / "rows.json").write_text(text.replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    main()
