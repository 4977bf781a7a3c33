"""Checks the sandbox of a plan's checks by running a program in it that tries to get out."""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kaiza.domain.paths.protected_names import is_control_plane, is_secret
from kaiza.queries.doctor.check import DoctorCheck, ok, problem, warning
from kaiza.store.checks import check_runner, sandbox
from kaiza.store.checks.guarded_paths import find_guarded
from kaiza.store.checks.sandbox import Sandbox, SandboxRules
from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir

_SECONDS = 20.0
_PROBE = """
import socket, sys
for path in sys.argv[2:]:
    try:
        open(path, "x").close()
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)
except OSError:
    pass
print("probed")
"""


def check_sandbox(root: Path) -> Iterator[DoctorCheck]:
    """Check that checks are sandboxed: bubblewrap works, and the probe writes and reaches nothing outside."""
    program = sandbox.find_bubblewrap(str(root))
    if program is None:
        todo = "If your plans have checks, install bubblewrap. In a container, it may have to be permitted."
        yield warning("checks", "bubblewrap is missing or does not work here, so checks are refused", todo)
        return
    state = state_dir.shared_path()
    places = {"the home directory": Path.home(), "the state directory": state, "plans/": root / "plans"}
    targets = {name: place / f".kaiza-probe-{os.getpid()}" for name, place in places.items()}
    try:
        with tempfile.NamedTemporaryFile() as empty:
            has_run, has_connected = _run_probe(_build_sandbox(program, root, empty.name), list(targets.values()))
        escapes = [name for name, target in targets.items() if target.exists()]
    finally:
        for target in targets.values():
            target.unlink(missing_ok=True)
    escapes += ["the network"] if has_connected else []
    if escapes:
        message = f"the sandbox of checks does not hold; a check reaches {', '.join(escapes)}"
        yield problem("checks", message, f"Do not use --allow-checks here. Find out what {program} is.")
    elif not has_run:
        todo = "Run a check, and read its output. Python may be in a directory that the sandbox hides."
        yield warning("checks", "the sandbox could not be probed", todo)
    else:
        yield ok("checks", "checks are sandboxed (bubblewrap)")


def _build_sandbox(program: str, root: Path, empty_file: str) -> Sandbox:
    rules = SandboxRules((str(state_dir.shared_path()), str(trusted_config.user_directory())))
    guarded = find_guarded(str(root), is_control_plane, is_secret)
    return sandbox.build_sandbox(program, str(root), rules, guarded, empty_file)


def _run_probe(probed: Sandbox, targets: Sequence[Path]) -> tuple[bool, bool]:
    """Whether the probe ran to its end, and whether it connected to this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", _PROBE, str(listener.getsockname()[1])]
        result = check_runner.run_sandboxed([*argv, *map(str, targets)], probed, _SECONDS)
        has_run = result.output == "probed\n"
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return has_run, False
        connection.close()
        return has_run, True
