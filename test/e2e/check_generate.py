#!/usr/bin/env python3
"""check_generate.py SCRATCH: ./PROGRAM generate continues a text.

Greedy tokens are those of test/golden/make_generation.py: within one prefill, over several of them, and token by token; on meshes that
split data, weights and heads, with microbatches, deferred updates and kept weights, and in CUDA programs, emulated. Draws depend on the seed
alone: they are the same on 1, 2 and 4 ranks, and are no others with --top-k=1 than the likeliest. Prompts are ids, bytes or, with a
tokenizer.json beside the weights, text, which ends with the token that ends texts. Standard output has the text alone. A program
without --generate has the source that it had.
"""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import emulated
import training
import weights
from checkpoints import expect, run_cases

SIZES = ["--layers=2", "--width=32", "--heads=4", "--vocab=61", "--batch=6"]
GOLDENS = json.loads((training.GOLDEN / "generation.json").read_text())
OPTIONS = {name: json.loads((training.GOLDEN / name / "adamw.json").read_text()) for name in GOLDENS}


@functools.cache
def compile_model(folder, name, context, mesh, *options, cuda=False):
    sizes = [f"--{key}={size}" for key, size in OPTIONS[name]["sizes"].items() if key != "context"]
    compiler = emulated.compile_model if cuda else training.compile_model
    return compiler(name, folder / f"{name}-{context}-{mesh.replace(',', '-')}{''.join(options)}", *sizes, f"--context={context}",
                    f"--batch={OPTIONS[name]['batch']}", *OPTIONS[name]["options"], "--generate", *options, mesh=mesh)


def generate(program, init, prompt, count, *options, status=0, says="", **environment):
    """Standard output; standard error must have `says`."""
    command = [program, "generate", "--init", init, "--prompt", prompt, "--tokens", count, *options]
    done = subprocess.run([str(word) for word in command], capture_output=True, env={**os.environ, **environment})
    said = done.stderr.decode()
    expect(done.returncode == status and says in said, f"{options}: status {done.returncode}, expected {status} and '{says}': {said}")
    # Errors are reported before the ranks start: one message, none of a rank, no flight record.
    expect(status == 0 or (said.count("\n") == 1 and "rank" not in said), f"{options}: expected one line: {said}")
    return done.stdout


def agree(program, name, case, *options, **environment):
    prompt, expected = " ".join(map(str, case["prompt"])), " ".join(map(str, case["continuation"]))
    got = generate(program, training.GOLDEN / name / "init.safetensors", prompt, len(case["continuation"]), "--temperature=0",
                   *options, **environment)
    expect(got.decode() == expected + "\n", f"{program}: got {got}, expected {expected}")


def goes_on_as_transformers(folder):
    plans = {"gpt2": [("fsdp=1",), ("fsdp=2,tensor=2",), ("fsdp=2", "--accumulate=3", "--defer-updates=on", "--document-end=3"), ("fsdp=2", "--precision=bf16")],
             "llama": [("fsdp=3", "--reshard-after-forward=never", "--document-end=3", "--mask-prompt=5:6"), ("fsdp=2,tensor=2", "--strategy=zero1")]}
    for name, cases in GOLDENS.items():
        for context in sorted({case["context"] for case in cases}):
            for mesh, *options in training.chosen(plans[name], *((1, 3) if name == "gpt2" else (0,))):
                program = compile_model(folder, name, context, mesh, *options)
                for case in cases:
                    # In bf16 near ties may turn.
                    if case["context"] == context and (case["least_gap"] > 0.05 or "--precision=bf16" not in options):
                        agree(program, name, case)


def goes_on_on_emulated_gpus(folder):
    for name, case in training.chosen((("gpt2", GOLDENS["gpt2"][1]), ("llama", GOLDENS["llama"][2])), 1):
        program = compile_model(folder, name, case["context"], "fsdp=2", cuda=True)
        agree(program, name, case, "--communicator=loopback", FSDP_EMULATOR="deferred,shuffle,seed=3")


def draws_by_the_seed(folder):
    init = training.GOLDEN / "gpt2" / "init.safetensors"
    programs = [compile_model(folder, "gpt2", 16, mesh) for mesh in ("fsdp=1", "fsdp=2,tensor=2")]
    draw = lambda program, *options: generate(program, init, "5 15 39", 13, *options)
    first = draw(programs[0], "--seed=1", "--temperature=1.5")
    expect(draw(programs[1], "--seed=1", "--temperature=1.5") == first, "another text on other ranks")
    texts = {draw(programs[0], f"--seed={seed}", "--temperature=1.5") for seed in range(4)}
    expect(first in texts and len(texts) == 4, f"{texts}")
    likeliest = draw(programs[0], "--temperature=0")
    expect(draw(programs[0], "--top-k=1", "--seed=3") == likeliest != first, "not the likeliest")
    # A checkpoint has the weights too.
    root = folder / "root"
    subprocess.run([str(word) for word in (programs[0], "--data", training.GOLDEN / "gpt2" / "tokens.bin", "--steps=1", "--lr=0", "--init",
                                           init, "--save", root)], check=True, capture_output=True)
    resumed = subprocess.run([str(word) for word in (programs[1], "generate", "--resume", root, "--prompt=5 15 39", "--tokens=13",
                                                     "--temperature=0")], check=True, capture_output=True)
    expect(resumed.stdout == likeliest, f"from a checkpoint: {resumed.stdout}")


def writes_scores(folder):
    init = training.GOLDEN / "gpt2" / "init.safetensors"
    written = []
    for mesh in ("fsdp=1", "fsdp=2,tensor=2"):
        path = folder / f"{mesh}.scores"
        text = generate(compile_model(folder, "gpt2", 16, mesh), init, "5 15 39", 13, "--temperature=0", "--scores", path)
        read = weights.read(path)
        (_, shape, prompt), (_, _, tokens), (kind, rows, scores) = read["prompt"], read["tokens"], read["scores"]
        expect(shape == (3,) and prompt == (5, 15, 39) and " ".join(map(str, tokens)) == text.decode().strip(), f"{mesh}: got ids {read}")
        expect(kind == "F32" and rows[0] == 13, f"{mesh}: got {kind} {rows}")
        for i, token in enumerate(tokens):
            row = scores[i * rows[1] : (i + 1) * rows[1]]
            expect(row[token] == max(row), f"{mesh}: token {i} is {token}, not the likeliest")
        written.append(scores)
    expect(max(abs(a - b) for a, b in zip(*written)) < 1e-5, "other scores on another mesh")
    # An existing file stays if the text is refused, and a path that cannot be written is reported
    # at the start.
    before = path.read_bytes()
    generate(compile_model(folder, "gpt2", 16, "fsdp=1"), init, "5 61", 3, "--scores", path, status=2, says="got '61'")
    expect(path.read_bytes() == before, "an older file is changed")
    generate(compile_model(folder, "gpt2", 16, "fsdp=1"), init, "5", 3, "--scores", folder / "none" / "x", status=1, says="there is no folder")


def takes_bytes_and_text(folder):
    sizes = ["--layers=1", "--width=16", "--heads=2", "--context=64", "--batch=2", "--generate", "--lr=3e-2"]
    program = training.compile_model("gpt2", folder / "bytes", "--vocab=256", *sizes)
    text = folder / "text"
    text.write_text("abcdé " * 2000)
    weights = folder / "bytes.safetensors"
    subprocess.run([str(word) for word in (program, "--data", text, "--steps=150", "--export", weights)], check=True, capture_output=True)
    prompt = folder / "prompt"
    prompt.write_text("abcdé abcdé abc")
    expected = "dé abcdé abcdé ".encode()
    for words in (f"@{prompt}", prompt.read_text()):
        got = generate(program, weights, words, len(expected), "--temperature=0", says="tokens of the prompt")
        expect(got == expected + b"\n", f"got {got}, expected {expected}")
    # A tokenizer next to the weights: encoded text gives the same result as ids, and a text ends at
    # its end token.
    model = folder / "with-tokenizer"
    model.mkdir()
    shutil.copy(training.GOLDEN / "tokenizers" / "gpt2.json", model / "tokenizer.json")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    vocabulary = 1 + max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])])
    program = training.compile_model("gpt2", folder / "words", f"--vocab={vocabulary}", *sizes)
    subprocess.run([str(word) for word in (program, "--data", tokens_file(folder, vocabulary), "--steps=1", "--lr=0", "--seed=7", "--export",
                                           model / "model.safetensors")], check=True, capture_output=True)
    shown = generate(program, model, "Hello wörld", 20, "--seed=2").decode()
    expect(len(shown) > 1, shown)
    # Bytes that are not UTF-8 are not text.
    prompt.write_bytes("Hello wörld".encode("latin-1"))
    generate(program, model, f"@{prompt}", 3, status=2, says=f"--prompt: got bytes that are not UTF-8 at byte 7, expected a text, which the tokenizer '{model}/tokenizer.json'")
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    expect(f"The word 'generate' before all options generates text, and trains nothing: see {program} generate --help." in said, said)
    # Or elsewhere: for generation, and for what training writes.
    (folder / "elsewhere").mkdir()
    shutil.move(model / "tokenizer.json", folder / "elsewhere")
    expect(generate(program, model, "Hello wörld", 20, "--seed=2", "--tokenizer", folder / "elsewhere").decode() == shown, "--tokenizer")
    subprocess.run([str(word) for word in (program, "--data", tokens_file(folder, vocabulary), "--steps=1", "--lr=0", "--init", model,
                                           "--tokenizer", folder / "elsewhere", "--export", f"{folder}/exported/")], check=True, capture_output=True)
    expect(generate(program, folder / "exported", "Hello wörld", 20, "--seed=2").decode() == shown, "exported without --tokenizer's")
    shutil.move(folder / "elsewhere" / "tokenizer.json", model)
    # Each token that may follow ends the text.
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": list(range(vocabulary))}))
    expect(generate(program, model, "Hello wörld", 20, "--seed=2") == b"\n", "continues behind the end")
    for ends, got in (([511, 5, "x"], '"x"'), ("5", '"5"'), (True, "true"), (1.5, "1.5"), (-1, "-1"), ([2**31], "2147483648"), ([[1]], "[1]")):
        (model / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        generate(program, model, "Hello", 2, status=1, says=f"'{model}/generation_config.json', beside the weights: 'eos_token_id': got '{got}', "
                 "expected the id of a token, or a list of them: fix it, or remove it")
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": None}))
    expect(generate(program, model, "Hello wörld", 20, "--seed=2").decode() == shown, "null is no end")
    (model / "generation_config.json").write_text("{bad")
    generate(program, model, "Hello", 2, status=1, says=f"'{model}/generation_config.json', beside the weights, is not a JSON object (line 1, column ")
    (model / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}')
    generate(program, model, "Hello", 2, status=1, says=f"'{model}/tokenizer.json'")


def tokens_file(folder, vocabulary):
    path = folder / "tokens.bin"
    header = [20240520, 1, 200] + [0] * 253
    path.write_bytes(b"".join(value.to_bytes(4, "little") for value in header)
                     + b"".join((i % vocabulary).to_bytes(2, "little") for i in range(200)))
    return path


def refuses(folder):
    init = training.GOLDEN / "gpt2" / "init.safetensors"
    program = compile_model(folder, "gpt2", 16, "fsdp=1")
    for prompt, count, options, status, says in (
        ("5 61", 3, (), 2, "got '61', expected an integer from 0 to 60; there is no tokenizer.json beside the weights"),
        ("5 hello", 3, (), 2, "so that a prompt is a list of ids such as '12 5 7'"),
        (" ", 3, (), 2, "--prompt got no token, expected at least one"),
        ("1 2 3", 14, (), 2, "--prompt got 3 tokens and --tokens 14, expected at most 16 tokens together"),
        ("@missing", 3, (), 2, "--prompt: cannot open 'missing'"),
        ("1", 3, ("--top-k=0",), 2, "--top-k"),
        ("1", 3, ("--tokenizer", folder), 2, f"--tokenizer: '{folder}' has no tokenizer.json; name the folder of the model's tokenizer"),
        ("1", 3, ("--temperature=-1",), 2, "--temperature"),
        ("1", 3, ("--resume=folder",), 2, "got both --resume and --init"),
    ):
        expect(generate(program, init, prompt, count, *options, status=status, says=says) == b"", f"{prompt}: output")
    with open("/dev/full", "w") as full:
        lost = subprocess.run([program, "generate", "--prompt=1", "--tokens=2", "--init", init], stdout=full, stderr=subprocess.PIPE, text=True)
    expect(lost.returncode == 1 and "cannot write to standard output" in lost.stderr, f"{lost.returncode}: {lost.stderr}")
    # Of a reader that is gone nothing is said and nothing is recorded, on one rank and on several.
    temporary = folder / "temporary"
    temporary.mkdir()
    for mesh in ("fsdp=1", "fsdp=2"):
        of_mesh = compile_model(folder, "gpt2", 16, mesh)
        reader, writer = os.pipe()
        os.close(reader)
        gone = subprocess.run([of_mesh, "generate", "--prompt=1", "--tokens=8", "--init", init], stdout=writer, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TMPDIR": str(temporary)})
        os.close(writer)
        expect(gone.returncode == 141 and gone.stderr == "" and not any(temporary.rglob("*")), f"{mesh}: {gone.returncode}: {gone.stderr}")
    said = subprocess.run([program, "generate", "--prompt=1", "--tokens=2"], capture_output=True, text=True)
    expect(said.returncode == 2 and "name the weights to generate with" in said.stderr, said.stderr)
    said = subprocess.run([program, "generate", "--tokens=1", "--init", init], capture_output=True, text=True)
    expect(said.returncode == 2 and "--prompt is missing" in said.stderr, said.stderr)
    said = subprocess.run([program, "generate", "--prompt=1", "--init", init], capture_output=True, text=True)
    expect(said.returncode == 2 and "--tokens is missing" in said.stderr, said.stderr)
    without = training.compile_model("gpt2", folder / "without", *SIZES, "--context=16")
    generate(without, init, "1", 1, status=2, says="got generate, but this program was compiled without --generate")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    run_cases((goes_on_as_transformers, goes_on_on_emulated_gpus, draws_by_the_seed, writes_scores, takes_bytes_and_text, refuses), folder)


if __name__ == "__main__":
    main()
