"""What this machine computes and moves at most, and what a step of a model costs at least by that."""

import dataclasses
import json
import os
import subprocess

from models import ROOT, WORK

# Products with larger extents have the rates of this one.
MOST = 8192


@dataclasses.dataclass(frozen=True)
class Floor:
    """Seconds of a step at least, on all cores."""
    products: float  # each product of weights at the best rate of its shape
    attention: float  # its products at the best rate of any shape
    update: float  # AdamW's bytes at the memory's bandwidth
    arithmetic: float  # all flops at the rate of multiplications and additions in registers; 0 if that is not known

    def total(self):
        return self.products + self.attention + self.update


def flops_of(layers, width, heads, context, vocab, batch):
    """Flops of a step's (products of weights, products of attention): 2 for each weight and token, and the two products of attention
    over the half of each context that is seen; backward is twice forward."""
    tokens = batch * context
    return 3 * tokens * 2 * (layers * 12 * width * width + vocab * width), 3 * tokens * layers * 2 * 2 * width * context / 2


def weights_of(layers, width, heads, context, vocab, batch):
    """(inputs, outputs, number of them in the model) of each weight that is multiplied by."""
    return [(width, 3 * width, layers), (width, width, layers), (width, 4 * width, layers), (4 * width, width, layers), (width, vocab, 1)]


def update_bytes(parameters, copies):
    """AdamW reads parameter, gradient and two moments and writes all but the gradient, 4 bytes each, on every rank that has a copy."""
    return 28 * parameters * copies


def build(compiler):
    """bench/peak.cpp with the runtime of the build of `compiler`, a path to gpt2."""
    tools = json.loads((compiler.parent.parent / "share/fsdpc/toolchain.json").read_text(encoding="utf-8"))
    program, source = WORK / "peak", ROOT / "bench/peak.cpp"
    inputs = [source, *(path for path in map(type(source), tools["libraries"]) if path.suffix == ".a")]
    if not program.exists() or program.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        # One rounding for a product and a sum, unlike in programs: the processor's fastest instruction.
        subprocess.run([tools["compiler"], "-std=c++20", f"-I{ROOT}", *tools["flags"], "-ffp-contract=fast", source,
                        *tools["without_mpi"], *tools["libraries"], "-o", program], check=True)
    return program


class Rates:
    """Rates of all cores together, measured now: of the products that one core has of a step of `sizes`, which is split along its rows."""

    def __init__(self, program, cores, precision, sizes):
        self.sizes = sizes
        rows = max(sizes["batch"] * sizes["context"] // cores, 1)
        words = [str(min(extent, MOST)) for weight in weights_of(**sizes) for extent in weight[:2]]
        # OpenMP reads the number of threads before the program begins.
        said = json.loads(subprocess.run([program, str(cores), precision, str(min(rows, MOST)), *words], check=True, stdout=subprocess.PIPE,
                                         env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout)
        self.shapes = said["products"]
        self.arithmetic = said["arithmetic"]
        self.bandwidth = max(said["copy"], said["update"])
        rates = [max(shape["library"], shape["own"]) for shape in self.shapes]
        self.best = max(rates)
        # Three products of each weight have equal flops, so their mean rate is the harmonic one.
        work = [(inputs * outputs * count, rates[3 * i:3 * i + 3]) for i, (inputs, outputs, count) in enumerate(weights_of(**sizes))]
        self.products = sum(3 * flops for flops, _ in work) / sum(flops / rate for flops, of_weight in work for rate in of_weight)

    def floor(self, parameters, copies):
        products, attention = flops_of(**self.sizes)
        update = update_bytes(parameters, copies) / self.bandwidth / 1e9
        return Floor(products / self.products / 1e9, attention / self.best / 1e9, update,
                     (products + attention) / self.arithmetic / 1e9 if self.arithmetic else 0.0)
