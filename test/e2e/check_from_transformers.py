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
import training
from check_from import expect
from check_transformers import Warnings
from from_cases import BATCH, CONTEXT
from transformers import AutoConfig, AutoModelForCausalLM


def check(folder, name, config):
    """The largest differences of loss and gradients."""
    model = make_from.model_of(config)
    loss, gradients = make_from.gradients_of(model, make_from.loss_of(model))
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


def trained_and_back(folder, name):
    """What save_pretrained writes, in several files, is compiled and trained on two ranks; its losses before the first and the fourth
    step are those that transformers computes with the weights read and with those of the checkpoint."""
    config = {**from_cases.SHAPES[name], "vocab_size": 256}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32).save_pretrained(folder / "in", max_shard_size="20kB")
    text = (training.HERE / "check_from_transformers.py").read_bytes()
    (folder / "text").write_bytes(text)
    training.run([training.tool(from_cases.program_of(config)), f"--from={folder / 'in'}", f"--batch={BATCH}", f"--context={CONTEXT}",
                  "--lr=1e-2", "--mesh=fsdp=2", "-o", folder / "train"])
    training.run([folder / "train", "--data", folder / "text", "--steps", 4, "--init", folder / "in", "--export", f"{folder / 'out'}/",
                  "--save", folder / "saves", "--save-every", 3, "--log", folder / "log.jsonl"])
    losses = [json.loads(line)["loss"] for line in (folder / "log.jsonl").read_text().splitlines()]
    for step, weights in ((0, folder / "in"), (3, folder / "saves" / "step-00000003")):
        model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32, attn_implementation="eager").eval()
        first = step * BATCH
        rows = torch.tensor([list(text[i * CONTEXT:(i + 1) * CONTEXT + 1]) for i in range(first, first + BATCH)])
        with torch.no_grad():
            logits = model(input_ids=rows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1)).item()
        expect(abs(loss / losses[step] - 1) <= 1e-6, f"{name}: step {step + 1} logs {losses[step]!r}, transformers computes {loss!r}")
    model, found = AutoModelForCausalLM.from_pretrained(folder / "out", output_loading_info=True)
    expect(not any(found.values()), f"{name}: {found}")
    print(f"{name}: trained from save_pretrained, and back")


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
    for name in check_from.COMPILED:
        trained_and_back(scratch / "trained" / name, name)


if __name__ == "__main__":
    main()
