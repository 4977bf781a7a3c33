"""Fixtures: a workspace, an application over it, and a tool that fails in every way."""

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass

import pytest
from doors import PATIENCE
from http_doors import HttpDoor
from hypothesis import settings
from scenes import make_ready

from kaiza.app import App
from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.tool_card import ToolOffer
from kaiza.store.config.schema_registry import SchemaRegistry, find_directory
from kaiza.tools.registry import AGENT_TOOLS, Tool
from kaiza.tools.view import Answer

settings.register_profile("kaiza", deadline=None, database=None, print_blob=True)
settings.load_profile("kaiza")


@pytest.fixture(autouse=True)
def _own_state_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
    monkeypatch.delenv("DEBUG_STACK", raising=False)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)


@pytest.fixture
def alarm():
    """Fail a test that would otherwise never end."""

    def ring(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def workspace(tmp_path):
    return make_ready(tmp_path / "project")


class LegacyError(Exception):  # has a registered code, as older error classes have
    error_code = "HASH_MISMATCH"


class ForeignError(Exception):  # has a code of its library's own
    code = "E_FOREIGN"


class OwnError(Exception):
    pass


WRONG_ANSWERS = {
    "str": "boom",
    "object": {"ok": False, "error": "boom"},
    "bad_output": Answer({"ok": False, "error": "boom"}),
    "list": Answer(["x"]),
    "wrong_type": Answer({"said": ["x"], "summary": "fine"}),
    "not_json": Answer({"said": object(), "summary": "fine"}),
    "surplus": Answer({"said": "x", "summary": "fine", "more": "x"}),
    "huge": Answer({"said": "x" * 600_000, "summary": "long"}),
}


def _fault(kind, view):
    if kind == "raise":
        raise OwnError("boom")
    if kind == "invariant":
        raise errors.SystemError.invariant_violation("MANDATORY_DIAGNOSTICS", human_message="No diagnostics. Run them.")
    if kind == "legacy":
        raise LegacyError("old")
    if kind == "foreign":
        raise ForeignError("theirs")
    if kind == "oserror":
        raise PermissionError(13, "Permission denied", "/somewhere/private")
    if kind == "exit":
        raise SystemExit(1)
    if kind == "cycle":
        cause = {}
        cause["again"] = cause
        raise errors.SystemError.tool_failure("INVALID_PATH", cause=cause)
    if kind == "hang":
        while not view.is_out_of_time():
            os.sched_yield()
        return Answer({"said": "late", "summary": "late"})
    return WRONG_ANSWERS.get(kind, Answer({"said": kind, "summary": "fine"}))


@dataclass(frozen=True)
class FaultRequest:
    kind: str


FAULT_TOOL = Tool(
    "debug_fault",
    lambda arguments, _root: FaultRequest(arguments["kind"]),
    lambda request, view: _fault(request.kind, view),
)


@pytest.fixture
def faulty_registry(tmp_path):
    """The shipped schemas and one tool more, `debug_fault`, which fails as its argument says."""
    directory = tmp_path / "schemas"
    shutil.copytree(find_directory(), directory)
    catalog = json.loads((directory / "catalog.json").read_text())
    catalog["tools"].append(
        {
            "id": "debug_fault",
            "title": "Fault",
            "description": "Misbehaves.",
            "category": "debug",
            "safety_level": "read",
            "roles": ["ANTIGRAVITY", "WINDSURF"],
            "needs_session": True,
            "idempotent": False,
        }
    )
    (directory / "catalog.json").write_text(json.dumps(catalog))
    shape = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
    }
    text = {"type": "string"}
    inputs = {"kind": text, "session_id": text, "phase_id": text, "plan_hash": text}
    (directory / "tools" / "debug_fault.json").write_text(
        json.dumps({**shape, "properties": inputs, "required": ["kind"]})
    )
    outputs = {"said": text, "summary": text}
    (directory / "tools" / "debug_fault.output.json").write_text(
        json.dumps({**shape, "properties": outputs, "required": ["said", "summary"]})
    )
    return SchemaRegistry(directory)


@pytest.fixture
def make_app(faulty_registry):
    apps = []

    def make(*roots, **options):
        options.setdefault("registry", faulty_registry)
        options["offer"] = ToolOffer(**{key: options.pop(key) for key in ToolOffer._fields if key in options})
        app = App(
            [os.path.realpath(root) for root in roots], tools={**AGENT_TOOLS, "debug_fault": FAULT_TOOL}, **options
        )
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def app(make_app, workspace):
    return make_app(workspace)


@pytest.fixture
def begun(app):
    """An application with one open session of the executor."""
    app.call("begin_session", {"role": "WINDSURF"})
    return app


@pytest.fixture
def quick_caps():
    return Caps(tool_timeout_ms=200)


@pytest.fixture
def small_disk(tmp_path):
    """A separate file system of 64 KiB, to be remounted larger or read-only."""
    mount_point = tmp_path / "small"
    mount_point.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount_point], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("only root may mount a small disk")
        yield mount_point
    finally:
        # A mount that stays makes every later test run of this user fail.
        if os.path.ismount(mount_point):
            subprocess.run(["umount", "-l", mount_point], check=True)


@pytest.fixture
def open_http():
    """Starts servers over HTTP, which end with the test."""
    doors = []

    def open_one(command, record=None, **options):
        doors.append(HttpDoor(command, record, **options))
        return doors[-1]

    yield open_one
    for door in doors:
        door.process.kill()
        door.process.wait()
        door.process.stderr.close()
