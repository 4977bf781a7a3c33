"""Adopted settings: kept in the state directory, and made stricter only by edits on this machine."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from scenes import bind, records

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.store.config.settings_layers import SettingsLayers
from kaiza.store.disk import state_dir
from kaiza.store.human_decisions import catch_up
from kaiza.store.settings_adoption import adopt_settings, adopt_stricter_edits
from kaiza.store.trust.adopted_settings import find_edits, load_adopted, save_adopted
from kaiza.store.workspace import Workspace

NOW = "2026-11-18T09:00:00.000Z"
STRICT = '[approval]\nrequire = "command"\n'


@pytest.fixture
def adopted(workspace):
    """Reads the adopted values from disk."""
    return lambda: load_adopted(state_dir.path_of(str(workspace)))


@pytest.fixture
def reading(workspace):
    """Reads the settings as a new session does; the values that were adopted then."""

    def read():
        opened = Workspace(str(workspace), Caps())
        try:
            catch_up(opened)
            return adopt_stricter_edits(opened, NOW)
        finally:
            opened.close(NOW)

    return read


def git(root, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def commit(root):
    git(root, "init", "-q")
    git(root, "add", "kaiza.toml")
    git(root, "commit", "-qm", "settings")


def test_nothing_is_adopted_without_a_file(reading, adopted):
    assert reading() == {}
    assert adopted() is None


def test_a_stricter_value_that_was_written_here_is_adopted_and_recorded_once(workspace, reading, adopted):
    (workspace / "kaiza.toml").write_text(STRICT)

    assert [reading(), reading()] == [{"approval.require": "command"}, {}]
    assert adopted() == {"approval.require": "command"}
    assert [(record["kind"], record["detail"]) for record in records(workspace)] == [
        ("recovery", {"result": "settings_adopted", "settings": {"approval.require": "command"}})
    ]


def test_a_looser_value_is_not_adopted(workspace, reading, adopted):
    (workspace / "kaiza.toml").write_text('allow_read = [".env"]\n[checks]\nseconds = 600\n')

    assert reading() == {}
    assert adopted() is None


def test_keys_are_adopted_one_by_one(workspace, reading, adopted):
    save_adopted(str(bind(workspace)), {"approval.require": "command", "deny_read": ["a"]})
    (workspace / "kaiza.toml").write_text('deny_read = ["b"]\n[approval]\nrequire = "edit"\n[checks]\nseconds = 10\n')
    reading()

    assert adopted() == {"approval.require": "command", "deny_read": ["a", "b"], "checks.seconds": 10}


def test_an_edit_in_a_repository_is_adopted_but_not_what_git_brought_or_cannot_tell(workspace, reading, adopted):
    settings = workspace / "kaiza.toml"
    settings.write_text(STRICT)
    commit(workspace)
    brought = reading()
    settings.write_text(STRICT + "[checks]\nseconds = 10\n")
    config = (workspace / ".git/config").read_bytes()
    (workspace / ".git/config").write_text("[core\n")
    unknown = reading(), adopted()
    (workspace / ".git/config").write_bytes(config)

    assert (brought, unknown) == ({}, ({}, None))
    assert reading() == {"approval.require": "command", "checks.seconds": 10}


def test_nothing_is_adopted_in_a_workspace_from_elsewhere(workspace):
    layers = SettingsLayers(text=STRICT)

    assert find_edits(str(workspace), layers) == {"approval.require": "command"}
    assert find_edits(str(workspace), replace(layers, is_foreign=True)) == {}


def test_nothing_is_adopted_where_the_log_is_damaged(workspace, reading, adopted):
    (workspace / "kaiza.toml").write_text(STRICT)
    reading()
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"settings_adopted", b"settings_dropped"))
    (workspace / "kaiza.toml").write_text('deny_read = ["a"]\n')

    assert reading() == {}
    assert adopted() == {"approval.require": "command"}


def test_exemptions_are_adopted_with_the_denials_that_they_are_from(workspace, reading, adopted):
    configuration = Path(os.environ["XDG_CONFIG_HOME"], "kaiza/config.toml")
    configuration.parent.mkdir()
    configuration.write_text('allow_read = ["a/x"]\n')
    (workspace / "kaiza.toml").write_text('deny_read = ["a/**"]\nallow_read = ["a/x"]\n')
    reading()
    opened = Workspace(str(workspace), Caps())
    opened.close(NOW)

    assert adopted() == {"deny_read": ["a/**"], "allow_read": ["a/x"]}
    assert opened.settings.allow_read == {"a/x"}


def test_an_exemption_that_a_person_removed_is_no_longer_adopted(workspace, reading, adopted):
    save_adopted(str(bind(workspace)), {"allow_read": [".env"]})
    (workspace / "kaiza.toml").write_text("# no exemption any more\n")

    assert reading() == {"allow_read": []}
    assert adopted() == {"allow_read": []}


def test_a_person_adopts_the_file_as_it_was_read(workspace, adopted):
    save_adopted(str(workspace), {"approval.require": "command", "deny_read": ["a"]})
    (workspace / "kaiza.toml").write_text('allow_read = [".env"]\n')
    opened = Workspace(str(workspace), Caps())
    (workspace / "kaiza.toml").write_text('allow_read = ["other/.env"]\n')
    adopt_settings(opened)

    assert adopted() == {"allow_read": [".env"]}
    assert opened.settings_layers.list_loosening() == []
    opened.close(NOW)


def test_adopted_settings_are_for_their_owner_only(workspace):
    save_adopted(str(workspace), {})
    path = state_dir.path_of(str(workspace)) / "settings.json"

    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def emptied(path):
    path.write_bytes(b"")


def of_another_format(path):
    path.write_text('{"format": 2, "values": {}}')


def without_values(path):
    path.write_text('{"format": 1}')


def with_another_type(path):
    path.write_text('{"format": 1, "values": {"approval.require": "nobody"}}')


def with_an_invalid_glob(path):
    path.write_text('{"format": 1, "values": {"deny_read": ["["]}}')


def a_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage", [emptied, of_another_format, without_values, with_another_type, with_an_invalid_glob, a_directory]
)
def test_damaged_adopted_settings_are_not_treated_as_missing(workspace, damage):
    save_adopted(str(workspace), {"approval.require": "command"})
    damage(Path(state_dir.path_of(str(workspace)), "settings.json"))
    with pytest.raises(errors.SystemError) as caught:
        Workspace(str(workspace), Caps())

    assert (caught.value.error_code, caught.value.cause["file"]) == ("BOOTSTRAP_FAILURE", "settings.json")
