"""The results of bench/compare as JSON, as tables and as a plot of the ratios."""

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess

from peers.launch import OURS

WHO = {"fsdpc": "#c0392b", "deferred": "tab:cyan", "before": "#e6b0aa", "torch": "#f5b041", "torch.compile": "#d68910", "torch.compile-whole": "#935116", "jax": "#2e86c1"}


# Times the fastest peer.
GOALS = {"f32": 1.4, "bf16": 2.0}


def circumstances(root):
    """When, on what, with which versions."""
    with open("/proc/cpuinfo") as lines:
        about = {
            key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = about.get("flags", "").split()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=root,
                             capture_output=True, text=True)
    gcc = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit.stdout.strip() + (" and changes" if changed.stdout.strip() else ""),
        "machine": {
            "processor": f"{about.get('model name')}, family {about.get('cpu family')}, model {about.get('model')}",
            "cores": os.cpu_count(),
            "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
            "extensions": [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags],
            "system": f"Linux {platform.release()}"},
        "versions": {"g++": gcc.stdout.strip(), "python": platform.python_version(),
                     **{of.metadata["Name"]: of.version for of in importlib.metadata.distributions()
                        if of.metadata["Name"] in ("torch", "jax", "numpy")}}}


def setting(form):
    """What forms must have in common to be compared: precision, rematerialization, microbatches, and a split along the sequence."""
    _, how, *rest = form.split()
    return {"ring": "context", "context": "context", "sequence": "sequence"}.get(how), *rest


def fastest_peer(forms, form, by):
    """The peer's form with the shortest step among those of `form`'s setting; `by` is "step" or "core_step"."""
    peers = [other for other in forms if other.split()[0] not in OURS and setting(other) == setting(form)]
    return min(peers, key=lambda other: forms[other][by], default=None)


def smallest_peer(forms, form):
    """The peer's form with the least memory among those of `form`'s mesh and setting."""
    peers = [other for other in forms if other.split()[0] not in OURS and setting(other) == setting(form) and (other.split()[1] == form.split()[1] or setting(form)[0])]
    return min(peers, key=lambda other: min(forms[other]["memory"]), default=None)


def table(name, model, by):
    forms = model["forms"]
    lines = [f"### {name}: {model['parameters']:,} parameters, {model['tokens']} tokens a step", "",
             "| form | ranks x threads | s/step | spread | core s | tokens/s | of the fastest peer | first step, cold | again "
             "| memory, MiB | of the smallest peer | loss off by |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for form, r in forms.items():
        best, smallest = fastest_peer(forms, form, by), smallest_peer(forms, form)
        every = [s for seconds in r["seconds"] for s in seconds]
        cold, again = r["first_step"][0], r["first_step"][1:]
        if "compile" in r:
            cold_text = f"{r['compile']:.1f} + {cold:.1f}"
        else:
            cold_text = f"{cold:.1f}"
        lines.append(
            f"| {form} | {' x '.join(map(str, model['cores'][form]))} | {r['step']:.3f} | {min(every):.3f}-{max(every):.3f} | {r['core_step']:.2f} "
            f"| {model['tokens'] / r['step']:.0f} | "
            + (f"{forms[best][by] / r[by]:.2f}" if best else "-")
            + f" | {cold_text} | " + (f"{min(again):.1f}" if again else "-")
            + f" | {min(r['memory']) / 2**20:.0f} | "
            + (f"{min(r['memory']) / min(forms[smallest]['memory']):.2f}" if smallest else "-")
            + f" | {r['off']:.0e} |")
    return lines


def in_round(form, number, by):
    """The median step of a form in a round; of one that ran in fewer rounds, in its last."""
    rounds = form["seconds" if by == "step" else "core_seconds"]
    return statistics.median(rounds[min(number, len(rounds) - 1)])


def permitted(name, model, by, cores):
    """How far ahead of the fastest peer each of our forms is, and how far ahead a step would be that takes no longer than the floor, which was
    measured before each round: medians over the rounds of the ratios within one."""
    forms = model["forms"]
    lines = [f"#### {name}: what the floor permits", "",
             "| form | s/step | floor: products + attention + update = s | floor/step | of the fastest peer | at the floor | at the rate of registers | goal | |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for form, floors in model["floors"].items():
        best = fastest_peer(forms, form, by)
        if form.split()[0] not in OURS or not best:
            continue
        scale = cores if by == "core_step" else 1
        peers, ours = ([in_round(forms[who], number, by) for number in range(len(floors))] for who in (best, form))
        totals = [scale * (floor["products"] + floor["attention"] + floor["update"]) for floor in floors]
        registers = [scale * (floor["arithmetic"] + floor["update"]) for floor in floors if floor["arithmetic"]]
        ratio = lambda above, below: statistics.median(a / b for a, b in zip(above, below))
        middle = {part: statistics.median(floor[part] for floor in floors) for part in ("products", "attention", "update")}
        goal, reached, most = GOALS["bf16" if "bf16" in form else "f32"], ratio(peers, ours), ratio(peers, totals)
        lines.append(
            f"| {form} | {forms[form]['step']:.3f} | {middle['products']:.3f} + {middle['attention']:.3f} + {middle['update']:.3f} = {statistics.median(totals) / scale:.3f} "
            f"| {ratio(totals, ours):.2f} | {reached:.2f} | {most:.2f} | " + (f"{ratio(peers, registers):.2f}" if registers else "-")
            + f" | {goal} | " + ("reached" if reached >= goal else "more than the floor permits" if goal > most else "missed") + " |")
    return lines


def plot(result, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    models, by = result["models"], result["by"]
    what = "tokens/s" if by == "step" else "tokens per core second"
    figure, rows = pyplot.subplots(2, len(models), figsize=(5 * len(models), 6), squeeze=False, height_ratios=(2, 1))
    for ratio_axes, loss_axes, (name, model) in zip(*rows, models.items()):
        forms = model["forms"]
        labels = list(forms)[::-1]
        best = {form: fastest_peer(forms, form, by) for form in labels}
        labels = [form for form in labels if best[form]]  # nothing to compare the others with
        ratios = [forms[best[form]][by] / forms[form][by] for form in labels]
        bars = ratio_axes.barh(labels, ratios, color=[WHO[f.split()[0]] for f in labels])
        ratio_axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=8)
        ratio_axes.axvline(1, color="black", linewidth=0.8)
        ratio_axes.set_title(f"gpt2 {name}: {what}, the fastest peer's = 1", fontsize=8)
        ratio_axes.set_xlim(0, max(ratios, default=1) * 1.15)
        for form, r in forms.items():
            loss_axes.plot(range(1, 1 + len(r["losses"][0])), r["losses"][0], color=WHO[form.split()[0]], alpha=0.6)
        loss_axes.set_title(f"gpt2 {name}: loss by step, {len(forms)} curves on top of each other", fontsize=8)
        for axes in (ratio_axes, loss_axes):
            axes.tick_params(labelsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def threads(result):
    """The cores of both sides, and how they were measured."""
    ranks, each = result["ranks"], result["threads"]
    return (f"This project and the peers compute on {ranks * each} core{'s' if ranks * each > 1 else ''}: 'one' is 1 rank x {ranks * each} threads, other forms are "
            f"{ranks} ranks x {each} thread{'s' if each > 1 else ''}. Medians of {result['rounds']} rounds of {result['steps']} steps after {result['warm_up']} to warm up."
            + (f" Forms with one of the words '{result['once']}' ran in the first round only." if result["once"] else ""))


def write(result, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    machine = result["machine"]
    lines = [f"{result['date']}, commit {result['commit']}. {machine['processor']}, {machine['cores']} cores, "
             f"{machine['memory']}; {', '.join(machine['extensions'])}. "
             + ", ".join(f"{k} {v}" for k, v in result["versions"].items()) + ".", ""]
    lines += [threads(result), ""]
    if result["ours"]:
        lines += [f"Our program was compiled with {result['ours']}.", ""]
    if result["by"] == "core_step":
        lines += ["The machine was crowded: ratios are of core seconds, all other times mean little.", ""]
    for model in result["models"]:
        lines += table(model, result["models"][model], result["by"]) + [""]
        if result["models"][model]["floors"]:
            lines += permitted(model, result["models"][model], result["by"], result["ranks"] * result["threads"]) + [""]
    (folder / f"{name}.md").write_text("\n".join(lines))
    plot(result, folder / f"{name}.png")
