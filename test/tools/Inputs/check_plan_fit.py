"""check_plan_fit.py FILE: of what --fit printed to FILE, the command fits its limit, and the same with the next value does not."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

asked, text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("\n", 1)
option, value, step = re.match(r"the largest --(\w+) that fits .* is (\d+), of multiples of (\d+):", text).groups()
command = shlex.split(text.splitlines()[1])
command = command[:command.index("--report")]
(number, unit), = re.findall(r"--memory-limit=(\d+)([KM])iB", text)
limit = int(number) << {"K": 10, "M": 20}[unit]


def fits(size):
    """Whether the arena of the command with this size is within its limit, with which other plans would be compiled too."""
    words = [f"--{option}={size}" if word.startswith(f"--{option}=") else word for word in command
             if not word.startswith("--memory-limit=")]
    subprocess.run([*words, "--report=row.json"], check=True, stdout=subprocess.DEVNULL)
    return json.loads(pathlib.Path("row.json").read_text(encoding="utf-8"))["arena"] <= limit


assert any(word == f"--{option}={value}" for word in command), command
assert fits(int(value))
assert not fits(int(value) + int(step))
print("the value fits, and the next one does not")
