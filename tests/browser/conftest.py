"""Opens pages in Debian's Chromium, driven by playwright-core from npm."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from clients.conftest import installed  # noqa: F401  a fixture

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def browse(installed):  # noqa: F811
    """Runs one check of `page.mjs` on a page; what it saw."""
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("there is no /usr/bin/chromium: install Debian's package chromium")
    folder = installed(HERE / "package.json")
    shutil.copy(HERE / "page.mjs", folder / "page.mjs")

    def run_check(check, page, argument=""):
        command = ["node", str(folder / "page.mjs"), check, str(page), argument]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run_check
