#!/usr/bin/env python3
"""check_tool_outputs.py SCRATCH OPTION TOOL [ARGUMENT...] INPUT: that the tool treats what OPTION names as
docs/files.md says."""

import os
import pathlib
import resource
import signal
import stat
import subprocess
import sys

scratch, option, *command, source = sys.argv[1:]
scratch = pathlib.Path(scratch)
scratch.mkdir()


def expect(condition, what):
    if not condition:
        sys.exit(f"{command[0]}: {what}")


def run(output, status=0, says="", source=source, preexec_fn=None):
    """What the tool prints."""
    words = [*command, str(source), option, str(output)]
    done = subprocess.run(words, capture_output=True, timeout=1200, preexec_fn=preexec_fn)
    said = done.stderr.decode(errors="replace")
    expect(done.returncode == status, f"{words}: got status {done.returncode}, expected {status}: {said}")
    expect(says in said, f"{words}: lacking '{says}' in: {said}")
    return done.stdout


def left(*names):
    expect(sorted(os.listdir(scratch)) == sorted(names), f"left behind: {os.listdir(scratch)}")


def full_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


# A link stays, its target is replaced and keeps its mode.
old, link = scratch / "old", scratch / "link"
old.write_text("old")
old.chmod(0o604)
link.symlink_to("old")
run(link)
expect(link.is_symlink(), "the link was replaced")
content = old.read_bytes()
expect(len(content) > 64, f"wrote {content}")
expect(stat.S_IMODE(old.stat().st_mode) == 0o604, f"got mode {old.stat().st_mode:o}")
for name in ("-", "/dev/stdout"):
    expect(run(name) == content, f"{name} got another text")

# A failure keeps the previous file, and leaves no other.
wrong = scratch / "wrong"
wrong.write_text("fsdp.nonsense")
run(old, status=1, says="fsdp.nonsense", source=wrong)
run(old, status=1, says="File too large", preexec_fn=full_disk)
expect(old.read_bytes() == content, "the old file is lost")
run("/dev/full", status=1, says="No space left on device")
left("old", "link", "wrong")

# What cannot take a result is refused before the work.
fifo = scratch / "fifo"
os.mkfifo(fifo)
run(fifo, status=1, says="no process reads this FIFO", source=wrong)
run(scratch, status=1, says="it is a folder", source=wrong)
run(scratch / "nowhere/new", status=1, says="there is no folder", source=wrong)

# The input is not an output, under any name.
copy, hard = scratch / "copy", scratch / "hard"
copy.write_bytes(pathlib.Path(source).read_bytes())
os.link(copy, hard)
run(hard, status=2, says="got one file for", source=copy)
expect(copy.read_bytes() == pathlib.Path(source).read_bytes(), "the input changed")
left("old", "link", "wrong", "fifo", "copy", "hard")
