"""Installs what others wrote from npm, and starts servers that listen on HTTP."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from http_doors import HttpDoor

_NPM = shutil.which("npm")


@pytest.fixture(scope="session")
def installed():
    """Returns the directory in which the packages of a manifest are installed; skips where that is not possible."""
    if _NPM is None:
        pytest.skip("there is no npm to install the clients with")
    if not (os.environ.get("CI") or os.environ.get("KAIZA_LONG")):
        pytest.skip("installing the clients takes a minute: set CI or KAIZA_LONG")
    return _install


def _install(manifest):
    """Install once; the directory is kept for the next run under a name that changes with the versions."""
    content = manifest.read_bytes()
    kept = Path(tempfile.gettempdir()) / f"kaiza-clients-{hashlib.sha256(content).hexdigest()[:16]}"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the packages are large: other processes wait instead of loading them, too
        if not kept.is_dir():
            making = Path(tempfile.mkdtemp(prefix="kaiza-clients-"))
            (making / "package.json").write_bytes(content)
            _run_npm(manifest.with_name("package-lock.json"), making)
            making.rename(kept)
    return kept


def _run_npm(locked, making):
    options = ["--no-audit", "--no-fund", "--ignore-scripts"]
    if locked.exists():
        shutil.copy(locked, making)  # holds the hashes; `npm ci` refuses it for packages of other systems
    else:
        options.append("--no-package-lock")
    done = subprocess.run([_NPM, "install", *options], cwd=making, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(making)
        pytest.skip("npm could not install the clients")


@contextmanager
def listening(*command):
    """The address of a server that this command starts, for as long as the context lasts."""
    door = HttpDoor([sys.executable, *command])
    try:
        yield door.url
    finally:
        door.process.terminate()
        door.process.stderr.close()
        door.process.wait(20)
