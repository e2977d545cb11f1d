"""Files that one can read: 600 lines at most (aim at 300)."""

LIMIT = 600


def check(tree):
    for path in tree.paths(".cpp", ".h", ".td", ".py", ".cu", ".cuh"):
        lines = len(tree.lines(path))
        if lines > LIMIT:
            yield path, LIMIT + 1, f"got {lines} lines, expected at most {LIMIT}: split it by job"
