"""The time of a multiprocessor for the instructions of a kernel, counted in its machine code (SASS).

A kernel of this project moves its bytes, or multiplies its tiles, in one loop, or without a loop. What counts is that loop's body, or
the whole kernel where it has none: so many bytes of global memory per thread, so many flops of tensor cores per warp, and so many
instructions of each class. A launch of B bytes (or flops) runs the body B / (its bytes) times, whatever the lengths of its loops are.
Instructions behind branches of the body count once, taken or not.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);")
FUNCTION = re.compile(r"^\s+Function : (\S+)")
PRODUCT = re.compile(r"^HGMMA[.](\d+)x(\d+)x(\d+)|^HMMA[.](\d\d?)(\d)(\d\d?)[.]")
WIDTH = re.compile(r"[.](U8|S8|U16|S16|64|128)\b")
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
WARP = 32

Body = collections.namedtuple("Body", "instructions bytes flops classes loop")


def disassembler():
    """The path of cuobjdump, or None. With PyPI's nvidia-cuda-cuobjdump, or a triton wheel, put its folder into PATH."""
    return shutil.which("cuobjdump")


def throughput():
    return json.loads((pathlib.Path(__file__).parent / "instructions.json").read_text(encoding="utf-8"))


def listing(path):
    """{mangled name: [(address, instruction)]} of an object."""
    return parse(subprocess.run([disassembler(), "-sass", "-arch", "sm_90a", path], capture_output=True, text=True, check=True).stdout)


def parse(text):
    """The same of what cuobjdump prints, without the padding behind a kernel."""
    kernels, current = {}, None
    for line in text.splitlines():
        if found := FUNCTION.match(line):
            current = kernels.setdefault(found.group(1), [])
        elif current is not None and (found := INSTRUCTION.match(line)):
            current.append((int(found.group(1), 16), found.group(2).strip()))
    return {name: code[:last_of(code)] for name, code in kernels.items()}


def last_of(code):
    """How many instructions there are before the branch to itself that ends every kernel."""
    for number, (address, text) in enumerate(code):
        if target_of(text) == address:
            return number
    return len(code)


def target_of(text):
    """The address that a branch goes to, or None."""
    words = mnemonic(text)
    if not words.startswith("BRA"):
        return None
    found = re.search(r"0x([0-9a-f]+)\s*$", text)
    return int(found.group(1), 16) if found else None


def mnemonic(text):
    """Without the predicate before it."""
    words = text.split()
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]


def loops_of(code):
    """The loops as (first, last) address: from where branches go back to, to the last of these branches; the shortest first."""
    ends = {}
    for address, text in code:
        if (target := target_of(text)) is not None and target < address:
            ends[target] = max(address, ends.get(target, 0))
    return sorted(ends.items(), key=lambda loop: loop[1] - loop[0])


def within(inner, outer):
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def flops_of(name):
    """Of a warp: a product of 64 rows belongs to four."""
    if not (found := PRODUCT.match(name)):
        return 0
    sizes = [int(size) for size in found.groups() if size]
    return 2 * sizes[0] * sizes[1] * sizes[2] / (4 if name.startswith("HGMMA") else 1)


def bytes_of(name):
    """Of global memory, of a thread."""
    if not re.match(r"(LDG|STG|LDGSTS)[.]", name):
        return 0
    width = WIDTH.search(name)
    return BYTES[width.group(1)] if width else 4


def body_of(code, classes, loop):
    counts = collections.Counter()
    total = moved = flops = 0
    for _, text in code:
        name = mnemonic(text)
        total += 1
        moved += bytes_of(name)
        flops += flops_of(name)
        best = max(((len(prefix), entry["name"]) for entry in classes for prefix in entry["prefixes"] if name.startswith(prefix)),
                   default=None)
        if best:
            counts[best[1]] += 1
    return Body(total, moved, flops, counts, loop)


def moves_elements(code):
    """Whether it moves single elements of 16 bits: what a kernel does where its operands are not aligned."""
    return any(bytes_of(mnemonic(text)) in (1, 2) for _, text in code)


def bodies_of(code, table):
    """The bodies that may bound a kernel: each loop without the loops in it that move single elements, and all that is in no loop."""
    loops = loops_of(code)
    part = {loop: [(a, t) for a, t in code if loop[0] <= a <= loop[1]] for loop in loops}
    narrow = [loop for loop in loops if moves_elements(part[loop]) and not any(within(other, loop) for other in loops)]
    bodies = [body_of([(a, t) for a, t in part[loop] if not any(within(n, loop) and n[0] <= a <= n[1] for n in narrow)],
                      table["classes"], True) for loop in loops]
    outside = [(a, t) for a, t in code if not any(first <= a <= last for first, last in loops)]
    return bodies + [body_of(outside, table["classes"], False)]


def main_body(code, table):
    """The shortest body that multiplies, or where none does, that moves most bytes, a loop rather than what runs once."""
    bodies = bodies_of(code, table)
    products = [body for body in bodies if body.flops]
    if products:
        return min(products, key=lambda body: body.instructions)
    return max((body for body in bodies if body.bytes), key=lambda body: (body.loop, body.bytes, -body.instructions), default=None)


def clocks(body, table):
    """{bound: clocks of a multiprocessor that a warp takes from it in one run of the body}."""
    lanes = {entry["name"]: entry["lanes"] for entry in table["classes"]}
    found = {name: count * WARP / lanes[name] for name, count in body.classes.items()}
    found["issue"] = body.instructions / table["issue"]
    if body.flops:
        found["tensor"] = body.flops / table["tensor_flops"]
    return found


def seconds(body, table, runs):
    """(what bounds it, seconds) of so many runs of a body by a warp, if all multiprocessors share them and the part that has most to
    do works all the time, whatever the kernel waits for in memory."""
    spent = clocks(body, table)
    bound = max(spent, key=spent.get)
    return bound, runs * spent[bound] / (table["multiprocessors"] * table["clock"])
