"""One SGD step of linear regression, by JAX: see README.md. usage: make_linear.py"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")
OUT = pathlib.Path(__file__).resolve().parent / "linear"
CASES = [(10, 5, 3), (7, 13, 1), (1, 1, 1), (16, 8, 4), (9, 3, 7), (32, 24, 10)]
LR = 0.1


def loss(parameters, x, y):
    return jnp.mean((x @ parameters["kernel"] + parameters["bias"] - y) ** 2)


def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return value, jax.tree.map(lambda p, g: p - LR * g, parameters, gradients)


def main():
    OUT.mkdir(exist_ok=True)
    cases = {}
    for number, (batch, inputs, outputs) in enumerate(CASES):
        random = np.random.default_rng(number)
        f32 = lambda *shape: random.standard_normal(shape).astype(np.float32)
        parameters = {"kernel": f32(inputs, outputs), "bias": f32(outputs)}
        x, y = f32(batch, inputs), f32(batch, outputs)
        double = jax.tree.map(lambda v: jnp.asarray(v, jnp.float64), (parameters, x, y))
        value, updated = step(*double)
        single_value, single = step(jax.tree.map(jnp.asarray, parameters), x, y)
        assert single_value.dtype == jnp.float32
        np.testing.assert_allclose(single_value, value, rtol=1e-6)
        for name in parameters:
            np.testing.assert_allclose(single[name], updated[name], atol=1e-6)
        name = f"{batch}-{inputs}-{outputs}"
        save_file(parameters, OUT / f"{name}.init.safetensors")
        save_file({"x": x, "y": y}, OUT / f"{name}.data.safetensors")
        save_file({k: np.asarray(v, np.float32) for k, v in updated.items()},
                  OUT / f"{name}.expected.safetensors")
        cases[name] = {"batch": batch, "in": inputs, "out": outputs, "lr": LR, "loss": float(value)}
    (OUT / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
