"""Forked processes that never return into the test run."""

import os
import sys
import threading
import traceback

from kaiza.cli import dispatch

_OWN_THREADS = ("kaiza-", "plan-watch", "scope-count")


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


def can_fork_commands():
    """Whether no other thread of ours runs: a forked child could wait for ever for a lock that one of them held."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and not any(thread.name.startswith(_OWN_THREADS) for thread in threading.enumerate())


def fork_command(words, cwd, output, environment=None):
    """Run `kaiza` in a forked process, which spares the start of an interpreter; return its process id.

    It reads nothing and writes to the descriptor `output`.
    """
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  until its end
        status = dispatch.main(list(words))
        sys.stdout.flush()
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001  as above
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0)
