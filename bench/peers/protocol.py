"""What every peer does alike: the job it is given, its batches, its clock and its memory.

A peer is started as `python PEER.py JOB`, JOB being a JSON object (see bench/compare). It prints one
JSON object a line: {"imports": bytes}, then {"step": n, "loss": x, "seconds": s, "core_seconds": s, "at":
monotonic}, at the end {"peak": bytes, "peak_after_first": bytes}. Rank 0's seconds and losses count; core
seconds (processor time of all threads, user and system) add up over the ranks.
"""

import json
import sys
import time

import numpy as np


def job():
    return json.loads(sys.argv[1])


def status(field):
    """Bytes of a line of /proc/self/status: VmRSS (now) or VmHWM (the most there was)."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise SystemExit(f"{field}: not in /proc/self/status")


def say(**what):
    print(json.dumps(what), flush=True)


class Tokens:
    """Samples of context + 1 tokens in the order of the file, as fsdpc's programs visit them."""

    def __init__(self, path, context, batch):
        raw = np.fromfile(path, dtype=np.uint8)
        if raw[:4].view(np.int32)[0] == 20240520:  # llm.c's header of 256 int32
            raw = raw[1024:].view(np.uint16)
        self.tokens, self.context, self.batch, self.next = raw, context, batch, 0
        self.samples = (len(raw) - 1) // context

    def rows(self):
        """The next batch, (batch, context + 1) of int32."""
        starts = [(self.next + i) % self.samples * self.context for i in range(self.batch)]
        self.next += self.batch
        return np.stack([self.tokens[s:s + self.context + 1] for s in starts]).astype(np.int32)


def train(step, job):
    """Runs `step(rows) -> loss` (a float, when all of the step is done) and reports."""
    tokens = Tokens(job["data"], job["model"]["context"], job["batch"])
    first = 0
    for number in range(1, job["steps"] + 1):
        rows = tokens.rows()
        begin, used = time.monotonic(), time.process_time()
        loss = step(rows)
        end = time.monotonic()
        say(step=number, loss=loss, seconds=end - begin, core_seconds=time.process_time() - used, at=end)
        if number == 1:
            # The memory of compilation is excluded: the high-water mark restarts from the current
            # use.
            first = status("VmHWM")
            with open("/proc/self/clear_refs", "w") as mark:
                mark.write("5")
    after = status("VmHWM")
    say(peak=max(first, after), peak_after_first=after)
