"""The wire is ours alone: whatever else in this process, or below it, reads or prints, it does not reach the client."""

import os
import sys


def take_stdio() -> tuple[int, int]:
    """Take standard input and output for the wire; print and children get nothing to read, and standard error."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    os.set_blocking(incoming, True)
    os.set_blocking(outgoing, True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return incoming, outgoing
