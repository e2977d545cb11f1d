"""Scores that transformers computes for the model of scripts/small-llama: see README.md. usage: make_small_llama.py"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
IDS = [(7 * i * i + 3) % 512 for i in range(24)]

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, "-B", HERE.parent.parent / "scripts" / "small-llama", folder, HERE.parent.parent / "LICENSE"], check=True)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    with torch.no_grad():
        scores = model(torch.tensor([IDS])).logits[0, -1]
(HERE / "small-llama.json").write_text(json.dumps({"ids": IDS, "scores": [round(float(score), 9) for score in scores]}) + "\n")
