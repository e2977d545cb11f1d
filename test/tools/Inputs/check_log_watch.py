"""check_log_watch.py TOOL: `TOOL --watch` shows the rows of a log as they are written, and of the next log with its name."""

import os
import pathlib
import subprocess
import sys

log = pathlib.Path("watched.jsonl")
run = subprocess.Popen([sys.argv[1], "--watch", "--fields", "step,loss", log], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
try:
    assert "waiting for lines in 'watched.jsonl'" in run.stderr.readline()

    def shown(*texts):
        for text in texts:
            line = run.stdout.readline()
            assert line.split() == text.split(), (line, text)

    with open(log, "a", encoding="utf-8") as file:
        file.write('{"step": 1, "loss": 5}\n{"step": 2')
        file.flush()
        shown("step loss", "1 5")
        file.write(', "loss": 4}\n')
        file.flush()
        shown("2 4")
        # A resume drops a step and continues.
        file.truncate(len('{"step": 1, "loss": 5}\n'))
    with open(log, "a", encoding="utf-8") as file:
        file.write('{"step": 2, "loss": 3}\n')
    shown("-- 1 line was removed from the log", "2 3")
    log.rename("watched.jsonl.1")
    log.write_text('{"step": 1, "loss": 9}\n')
    shown("-- 'watched.jsonl' is a new log", "1 9")
finally:
    run.kill()
    run.communicate()
assert os.path.exists("watched.jsonl.1")
