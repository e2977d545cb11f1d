#!/usr/bin/env python3
"""compile_ptx.py OBJECT OUTPUT COMMAND...: runs nvcc, with -c, for OBJECT, which holds PTX alone, and writes that PTX to OUTPUT.

nvcc -ptx would do the same, but ccache keeps objects only.
"""

import pathlib
import subprocess
import sys

made, output, *command = sys.argv[1:]
status = subprocess.run([*command, "-no-compress", "-o", made]).returncode
if status:
    sys.exit(status)
content = pathlib.Path(made).read_bytes()
begin = content.find(b".version ")
if begin < 0 or content.find(b".version ", begin + 1) >= 0:
    sys.exit(f"{made}: got {content.count(b'.version ')} texts of PTX, expected one: compile for one architecture, as code=compute_90a")
pathlib.Path(output).write_bytes(content[begin:content.index(b"\0", begin)])
