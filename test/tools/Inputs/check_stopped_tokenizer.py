"""check_stopped_tokenizer.py TOOL: SIGTERM ends a run, which leaves no file; what SIGKILL leaves, the next run removes."""

import fcntl
import pathlib
import signal
import subprocess
import sys
import time

# Documents enough for several batches, which the tool reads as fast as they are encoded.
with open("long.jsonl", "w") as file:
    for i in range(3000):
        file.write('{"text": "' + f"{i} " * 4000 + '"}\n')


def unfinished():
    return sorted(path.name for path in pathlib.Path("new").glob("bad_train_00000?.bin.tmp.*"))


def stop(number):
    command = [sys.argv[1], "--tokenizer", ".", "--out", "new/bad", "--threads", "1", "long.jsonl"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not unfinished():
        time.sleep(0.001)
    run.send_signal(number)
    said = run.communicate()[1]
    assert run.returncode == -number, (run.returncode, said)
    return said


said = stop(signal.SIGTERM)
assert said == "fsdpc-tokenize: error: ended by a signal; nothing was written\n", said
assert not pathlib.Path("new").exists(), "a folder without files is left"
stop(signal.SIGKILL)
assert len(unfinished()) == 1, unfinished()
with open("new/bad_train_000001.bin.tmp.1", "w") as other:  # of a run that continues, here or on another machine
    fcntl.flock(other, fcntl.LOCK_EX)
    subprocess.run([sys.argv[1], "--tokenizer", ".", "--out", "new/bad", "a.txt"], check=True, stdout=subprocess.DEVNULL)
    assert unfinished() == ["bad_train_000001.bin.tmp.1"], unfinished()
for path in pathlib.Path("new").iterdir():
    path.unlink()
pathlib.Path("new").rmdir()
