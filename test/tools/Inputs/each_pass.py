#!/usr/bin/env python3
"""each_pass.py FSDP_OPT FILE...: every pass of ours alone on every file ends with status 0 or 1, with a
message where it is 1."""

import re
import subprocess
import sys

tool, files = sys.argv[1], sys.argv[2:]
help_text = subprocess.run([tool, "--help"], capture_output=True, text=True).stdout
passes = sorted(set(re.findall(r"^ +--(fsdp-[a-z-]+)", help_text, re.M)))
assert len(passes) > 10, passes
wrong = 0
for name in passes:
    for file in files:
        run = subprocess.run([tool, f"--{name}", file], capture_output=True, text=True)
        if run.returncode not in (0, 1) or (run.returncode == 1 and "error:" not in run.stderr):
            print(f"{name} on {file}: status {run.returncode}\n{run.stderr}")
            wrong = 1
sys.exit(wrong)
