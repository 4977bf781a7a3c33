"""The official conformance suite, for the transport with the suite's fixtures and for the server as it is shipped."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from clients.conftest import listening

HERE = Path(__file__).parent
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
"""Server scenarios that each revision requires."""

pytestmark = [pytest.mark.long, pytest.mark.parametrize("revision", SCORED)]


@pytest.fixture(scope="module")
def suite(installed):
    directory = installed(HERE / "conformance" / "package.json")
    (node,) = directory.glob("node_modules/node-linux-*/bin/node")
    program = directory / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run(url, revision, output, *options):
        words = ["server", "--url", f"{url}/mcp", "--requirements", revision, "-o", str(output), *options]
        return subprocess.run(
            [str(node), str(program), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "PATH": f"{node.parent}:{os.environ['PATH']}"},
        )

    return run


def test_the_transport_with_the_suites_fixtures_passes_every_scored_scenario(suite, revision, tmp_path):
    with listening(str(HERE / "conformance_server.py")) as url:
        done = suite(url, revision, tmp_path / "results")
    passed = re.findall(r"^✓ (\S+):", done.stdout, re.MULTILINE)

    assert done.returncode == 0, done.stdout
    assert len(passed) >= SCORED[revision]


def test_the_shipped_server_fails_only_for_want_of_fixtures_and_capabilities(suite, revision, tmp_path, workspace):
    expected = HERE / "conformance" / f"expected-failures-{revision}.yml"
    serve = ["-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0", "--no-auth"]
    with listening(*serve) as url:
        done = suite(url, revision, tmp_path / "results", "--expected-failures", str(expected))

    assert done.returncode == 0, done.stdout
    assert "tools-list" in done.stdout
