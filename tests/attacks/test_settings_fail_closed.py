"""A `kaiza.toml` that cannot be read and parsed whole stops the start; it is never treated as missing."""

import json
import os
import subprocess
import sys

import pytest
from scenes import make_ready, records

CONTENT = 'deny_read = ["a"]\n'
PADDING = "#" * 64 * 1024 + "\n"


def put(content, name="kaiza.toml"):
    return lambda root: (root / name).write_bytes(content)


def link(target):
    return lambda root: (root / "kaiza.toml").symlink_to(target)


INVALID = {
    "too large": (put((PADDING + CONTENT).encode()), "too_large"),
    "one byte too large": (put(b"#" * (64 * 1024 + 1)), "too_large"),
    "cut in a character": (put(b"#" * (64 * 1024 - 1) + "é".encode()), "too_large"),
    "latin 1": (put(b"# \xff\n" + CONTENT.encode()), "not_utf8"),
    "utf-16": (put(CONTENT.encode("utf-16")), "not_utf8"),
    "link inside": (link("mine.toml"), "link"),
    "link outside": (link("../mine.toml"), "link"),
    "dangling link": (link("nowhere"), "link"),
    "circular link": (link("kaiza.toml"), "link"),
    "directory": (lambda root: (root / "kaiza.toml").mkdir(), "no_file"),
    "pipe": (lambda root: os.mkfifo(root / "kaiza.toml"), "no_file"),
    "another case": (put(CONTENT.encode(), "Kaiza.toml"), "misnamed"),
    "another case beside": (lambda root: (put(b"")(root), put(CONTENT.encode(), "KAIZA.TOML")(root)), "misnamed"),
    "another spelling": (put(CONTENT.encode(), "kaiza.tom\uff4c"), "misnamed"),
    "trailing dot": (put(CONTENT.encode(), "kaiza.toml."), "misnamed"),
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    root = make_ready(tmp_path / "project")
    for place in (tmp_path, root):  # what links lead to
        (place / "mine.toml").write_text(CONTENT)
    return root


def run(root, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *arguments],
        cwd=root, input=b"", capture_output=True, check=False, timeout=60,
    )  # fmt: skip


def serve(root, *options):
    """Run the server on an empty input; the process and the envelope that it printed."""
    process = run(root, "serve", "--workspace", str(root), *options)
    return process, json.loads(process.stderr) if process.stderr else None


@pytest.mark.parametrize(("make", "why"), INVALID.values(), ids=INVALID)
def test_an_invalid_settings_file_stops_the_start_with_a_message(root, make, why):
    make(root)
    process, envelope = serve(root)

    assert (process.returncode, process.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["cause"]) == (
        "BOOTSTRAP_FAILURE", {"file": "kaiza.toml", "why": why}
    )  # fmt: skip
    assert envelope["human_message"].endswith("start again.")
    assert str(root) not in process.stderr.decode()


def test_an_invalid_settings_file_in_one_of_several_workspaces_stops_the_start(root, tmp_path):
    INVALID["latin 1"][0](root)
    process, envelope = serve(make_ready(tmp_path / "other"), "--workspace", str(root))

    assert (process.returncode, envelope["cause"]["why"]) == (3, "not_utf8")


@pytest.mark.parametrize("what", ["too large", "circular link", "pipe", "another case"])
def test_freeze_works_with_an_invalid_settings_file_and_thaw_does_not(root, what):
    INVALID[what][0](root)
    freeze_status = run(root, "freeze", "now").returncode
    thaw_status = run(root, "thaw").returncode

    assert freeze_status == 0
    assert thaw_status != 0
    assert [record["detail"]["action"] for record in records(root)] == ["freeze"]


def test_an_unreadable_settings_file_stops_the_start(root):
    (root / "kaiza.toml").write_text(CONTENT)
    (root / "kaiza.toml").chmod(0)
    code = (
        "import os, sys\n"
        f"directory = os.open({str(root)!r}, os.O_RDONLY)\n"
        "from kaiza.store.config import settings\n"
        "from kaiza.domain import errors\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: settings.read_settings_text(directory)\n"
        "except errors.SystemError as error: print(error.error_code, error.cause['why'])\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert process.stdout.split() == [b"BOOTSTRAP_FAILURE", b"unreadable"]


@pytest.mark.parametrize("content", [None, "", CONTENT, "#" * (64 * 1024 - len(CONTENT) - 1) + "\n" + CONTENT])
def test_a_server_starts_without_settings_or_with_valid_ones_whatever_is_beside_them(root, content):
    if content is not None:
        (root / "kaiza.toml").write_text(content)
    for beside in ("kaiza.toml.bak", "my-kaiza.toml", "größe", "src/Kaiza.toml"):
        (root / beside).parent.mkdir(exist_ok=True)
        (root / beside).write_text("")
    process, envelope = serve(root)

    assert (process.returncode, envelope) == (0, None)
