"""What the examples say is what happens: the record that can be tampered with, and this repository's own plans."""

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


def test_the_example_has_its_steps():
    assert len(STEPS) == 6


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not there")
@pytest.mark.parametrize(("commands", "told"), STEPS, ids=range(len(STEPS)))
def test_each_step_with_the_record_says_what_the_page_says(tmp_path, commands, told):
    shutil.copytree(EXAMPLE, tmp_path / "audit")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        ["bash", "-c", commands], cwd=tmp_path / "audit", env=environment, capture_output=True, text=True, check=False
    )

    assert done.stdout.startswith(told)


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.md")), ids=lambda path: path.stem)
def test_this_repositorys_plans_are_sound(path):
    reading = parser.parse(path.read_bytes(), path.stem)

    assert reading.findings == ()
    assert reading.plan is not None
