"""No drawers: a function lives with its noun (Mesh, Sharding, Schedule)."""

import re

DRAWERS = {"util", "utils", "utility", "utilities", "common", "helper", "helpers", "misc"}


def words(name):
    """The words of a file or folder name: CamelCase, snake_case and dashes apart."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {word.lower() for word in re.split(r"[^A-Za-z0-9]+", apart) if word}


def check(tree):
    for path in tree.paths():
        for part in path.split("/"):
            for word in sorted(words(part) & DRAWERS):
                yield path, 1, f"'{part}' is named like a drawer ('{word}'): name it after its noun"
