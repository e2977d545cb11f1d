"""The source tree that a lint looks at."""

import os
import pathlib

ROOMS = ("base", "tokenizer", "dialect", "interpreter", "passes", "codegen", "runtime", "frontend", "dsl", "models", "tools", "examples")
COMPILER_ROOMS = ("base", "dialect", "interpreter", "passes", "codegen", "frontend", "dsl", "models", "tools")
SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__"}
PLANTED = "test/lint/faults/"


class Tree:
    """The files below `root`, by their path from there; planted faults left out."""

    def __init__(self, root, bin_folder):
        self.root = pathlib.Path(root)
        self.bin = bin_folder
        self._paths = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
            for name in sorted(names):
                path = (pathlib.Path(folder) / name).relative_to(self.root).as_posix()
                if not path.startswith(PLANTED) and path != "expected":
                    self._paths.append(path)

    def paths(self, *suffixes, under=("",)):
        """Paths that end in one of `suffixes` (all without any) and begin with one of `under`."""
        return [
            path
            for path in self._paths
            if (not suffixes or path.endswith(suffixes))
            and any(path == u or path.startswith(u and u + "/") for u in under)
        ]

    def exists(self, path):
        return (self.root / path).exists()

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def lines(self, path):
        """(number, line) pairs, from 1."""
        return list(enumerate(self.text(path).splitlines(), 1))
