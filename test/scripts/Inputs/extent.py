"""extent.py FOLDER [NAME]: what `chosen` of FOLDER/training.py leaves of two cases with names and of three with numbers."""

import sys

sys.path.insert(0, sys.argv[1])
import training  # noqa: E402

print(training.chosen({"a": 1, "b": 2}, *(sys.argv[2:] or ["b"])), training.chosen([10, 20, 30], -1))
