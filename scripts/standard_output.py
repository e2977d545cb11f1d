"""How scripts end whose output goes into a pipe."""

import os
import select
import sys


def reader_is_gone():
    poll = select.poll()
    poll.register(1, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def run(main, *arguments):
    """Ends with the status that main(*arguments) returns. If the reader of standard output has exited, as in `| head`, ends with status 141
    and without a message, as programs do that are killed by SIGPIPE; main has then left its `with` blocks."""
    try:
        try:
            status = main(*arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not reader_is_gone():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes at the exit what it could not write
        status = 141
    sys.exit(status)
