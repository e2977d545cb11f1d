#!/usr/bin/env python3
"""check_manual_random.py SCRATCH BIN [--first=N] [--cases=N]: random regions in local terms compute on ranks what they say.

A region is a random sequence of computation and collectives over one or two axes of a mesh that may have others, of values that are split,
replicated or partial at its boundary. Its gradient is compared with differences of its loss, as the interpreter computes the text of the
region; the program of ranks, with random options, with the step on one device.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

import from_cases
import training
import weights

MESHES = [({"fsdp": 2}, ["fsdp"]), ({"fsdp": 2, "tensor": 2}, ["fsdp", "tensor"]), ({"fsdp": 2, "tensor": 2}, ["tensor"]),
          ({"data": 2, "fsdp": 2}, ["fsdp"]), ({"fsdp": 4}, ["fsdp"]), ({"data": 2, "tensor": 2}, ["tensor", "data"])]
GLOBAL = {"v": (8, 8), "w": (8, 8), "x": (16, 8)}
STEP = 2.0**-9  # of the differences: exact in f32 beside multiples of 1/64


def axes_text(axes):
    return "[" + ", ".join(f'"{axis}"' for axis in axes) + "]"


def sharding(dims, unreduced=()):
    text = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims)
    sums = ", unreduced = {" + ", ".join(f'"{axis}"' for axis in sorted(unreduced)) + "}" if unreduced else ""
    return f"#fsdp.sharding<@mesh, [{text}]{sums}>"


class Region:
    """The text of a region while it grows; a value is (name, shape, state of each axis)."""

    def __init__(self, draw):
        self.draw = draw
        self.mesh, self.axes = draw.choice(MESHES)
        self.lines, self.values, self.count = [], [], 0
        self.boundaries = {}
        for name, shape in GLOBAL.items():
            dims, unreduced, states, sizes = [[], []], [], {}, list(shape)
            for axis in self.axes:
                state = draw.choice(["split", "split", "replicated", "partial"])
                dim = draw.randrange(2)
                if state == "split":
                    dims[dim].append(axis)
                    sizes[dim] //= self.mesh[axis]
                elif state == "partial":
                    unreduced.append(axis)
                states[axis] = {"split": "varying", "replicated": "invariant", "partial": "partial"}[state]
            self.boundaries[name] = sharding(dims, unreduced), tuple(sizes)
            self.values.append((f"%{name}", tuple(sizes), states))

    def add(self, text, shape, states):
        self.count += 1
        name = f"%r{self.count}"
        self.lines.append(f"    {name} = {text}")
        self.values.append((name, shape, states))
        return self.values[-1]

    def type(self, shape):
        return "tensor<" + "x".join(map(str, shape)) + "xf32>"

    def ranks(self, axes):
        product = 1
        for axis in axes:
            product *= self.mesh[axis]
        return product

    def some_axes(self):
        axes = self.draw.sample(self.axes, self.draw.randint(1, len(self.axes)))
        return axes

    def grow(self):
        name, shape, states = self.draw.choice(self.values[-6:])
        kind = self.type(shape)
        partial = any(state == "partial" for state in states.values())
        choice = self.draw.choice(["tanh", "half", "add", "product", "transpose", "psum", "psum", "pgather", "psum_scatter", "pswap",
                                   "ppermute", "index"])
        if choice == "tanh" and not partial:
            self.add(f"math.tanh {name} : {kind}", shape, states)
        elif choice == "half":
            self.lines.append(f"    %c{self.count} = arith.constant dense<0.5> : {kind}")
            self.add(f"arith.mulf {name}, %c{self.count} : {kind}", shape, states)
        elif choice == "transpose":
            turned = shape[::-1]
            self.add(f'nn.rearrange "a b -> b a" {name} : {kind} -> {self.type(turned)}', turned, states)
        elif choice == "add":
            fitting = [other for other in self.values if other[1] == shape and all(
                (a == "partial") == (b == "partial") for a, b in zip(states.values(), other[2].values()))]
            other = self.draw.choice(fitting)
            self.add(f"arith.addf {name}, {other[0]} : {kind}", shape, self.join(states, other[2]))
        elif choice == "product":
            fitting = [other for other in self.values if other[1][0] == shape[1] and all(
                {a, b} in ({"invariant"}, {"varying"}, {"varying", "invariant"}, {"partial", "invariant"})
                for a, b in zip(states.values(), other[2].values()))]
            if fitting:
                other = self.draw.choice(fitting)
                made = (shape[0], other[1][1])
                self.add(f'nn.einsum "ab,bc->ac" {name}, {other[0]} : ({kind}, {self.type(other[1])}) -> {self.type(made)}', made,
                         self.join(states, other[2]))
        elif choice == "index" and not partial:
            axes, at = self.some_axes(), self.count
            self.lines += [f"    %i{at} = fsdp.axis_index over {axes_text(axes)}",
                           f"    %f{at} = arith.sitofp %i{at} : tensor<i64> to tensor<f32>",
                           f'    %b{at} = nn.repeat "-> a b" %f{at} : tensor<f32> -> {kind}']
            self.add(f"arith.addf {name}, %b{at} : {kind}", shape,
                     {axis: "varying" if axis in axes else state for axis, state in states.items()})
        else:
            self.collective(choice, name, shape, states)

    def join(self, a, b):
        order = ["invariant", "varying", "partial"]
        return {axis: max(a[axis], b[axis], key=order.index) for axis in a}

    def collective(self, choice, name, shape, states):
        axes, kind = self.some_axes(), self.type(shape)
        ranks, over = self.ranks(axes), axes_text(axes)
        dim, other = self.draw.sample([0, 1], 2)
        if any(states[axis] == "partial" for axis in axes) and choice not in ("psum", "psum_scatter"):
            return
        after = {axis: ("invariant" if choice == "psum" else "varying") if axis in axes else state for axis, state in states.items()}
        sizes = list(shape)
        if choice == "psum":
            self.add(f"fsdp.psum {name} over {over} : {kind}", shape, after)
        elif choice == "pgather" and shape[dim] * ranks <= 16:
            sizes[dim] *= ranks
            self.add(f"fsdp.pgather {name} dim {dim} over {over} : {kind} -> {self.type(sizes)}", tuple(sizes), after)
        elif choice == "psum_scatter" and shape[dim] % ranks == 0:
            sizes[dim] //= ranks
            self.add(f"fsdp.psum_scatter {name} dim {dim} over {over} : {kind} -> {self.type(sizes)}", tuple(sizes), after)
        elif choice == "pswap" and shape[dim] % ranks == 0 and shape[other] * ranks <= 16:
            sizes[dim] //= ranks
            sizes[other] *= ranks
            self.add(f"fsdp.pswap {name} split {dim} concat {other} over {over} : {kind} -> {self.type(sizes)}", tuple(sizes), after)
        elif choice == "ppermute":
            sources = list(range(ranks))
            self.draw.shuffle(sources)
            sources = [-1 if self.draw.random() < 0.2 else source for source in sources]
            self.add(f"fsdp.ppermute {name} from {sources} over {over} : {kind}", shape, after)

    def result(self, value):
        """(the sharding of a result, its size)"""
        _, shape, states = value
        dims, unreduced, sizes = [[], []], [], list(shape)
        for axis, state in states.items():
            if state == "partial" or (state == "varying" and self.draw.random() < 0.3):
                unreduced.append(axis)
            elif state == "varying" or self.draw.random() < 0.2:
                dim = self.draw.randrange(2)
                dims[dim].append(axis)
                sizes[dim] *= self.mesh[axis]
        return sharding(dims, unreduced), tuple(sizes)

    def module(self):
        for _ in range(self.draw.randint(3, 12)):
            self.grow()
        # What depends on both parameters and is last comes out.
        results = self.draw.sample(self.values[3:] or self.values, min(2, len(self.values[3:]) or 1)) + self.values[:2]
        results = list(dict.fromkeys(map(lambda value: value[0], results)))
        results = [value for value in self.values if value[0] in results]
        outs = [self.result(value) for value in results]
        mesh = ", ".join(f'"{axis}"={size}' for axis, size in self.mesh.items())
        given = [self.boundaries[name] for name in GLOBAL]
        text = [f"fsdp.mesh @mesh <[{mesh}]>"]
        text += [f'fsdp.param @{name} : {self.type(GLOBAL[name])} unit "{name}" init <constant, 0.0>' for name in "vw"]
        text += ["fsdp.step @train train optimizer <sgd, lr = 1.0> {",
                 f'  %data = fsdp.input "x" sample_dim 0 : {self.type(GLOBAL["x"])}',
                 *[f"  %p{name} = fsdp.read @{name} : {self.type(GLOBAL[name])}" for name in "vw"],
                 f"  %y:{len(results)} = fsdp.manual(%pv, %pw, %data) over {axes_text(self.axes)}",
                 f"      in [{', '.join(spec for spec, _ in given)}] out [{', '.join(spec for spec, _ in outs)}]",
                 f"      : ({', '.join(self.type(shape) for shape in GLOBAL.values())}) -> "
                 f"({', '.join(self.type(shape) for _, shape in outs)}) {{",
                 f"  ^bb0({', '.join(f'%{name}: {self.type(shape)}' for name, (_, shape) in zip(GLOBAL, given))}):",
                 *self.lines,
                 f"    fsdp.yield {', '.join(value[0] for value in results)} : "
                 f"{', '.join(self.type(value[1]) for value in results)}",
                 "  }"]
        total = None
        for number, (_, shape) in enumerate(outs):
            kind = self.type(shape)
            text += [f"  %t{number} = math.tanh %y#{number} : {kind}",
                     f"  %q{number} = arith.mulf %t{number}, %t{number} : {kind}",
                     f'  %s{number} = nn.reduce sum "a b ->" %q{number} : {kind} -> tensor<f64>']
            if total:
                text.append(f"  %a{number} = arith.addf {total}, %s{number} : tensor<f64>")
            total = f"%a{number}" if total else f"%s{number}"
        text += ["  %weight = arith.constant dense<4.0> : tensor<f64>", f"  fsdp.loss {total} over %weight", "}", ""]
        return "\n".join(text)


class Checker:
    def __init__(self, scratch, tools, emitted):
        self.emitted = emitted  # how many cases are programs as well
        self.scratch, self.tools = pathlib.Path(scratch), pathlib.Path(tools)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.refused = 0
        self.untested = {"pgather", "ppermute", "psum", "psum_scatter", "pswap", "pvary", "enter_manual", "exit_manual"}

    def run(self, *command):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)

    def step(self, module, params, outputs=None):
        """(loss, parameters after a step)"""
        path = self.scratch / "params.safetensors"
        from_cases.write_safetensors(path, {name: ("F32", GLOBAL[name], values) for name, values in params.items()})
        done = self.run(self.tools / "fsdp-run", module, f"--params={path}", f"--inputs={self.scratch / 'data.safetensors'}",
                        "--segment=train", *([f"--outputs={outputs}"] if outputs else []))
        if done.returncode != 0:
            sys.exit(f"{module}: {done.stderr}")
        return float(done.stdout.split("step 1 loss ")[1].split()[0]), weights.read(outputs) if outputs else None

    def check(self, seed):
        draw = random.Random(seed)
        model, on_one, on_ranks = (self.scratch / f"{seed}.{phase}.mlir" for phase in ("model", "global", "local"))
        text = Region(draw).module()
        model.write_text(text)
        number = lambda: draw.randint(-64, 64) / 64
        params = {name: [number() for _ in range(GLOBAL[name][0] * GLOBAL[name][1])] for name in "vw"}
        from_cases.write_safetensors(self.scratch / "data.safetensors", {"x": ("F32", (16, 8), [number() for _ in range(128)])})
        done = self.run(self.tools / "fsdp-opt", model, "--fsdp-to-global", "-o", on_one)
        if done.returncode != 0:
            sys.exit(f"case {seed}: {done.stderr}")
        lowered = on_one.read_text()
        self.untested = {op for op in self.untested if f"fsdp.{op} " not in lowered}
        loss, after = self.step(on_one, params, self.scratch / "one.safetensors")
        said, _ = self.step(model, params)
        assert abs(loss - said) <= 1e-9 * max(1, abs(loss)), (seed, loss, said)
        # The gradient along a direction, by differences.
        way = {name: [draw.choice([-1, 0, 1]) for _ in values] for name, values in params.items()}
        ends = [self.step(model, {name: [p + sign * STEP * d for p, d in zip(values, way[name])] for name, values in params.items()})[0]
                for sign in (1, -1)]
        gradient = {name: [old - new for old, new in zip(params[name], after[name][2])] for name in params}
        slope = sum(g * d for name in params for g, d in zip(gradient[name], way[name]))
        size = sum(abs(g * d) for name in params for g, d in zip(gradient[name], way[name]))
        found = (ends[0] - ends[1]) / (2 * STEP)
        assert abs(slope - found) <= 2e-3 * max(1e-3, size), (seed, slope, found, size)
        # Ranks.
        options = draw.sample(["accumulate=2", "strategy=" + draw.choice(["ddp", "zero1", "zero2"] if '"fsdp"=' in text else ["ddp"]), "remat=full"], draw.randrange(3))
        done = self.run(self.tools / "fsdp-opt", model, f"--fsdp-to-local={' '.join(options)}", "-o", on_ranks)
        if done.returncode != 0:
            if "accumulate=2" in options and "microbatch" in done.stderr:
                self.refused += 1
                return
            sys.exit(f"case {seed}: {options}: {done.stderr}")
        on_all, updated = self.step(on_ranks, params, self.scratch / "ranks.safetensors")
        assert abs(loss - on_all) <= 1e-9 * max(1, abs(loss)), (seed, options, loss, on_all)
        for name in params:
            for one, ranks in zip(after[name][2], updated[name][2]):
                assert abs(one - ranks) <= 2e-6 * max(1, abs(one)), (seed, options, name, one, ranks)
        if self.emitted > 0:
            self.emitted -= 1
            self.check_program(seed, model, ["--" + option for option in options], loss, after)

    def check_program(self, seed, model, options, loss, after):
        """The program of the model on processes has the numbers of the step on one device, as far as f32 has them."""
        program, log, weight_file = (self.scratch / f"{seed}.{kind}" for kind in ("train", "jsonl", "exported"))
        commands = [[self.tools / "fsdpc", model, *options, "-o", program],
                    [program, "--data", self.scratch / "data.safetensors", "--steps", 1, "--init", self.scratch / "params.safetensors",
                     "--export", weight_file, "--log", log]]
        for command in commands:
            done = self.run(*command)
            if done.returncode != 0:
                sys.exit(f"case {seed}: {' '.join(map(str, command))}: {done.stderr}")
        found = json.loads(log.read_text().splitlines()[0])["loss"]
        assert abs(found - loss) <= 2e-5 * max(1, abs(loss)), (seed, options, found, loss)
        exported = weights.read(weight_file)
        for name, (_, _, values) in exported.items():
            largest = max(1, max(map(abs, after[name][2])))
            for one, other in zip(after[name][2], values):
                assert abs(one - other) <= 1e-4 * largest, (seed, options, name, one, other)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch")
    parser.add_argument("tools")
    parser.add_argument("--emitted", type=int, default=40 if os.environ.get("FSDP_TEST_ALL") else 2)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--cases", type=int, default=500 if os.environ.get("FSDP_TEST_ALL") else 15)
    arguments = parser.parse_args()
    os.environ.update(training.unoptimized())
    checker = Checker(arguments.scratch, arguments.tools, arguments.emitted)
    for seed in range(arguments.first, arguments.first + arguments.cases):
        checker.check(seed)
    print(f"{arguments.cases} cases, {checker.refused} of them refused with microbatches")
    assert checker.refused * 2 <= arguments.cases
    assert not checker.untested or arguments.cases < 10, f"no case has {checker.untested}"


if __name__ == "__main__":
    main()
