"""Entry point of `kaiza` and `python -m kaiza`."""

import os
import sys

from kaiza.cli import dispatch


def main() -> int:
    """Run the command line and return the exit status."""
    if sys.getfilesystemencoding() != "utf-8":
        # Names are UTF-8 in the log and for every client, whatever the locale says. Python decides once, at its start.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606  this program again
    return dispatch.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
