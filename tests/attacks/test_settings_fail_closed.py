"""A `kaiza.toml` of which not every byte is understood stops the start; it never counts as no settings."""

import json
import os
import subprocess
import sys

import pytest
from scenes import make_ready, records

SAID = 'deny_read = ["a"]\n'
PAD = "#" * 64 * 1024 + "\n"


def too_large(root):
    (root / "kaiza.toml").write_text(PAD + SAID)


def one_byte_too_large(root):
    (root / "kaiza.toml").write_text("#" * (64 * 1024 + 1))


def latin(root):
    (root / "kaiza.toml").write_bytes(b"# \xff\n" + SAID.encode())


def wide(root):
    (root / "kaiza.toml").write_bytes(SAID.encode("utf-16"))


def cut_in_a_character(root):
    (root / "kaiza.toml").write_bytes(b"#" * (64 * 1024 - 1) + "é".encode())


def link_inside(root):
    (root / "mine.toml").write_text(SAID)
    (root / "kaiza.toml").symlink_to("mine.toml")


def link_outside(root):
    (root.parent / "mine.toml").write_text(SAID)
    (root / "kaiza.toml").symlink_to(root.parent / "mine.toml")


def dangling(root):
    (root / "kaiza.toml").symlink_to("nowhere")


def circle(root):
    (root / "kaiza.toml").symlink_to("kaiza.toml")


def directory(root):
    (root / "kaiza.toml").mkdir()


def pipe(root):
    os.mkfifo(root / "kaiza.toml")


def another_case(root):
    (root / "Kaiza.toml").write_text(SAID)


def another_case_beside(root):
    (root / "kaiza.toml").write_text("")
    (root / "KAIZA.TOML").write_text(SAID)


def another_spelling(root):
    (root / "kaiza.tom\uff4c").write_text(SAID)


def trailing_dot(root):
    (root / "kaiza.toml.").write_text(SAID)


UNFIT = {
    too_large: "too_large", one_byte_too_large: "too_large", cut_in_a_character: "too_large", latin: "not_utf8",
    wide: "not_utf8", link_inside: "link", link_outside: "link", dangling: "link", circle: "link",
    directory: "no_file", pipe: "no_file", another_case: "misnamed", another_case_beside: "misnamed",
    another_spelling: "misnamed", trailing_dot: "misnamed",
}  # fmt: skip


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return make_ready(tmp_path / "project")


def run(root, *words, before=(), cwd=None):
    return subprocess.run(
        [*before, sys.executable, "-m", "kaiza", *words],
        cwd=cwd or root, input=b"", capture_output=True, check=False, timeout=60,
    )  # fmt: skip


def served(root, *more, **how):
    told = run(root, "serve", "--workspace", str(root), *more, **how)
    return told, json.loads(told.stderr) if told.stderr else None


@pytest.mark.parametrize("made", UNFIT)
def test_an_invalid_settings_file_stops_the_start_with_a_message(root, made):
    made(root)
    told, envelope = served(root)

    assert (told.returncode, told.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["cause"]) == (
        "BOOTSTRAP_FAILURE", {"file": "kaiza.toml", "why": UNFIT[made]}
    )  # fmt: skip
    assert envelope["human_message"].endswith("start again.")
    assert str(root) not in told.stderr.decode()


@pytest.mark.parametrize("made", UNFIT)
def test_an_invalid_settings_file_in_one_of_several_workspaces_stops_the_start(root, tmp_path, made):
    made(root)
    other = make_ready(tmp_path / "other")
    told, envelope = served(other, "--workspace", str(root))

    assert (told.returncode, envelope["cause"]["why"]) == (3, UNFIT[made])


@pytest.mark.parametrize("made", UNFIT)
def test_doctor_reports_an_invalid_settings_file_as_a_problem(root, made):
    made(root)
    told = run(root, "doctor", "--json")
    checks = {one["check"]: one for one in json.loads(told.stdout)["checks"]}

    assert told.returncode == 1
    assert checks["settings"]["verdict"] == "problem"
    assert "kaiza.toml" in checks["settings"]["message"]


@pytest.mark.parametrize("made", UNFIT)
def test_freeze_works_with_an_invalid_settings_file_and_thaw_does_not(root, made):
    made(root)
    froze = run(root, "freeze", "now").returncode
    thawed = run(root, "thaw").returncode

    assert froze == 0
    assert thawed != 0
    assert [one["detail"]["action"] for one in records(root)] == ["freeze"]


def test_an_unreadable_settings_file_stops_the_start(root):
    (root / "kaiza.toml").write_text(SAID)
    (root / "kaiza.toml").chmod(0)
    code = (
        "import os, sys\n"
        f"directory = os.open({str(root)!r}, os.O_RDONLY)\n"
        "from kaiza.store.config import settings\n"
        "from kaiza.domain import errors\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: settings.read(directory)\n"
        "except errors.SystemError as error: print(error.error_code, error.cause['why'])\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert told.stdout.split() == [b"BOOTSTRAP_FAILURE", b"unreadable"]


@pytest.mark.parametrize("content", ["", "# nothing\n", SAID, "#" * (64 * 1024 - len(SAID) - 1) + "\n" + SAID])
@pytest.mark.parametrize("beside", [None, "kaiza.toml.bak", "my-kaiza.toml", "größe"])
def test_a_valid_settings_file_starts_whatever_is_beside_it(root, content, beside):
    (root / "kaiza.toml").write_text(content)
    if beside:
        (root / beside).write_text("")
    told, envelope = served(root)

    assert (told.returncode, envelope) == (0, None)


@pytest.mark.parametrize("beside", [None, "kaiza.toml.bak", "größe", "src/Kaiza.toml"])
def test_without_a_settings_file_the_server_starts(root, beside):
    if beside:
        (root / beside).parent.mkdir(exist_ok=True)
        (root / beside).write_text("")
    told, envelope = served(root)

    assert (told.returncode, envelope) == (0, None)
