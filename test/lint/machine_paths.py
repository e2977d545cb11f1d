"""Nothing in the repository knows the machine it was written on."""

import re

TEXT = (".cpp", ".h", ".td", ".py", ".cu", ".cuh", ".txt", ".md", ".mlir", ".test", ".in", ".json",
        ".cmake", "/check", "/demo", "check", "demo")
HOMES = re.compile(r"(?<![\w.}%\"'$~-])(/(?:home|root|work|farm|Users|workspace|mnt|data)/[\w.-]+|/tmp/\w*jobs)")


def check(tree):
    for path in tree.paths():
        if not path.endswith(TEXT) and "." in path.rsplit("/", 1)[-1]:
            continue
        for number, line in tree.lines(path):
            for match in HOMES.finditer(line.replace('"', " ").replace("'", " ")):
                yield path, number, f"'{match.group(1)}' is a path of one machine"
