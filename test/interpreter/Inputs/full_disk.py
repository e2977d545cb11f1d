#!/usr/bin/env python3
"""full_disk.py COMMAND...: runs the command where no file may grow past 64 bytes, as on a full disk,
and in 2 GiB of memory; prints its status."""

import resource
import signal
import subprocess
import sys


def limit():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


print("status", subprocess.run(sys.argv[1:], preexec_fn=limit).returncode, flush=True)
