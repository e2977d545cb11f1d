#!/usr/bin/env python3
"""check_from_transformers.py SCRATCH [COUNT]: COUNT (12) random configurations of each family through `--from`, against transformers.

Run by a Python that has torch and transformers. Each is interpreted in double: the loss agrees to 1e-6, every element of every
gradient to 1e-5 of the largest of its tensor; and the config.json that the program writes, with the same weights, is a model that
transformers loads without a warning, and computes the same loss with.
"""

import json
import os
import pathlib
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))

import check_from
import from_cases
import make_from
import torch
from check_from import expect
from check_transformers import Warnings
from transformers import AutoModelForCausalLM


def check(folder, name, config):
    """The largest differences of loss and gradients."""
    model = make_from.model_of(config)
    loss, gradients = make_from.gradients_of(model)
    got_loss, got = check_from.interpret(folder, config, {key: list(p.shape) for key, p in model.named_parameters()})
    apart = abs(got_loss / loss - 1)
    expect(apart <= 1e-6, f"{name}: got the loss {got_loss!r}, expected {loss!r}: {json.dumps(config)}")
    worst = 0
    for key, values in gradients.items():
        largest = max(map(abs, values))
        far = max(abs(a - b) for a, b in zip(got[key], values)) / largest
        expect(far <= 1e-5, f"{name}: gradient of '{key}' differs by {far:.3g} of its largest element: {json.dumps(config)}")
        worst = max(worst, far)
    shutil.copy(folder / "model.safetensors", folder / "written")
    warnings = Warnings()
    again, found = AutoModelForCausalLM.from_pretrained(folder / "written", output_loading_info=True, dtype=torch.float64,
                                                        attn_implementation="eager")
    said = [message for message in warnings.end() if "original_max_position_embeddings" not in message]  # also of what was read
    expect(not any(found.values()) and not said, f"{name}: {found} {said}")
    back = make_from.loss_of(again.eval()).item()
    expect(abs(back / loss - 1) <= 1e-9, f"{name}: with the config.json that is written transformers computes {back!r}, expected {loss!r}")
    expect(type(again) is type(model), f"{name}: {type(again)}")
    return apart, worst


def main():
    scratch, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12
    torch.set_num_threads(1)
    cases = from_cases.random_cases(count)
    worst = {}
    for name, config in {**from_cases.SHAPES, **cases}.items():
        apart = check(scratch / name, name, config)
        family = name.rsplit("-", 1)[0] if name in cases else "shapes"
        worst[family] = tuple(map(max, worst.get(family, (0, 0)), apart))
    for family, (loss, gradient) in worst.items():
        print(f"{family}: loss to {loss:.2g}, gradients to {gradient:.2g} of the largest element")
    print(f"{len(cases)} random configurations")


if __name__ == "__main__":
    main()
