"""check_stopped_tokenizer.py TOOL: SIGTERM ends a run, which leaves no file."""

import pathlib
import signal
import subprocess
import sys
import time

# Documents enough for several batches, which the tool reads as fast as they are encoded.
with open("long.jsonl", "w") as file:
    for i in range(3000):
        file.write('{"text": "' + f"{i} " * 4000 + '"}\n')
run = subprocess.Popen([sys.argv[1], "--tokenizer", ".", "--out", "bad", "--threads", "1", "long.jsonl"], stderr=subprocess.PIPE, text=True)
while run.poll() is None and not list(pathlib.Path().glob("bad_train_000000.bin.tmp.*")):
    time.sleep(0.001)
run.send_signal(signal.SIGTERM)
said = run.communicate()[1]
assert run.returncode == -signal.SIGTERM, (run.returncode, said)
assert said == "fsdpc-tokenize: error: ended by a signal; nothing was written\n", said
