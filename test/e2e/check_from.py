#!/usr/bin/env python3
"""check_from.py SCRATCH: `--from`, a model of the sizes and constants of a config.json, against transformers (test/golden/from.json).

Every case is interpreted in double: its loss agrees to 1e-6, its gradients to 1e-5 of the largest element of the tensor. The
config.json that it would write describes the same model. One of each family is compiled, and what it exports loads back. What a
config.json has and the models cannot compute is refused by name, and so are options that contradict it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import from_cases
import training
import weights as safetensors
from from_cases import BATCH, CONTEXT

RATE = 1024
STEP = [f"--batch={BATCH}", f"--context={CONTEXT}", "--optimizer=sgd", f"--lr={RATE}", "--weight-decay=0"]
MESHED = ("llama-3.1", "qwen2", "qwen3", "qwen3-window", "llama-documents", "gpt2-answers", "qwen2-chat",
          "llama-0", "gpt2-0")  # with every bias and norm that heads and hidden units share
COMPILED = ("llama-3.2", "mistral-window", "qwen2.5-yarn", "qwen3", "gpt2", "gpt2-answers", "llama-nothing")  # one of each family, and packed ones
TOKENIZER = {"tokenizer.json": b'{"model": {}}\n', "tokenizer_config.json": b"{}", "special_tokens_map.json": b"{}",
             "generation_config.json": b"{}", "vocab.json": b"{}", "merges.txt": b"a b\n", "tokenizer.model": b"\0\1\0\2",
             "added_tokens.json": b"{}"}


def expect(condition, what):
    if not condition:
        sys.exit(f"from: {what}")


def write_model(folder, config, tensors):
    """A folder with the configuration and the weights of `tensors` (name -> shape)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    from_cases.write_safetensors(folder / "model.safetensors", {
        name: ("F32", shape, from_cases.weight(name, shape)) for name, shape in tensors.items()})


def options_of(name):
    """What a case is compiled with beside `--from`."""
    end, begin, stop = from_cases.PACKED.get(name, (None, (), ()))
    answers = ":".join(",".join(map(str, tokens)) for tokens in (begin, stop) if tokens)
    return [*([f"--document-end={end}"] if end is not None else []), *([f"--mask-prompt={answers}"] if answers else [])]


def emitted(program, config, out, mesh="fsdp=1", phase="global", options=()):
    training.run([training.tool(program), f"--from={config}", *STEP, *options, f"--mesh={mesh}", f"--emit={phase}", "-o", out])
    return out.read_text()


def interpret(folder, config, tensors, options=()):
    """(loss, name -> gradient) of a step that the interpreter runs in double. Leaves the written config.json in folder/written."""
    program = from_cases.program_of(config)
    write_model(folder, config, tensors)
    module = folder / "global.mlir"
    text = emitted(program, folder, module, options=options)
    written = re.search(r'config\.json = "((?:[^"\\]|\\.)*)"', text).group(1)
    (folder / "written").mkdir(exist_ok=True)
    (folder / "written" / "config.json").write_text(re.sub(r"\\([0-9A-F]{2})", lambda hex: chr(int(hex.group(1), 16)), written))
    rows = from_cases.tokens(config["vocab_size"])
    from_cases.write_safetensors(folder / "data.safetensors", {
        name: ("I32", [BATCH, CONTEXT], [token for row in rows for token in row[first:first + CONTEXT]])
        for name, first in (("tokens", 0), ("targets", 1))})
    return run_module(folder, module)


def run_module(folder, module):
    said = training.run([training.tool("fsdp-run"), module, "--params", folder / "model.safetensors", "--inputs",
                         folder / "data.safetensors", "--outputs", folder / "after.safetensors", "--steps=1"]).stdout
    loss = next(float(line.split()[3]) for line in said.splitlines() if line.split()[2] == "loss")
    return loss, gradients_between(folder / "model.safetensors", folder / "after.safetensors")


def gradients_between(before, after):
    before, after = safetensors.read(before), safetensors.read(after)
    expect(all(name in after for name in before), f"got tensors {sorted(after)}, expected {sorted(before)}")
    return {name: [(old - new) / RATE for old, new in zip(values, after[name][2])] for name, (_, _, values) in before.items()}


def compare(what, got, case):
    """Against the golden: loss to 1e-6, gradients to 1e-5 of the largest element. Returns the largest differences."""
    loss, gradients = got
    apart = abs(loss - case["loss"]) / (case["loss"] or 1)
    expect(apart <= 1e-6, f"{what}: got the loss {loss!r}, expected {case['loss']!r}")
    expect(gradients.keys() == case["tensors"].keys(), f"{what}: got {sorted(gradients)}, expected {sorted(case['tensors'])}")
    worst = 0
    for name, expected in case["tensors"].items():
        got = from_cases.summary(name, gradients[name])
        limit = 1e-5 * expected["largest"]
        pairs = [(got["largest"], expected["largest"]), *zip(got["elements"], expected["elements"])]
        # Rounding of as many terms as the sum has.
        pairs.append((got["sum"] / len(gradients[name]) ** 0.5, expected["sum"] / len(gradients[name]) ** 0.5))
        for a, b in pairs:
            expect(abs(a - b) <= limit, f"{what}: gradient of '{name}': got {a!r}, expected {b!r}, to {limit:.2g}")
            worst = max(worst, abs(a - b) / (expected["largest"] or 1))
    return apart, worst


def interpreted_as_transformers(scratch, cases):
    worst = 0, 0
    for name, case in cases.items():
        folder, config = scratch / "interpreted" / name, case["config"]
        shapes = {key: tensor["shape"] for key, tensor in case["tensors"].items()}
        apart = compare(name, interpret(folder, config, shapes, options_of(name)), case)
        worst = tuple(map(max, worst, apart))
        again = emitted(from_cases.program_of(config), folder / "written", folder / "again.mlir", options=options_of(name))
        expect(again == (folder / "global.mlir").read_text(), f"{name}: the config.json that is written describes another model")
        written = json.loads((folder / "written" / "config.json").read_text())
        for entry in ("model_type", "architectures", "bos_token_id", "eos_token_id", "max_position_embeddings", "sliding_window"):
            expect(entry not in config or written.get(entry) == config[entry] or entry == "max_position_embeddings" and "n_embd" in written,
                   f"{name}: got '{entry}' {written.get(entry)} in the written config.json, expected {config.get(entry)}")
    for name in MESHED:
        folder = scratch / "interpreted" / name
        emitted(from_cases.program_of(cases[name]["config"]), folder, folder / "scheduled.mlir", "fsdp=2,tensor=2", "scheduled",
                options_of(name))
        worst = tuple(map(max, worst, compare(f"{name} on four ranks", run_module(folder, folder / "scheduled.mlir"), cases[name])))
    print(f"{len(cases)} models interpreted, {len(MESHED)} of them on four ranks: loss to {worst[0]:.2g}, gradients to {worst[1]:.2g}")


def compiled_loads_back(scratch, cases):
    for name in training.chosen({name: name for name in COMPILED}, "llama-3.2"):
        case, folder = cases[name], scratch / "compiled" / name
        config = case["config"]
        write_model(folder / "in", config, {key: tensor["shape"] for key, tensor in case["tensors"].items()})
        for file, content in TOKENIZER.items():
            (folder / "in" / file).write_bytes(content)
        row = from_cases.stream(config["vocab_size"])
        data = folder / "tokens.bin"
        data.write_bytes(b"".join(n.to_bytes(4, "little") for n in [20240520, 1, len(row), *[0] * 253]) +
                         b"".join(token.to_bytes(2, "little") for token in row))
        program = folder / "train"
        training.run([training.tool(from_cases.program_of(config)), f"--from={folder / 'in'}", *STEP, *options_of(name),
                      "--mesh=fsdp=1", "-o", program])
        train = [program, "--data", data, "--steps", 1]
        training.run([*train, "--init", folder / "in", "--export", f"{folder / 'out'}/", "--save", folder / "saves", "--log",
                      folder / "log.jsonl"])
        loss = json.loads((folder / "log.jsonl").read_text().splitlines()[0])["loss"]
        gradients = gradients_between(folder / "in" / "model.safetensors", folder / "out" / "model.safetensors")
        apart = compare(f"{name}, compiled", (loss, gradients), case)
        print(f"{name} compiled: loss to {apart[0]:.2g}, gradients to {apart[1]:.2g}")
        saved = folder / "saves" / "step-00000001"
        for place in (folder / "out", saved):
            for file, content in TOKENIZER.items():
                expect((place / file).read_bytes() == content, f"'{place / file}' is not that of --init")
        expect((folder / "out" / "config.json").read_bytes() == (saved / "config.json").read_bytes(), "two files config.json")
        # Exports and checkpoints load back, with all that is beside them.
        for number, source in enumerate((["--init", folder / "out"], ["--resume", saved, "--steps", 1, "--val-data", data])):
            back = folder / f"back-{number}"
            done = subprocess.run([*map(str, train), "--lr", "0", *map(str, source), "--export", f"{back}/"], capture_output=True, text=True)
            expect(done.returncode == 0, f"{source}: {done.stdout}{done.stderr}")
            for file in ("model.safetensors", "config.json", *TOKENIZER):
                training.same_bytes(back / file, folder / "out" / file)


def layers_with_a_window_are_compared(scratch, cases):
    """`layer_types` beside the weights of --init, also of a program whose own file has none: there the layers follow from another entry."""
    for name, own, other in (("qwen2-window", None, ["sliding_attention", "full_attention"]),
                             ("qwen3-window", ["sliding_attention", "full_attention"], ["full_attention", "sliding_attention"])):
        case, folder = cases[name], scratch / "windows" / name
        weights = {key: tensor["shape"] for key, tensor in case["tensors"].items()}
        expected = own or other[::-1]
        write_model(folder / "in", case["config"], weights)
        expect(case["config"].get("layer_types") == own, f"{name}: {case['config']}")
        if name == "qwen2-window" and not training.WHOLE:  # what the program compares with, without the time to compile it
            training.run([training.tool("llama"), f"--from={folder / 'in'}", *STEP, "--mesh=fsdp=1", "--emit=source", "-o", folder / "sources"])
            source = "".join(path.read_text() for path in (folder / "sources").glob("*.cpp"))
            expect('{.names = "layer_types", .value = ' + json.dumps(json.dumps(expected, separators=(",", ":"))) in source, f"{name}: not compared")
            continue
        row = from_cases.stream(case["config"]["vocab_size"])
        data = folder / "tokens.bin"
        data.write_bytes(b"".join(n.to_bytes(4, "little") for n in [20240520, 1, len(row), *[0] * 253]) +
                         b"".join(token.to_bytes(2, "little") for token in row))
        training.run([training.tool("llama"), f"--from={folder / 'in'}", *STEP, "--mesh=fsdp=1", "-o", folder / "train"])
        for types in (expected, None, "missing", other):
            write_model(folder / "in", {key: value for key, value in {**case["config"], "layer_types": types}.items() if value != "missing"}, weights)
            done = subprocess.run([folder / "train", "--data", data, "--steps", "1", "--init", folder / "in"], capture_output=True, text=True)
            text = ",".join(map(json.dumps, other)), ",".join(map(json.dumps, expected))
            wrong = f"got 'layer_types' [{text[0]}], expected [{text[1]}] (compile the model with --from={folder / 'in'})"
            expect((wrong in done.stderr) == (types == other) == bool(done.returncode), f"{name}, {types}: {done.stderr}")


LLAMA, QWEN3, GPT2 = from_cases.SHAPES["tinyllama"], from_cases.SHAPES["qwen3"], from_cases.SHAPES["gpt2"]
MISTRAL, QWEN2 = from_cases.SHAPES["mistral-0.1"], from_cases.SHAPES["qwen2"]
YARN = from_cases.SHAPES["qwen2.5-yarn"]["rope_scaling"]
REFUSED = [
    (LLAMA, {"model_type": "mixtral"}, "got 'model_type' \"mixtral\", expected \"llama\", \"mistral\", \"qwen2\" or \"qwen3\""),
    (LLAMA, {"hidden_act": "quick_gelu"}, "got 'hidden_act' \"quick_gelu\", expected \"silu\", \"swish\", \"gelu_new\""),
    (LLAMA, {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
     "got 'rope_scaling.rope_type' \"dynamic\", expected \"default\", \"linear\", \"llama3\" or \"yarn\""),
    (LLAMA, {"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}, "got 'rope_scaling.type' \"longrope\", expected \"default\""),
    (LLAMA, {"rope_scaling": {"type": "linear"}}, "got no 'rope_scaling.factor', expected a number above 0"),
    (LLAMA, {"rope_scaling": {**from_cases.LLAMA3, "high_freq_factor": 1.0}},
     "got 'rope_scaling.high_freq_factor' 1.0, expected a number above that of 'low_freq_factor'"),
    (QWEN2, {"rope_scaling": {**YARN, "beta_fast": -1.0}}, "got 'rope_scaling.beta_fast' -1.0, expected a number above 0"),
    (LLAMA, {"rope_parameters": {"rope_theta": 5.0}}, "got 'rope_parameters.rope_theta' 5.0, expected that of 'rope_theta', 10000.0"),
    (LLAMA, {"partial_rotary_factor": 0.5}, "got 'partial_rotary_factor' 0.5, expected 1.0"),
    (LLAMA, {"quantization_config": {"bits": 4}}, "got 'quantization_config' {\"bits\":4}, expected null"),
    (LLAMA, {"is_causal": False}, "got 'is_causal' false, expected true"),
    (QWEN2, {"is_causal": None}, "got 'is_causal' null, expected true"),
    (GPT2, {"is_causal": False}, "got 'is_causal' false, expected true"),
    (LLAMA, {"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"factor": 4.0}},
     "got 'rope_scaling' {\"factor\":4.0,\"type\":\"linear\"}, expected it alone, or 'rope_parameters' alone"),
    (LLAMA, {"rope_scaling": "yarn"}, "got 'rope_scaling' \"yarn\", expected an object of parameters for all layers, or null"),
    (QWEN3, {"rope_theta": None, "rope_parameters": {"full_attention": {"rope_theta": 5.0}}},
     "got 'rope_parameters' {\"full_attention\":{\"rope_theta\":5.0}}, expected an object of parameters for all layers"),
    (LLAMA, {"rope_parameters": {"type": "dynamic"}}, "got 'rope_parameters.type' \"dynamic\", expected \"default\""),
    (QWEN2, {"rope_scaling": {**YARN, "truncate": None}}, "got 'rope_scaling.truncate' null, expected true or false"),
    (QWEN2, {"rope_scaling": YARN, "original_max_position_embeddings": 7},
     "got 'original_max_position_embeddings' 7, expected that of 'rope_scaling.original_max_position_embeddings'"),
    (LLAMA, {"num_key_value_heads": "8"}, "got 'num_key_value_heads' \"8\", expected a whole number from 1 to 2147483647"),
    (LLAMA, {"num_key_value_heads": 0}, "got 'num_key_value_heads' 0, expected a whole number from 1 to 2147483647"),
    (LLAMA, {"rope_interleaved": True}, "got 'rope_interleaved' true, expected false"),
    (LLAMA, {"head_dim": 7}, "got 'head_dim' 7, expected an even number, for rope turns pairs"),
    (LLAMA, {"hidden_size": 36}, "got 'hidden_size' 36, expected a multiple of twice 'num_attention_heads', 4"),
    (LLAMA, {"num_key_value_heads": 3}, "got 'num_attention_heads' 4, expected a multiple of 'num_key_value_heads', 3"),
    (LLAMA, {"vocab_size": "64"}, "got 'vocab_size' \"64\", expected a whole number from 1 to 2147483647"),
    (LLAMA, {"num_hidden_layers": 2**31}, "got 'num_hidden_layers' 2147483648, expected a whole number from 1 to 10000"),
    (GPT2, {"n_layer": 10001}, "got 'n_layer' 10001, expected a whole number from 1 to 10000"),
    (LLAMA, {"intermediate_size": 2**31}, "got 'intermediate_size' 2147483648, expected a whole number from 1 to 2147483647"),
    (LLAMA, {"max_position_embeddings": 2**64 - 1}, "got 'max_position_embeddings' 18446744073709551615, expected a whole number from 1 to"),
    (GPT2, {"n_inner": 0}, "got 'n_inner' 0, expected a whole number from 1 to 2147483647, or null"),
    (GPT2, {"n_inner": 2**31}, "got 'n_inner' 2147483648, expected a whole number from 0 to 2147483647, or null"),
    (LLAMA, {"tie_word_embeddings": "yes"}, "got 'tie_word_embeddings' \"yes\", expected true or false"),
    (LLAMA, {"rms_norm_eps": 0}, "got 'rms_norm_eps' 0, expected a number above 0"),
    (MISTRAL, {"sliding_window": 0}, "got 'sliding_window' 0, expected a whole number from 1 to 2147483647, or null"),
    (QWEN2, {"use_sliding_window": True, "sliding_window": 0}, "got 'sliding_window' 0, expected a whole number from 1 to 2147483647, or null"),
    (QWEN3, {"layer_types": ["full_attention", "chunked_attention"]},
     "got 'layer_types' [\"full_attention\",\"chunked_attention\"], expected a list of \"full_attention\" or \"sliding_attention\""),
    (QWEN3, {"layer_types": ["full_attention"]}, "got 'layer_types' [\"full_attention\"], expected one for each of 2 layers"),
    (QWEN3, {"sliding_window": -1}, "got 'sliding_window' -1, expected a whole number from 0 to 2147483647, or null"),
    (QWEN2, {"rope_scaling": {**YARN, "attention_factor": 0}}, "got 'rope_scaling.attention_factor' 0, expected a number above 0, or null"),
    (GPT2, {"model_type": "gpt_neo"}, "got 'model_type' \"gpt_neo\", expected \"gpt2\""),
    (GPT2, {"activation_function": "tanh"}, "got 'activation_function' \"tanh\", expected \"silu\""),
    (GPT2, {"add_cross_attention": True}, "got 'add_cross_attention' true, expected false"),
    (GPT2, {"n_positions": 8}, "got 'n_positions' 8, expected at least the --context=12"),
    (GPT2, {"n_head": 3}, "got 'n_embd' 32, expected a multiple of 'n_head', 3"),
]
# Equivalent files in other forms: the same model.
SAME = [
    (LLAMA, {"rope_parameters": {"type": "linear", "factor": 4.0}}, {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    (QWEN2, {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "original_max_position_embeddings": 16},
     {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}),
    (QWEN2, {"num_key_value_heads": None}, {"num_key_value_heads": QWEN2["num_attention_heads"]}),
    (LLAMA, {"bos_token_id": 1}, {"eos_token_id": 2}),  # what a file without them means
]
CONTRADICTED = [
    (LLAMA, "--width=64", "got --width=64, but 'hidden_size' is 32 (leave out --width)"),
    (LLAMA, "--kv-heads=2", "got --kv-heads=2, but 'num_key_value_heads' is 1 (leave out --kv-heads)"),
    (LLAMA, "--rope-theta=500000", "got --rope-theta=500000.0, but 'rope_theta' is 10000.0 (leave out --rope-theta)"),
    (LLAMA, "--tie", "got --tie, but 'tie_word_embeddings' is false (leave out --tie)"),
    (LLAMA, "--head-dim=4", "got --head-dim=4, but 'head_dim' means 8 (leave out --head-dim)"),
    ({**LLAMA, "head_dim": 8}, "--head-dim=5", "got --head-dim=5, but 'head_dim' is 8 (leave out --head-dim)"),
    (GPT2, "--vocab=64", "got --vocab=64, but 'vocab_size' is 61 (leave out --vocab)"),
]


def said_of(config, folder, *options):
    """(status, what the program says) of a compilation up to global IR."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    program = "gpt2" if config is GPT2 or "n_embd" in config else "llama"
    done = subprocess.run([training.tool(program), f"--from={folder}", *STEP, "--mesh=fsdp=1", "--emit=global", *options, "-o", folder / "out.mlir"],
                          capture_output=True, text=True)
    return done.returncode, done.stderr


def refused(scratch, cases):
    folder = scratch / "refused"
    for config, change, expected in REFUSED:
        status, said = said_of({**config, **change}, folder)
        expect(status == 1 and f"error: cannot compile the model of '{folder}/config.json': {expected}" in said and ";" not in said,
               f"{change}: got status {status} and {said!r}, expected {expected!r}")
    for config, *changes in SAME:
        texts = set()
        for change in changes:
            status, said = said_of({**{name: value for name, value in config.items() if name not in ("bos_token_id", "eos_token_id")},
                                    **change}, folder)
            expect(status == 0, f"{change}: {said}")
            texts.add((folder / "out.mlir").read_text())
        expect(len(texts) == 1, f"{changes}: expected the same model")
    for config, option, expected in CONTRADICTED:
        status, said = said_of(config, folder, option)
        expect(status == 1 and said.endswith(f"config.json': {expected}\n"), f"{option}: got {status} and {said!r}, expected {expected!r}")
    for config in (LLAMA, GPT2):
        vocabulary = config["vocab_size"]
        status, said = said_of(config, folder, f"--document-end={vocabulary}")
        expect(status == 1 and f"got --document-end={vocabulary}, expected a token below --vocab={vocabulary}" in said, said)
    # Every entry at once; and options that say the same, or what is free.
    status, said = said_of({**LLAMA, "hidden_act": "tanh", "vocab_size": 0}, folder, "--layers=3")
    expect(status == 1 and all(text in said for text in ("'hidden_act'", "; got --layers=3, but", "; got 'vocab_size' 0")), said)
    status, said = said_of(LLAMA, folder, "--width=32", "--layers=2", "--rope-theta=10000", "--head-dim=8")
    expect(status == 0, said)
    done = subprocess.run([training.tool("llama"), f"--from={folder}", "--fit=layers", "--memory-limit=1GiB"], capture_output=True, text=True)
    expect(done.returncode == 2 and "error: got --fit=layers beside --from, which takes it from config.json" in done.stderr, done.stderr)
    for text, expected in (('{"a": 1,\n "b": 2', "is not a JSON object (line 2, column 8: "),
                           ('{"rope_theta":\n 1e999}', "is not a JSON object (line 2, column 2: number overflow parsing '1e999'), expected"),
                           ("[]", "is not a JSON object, expected a JSON object that describes a model"),
                           ('{"a": 1, "a": 2}', "names 'a' twice, expected a JSON object that describes a model")):
        status, said = said_of(text, folder)
        expect(status == 1 and expected in said, said)
    (folder / "config.json").unlink()
    done = subprocess.run([training.tool("llama"), f"--from={folder}"], capture_output=True, text=True)
    expect(done.returncode == 1 and f"cannot read '{folder}/config.json': No such file or directory; expected the local folder of a model"
           in done.stderr, done.stderr)
    os.mkfifo(folder / "config.json")
    done = subprocess.run([training.tool("llama"), f"--from={folder}"], capture_output=True, text=True)
    expect(done.returncode == 1 and "expected a regular file" in done.stderr, done.stderr)
    (folder / "config.json").unlink()
    # Settings of training are not taken; a window that sees the whole context changes nothing, a smaller one does.
    status, said = said_of(GPT2, folder)
    expect(status == 0 and f"note: 'attn_pdrop' 0.1 of '{folder}/config.json' is a setting of training, which is not taken" in said, said)
    expect((folder / "out.mlir").read_text().count("dropout") == 0, "a dropout that nobody asked for")
    status, said = said_of({**MISTRAL, "sliding_window": CONTEXT, "pad_token_id": 3, "initializer_range": 0.04}, folder)
    expect(status == 0 and "'pad_token_id' 3 of" in said and "'initializer_range' 0.04 of" in said, said)
    expect(" window " not in (folder / "out.mlir").read_text(), "a window of the whole context")
    status, said = said_of({**MISTRAL, "sliding_window": CONTEXT - 1}, folder)
    expect(status == 0 and f" causal window {CONTEXT - 1} " in (folder / "out.mlir").read_text(), said)
    # The context of a program without --context is at most the positions; --fit=context exceeds a window.
    (folder / "config.json").write_text(json.dumps({**MISTRAL, "sliding_window": 64, "max_position_embeddings": 64}))
    fit = ["--batch=2", "--context=32", "--fit=context", "--memory-limit=1GiB"]
    for options in (["--emit=global", "-o", folder / "out.mlir"], fit):
        done = subprocess.run([training.tool("llama"), f"--from={folder}", *options], capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
    found = re.search(r"the largest --context that fits 1\.00 GiB is (\d+),", done.stdout + done.stderr)
    expect(found and int(found.group(1)) > 64, done.stdout + done.stderr)
    print(f"{len(REFUSED)} configurations and {len(CONTRADICTED)} options refused by name")


def main():
    scratch = pathlib.Path(sys.argv[1])
    scratch.mkdir(parents=True)
    os.environ.update(training.unoptimized())
    cases = {case["name"]: case for case in json.loads((training.GOLDEN / "from.json").read_text())}
    refused(scratch, cases)
    interpreted_as_transformers(scratch, cases)
    compiled_loads_back(scratch, cases)
    layers_with_a_window_are_compared(scratch, cases)


if __name__ == "__main__":
    main()
