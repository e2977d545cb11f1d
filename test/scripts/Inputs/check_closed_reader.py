"""check_closed_reader.py ROOT: every script in Python whose output nobody reads ends with status 141, and prints nothing else."""

import os
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
log = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
log.write('{"step": 1, "val_loss": 2.5, "val_accuracy": 0.5}\n')
log.flush()
# gpu_check writes its report to files, and is to measure to the end.
OTHERS = {"gpu_check"}
WORDS = {"validation-loss": [log.name], "validation-accuracy": [log.name]}


def ended(path, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-S", "-B", path, *words], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    return done.returncode, done.stderr


count = 0
for path in sorted([*(root / "scripts").iterdir(), *(root / "bench").iterdir()]):
    if not path.is_file() or path.suffix or path.name in OTHERS or "python" not in path.open(errors="replace").readline():
        continue
    words = WORDS.get(path.name, ["--help"])
    assert ended(path, words) == (141, ""), f"{path}: got {ended(path, words)}, expected status 141 and no message"
    count += 1
print(f"{count} scripts")
