"""Thirty steps of a classifier with each optimizer, by PyTorch: see README.md. usage: make_mlp.py [VARIANT...]"""

import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

OUT = pathlib.Path(__file__).resolve().parent / "mlp"
SAMPLES, BATCH, STEPS = 64, 10, 30
IN, HIDDEN, CLASSES = 12, 17, 10
# What is not in the options is our rule's default, which is PyTorch's.
ADAM = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8}
OTHER = {"lr": 0.005, "betas": (0.8, 0.95), "eps": 1e-3}


def decayed(parameters, decay):
    """Weight decay only on parameters of rank two and more."""
    return [
        {"params": [p for p in parameters.values() if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in parameters.values() if p.dim() < 2], "weight_decay": 0.0},
    ]


# The factor of the rate and whether the parameter decays, and the same in our options.
GROUPS = {"fc1.weight": (0.1, True), "fc1.bias": (3.0, False), "fc2.weight": (2.5, False), "fc2.bias": (3.0, False), "head.weight": (1.0, True), "head.bias": (0.0, False)}
GROUP_OPTIONS = ["--lr-scale=fc1.*=0.1", "--lr-scale=*.bias=3", "--lr-scale=head.b*s=0", "--lr-scale=fc2.weight=2.5", "--no-decay=fc2.*"]


def grouped(parameters, lr, decay):
    """A group of its own for each parameter."""
    return [{"params": [p], "lr": lr * GROUPS[name][0], "weight_decay": decay if GROUPS[name][1] else 0.0} for name, p in parameters.items()]


class Lion(torch.optim.Optimizer):
    """Chen et al., Symbolic Discovery of Optimization Algorithms (2023), algorithm 2."""

    def __init__(self, groups, lr, betas=(0.9, 0.99)):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad)
                p.sub_(lr * (update + group["weight_decay"] * p))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


# name: our options, the norm to clip to, the optimizer, its states in a checkpoint
VARIANTS = {
    "sgd": (["--optimizer=sgd", "--lr=0.1"], None,
            lambda p: torch.optim.SGD(p.values(), lr=0.1), []),
    "momentum": (["--optimizer=sgd", "--lr=0.02", "--momentum=0.9"], None,
                 lambda p: torch.optim.SGD(p.values(), lr=0.02, momentum=0.9), ["momentum"]),
    "adam": (["--optimizer=adam", "--lr=0.01"], None,
             lambda p: torch.optim.Adam(p.values(), **ADAM), ["exp_avg", "exp_avg_sq"]),
    "adamw": (["--optimizer=adamw", "--lr=0.01"], None,
              lambda p: torch.optim.AdamW(decayed(p, 0.01), **ADAM), ["exp_avg", "exp_avg_sq"]),
    "clip": (["--optimizer=adamw", "--lr=0.01", "--clip=0.5"], 0.5,
             lambda p: torch.optim.AdamW(decayed(p, 0.01), **ADAM), ["exp_avg", "exp_avg_sq"]),
    "lion": (["--optimizer=lion", "--lr=0.002", "--weight-decay=0.1"], None,
             lambda p: Lion(decayed(p, 0.1), lr=0.002), ["exp_avg"]),
    # Every constant of each rule: test/e2e/check_hyperparameters.py gives them to programs compiled with others.
    "settings-sgd": (["--optimizer=sgd", "--lr=0.02", "--momentum=0.6", "--weight-decay=0.05", "--clip=0.7"], 0.7,
                     lambda p: torch.optim.SGD(decayed(p, 0.05), lr=0.02, momentum=0.6), ["momentum"]),
    "settings-adam": (["--optimizer=adam", "--lr=0.005", "--beta1=0.8", "--beta2=0.95", "--eps=1e-3", "--weight-decay=0.05", "--clip=0.3"],
                      0.3, lambda p: torch.optim.Adam(decayed(p, 0.05), **OTHER), ["exp_avg", "exp_avg_sq"]),
    "settings-adamw": (["--optimizer=adamw", "--lr=0.005", "--beta1=0.8", "--beta2=0.95", "--eps=1e-3", "--weight-decay=0.5", "--clip=0.3"],
                       0.3, lambda p: torch.optim.AdamW(decayed(p, 0.5), **OTHER), ["exp_avg", "exp_avg_sq"]),
    "settings-lion": (["--optimizer=lion", "--lr=0.002", "--beta1=0.8", "--beta2=0.95", "--weight-decay=0.3", "--clip=0.4"], 0.4,
                      lambda p: Lion(decayed(p, 0.3), lr=0.002, betas=(0.8, 0.95)), ["exp_avg"]),
    # Rates and decay of their own: test/e2e/check_hyperparameters.py and check_parameter_groups.py.
    "groups-sgd": (["--optimizer=sgd", "--lr=0.02", "--momentum=0.9", "--weight-decay=0.05", *GROUP_OPTIONS], None,
                   lambda p: torch.optim.SGD(grouped(p, 0.02, 0.05), momentum=0.9), ["momentum"]),
    "groups-adam": (["--optimizer=adam", "--lr=0.01", "--weight-decay=0.05", *GROUP_OPTIONS], None,
                    lambda p: torch.optim.Adam(grouped(p, 0.01, 0.05)), ["exp_avg", "exp_avg_sq"]),
    "groups-adamw": (["--optimizer=adamw", "--lr=0.01", "--weight-decay=0.5", "--clip=0.5", *GROUP_OPTIONS], 0.5,
                     lambda p: torch.optim.AdamW(grouped(p, 0.01, 0.5)), ["exp_avg", "exp_avg_sq"]),
    "groups-lion": (["--optimizer=lion", "--lr=0.002", "--weight-decay=0.3", *GROUP_OPTIONS], None,
                    lambda p: Lion(grouped(p, 0.002, 0.3), lr=0.002), ["exp_avg"]),
}


def forward(p, x):
    h = F.relu(x @ p["fc1.weight"] + p["fc1.bias"])
    h = F.relu(h @ p["fc2.weight"] + p["fc2.bias"])
    return h @ p["head.weight"] + p["head.bias"]


def train(init, data, make_optimizer, clip, dtype):
    p = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in init.items()}
    optimizer = make_optimizer(p)
    log = {"loss": [], "grad_norm": [], "accuracy": []}
    for step in range(STEPS):
        rows = [(step * BATCH + i) % SAMPLES for i in range(BATCH)]
        x = torch.tensor(data["x"][rows], dtype=dtype)
        label = torch.tensor(data["label"][rows], dtype=torch.int64)
        logits = forward(p, x)
        loss = F.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(p.values(), clip if clip else float("inf"))
        optimizer.step()
        log["loss"].append(loss.item())
        log["grad_norm"].append(norm.item())
        log["accuracy"].append((logits.argmax(-1) == label).double().mean().item())
    return log, {k: v.detach().numpy().astype(np.float32) for k, v in p.items()}


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    random = np.random.default_rng(2)
    f32 = lambda scale, *shape: (scale * random.standard_normal(shape)).astype(np.float32)
    init = {
        "fc1.weight": f32(IN**-0.5, IN, HIDDEN), "fc1.bias": f32(0.1, HIDDEN),
        "fc2.weight": f32(HIDDEN**-0.5, HIDDEN, HIDDEN), "fc2.bias": f32(0.1, HIDDEN),
        "head.weight": f32(HIDDEN**-0.5, HIDDEN, CLASSES), "head.bias": f32(0.1, CLASSES),
    }
    # Classes are clusters that overlap, so that there is something to learn.
    label = random.integers(0, CLASSES, SAMPLES).astype(np.int32)
    x = (f32(1.0, CLASSES, IN)[label] + f32(1.5, SAMPLES, IN)).astype(np.float32)
    data = {"x": x, "label": label}
    save_file(init, OUT / "init.safetensors")
    save_file(data, OUT / "data.safetensors")
    for name, (options, clip, make_optimizer, states) in VARIANTS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        single, weights = train(init, data, make_optimizer, clip, torch.float32)
        double, _ = train(init, data, make_optimizer, clip, torch.float64)
        golden = {"steps": STEPS, "batch": BATCH, "in": IN, "hidden": HIDDEN, "classes": CLASSES,
                  "options": options, "states": states, "f32": single, "f64": double}
        save_file(weights, OUT / f"{name}.expected.safetensors")
        text = json.dumps(golden, indent=1)
        (OUT / f"{name}.json").write_text(text + "\n")
        print(name, single["loss"][0], single["loss"][-1], single["accuracy"][-1])


if __name__ == "__main__":
    main()
