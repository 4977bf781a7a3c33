"""The checks of `kaiza doctor`. They change nothing."""

from collections.abc import Iterator
from pathlib import Path

from kaiza.queries.doctor import clients, machine, sandbox_probe, workspace
from kaiza.queries.doctor.check import DoctorCheck, Watch, errors_as_checks
from kaiza.queries.doctor.server_probe import check_server, probe_server
from kaiza.store.clients import server_command
from kaiza.store.config import roots


def run_checks(root: Path, watch: Watch) -> Iterator[DoctorCheck]:
    """Check everything that a session at this root needs."""
    yield from machine.check_python()
    yield from machine.check_user()
    yield from errors_as_checks("paths", machine.check_kernel(root))
    yield from workspace.check_initialized(root)
    if roots.is_initialized(str(root)):
        yield from errors_as_checks("permissions", machine.check_permissions(root))
        yield from errors_as_checks("file-system", machine.check_file_system(root))
        yield from errors_as_checks("binding", workspace.check_binding(root))
        yield from errors_as_checks("settings", workspace.check_settings(root))
        yield from errors_as_checks("git", workspace.check_git(root))
        yield from errors_as_checks("plans", workspace.check_plans(root))
        yield from errors_as_checks("trust", workspace.check_trust(root))
        yield from errors_as_checks("nested", workspace.check_nested(root, watch))
        yield from errors_as_checks("checks", sandbox_probe.check_sandbox(root))
        yield from errors_as_checks("journals", workspace.check_journals(root))
        yield from errors_as_checks("record", workspace.check_log(root, watch))
    yield from errors_as_checks("state", machine.check_state_directory(root))
    yield from errors_as_checks("configuration", machine.check_configuration_directory(root))
    fault = probe_server(server_command.for_workspace(root))
    yield from check_server(fault)
    yield from errors_as_checks("clients", clients.check_clients(root, has_answered=fault is None))
