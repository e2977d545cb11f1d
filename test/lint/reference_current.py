"""docs/reference is what scripts/generate-docs makes of the .td files and of the DSL's headers of today."""

import pathlib
import subprocess
import tempfile


def check(tree):
    script = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "generate-docs"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(script), str(tree.root), folder], capture_output=True, text=True)
        if done.returncode != 0:
            yield "scripts/generate-docs", 1, done.stderr.strip() or "failed"
            return
        made = {p.name: p.read_text() for p in pathlib.Path(folder).iterdir()}
    kept = {p.rsplit("/", 1)[-1]: tree.text(p) for p in tree.paths(".md", under=("docs/reference",))}
    for name in sorted(made.keys() | kept.keys()):
        path = f"docs/reference/{name}"
        if name not in kept:
            yield path, 1, "is missing: run scripts/generate-docs"
        elif name not in made:
            yield path, 1, "no .td file or header makes it: remove it"
        elif made[name] != kept[name]:
            yield path, 1, "is out of date: run scripts/generate-docs"
