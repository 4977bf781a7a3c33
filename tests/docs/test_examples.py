"""Commands on the example page print what it shows, and this repository's plans are valid."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kaiza.domain.plans import parser

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "audit"
STEPS = re.findall(
    r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.MULTILINE | re.DOTALL
)


def test_example_page_has_six_steps():
    assert len(STEPS) == 6


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(("commands", "output"), STEPS, ids=range(len(STEPS)))
def test_commands_in_the_example_print_what_the_page_shows(tmp_path, commands, output):
    shutil.copytree(EXAMPLE, tmp_path / "audit")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    process = subprocess.run(
        ["bash", "-c", commands], cwd=tmp_path / "audit", env=environment, capture_output=True, text=True, check=False
    )

    assert process.stdout.startswith(output)


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.md")), ids=lambda path: path.stem)
def test_plans_of_this_repository_are_valid(path):
    parsed = parser.parse(path.read_bytes(), path.stem)

    assert parsed.findings == ()
    assert parsed.plan is not None
