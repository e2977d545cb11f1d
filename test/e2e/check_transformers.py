#!/usr/bin/env python3
"""check_transformers.py SCRATCH: checkpoints and Hugging Face's transformers, both ways. Run by a Python that has torch and transformers.

AutoModelForCausalLM.from_pretrained on the folder of a step finds every weight and no other, and computes the loss that the program
logs for the next step; the program with --init of the folder that save_pretrained writes computes it again.
"""

import json
import logging
import os
import pathlib
import shutil
import sys

import training
from checkpoints import Runs, expect, logged, run_cases

os.environ["HF_HUB_OFFLINE"] = "1"
BATCH, CONTEXT, STEPS = 6, 16, 3
OPTIONS = ["--layers=2", "--width=32", "--heads=4", f"--context={CONTEXT}", "--vocab=256", f"--batch={BATCH}", "--lr=1e-2"]
MODELS = {"gpt2": [], "llama": ["--kv-heads=2", "--ffn=48"]}


class Warnings(logging.Handler):
    """What transformers warns of, until end()."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []
        logging.getLogger("transformers").addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())

    def end(self):
        logging.getLogger("transformers").removeHandler(self)
        return self.messages


def loss_of(model, data, step):
    """Mean cross-entropy of `model` on the samples of a step, counted from 0."""
    import torch

    first = step * BATCH
    rows = torch.tensor([list(data[i * CONTEXT : (i + 1) * CONTEXT + 1]) for i in range(first, first + BATCH)])
    with torch.no_grad():
        logits = model.eval()(rows[:, :-1]).logits
    return float(torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), rows[:, 1:].reshape(-1)))


def from_pretrained_and_back(runs, programs):
    import torch
    from transformers import AutoModelForCausalLM

    data = pathlib.Path(runs.data).read_bytes()
    for name, program in programs.items():
        root, log = runs.at(name), runs.at(f"{name}.jsonl")
        runs.run(program, "--save", root, "--save-every", STEPS, "--log", log, steps=STEPS + 1)
        folder = root / f"step-{STEPS:08}"
        warnings = Warnings()
        model, found = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
        expect(not any(found.values()), f"{name}: {found}")
        expect(not warnings.end(), f"{name}: transformers warns: {warnings.messages}")
        expected, got = logged(log)[STEPS]["loss"], loss_of(model, data, STEPS)
        expect(abs(got - expected) <= 2e-6 * expected, f"{name}: transformers computes the loss {got}, the program {expected}")
        print(f"{name}: {type(model).__name__}: loss {got:.7f}, the program's {expected:.7f}")
        model.save_pretrained(runs.at(f"{name}-saved"))
        runs.run(program, "--init", runs.at(f"{name}-saved"), "--log", log, steps=1)
        expected = logged(log)[0]["loss"]
        expect(abs(loss_of(model, data, 0) - expected) <= 2e-6 * expected, f"{name}: other weights after save_pretrained")


def adapters_load_in_peft(runs, folder):
    """PeftModel.from_pretrained on what --export writes, and transformers on what --export-merged does, compute the program's loss; so does
    transformers on a folder with a model and adapters, which --init takes. The program takes what PEFT writes, and no adapters of other projections."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        from peft import LoraConfig, PeftModel, get_peft_model
    except ImportError:
        print("adapters: peft is not installed")
        return
    data = pathlib.Path(runs.data).read_bytes()
    for name, options in MODELS.items():
        program = training.compile_model(name, folder / f"{name}-lora", *OPTIONS, *options, "--lora=4", "--lora-alpha=8", "--lora-on=*", ranks=2)
        root, log = runs.at(f"{name}-lora"), runs.at(f"{name}-lora.jsonl")
        whole = runs.at(name) / f"step-{STEPS:08}"
        runs.run(program, "--init", whole, "--log", log, "--export", f"{root}/", "--export-merged", f"{root}-merged/", steps=STEPS)
        runs.run(program, "--init", whole, "--init", root / "adapter_model.safetensors", "--log", log, steps=1)
        expected = logged(log)[0]["loss"]
        base = AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32)
        without = loss_of(base, data, 0)
        got = loss_of(PeftModel.from_pretrained(base, root), data, 0)
        merged = loss_of(AutoModelForCausalLM.from_pretrained(f"{root}-merged", dtype=torch.float32), data, 0)
        both = runs.at(f"{name}-both")
        shutil.copytree(root, both)
        AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32).save_pretrained(both)
        beside = loss_of(AutoModelForCausalLM.from_pretrained(both, dtype=torch.float32), data, 0)
        runs.run(program, "--init", both, "--log", log, steps=1)
        expect(logged(log)[0]["loss"] == expected, f"{name}: the program reads {both} otherwise than the two folders")
        expect(abs(without - expected) > 1e-3, f"{name}: the adapters change nothing: {without}, {expected}")
        for what, loss in (("peft", got), ("merged", merged), ("model and adapters of one folder", beside)):
            expect(abs(loss - expected) <= 2e-6 * expected, f"{name}: {what} computes the loss {loss}, the program {expected}")
        for case, saves in (("own", {}), ("saved", {"modules_to_save": ["lm_head"]})):
            tuned = get_peft_model(AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32),
                                   LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False, **saves))
            tuned.save_pretrained(runs.at(f"{name}-peft-{case}"))
            refused = {"status": 1, "says": "'modules_to_save' is [\"lm_head\"], expected null"} if saves else {}
            runs.run(program, "--init", whole, "--init", runs.at(f"{name}-peft-{case}"), "--log", log, steps=1, **refused)
            if not saves:
                peft, computed = loss_of(tuned, data, 0), logged(log)[0]["loss"]
                expect(abs(peft - computed) <= 2e-6 * peft, f"{name}: PEFT computes the loss {peft} with adapters of its own, the program {computed}")
        print(f"{name}: loss {without:.7f} without adapters, in PEFT {got:.7f}, merged {merged:.7f}, the program's {expected:.7f}")


def main():
    folder = pathlib.Path(sys.argv[1])
    programs = {name: training.compile_model(name, folder / name, *OPTIONS, *options, ranks=2) for name, options in MODELS.items()}
    text = folder / "text.txt"
    text.write_bytes((training.HERE.parent.parent / "docs" / "design" / "runtime.md").read_bytes())
    runs = Runs(folder / "runs", text)
    run_cases((from_pretrained_and_back,), runs, programs)
    run_cases((adapters_load_in_peft,), runs, folder)


if __name__ == "__main__":
    main()
