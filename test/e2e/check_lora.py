#!/usr/bin/env python3
"""check_lora.py SCRATCH: adapters of low rank train as PEFT's, and go to its files and back.

The steps of test/golden/make_lora.py agree in loss, gradient norm and final weights; the exported folder has PEFT's names and its
adapter_config.json; the merged one has the weights of merge_and_unload. Adapters begin as PEFT draws them, in a checkpoint too.
Adapters and whole weights are written to folders of their own, and nothing of a file of adapters is left out in silence.
"""

import json
import math
import os
import pathlib
import re
import shutil
import sys

import training
import weights as safetensors
from check_refusals import write
from checkpoints import Runs, expect, run_cases

MESHES = {"gpt2": "fsdp=3", "llama": "fsdp=2,tensor=2"}


def trains_as_peft(runs, programs):
    for name, program in programs.items():
        goldens = training.GOLDEN / name
        log, adapters, merged = runs.at(f"{name}.jsonl"), runs.at(f"{name}-adapters"), runs.at(f"{name}-merged")
        runs.data = goldens / "tokens.bin"
        said = runs.run(program, "--init", goldens / "init.safetensors", "--init", goldens / "lora-init.safetensors",
                        "--log", log, "--export", f"{adapters}/", "--export-merged", f"{merged}/", says="trainable, ")
        expect("drawn" not in said and "note" not in said, said)
        golden = json.loads((goldens / "lora.json").read_text())
        training.compare_log(log, goldens / "lora.json", "--key=f64", f"--steps={golden['steps']}", "--loss=1e-6", "--grad_norm=4e-6")
        expect(sorted(path.name for path in adapters.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"], list(adapters.iterdir()))
        training.compare_weights(adapters / "adapter_model.safetensors", goldens / "lora-expected.safetensors", "--absolute=1e-5")
        config = json.loads((adapters / "adapter_config.json").read_text())
        expect((config["peft_type"], config["r"], config["lora_alpha"], config["fan_in_fan_out"], config["task_type"], config["bias"]) ==
               ("LORA", 2, 6, name == "gpt2", "CAUSAL_LM", "none"), config)
        expect(sorted(config["target_modules"]) == sorted(golden["modules"]), config)
        got, base = safetensors.read(merged / "model.safetensors"), safetensors.read(goldens / "init.safetensors")
        expect(set(got) == set(base) and (merged / "config.json").exists(), sorted(got))
        for tensor, (_, shape, values) in got.items():
            module = tensor.removesuffix(".weight")
            expect((values != base[tensor][2]) == (module in golden["modules"]), f"{tensor}: merged or not")
        for tensor, (_, shape, values) in safetensors.read(goldens / "lora-merged.safetensors").items():
            worst = max(abs(a - b) for a, b in zip(got[tensor][2], values))
            expect(got[tensor][1] == shape and worst < 2e-6, f"{tensor}: {worst}")


def begin_as_drawn(runs, programs):
    program, goldens = programs["llama"], training.GOLDEN / "llama"
    init, root, folder = goldens / "init.safetensors", runs.at("root"), runs.at("drawn")
    runs.data = goldens / "tokens.bin"
    runs.run(program, "--lr=0", "--init", init, "--save", root, "--export", f"{folder}/", steps=1,
             says="\n--init has no tensor of 18 parameters, whose values are drawn: 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'")
    for tensor, (_, shape, values) in safetensors.read(folder / "adapter_model.safetensors").items():
        if ".lora_B." in tensor:
            expect(not any(values), f"{tensor}: {values[:4]}")
        else:  # uniform between -1/sqrt(in) and 1/sqrt(in)
            bound = 1 / math.sqrt(shape[1])
            expect(0.8 * bound < max(map(abs, values)) <= bound, f"{tensor}: {max(map(abs, values))}, {bound}")
            mean_square = sum(value * value for value in values) / len(values)
            expect(0.6 < mean_square / (bound * bound / 3) < 1.5, f"{tensor}: {mean_square}")
    runs.run(program, "--init", init, "--export-merged", f"{runs.at('nothing')}/", steps=0, status=2,
             says="got --export-merged with --steps=0, and no file of --init has the adapter 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'"
                  ", which would be drawn: name the trained adapters with another --init, or train")
    expect(not runs.at("nothing").exists(), "a folder is left")
    # The checkpoint has all of them: the run continues, and another one begins from it.
    runs.run(program, "--lr=0", "--resume", root, steps=2, says="resumed from")
    said = runs.run(program, "--lr=0", "--init", root, "--export", runs.at("whole.safetensors"), "--export-only", "*", steps=1)
    expect("drawn" not in said, said)
    expect(len(safetensors.read(runs.at("whole.safetensors"))) == len(safetensors.read(init)) + 18, "not all")
    # The other way round, and a part of the adapters: nothing is drawn in silence.
    adapters = folder / "adapter_model.safetensors"
    runs.run(program, "--lr=0", "--init", adapters, steps=1, status=1, says="got no tensor for 21 parameter(s)")
    runs.run(program, "--lr=0", "--init", init, "--init", f"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight={adapters}", steps=1,
             status=1, says="got no tensor for 17 parameter(s): 'base_model")


def refuses_other_scales(runs, programs):
    program, init, folder = programs["llama"], training.GOLDEN / "llama" / "init.safetensors", runs.at("scaled")
    runs.data = training.GOLDEN / "llama" / "tokens.bin"
    runs.run(program, "--lr=0", "--init", init, "--export", f"{folder}/", steps=1)
    adapters, config = folder / "adapter_model.safetensors", folder / "adapter_config.json"

    def again(**options):
        for given in (adapters, folder):  # the file, and its folder
            runs.run(program, "--lr=0", "--init", init, "--init", given, steps=1, **options)

    again()
    saved = json.loads(config.read_text())
    for entry, value, says in (("lora_alpha", 64, "'lora_alpha' is 64, expected 6 (compile the model with --lora-alpha=64)"),
                               ("use_rslora", True, "'use_rslora' is true, expected false (no option of the model changes it)"),
                               ("alpha_pattern", {"q_proj": 3}, "'alpha_pattern' is")):
        config.write_text(json.dumps({**saved, entry: value}))
        again(status=1, says=["describes other adapters than this program has", says])
    runs.run(program, "--lr=0", "--init", init, "--init", adapters, "--allow-model-change", steps=1, says="warning: '")


def keep_to_their_folders(runs, programs):
    """Adapters and whole weights are never exported to one folder; a model and its adapters in one are read as transformers reads them."""
    program, goldens, adapters, merged = programs["llama"], training.GOLDEN / "llama", runs.at("llama-adapters"), runs.at("llama-merged")
    runs.data = goldens / "tokens.bin"  # the folders are those of trains_as_peft
    given = ("--init", goldens / "init.safetensors", "--init", adapters)
    runs.run(program, *given, "--export", f"{runs.at('one')}/", "--export-merged", f"{runs.at('one')}/", steps=0, status=2,
             says=f"got the folder '{runs.at('one')}' for --export and for --export-merged, expected two folders")
    expect(not runs.at("one").exists(), "a folder is left")
    for option, where in (("--export-merged", adapters), ("--export", merged)):
        before = sorted((path.name, path.read_bytes()) for path in where.iterdir())
        runs.run(program, *given, option, f"{where}/", steps=0, status=1, says=f"{option}: the folder '{where}' has '")
        expect(before == sorted((path.name, path.read_bytes()) for path in where.iterdir()), f"{where} is not as it was")

    def merge(*init):
        runs.run(program, *init, "--export-merged", runs.at("again.safetensors"), steps=0)
        return runs.at("again.safetensors").read_bytes()

    both = runs.at("both")
    shutil.copytree(adapters, both)
    shutil.copy(goldens / "init.safetensors", both / "model.safetensors")
    expect(merge("--init", both) == merge(*given) == (merged / "model.safetensors").read_bytes(), "other weights of the folder with both")
    # What else a file of adapters has is named: by its tensor, and by the entry of its configuration.
    more, extra = runs.at("more"), "base_model.model.lm_head.weight"
    shutil.copytree(adapters, more)
    write(more / "adapter_model.safetensors", {**safetensors.read(adapters / "adapter_model.safetensors"), extra: ("F32", (2,), (0, 0))})
    config = more / "adapter_config.json"

    def refused(says):
        runs.run(program, *given[:2], "--init", more, "--export", runs.at("none"), steps=0, status=1, says=says)
        expect(not runs.at("none").exists(), "weights were written")

    refused(f"has 1 tensor(s) of adapters that the program does not use: '{extra}'")
    config.write_text(json.dumps({**json.loads(config.read_text()), "modules_to_save": ["lm_head"]}))
    refused("'modules_to_save' is [\"lm_head\"], expected null")
    said = runs.run(program, *given[:2], "--init", f"*={more}", "--export", f"{runs.at('part')}/", steps=0,
                    says=f"has 1 tensor(s) that the model does not use: '{extra}'")
    expect("drawn" not in said, said)
    expect(runs.at("part/adapter_model.safetensors").read_bytes() == (adapters / "adapter_model.safetensors").read_bytes(), "other adapters")
    # Beside a model that is named itself, adapters are neither read nor compared.
    (both / "adapter_config.json").write_text("{}")
    runs.run(program, "--init", both / "model.safetensors", steps=1, says="values are drawn: 'base_model.")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    programs = {}
    for name, mesh in MESHES.items():
        golden = json.loads((training.GOLDEN / name / "lora.json").read_text())
        sizes = [f"--{key}={size}" for key, size in golden["sizes"].items()]
        programs[name] = training.compile_model(name, folder / name, *sizes, f"--batch={golden['batch']}", *golden["lora"], *golden["options"],
                                                mesh=mesh)
    run_cases((trains_as_peft, begin_as_drawn, refuses_other_scales, keep_to_their_folders), Runs(folder / "runs", None), programs)


if __name__ == "__main__":
    main()
