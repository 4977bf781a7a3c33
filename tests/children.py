"""Forked processes that never return into the test run."""

import os
import traceback


def run_child(act):
    """Run `act` in a process of its own and return its wait status: 1 << 8 if `act` returns or raises."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001  a child that raised would go on as a second test run
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]
