import os

import pytest

from kaiza.store import listing
from kaiza.store.listing import Listings


@pytest.fixture
def directory(tmp_path):
    for number in range(listing.LEAST):
        (tmp_path / f"{number}").touch()
    fd = os.open(tmp_path, os.O_RDONLY)
    yield tmp_path, fd
    os.close(fd)


@pytest.fixture
def settled(monkeypatch):
    """Every directory counts as long unchanged."""
    monkeypatch.setattr(listing, "SETTLED_NS", -(10**18))


def test_names_come_sorted(directory):
    _, fd = directory

    assert Listings().names(fd) == sorted(map(str, range(listing.LEAST)))


@pytest.mark.usefixtures("settled")
def test_an_unchanged_directory_is_listed_once(directory):
    _, fd = directory
    listings = Listings()

    assert listings.names(fd) is listings.names(fd)


def test_a_directory_that_just_changed_is_not_remembered(directory):
    where, fd = directory
    listings = Listings()

    assert listings.names(fd) is not listings.names(fd)
    for number in range(50):
        listings.names(fd)
        (where / f"new{number}").touch()

        assert f"new{number}" in listings.names(fd)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", ["add", "remove", "rename"])
def test_a_change_is_seen_at_once(directory, change):
    where, fd = directory
    os.utime(where, ns=(0, 0))
    listings = Listings()
    listings.names(fd)
    if change == "add":
        (where / "new").touch()
    elif change == "remove":
        (where / "7").unlink()
    else:
        (where / "7").rename(where / "new")

    assert listings.names(fd) == sorted(os.listdir(where))


@pytest.mark.usefixtures("settled")
def test_another_directory_is_another_listing(directory, tmp_path_factory):
    _, fd = directory
    other = tmp_path_factory.mktemp("other")
    (other / "only").touch()
    listings = Listings()
    listings.names(fd)
    other_fd = os.open(other, os.O_RDONLY)

    assert listings.names(other_fd) == ["only"]
    assert len(listings.names(fd)) == listing.LEAST
    os.close(other_fd)
