"""Entry point of `kaiza` and `python -m kaiza`."""

import sys

from kaiza.cli import dispatch


def main() -> int:
    """Run the command line and return the exit status."""
    return dispatch.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
