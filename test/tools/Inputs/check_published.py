"""Checks the tables of bench/published/compare: check_published.py COMPARE BUILD [OPTION ...] prints what it prints, after
every table was found to have as many cells in each line as in its head, and each error that of the two times beside it."""

import subprocess
import sys

compare, build, *options = sys.argv[1:]
text = subprocess.run([sys.executable, "-B", compare, "--build", build, *options], check=True, capture_output=True,
                      text=True).stdout
head, tables, errors = None, 0, 0
for line in text.splitlines():
    cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else None
    if cells is None:
        head = None
        continue
    if head is None:
        head, tables = cells, tables + 1
        continue
    assert len(cells) == len(head), line
    row = dict(zip(head, cells))
    if "published, ms" in row and "---" not in line:
        # Times are printed to a millisecond, so that the error is known to as much.
        expected = 100 * (float(row["predicted, ms"]) / float(row["published, ms"]) - 1)
        assert abs(expected - float(row["error"].split()[0])) < 0.5, line
        errors += 1
print(text)
print(f"{tables} tables, {errors} errors")
