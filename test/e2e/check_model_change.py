#!/usr/bin/env python3
"""check_model_change.py SCRATCH: weights are taken for the model that they are of, and runs are recorded.

A checkpoint of a model that computes something else with parameters of the same names and shapes is refused by --resume, unless
--allow-model-change is given. --init compares the config.json beside the weights, as transformers 5 and 4 write it, entry by
entry. Logs and checkpoints record what repeats a run.
"""

import json
import os
import pathlib
import shlex
import shutil
import struct
import sys

import training
from checkpoints import Runs, expect, run_cases

TEXT = training.HERE.parent.parent / "LICENSE"
GPT2 = ["--layers=1", "--width=16", "--context=8", "--vocab=256", "--batch=2"]
LLAMA = ["--layers=1", "--width=16", "--heads=2", "--kv-heads=1", "--ffn=24", "--context=8", "--vocab=256", "--batch=2"]
# The output of LlamaConfig and GPT2Config of transformers 5.23 for these sizes, without entries
# about tokens and generation.
LLAMA_CONFIG = {
    "attention_bias": False, "attention_dropout": 0.0, "head_dim": 8, "hidden_act": "silu", "hidden_size": 16,
    "initializer_range": 0.02, "intermediate_size": 24, "max_position_embeddings": 2048, "mlp_bias": False, "model_type": "llama",
    "num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 1, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "tie_word_embeddings": False, "vocab_size": 256}
GPT2_CONFIG = {
    "activation_function": "gelu_new", "add_cross_attention": False, "attn_pdrop": 0.1, "embd_pdrop": 0.1,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_inner": None, "n_layer": 1, "n_positions": 8,
    "reorder_and_upcast_attn": False, "resid_pdrop": 0.1, "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True,
    "tie_word_embeddings": True, "vocab_size": 256}
GONE = object()


def digest_of(data):
    """contentDigest of runtime/job/RunIdentity.cpp, seed 0."""
    mask, odd, other = 2**64 - 1, 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F

    def mix(lane, word):
        lane = (lane ^ word) * odd & mask
        return lane ^ lane >> 29

    lanes = [odd, other, mask, len(data)]
    for index, (word,) in enumerate(struct.iter_unpack("<Q", data + bytes(-len(data) % 8))):
        lanes[index % 4] = mix(lanes[index % 4], word)
    digest = len(data)
    for lane in lanes:
        digest = mix(digest * other & mask, lane)
    return f"{mix(digest, other):016x}"


def seal(path, change):
    """Writes the manifest anew, as a program would that has another digest of the model."""
    manifest = json.loads(path.read_text())
    change(manifest)
    del manifest["checksum"]
    manifest["checksum"] = digest_of(json.dumps(manifest, separators=(",", ":"), ensure_ascii=False).encode())
    path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def another_model_is_not_resumed(runs, programs):
    root = runs.at("root")
    runs.run(programs["heads-2"], "--save", root, "--save-every", 1, steps=2)
    digest = json.loads((root / "step-00000002" / "manifest.json").read_text())["model_digest"]
    for where in (("--resume", root), ("--save", root, "--resume=latest")):
        said = runs.run(programs["heads-4"], *where, status=1, steps=3,
                        says=(f"error: '{root}/step-00000002' is of another model: got the digest '{digest}', expected 'v1:",
                              ": resume with the program that wrote it, or continue with --allow-model-change"))
        expect("training begins anew" not in said and "resumed" not in said, said)
        said = runs.run(programs["heads-4"], *where, "--allow-model-change", steps=3,
                        says=("warning: '", "' is of another model: got the digest '", "resumed from", "done:"))
        shutil.rmtree(root / "step-00000003", ignore_errors=True)
    # Another mesh, strategy, precision, batch and dropout: the same model.
    said = runs.run(programs["heads-2-else"], "--resume", root, steps=3, says="resumed from")
    expect("warning" not in said, said)


def a_digest_that_cannot_be_compared_is_a_warning(runs, programs):
    for name, change, says in (
            ("without", lambda manifest: manifest.pop("model_digest"), "has no digest of its model, and this program has 'v1:"),
            ("newer", lambda manifest: manifest.update(model_digest="v2:0123456789abcdef"),
             "has the digest 'v2:0123456789abcdef' of its model, and this program has 'v1:")):
        root = runs.at(name)
        runs.run(programs["heads-2"], "--save", root, steps=1)
        seal(root / "step-00000001" / "manifest.json", change)
        runs.run(programs["heads-2"], "--resume", root, steps=2,
                 says=("warning: '", says, ": whether they are of one model is not checked", "resumed from", "done:"))
    runs.run(programs["heads-2"], "--allow-model-change", status=2, says="got --allow-model-change without --resume or --init")


def folder_of(runs, name, weights, config):
    folder = runs.at(name)
    folder.mkdir(exist_ok=True)
    shutil.copy(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config, indent=2))
    return folder


def changed(config, changes):
    """`config` with entries replaced, or taken out: GONE."""
    return {name: value for name, value in {**config, **changes}.items() if value is not GONE}


def init_compares(runs, program, weights, config, fits, differs):
    for number, changes in enumerate([{}, *fits]):
        folder = folder_of(runs, f"{program.parent.name}-fits-{number}", weights, changed(config, changes))
        runs.run(program, "--init", folder, steps=1, says="done:")
    for changes, says in differs:
        folder = folder_of(runs, f"{program.parent.name}-differs", weights, changed(config, changes))
        for init in (folder, folder / "model.safetensors"):
            runs.run(program, "--init", init, steps=1, status=1,
                     says=(f"error: '{folder}/config.json' is of another model than this program: got ", says.replace("FOLDER", str(folder)),
                           "; continue with these weights and the model of this program with --allow-model-change"))


def init_refuses_another_llama(runs, programs):
    program, weights = programs["llama"], runs.at("llama.safetensors")
    runs.run(program, "--export", weights, steps=1)
    rope = {"rope_parameters": GONE, "rope_theta": 10000.0}  # as transformers 4 writes it
    init_compares(
        runs, program, weights, LLAMA_CONFIG,
        fits=[{**rope, "rope_scaling": None}, {"head_dim": GONE}, {"head_dim": None}, {"rope_parameters": GONE}, {"rms_norm_eps": GONE},
              {"hidden_act": "swish"}, {"attention_bias": GONE, "mlp_bias": GONE, "model_type": GONE}],
        differs=[
            ({"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}},
             "got 'rope_parameters.rope_theta' 500000.0, expected 10000.0 (compile the model with --rope-theta=500000.0)"),
            ({**rope, "rope_theta": 5e5}, "got 'rope_theta' 500000.0, expected 10000.0 (compile the model with --rope-theta=500000.0)"),
            ({"rms_norm_eps": 1e-2}, "got 'rms_norm_eps' 0.01, expected 1e-06 (compile the model with --norm-eps=0.01)"),
            ({"num_attention_heads": 4}, "got 'num_attention_heads' 4, expected 2 (compile the model with --heads=4)"),
            ({"num_key_value_heads": GONE}, "got 'num_key_value_heads' 2, as it means without the entry, expected 1 (compile the model with --kv-heads=2)"),
            ({"head_dim": 16}, "got 'head_dim' 16, expected 8 (compile the model with --head-dim=16)"),
            ({"tie_word_embeddings": True}, "got 'tie_word_embeddings' true, expected false (compile the model with --tie)"),
            ({"hidden_act": "gelu"}, "got 'hidden_act' \"gelu\", expected \"silu\" (compile the model with --from=FOLDER)"),
            ({"attention_bias": True}, "got 'attention_bias' true, expected false (compile the model with --from=FOLDER)"),
            ({"mlp_bias": True}, "got 'mlp_bias' true, expected false (compile the model with --from=FOLDER)"),
            ({"model_type": "qwen2"}, "got 'model_type' \"qwen2\", expected \"llama\" (compile the model with --from=FOLDER)"),
            ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}},
             "got 'rope_parameters.rope_type' \"linear\", expected \"default\" (compile the model with --from=FOLDER)"),
            ({**rope, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
             "got 'rope_scaling.rope_type' \"llama3\", expected \"default\" (compile the model with --from=FOLDER)"),
            ({**rope, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "got 'rope_scaling.type' \"dynamic\", expected \"default\""),
            ({**rope, "rope_scaling": {"rope_type": "default", "rope_theta": 5e5}},
             "got 'rope_scaling.rope_theta' 500000.0, expected 10000.0 (compile the model with --rope-theta=500000.0)"),
            ({**rope, "rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.5}},
             "got 'rope_scaling.partial_rotary_factor' 0.5, expected 1.0"),
            ({"partial_rotary_factor": 0.5}, "got 'partial_rotary_factor' 0.5, expected 1.0 (no option of the model changes it)"),
            # Every difference, and before any shape: a model of other sizes.
            ({"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 512, "head_dim": GONE},
             "got 'num_hidden_layers' 2, expected 1 (compile the model with --layers=2); got 'hidden_size' 32, expected 16 (compile "
             "the model with --width=32); got 'intermediate_size' 64, expected 24 (compile the model with --ffn=64); got "
             "'vocab_size' 512, expected 256 (compile the model with --vocab=512)"),
        ])
    folder = folder_of(runs, "allowed", weights, changed(LLAMA_CONFIG, {"rms_norm_eps": 1e-2}))
    runs.run(program, "--init", folder, "--allow-model-change", steps=1, says=("warning: '", "got 'rms_norm_eps' 0.01", "done:"))
    said = runs.run(program, "--init", f"*={folder}", steps=1, says="done:")  # of another model as a rule, so nothing is compared
    expect("warning" not in said, said)
    folder = folder_of(runs, "long", weights, changed(LLAMA_CONFIG, {"model_type": "x" * 100000}))
    said = runs.run(program, "--init", folder, steps=1, status=1, says="got 'model_type' \"xxx")
    expect(len(said) < 1000, len(said))
    for text, fault in (("", "is not a JSON object (line 1, column 1: unexpected end of input"), ("[]", "is not a JSON object, expected"),
                        ("{\n\"hidden_size\": 16", "is not a JSON object (line 2, column 18: unexpected end of input"),
                        ("[" * 10000, "is nested deeper than 8 levels")):
        folder = folder_of(runs, "no-config", weights, text)
        runs.run(program, "--init", folder, steps=1, status=1, says=f"config.json' {fault}")
    (folder / "config.json").unlink()
    runs.run(program, "--init", folder, steps=1, says="done:")


def options_of_llama_are_in_its_config(runs, programs):
    """What a checkpoint says is what the program computes: a program takes its own, and no other one does."""
    root = runs.at("other-llama")
    said = runs.run(programs["llama-else"], "--save", root, steps=1, says="done:")
    config = json.loads((root / "step-00000001" / "config.json").read_text())
    got = {name: config[name] for name in ("rope_theta", "rms_norm_eps", "head_dim", "tie_word_embeddings", "num_key_value_heads")}
    expect(got == {"rope_theta": 5e5, "rms_norm_eps": 1e-2, "head_dim": 6, "tie_word_embeddings": True, "num_key_value_heads": 1}, got)
    expect(isinstance(config["rope_theta"], float), config)
    said = runs.run(programs["llama-else"], "--init", root, steps=1, says="done:")
    expect("warning" not in said and "note" not in said, said)
    runs.run(programs["llama"], "--init", root, steps=1, status=1,
             says=("(compile the model with --rope-theta=500000.0)", "(compile the model with --norm-eps=0.01)",
                   "(compile the model with --head-dim=6)", "(compile the model with --tie)"))
    plain = runs.at("plain-llama")
    runs.run(programs["llama"], "--save", plain, steps=1)
    runs.run(programs["llama-else"], "--init", plain, steps=1, status=1, says="expected true (compile the model without --tie)")


def init_refuses_another_gpt2(runs, programs):
    program, weights = programs["heads-2"], runs.at("gpt2.safetensors")
    runs.run(program, "--export", weights, steps=1)
    init_compares(
        runs, program, weights, GPT2_CONFIG,
        fits=[{"n_inner": 64}, {"activation_function": "gelu_pytorch_tanh"}, {"tie_word_embeddings": GONE, "scale_attn_weights": GONE}],
        differs=[
            ({"n_head": 4}, "got 'n_head' 4, expected 2 (compile the model with --heads=4)"),
            ({"n_head": GONE}, "got 'n_head' 12, as it means without the entry, expected 2 (compile the model with --heads=12)"),
            ({"n_head": GONE, "num_attention_heads": 4}, "got 'num_attention_heads' 4, expected 2 (compile the model with --heads=4)"),
            ({"layer_norm_epsilon": 1e-6}, "got 'layer_norm_epsilon' 1e-06, expected 1e-05 (compile the model with --from=FOLDER)"),
            ({"activation_function": "relu"}, "got 'activation_function' \"relu\", expected \"gelu_new\""),
            ({"scale_attn_weights": False}, "got 'scale_attn_weights' false, expected true"),
            ({"scale_attn_by_inverse_layer_idx": True}, "got 'scale_attn_by_inverse_layer_idx' true, expected false"),
            ({"n_inner": 32}, "got 'n_inner' 32, expected 64"),
            ({"tie_word_embeddings": False}, "got 'tie_word_embeddings' false, expected true"),
            ({"n_positions": 16}, "got 'n_positions' 16, expected 8 (compile the model with --context=16)"),
        ])


def runs_are_recorded(runs, programs):
    """The header of the log and each checkpoint: every start, with what repeats it."""
    root, log, weights = runs.at("recorded"), runs.at("recorded.jsonl"), runs.at("it's.safetensors")
    runs.run(programs["heads-2"], "--export", weights, steps=1)
    first = ("--init", weights, "--save", root, "--log", log, "--log-header", "--val-data", TEXT, "--lr=0.002")
    runs.run(programs["heads-2"], *first, steps=1)
    second = ("--resume", root, "--save", root, "--log", log, "--log-header")
    runs.run(programs["heads-2-else"], *second, steps=2)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    expect([next(iter(line)) for line in lines] == ["run", "step", "run", "step"], lines)
    records = [lines[0]["run"], lines[2]["run"]]
    manifest = json.loads((root / "step-00000002" / "manifest.json").read_text())
    expect(manifest["runs"] == records, (manifest["runs"], records))
    begun, went_on = records
    expect(shlex.split(begun["compiled"]) == [*GPT2[:2], "--heads=2", *GPT2[2:], "--mesh=fsdp=1"], begun["compiled"])
    expect(begun["compiler"] == {"name": "gpt2", "target": "cpu", "strategy": "fsdp", "precision": "f32", "reduce_precision": "f32",
                                 "accumulate": 1}, begun["compiler"])
    expect(shlex.split(begun["arguments"]) == runs.command("", *first, steps=1)[1:], begun["arguments"])
    expect((begun["plan"], begun["mesh"], begun["ranks"], begun["steps"], begun["batch"], begun["tokens_per_sample"], begun["seed"],
            begun["lr"], begun["shuffle"]) == ("fsdp=1", "fsdp=1", 1, 1, 2, 8, 0, 0.002, False), begun)
    expect(begun["version"] and begun["model_digest"] == manifest["model_digest"], begun)
    data = TEXT.read_bytes()
    for name in ("data", "val_data"):
        expect(begun["files"][name] == {"path": str(TEXT), "bytes": len(data), "digest": digest_of(data)}, begun["files"])
    expect((begun["files"]["init"]["path"], begun["files"]["init"]["tensors"]) == (str(weights), 16), begun["files"])
    expect("resumed" not in begun and went_on["resumed"]["folder"] == f"{root}/step-00000001" and went_on["resumed"]["step"] == 1, went_on)
    expect("--precision=bf16" in shlex.split(went_on["compiled"]) and "--dropout=0.1" in shlex.split(went_on["compiled"]), went_on)
    expect((went_on["compiler"]["precision"], went_on["compiler"]["strategy"], went_on["plan"], went_on["lr"]) ==
           ("bf16", "zero1", "fsdp=2", 0.002), went_on)
    expect("init" not in went_on["files"], went_on["files"])


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    compiled = {
        "heads-2": ("gpt2", [*GPT2, "--heads=2"], "fsdp=1"), "heads-4": ("gpt2", [*GPT2, "--heads=4"], "fsdp=2"),
        "heads-2-else": ("gpt2", [*GPT2, "--heads=2", "--batch=4", "--dropout=0.1", "--precision=bf16", "--strategy=zero1"], "fsdp=2"),
        "llama": ("llama", LLAMA, "fsdp=1"),
        "llama-else": ("llama", [*LLAMA, "--head-dim=6", "--rope-theta=5e5", "--norm-eps=1e-2", "--tie"], "fsdp=2")}
    compiled["heads-2-else"][1].remove("--batch=2")
    programs = {name: training.compile_model(model, folder / name, *options, mesh=mesh)
                for name, (model, options, mesh) in compiled.items()}
    run_cases((another_model_is_not_resumed, a_digest_that_cannot_be_compared_is_a_warning, init_refuses_another_llama,
               options_of_llama_are_in_its_config, init_refuses_another_gpt2, runs_are_recorded), Runs(folder / "runs", TEXT), programs)


if __name__ == "__main__":
    main()
