"""The two commands of the README work from a fresh clone with an empty HOME and no caches."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "fresh_clone.sh"
WANTED = os.environ.get("CI") == "true" or bool(os.environ.get("KAIZA_LONG"))


@pytest.mark.long
@pytest.mark.skipif(not WANTED, reason="downloads everything anew: only where CI=true or KAIZA_LONG is set")
@pytest.mark.skipif(not (SCRIPT.parent.parent / ".git").exists(), reason="not a git checkout, nothing to clone")
def test_both_commands_work_from_a_fresh_clone():
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=900, check=False)

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.endswith("both commands work from a fresh clone\n")
