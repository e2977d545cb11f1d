#!/usr/bin/env python3
"""status.py EXPECTED COMMAND...: the command ends with that status."""

import subprocess
import sys

got = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
if got != int(sys.argv[1]):
    sys.exit(f"status {got}, expected {sys.argv[1]}")
