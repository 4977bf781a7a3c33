"""Configuration outside of all workspaces: read whole or not at all, and the only place for trust."""

import os

import pytest

from kaiza.domain import errors
from kaiza.store.config import settings, trusted_config
from kaiza.store.config.trusted_config import (
    TrustedConfig,
    TrustedMerge,
    read_machine_config,
    read_user_config,
)

TRUST = '[trust]\nproject = "shop"\n[[trust.merged]]\nrepository = "/srv/shop"\nref = "refs/heads/main"\n'
BELOW = "everything_below = true\n"


@pytest.fixture
def etc(tmp_path, monkeypatch):
    directory = tmp_path / "etc"
    directory.mkdir()
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", directory)
    return directory


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    directory = tmp_path / "home/kaiza"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture(params=["machine", "user"])
def place(request, etc, home):
    """A directory of configuration, and the function that reads it."""
    return (etc, read_machine_config) if request.param == "machine" else (home, read_user_config)


def refusal(read):
    """The cause of the refused start."""
    with pytest.raises(errors.SystemError) as caught:
        read()
    assert caught.value.error_code == "BOOTSTRAP_FAILURE"
    return caught.value.cause


@pytest.mark.parametrize("content", [None, "", "# nothing\n"])
def test_no_configuration_sets_nothing(place, content):
    directory, read = place
    if content is not None:
        (directory / "config.toml").write_text(content)

    assert read() == TrustedConfig(read().title)


def test_only_keys_that_are_written_are_set(place):
    directory, read = place
    (directory / "config.toml").write_text('deny_read = ["a"]\n[audit]\nsync = "batched"\n[checks]\n')

    assert read().values == {"deny_read": ["a"], "audit.sync": "batched"}


def test_trust_is_read_from_outside(place):
    directory, read = place
    (directory / "config.toml").write_text(TRUST)

    assert (read().project, read().merged) == ("shop", (TrustedMerge("/srv/shop", "refs/heads/main"),))
    assert read().values == {}


def test_a_repository_below_the_home_directory_is_expanded(home, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    (home / "config.toml").write_text(TRUST.replace("/srv", "~"))

    assert read_user_config().merged[0].repository == "/home/ada/shop"


def test_only_the_machine_can_trust_everything_below_a_directory(etc, home):
    for directory in (etc, home):
        (directory / "config.toml").write_text(TRUST + BELOW)

    assert read_machine_config().merged[0].everything_below
    assert refusal(read_user_config)["line"] == 6


def test_a_workspace_cannot_give_trust():
    with pytest.raises(errors.SystemError) as caught:
        settings.parse_values(TRUST)

    assert (caught.value.error_code, caught.value.cause) == ("BOOTSTRAP_FAILURE", {"file": "kaiza.toml", "line": 1})
    assert "config.toml" in caught.value.human_message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("surprise = 1\n", 1),
        ("[trust]\nsurprise = 1\n", 2),
        ("[trust]\nproject = ''\n", 2),
        (TRUST.replace("/srv/shop", "shop"), 4),
        (TRUST.replace("refs/heads/main", ""), 5),
        ("[[trust.merged]]\nref = 'main'\n", 1),
        (TRUST + TRUST[TRUST.index("[[") :].replace("refs/heads/main", ""), 8),
        ("\n[checks\n", 2),
        ("\ndeny_read = ['[']\n", 2),
    ],
)
def test_an_invalid_configuration_stops_the_start_and_names_the_line(place, text, line):
    directory, read = place
    (directory / "config.toml").write_text(text)
    cause = refusal(read)

    assert cause["line"] == line
    assert cause["file"].endswith("/kaiza/config.toml")


def too_large(file):
    file.write_text("#" * (64 * 1024 + 1))


def not_utf8(file):
    file.write_bytes(b"# \xff\n")


def link(file):
    file.with_name("mine").write_text(TRUST)
    file.symlink_to("mine")


def dangling_link(file):
    file.symlink_to("nowhere")


def directory(file):
    file.mkdir()


def another_case(file):
    file.with_name("Config.toml").write_text(TRUST)


def writable_by_all(file):
    file.write_text(TRUST)
    file.chmod(0o666)


def dangling_link_of_the_directory(file):
    file.parent.rmdir()
    file.parent.symlink_to("nowhere")


def file_in_place_of_the_directory(file):
    file.parent.rmdir()
    file.parent.write_text(TRUST)


INVALID = {
    too_large: "too_large", not_utf8: "not_utf8", link: "link", dangling_link: "link", directory: "no_file",
    another_case: "misnamed", writable_by_all: "not_yours", dangling_link_of_the_directory: "unreadable",
    file_in_place_of_the_directory: "unreadable",
}  # fmt: skip


@pytest.mark.parametrize("make", INVALID)
def test_a_configuration_that_cannot_be_read_whole_is_not_treated_as_missing(place, make):
    directory, read = place
    make(directory / "config.toml")

    assert refusal(read)["why"] == INVALID[make]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_configuration_of_another_user_is_refused(place):
    directory, read = place
    (directory / "config.toml").write_text(TRUST)
    os.chown(directory / "config.toml", 65534, 65534)

    assert refusal(read)["why"] == "not_yours"


def test_a_directory_above_that_does_not_exist_is_no_configuration(monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/config")

    assert read_user_config().values == {}


def test_a_relative_configuration_directory_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "home")

    assert trusted_config.user_directory() == tmp_path / ".config/kaiza"
