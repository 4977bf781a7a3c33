"""Clients that others wrote, in their own runtime: the TypeScript SDK 1.x and the Inspector's command line."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from scenes import records

HERE = Path(__file__).parent
NPM = shutil.which("npm")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(NPM is None, reason="there is no npm to install the clients with"),
    pytest.mark.skipif(
        not (os.environ.get("CI") or os.environ.get("KAIZA_LONG")),
        reason="installing the clients takes a minute: set CI or KAIZA_LONG",
    ),
]


@pytest.fixture(scope="module")
def clients():
    """The installed clients, kept for the next run under a name that changes with their versions."""
    manifest = (HERE / "package.json").read_bytes()
    kept = Path(tempfile.gettempdir()) / f"kaiza-clients-{hashlib.sha256(manifest).hexdigest()[:16]}"
    if not kept.is_dir():
        making = Path(tempfile.mkdtemp(prefix="kaiza-clients-"))
        (making / "package.json").write_bytes(manifest)
        install = [NPM, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        done = subprocess.run(install, cwd=making, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(making)
            pytest.skip("npm could not install the clients")
        _keep(making, kept)
    return kept


def _keep(making, kept):
    try:
        making.rename(kept)
    except OSError:  # another run was faster
        shutil.rmtree(making)


@pytest.fixture
def serve(workspace):
    (workspace / "a.txt").write_text("hello\n")
    return [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)

    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("{") :])


def told_of(workspace):
    return [(record["tool_name"], record["error_code"]) for record in records(workspace)]


def test_the_typescript_client_lists_the_tools_begins_a_session_and_reads_a_file(clients, serve, workspace):
    script = clients / "visit.mjs"
    shutil.copy(HERE / "visit.mjs", script)
    seen = run(["node", str(script), *serve])

    assert seen["server"]["name"] == "kaiza"
    assert "begin_session" in seen["tools"]
    assert seen["read"]["structuredContent"]["content"] == "hello\n"
    assert json.loads(seen["read"]["content"][0]["text"]) == seen["read"]["structuredContent"]
    assert seen["missing"]["isError"] is True
    assert json.loads(seen["missing"]["content"][0]["text"])["error_code"] == "FILE_NOT_FOUND"
    assert seen["unknown"] == -32602
    assert told_of(workspace) == [
        ("begin_session", None),
        ("read_file", None),
        ("read_file", "FILE_NOT_FOUND"),
        ("zip", "TOOL_NOT_FOUND"),
    ]


def test_the_inspector_lists_the_tools_begins_a_session_and_reads_a_file(clients, serve, workspace):
    def inspect(*words):
        state = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}"
        inspector = clients / "node_modules" / ".bin" / "mcp-inspector"
        return run([str(inspector), "--cli", *serve, "-e", state, *words])

    tools = inspect("--method", "tools/list")["tools"]
    call = ["--method", "tools/call", "--tool-name"]
    begun = inspect(*call, "begin_session", "--tool-arg", "role=WINDSURF")
    session = f"session_id={begun['structuredContent']['session_id']}"
    read = inspect(*call, "read_file", "--tool-arg", "path=a.txt", "--tool-arg", session)

    assert "begin_session" in {tool["name"] for tool in tools}
    assert read["structuredContent"]["content"] == "hello\n"
    assert told_of(workspace) == [("begin_session", None), ("read_file", None)]
