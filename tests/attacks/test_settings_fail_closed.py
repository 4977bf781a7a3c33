"""A `kaiza.toml` that cannot be read and parsed whole stops the start; it is never treated as missing."""

import json
import os
import subprocess
import sys

import pytest
from scenes import make_ready, records

CONTENT = 'deny_read = ["a"]\n'
PADDING = "#" * 64 * 1024 + "\n"


def too_large(root):
    (root / "kaiza.toml").write_text(PADDING + CONTENT)


def one_byte_too_large(root):
    (root / "kaiza.toml").write_text("#" * (64 * 1024 + 1))


def latin_1(root):
    (root / "kaiza.toml").write_bytes(b"# \xff\n" + CONTENT.encode())


def utf_16(root):
    (root / "kaiza.toml").write_bytes(CONTENT.encode("utf-16"))


def cut_in_a_character(root):
    (root / "kaiza.toml").write_bytes(b"#" * (64 * 1024 - 1) + "é".encode())


def link_inside(root):
    (root / "mine.toml").write_text(CONTENT)
    (root / "kaiza.toml").symlink_to("mine.toml")


def link_outside(root):
    (root.parent / "mine.toml").write_text(CONTENT)
    (root / "kaiza.toml").symlink_to(root.parent / "mine.toml")


def dangling_link(root):
    (root / "kaiza.toml").symlink_to("nowhere")


def circular_link(root):
    (root / "kaiza.toml").symlink_to("kaiza.toml")


def directory(root):
    (root / "kaiza.toml").mkdir()


def pipe(root):
    os.mkfifo(root / "kaiza.toml")


def another_case(root):
    (root / "Kaiza.toml").write_text(CONTENT)


def another_case_beside(root):
    (root / "kaiza.toml").write_text("")
    (root / "KAIZA.TOML").write_text(CONTENT)


def another_spelling(root):
    (root / "kaiza.tom\uff4c").write_text(CONTENT)


def trailing_dot(root):
    (root / "kaiza.toml.").write_text(CONTENT)


INVALID = {
    too_large: "too_large", one_byte_too_large: "too_large", cut_in_a_character: "too_large", latin_1: "not_utf8",
    utf_16: "not_utf8", link_inside: "link", link_outside: "link", dangling_link: "link", circular_link: "link",
    directory: "no_file", pipe: "no_file", another_case: "misnamed", another_case_beside: "misnamed",
    another_spelling: "misnamed", trailing_dot: "misnamed",
}  # fmt: skip


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return make_ready(tmp_path / "project")


def run(root, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *arguments],
        cwd=root, input=b"", capture_output=True, check=False, timeout=60,
    )  # fmt: skip


def serve(root, *options):
    """Run the server on an empty input; the process and the envelope that it printed."""
    process = run(root, "serve", "--workspace", str(root), *options)
    return process, json.loads(process.stderr) if process.stderr else None


@pytest.mark.parametrize("make", INVALID)
def test_an_invalid_settings_file_stops_the_start_with_a_message(root, make):
    make(root)
    process, envelope = serve(root)

    assert (process.returncode, process.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["cause"]) == (
        "BOOTSTRAP_FAILURE", {"file": "kaiza.toml", "why": INVALID[make]}
    )  # fmt: skip
    assert envelope["human_message"].endswith("start again.")
    assert str(root) not in process.stderr.decode()


@pytest.mark.parametrize("make", INVALID)
def test_an_invalid_settings_file_in_one_of_several_workspaces_stops_the_start(root, tmp_path, make):
    make(root)
    other = make_ready(tmp_path / "other")
    process, envelope = serve(other, "--workspace", str(root))

    assert (process.returncode, envelope["cause"]["why"]) == (3, INVALID[make])


@pytest.mark.parametrize("make", INVALID)
def test_doctor_reports_an_invalid_settings_file_as_a_problem(root, make):
    make(root)
    process = run(root, "doctor", "--json")
    checks = {check["check"]: check for check in json.loads(process.stdout)["checks"]}

    assert process.returncode == 1
    assert checks["settings"]["verdict"] == "problem"
    assert "kaiza.toml" in checks["settings"]["message"]


@pytest.mark.parametrize("make", INVALID)
def test_freeze_works_with_an_invalid_settings_file_and_thaw_does_not(root, make):
    make(root)
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


@pytest.mark.parametrize("content", ["", "# nothing\n", CONTENT, "#" * (64 * 1024 - len(CONTENT) - 1) + "\n" + CONTENT])
@pytest.mark.parametrize("beside", [None, "kaiza.toml.bak", "my-kaiza.toml", "größe"])
def test_a_valid_settings_file_starts_whatever_is_beside_it(root, content, beside):
    (root / "kaiza.toml").write_text(content)
    if beside:
        (root / beside).write_text("")
    process, envelope = serve(root)

    assert (process.returncode, envelope) == (0, None)


@pytest.mark.parametrize("beside", [None, "kaiza.toml.bak", "größe", "src/Kaiza.toml"])
def test_without_a_settings_file_the_server_starts(root, beside):
    if beside:
        (root / beside).parent.mkdir(exist_ok=True)
        (root / beside).write_text("")
    process, envelope = serve(root)

    assert (process.returncode, envelope) == (0, None)
