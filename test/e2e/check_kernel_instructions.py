#!/usr/bin/env python3
"""check_kernel_instructions.py SCRATCH BUILD: what the machine code (SASS) of kernels has to have, as cuobjdump prints it.

- Kernels of attention in bf16 multiply by tensor cores (HMMA, or HGMMA where they are for warpgroups), read the operands of HMMA from shared memory as
  matrices (LDSM), and fill shared memory in the background (LDGSTS). Prints the counts of each.
- Under ./check --all, of the two models of bench/cuda-estimate at their real sizes: no kernel that they launch moves single elements of 16 bits of global
  memory in a loop, and a launch that moves more than a million elements has at least 132 blocks. NARROW and FEW list what does, with the reason;
  a row that no kernel needs is an error.

Without a disassembler the kernels are counted that nothing looks at. The results of the same machine code are kept in the build folder.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import sys
import types

import training

ROOT = training.HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench/estimate"))
import account  # noqa: E402
import sass  # noqa: E402

MULTIPROCESSORS = 132  # of an H100 or H200: a launch with fewer blocks leaves some idle
ELEMENTS = 1_000_000
NARROWEST = 2  # bytes of an element
MODELS = ("gpt2-124m", "llama-8b")
# Kernels with loops of single elements, and launches with few blocks: patterns of their names, and the reason.
NARROW = {}
FEW = {}
ATTENTION = re.compile(r"fsdp::rt::(attend|queryGradients|keyGradients|biasGradients)<.*By(Warps|Groups)")


def counts(code, *prefixes):
    names = [sass.mnemonic(text) for _, text in code]
    return [sum(name.startswith(prefix) for name in names) for prefix in prefixes]


def wrong_with_attention(name, code):
    """What is wrong, as lines, and its counts as text."""
    by_groups = ATTENTION.match(name).group(2) == "Groups"
    half, group, matrices, copies = counts(code, "HMMA.16816.F32.BF16", "HGMMA.64x", "LDSM.16", "LDGSTS.E")
    wrong = []
    if by_groups and not group:
        wrong.append(f"{name}: got no HGMMA, expected products of warpgroups")
    if not by_groups and not half:
        wrong.append(f"{name}: got no HMMA, expected products of bf16")
    if not by_groups and not matrices:
        wrong.append(f"{name}: got no LDSM, expected operands that are loaded as matrices")
    if not copies:
        wrong.append(f"{name}: got no LDGSTS, expected copies in the background")
    return wrong, f"{half} HMMA, {group} HGMMA, {matrices} LDSM, {copies} LDGSTS"


def narrow_loops(code):
    """(first, last) addresses of the innermost loops that move single elements of 16 bits of global memory."""
    loops = sass.loops_of(code)
    inner = [loop for loop in loops if not any(sass.within(other, loop) for other in loops)]
    moves = [address for address, text in code if sass.bytes_of(sass.mnemonic(text)) == NARROWEST]
    return [loop for loop in inner if any(loop[0] <= address <= loop[1] for address in moves)]
