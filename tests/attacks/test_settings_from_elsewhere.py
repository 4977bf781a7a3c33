"""Settings that came with a workspace restrict at once and loosen nothing."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from agents import LocalAgent, confirm, person, several
from scenes import make_ready, records, write_adopted_settings

LOOSE = 'allow_read = [".env"]\n'
STRICT = 'deny_read = ["src/**"]\n'


@pytest.fixture
def root(workspace):
    (workspace / ".env").write_text("TOKEN=1\n")
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("a = 1\n")
    return workspace


def read(root, path):
    """Code of reading a file in a new server."""
    with several(root, LocalAgent) as begin:
        return begin().code("read_file", path=path)


def configure(text):
    path = os.path.join(os.environ["XDG_CONFIG_HOME"], "kaiza/config.toml")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def git(root, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def test_a_clone_cannot_make_a_secret_readable(root, tmp_path):
    (root / "kaiza.toml").write_text(LOOSE)
    git(root, "init", "-q")
    git(root, "add", "kaiza.toml")
    git(root, "commit", "-qm", "settings")
    git(tmp_path, "clone", "-q", str(root), "clone")
    clone = make_ready(tmp_path / "clone")
    (clone / ".env").write_text("TOKEN=2\n")

    assert read(clone, ".env") == "POLICY_VIOLATION"


def test_a_person_adopts_what_loosens_at_the_terminal(root):
    (root / "kaiza.toml").write_text(LOOSE)
    before = [read(root, ".env"), person(root, "adopt", "--show"), person(root, "adopt")]
    confirmed = confirm(root, "adopt")
    (record,) = [each for each in records(root) if each["kind"] == "person"]

    assert before == ["POLICY_VIOLATION", 1, 3]
    assert (confirmed, read(root, ".env"), person(root, "adopt")) == (0, "ok", 0)
    assert record["detail"]["action"] == "adopt"
    assert [setting["key"] for setting in record["detail"]["settings"]] == ["allow_read"]


def test_adopted_settings_of_an_earlier_workspace_at_the_path_do_not_count(root):
    write_adopted_settings(root, LOOSE)
    before = read(root, ".env")
    for name in ("audit", ".kaiza"):
        shutil.rmtree(root / name)
    make_ready(root)

    assert (before, read(root, ".env"), read(root, ".env")) == ("ok", "POLICY_VIOLATION", "POLICY_VIOLATION")


def test_the_configuration_of_the_user_is_stricter_than_a_workspace(root):
    configure(STRICT)
    write_adopted_settings(root, 'allow_read = ["src/a.py"]\n')

    assert read(root, "src/a.py") == "POLICY_VIOLATION"


def test_the_configuration_of_the_user_may_loosen_for_every_workspace(root):
    configure(LOOSE)

    assert read(root, ".env") == "ok"
    (root / "kaiza.toml").write_text("allow_read = []\n")
    assert read(root, ".env") == "POLICY_VIOLATION"


def test_the_beginning_of_a_session_names_what_is_not_adopted(root):
    (root / "kaiza.toml").write_text(LOOSE + STRICT)
    with several(root, LocalAgent) as begin:
        summary = begin().begun["summary"]
    adopted = [record["detail"]["settings"] for record in records(root) if record["kind"] == "recovery"]

    assert ("allow_read" in summary, "deny_read" in summary, "kaiza adopt" in summary) == (True, False, True)
    assert adopted == [{"deny_read": ["src/**"]}]


def test_status_and_doctor_show_each_setting_with_its_place(root):
    configure('[lock]\nrelease = "person"\n')
    (root / "kaiza.toml").write_text(LOOSE)
    ended = {
        word: json.loads(
            subprocess.run(
                [sys.executable, "-m", "kaiza", word, "--json"], cwd=root, capture_output=True, check=False, timeout=60
            ).stdout
        )
        for word in ("status", "doctor")
    }
    status = ended["status"]
    checks = [check for check in ended["doctor"]["checks"] if check["check"] == "settings"]

    assert {"key": "lock.release", "value": "person", "from": ["$XDG_CONFIG_HOME/kaiza/config.toml"]} in status[
        "settings"
    ]
    assert status["unadopted_settings"] == [{"key": "allow_read", "value": [".env"], "in_force": []}]
    assert [check["verdict"] for check in checks] == ["ok", "warning"]


def test_an_invalid_configuration_of_the_user_stops_the_server(root):
    configure("surprise = 1\n")
    process = subprocess.run(
        [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)],
        input=b"", capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    envelope = json.loads(process.stderr)

    assert (process.returncode, process.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["cause"]["line"]) == ("BOOTSTRAP_FAILURE", 1)


def test_an_invalid_configuration_of_the_user_does_not_stop_a_freeze(root):
    configure("surprise = 1\n")
    frozen = subprocess.run(
        [sys.executable, "-m", "kaiza", "freeze", "now"], cwd=root, capture_output=True, check=False, timeout=60
    )

    assert frozen.returncode == 0
