"""What time_limit.py makes of two contents of /proc/loadavg, on two cores."""

import io
import sys

sys.path.insert(0, sys.argv[1])
import time_limit

time_limit.os.sched_getaffinity = lambda pid: {0, 1}
for words, load in (("alone", "0.1 0.1 0.1 2/345 678"), ("eight threads on two cores", "9 9 9 9/345 678")):
    time_limit.open = lambda *_, **__: io.StringIO(load)
    print(f"{words}: {time_limit.share_of_a_thread()}")
