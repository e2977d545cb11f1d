"""Ports for jobs that a test starts."""

import socket

_held = []


def free_port():
    """A port that nobody else gets as long as this process lives.

    It is bound here without being listened on. So the system gives it to no other process, connections to it are refused, and a rank,
    which asks for it by its number and may reuse addresses, can listen on it.
    """
    held = socket.socket()
    held.bind(("", 0))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not before: the system would choose ports that others hold so too
    _held.append(held)
    return held.getsockname()[1]
