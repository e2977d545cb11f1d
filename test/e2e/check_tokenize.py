#!/usr/bin/env python3
"""check_tokenize.py SCRATCH: texts become token files by fsdpc-tokenize, on which a gpt2 trains and is evaluated.

Documents come back as they were; the first loss is that of guessing among the vocabulary; a model with a smaller vocabulary than the
tokenizer's refuses the file.
"""

import json
import math
import os
import pathlib
import subprocess
import sys

import training

os.environ.update(training.unoptimized())
folder = pathlib.Path(sys.argv[1])
TOKENIZERS = training.GOLDEN / "tokenizers"
DOCUMENTS = [path.read_text() for path in sorted((training.HERE.parent.parent / "docs").glob("*.md"))[:8]]
(folder / "docs.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in DOCUMENTS))


def program(vocabulary):
    """A small model of that many tokens."""
    return training.compile_model("gpt2", folder / str(vocabulary), "--layers=1", "--width=8", "--heads=1", "--context=16", f"--vocab={vocabulary}",
                                  "--batch=2")


def tokenize(tokenizer, out, *options):
    training.run([training.tool("fsdpc-tokenize"), "--tokenizer", tokenizer, "--out", folder / out, "--field", "body", *options, folder / "docs.jsonl"])


def losses(program, name, *options):
    log = folder / f"{name}.jsonl"
    training.run([program, "--data", folder / f"{name}_train_000000.bin", "--steps", 2, "--log", log, *options])
    return [json.loads(line) for line in log.read_text().splitlines()]


def expect_guess(loss, vocabulary):
    if not abs(loss - math.log(vocabulary)) < 0.05:
        sys.exit(f"got a loss of {loss}, expected {math.log(vocabulary)} of an untrained model")


tokenize(TOKENIZERS / "gpt2.json", "narrow", "--val-share=0.3")
small = program(561)
steps = losses(small, "narrow", "--val-data", folder / "narrow_val_000000.bin", "--eval-every", 2)
expect_guess(steps[0]["loss"], 561)
if not any("val_loss" in step for step in steps):
    sys.exit(f"no evaluation in {steps}")

said = [subprocess.run([training.tool("fsdpc-tokenize"), "--tokenizer", TOKENIZERS / "gpt2.json", "--decode", folder / f"narrow_{split}_000000.bin"],
                       check=True, capture_output=True, text=True).stdout.split("<|endoftext|>") for split in ("train", "val")]
for split in said:
    assert split.pop() == "", "the last document has no end"
    assert split == [text for text in DOCUMENTS if text in split], "documents do not come back in their order"
if sorted(said[0] + said[1]) != sorted(DOCUMENTS):
    sys.exit("got other documents than were written")

# Tokens over 65,535, of a vocabulary with a gap.
wide = json.loads((TOKENIZERS / "gpt2.json").read_text())
wide["added_tokens"][0]["id"] = 66000
(folder / "wide.json").write_text(json.dumps(wide))
tokenize(folder / "wide.json", "wide")
expect_guess(losses(program(66001), "wide")[0]["loss"], 66001)

refused = subprocess.run([small, "--data", folder / "wide_train_000000.bin", "--steps", "1"], capture_output=True, text=True)
if refused.returncode != 1 or "got token 66000 at position" not in refused.stderr:
    sys.exit(f"got status {refused.returncode}, expected a refusal of token 66000\n{refused.stderr}")
