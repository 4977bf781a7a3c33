"""DirectoryCache: what is cached, and what invalidates it."""

import os

import pytest

from kaiza.store.files import directory_cache
from kaiza.store.files.directory_cache import DirectoryCache


@pytest.fixture
def directory(tmp_path):
    for number in range(directory_cache.MIN_NAMES):
        (tmp_path / f"{number}").touch()
    fd = os.open(tmp_path, os.O_RDONLY)
    yield tmp_path, fd
    os.close(fd)


@pytest.fixture
def unchanged(monkeypatch):
    """Every directory is old enough to be cached."""
    monkeypatch.setattr(directory_cache, "MIN_AGE_NS", -(10**18))


def all_names(cache, fd):
    return cache.names_after(fd, "", 10_000)


def is_cached(cache):
    return cache._cached is not None


def test_names_are_sorted(directory):
    _, fd = directory

    assert all_names(DirectoryCache(), fd) == sorted(map(str, range(directory_cache.MIN_NAMES)))


@pytest.mark.usefixtures("unchanged")
def test_an_unchanged_directory_is_listed_once(directory):
    _, fd = directory
    cache = DirectoryCache()

    all_names(cache, fd)
    cached = cache._cached
    all_names(cache, fd)

    assert cached is cache._cached is not None


def test_a_directory_that_just_changed_is_not_cached(directory):
    where, fd = directory
    cache = DirectoryCache()

    all_names(cache, fd)
    assert not is_cached(cache)
    for number in range(50):
        all_names(cache, fd)
        (where / f"new{number}").touch()

        assert f"new{number}" in all_names(cache, fd)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("change", ["add", "remove", "rename"])
def test_a_change_invalidates_the_cache_at_once(directory, change):
    where, fd = directory
    os.utime(where, ns=(0, 0))
    cache = DirectoryCache()
    all_names(cache, fd)
    if change == "add":
        (where / "new").touch()
    elif change == "remove":
        (where / "7").unlink()
    else:
        (where / "7").rename(where / "new")

    assert all_names(cache, fd) == sorted(os.listdir(where))


@pytest.mark.usefixtures("unchanged")
def test_another_directory_is_not_answered_from_the_cache(directory, tmp_path_factory):
    _, fd = directory
    other = tmp_path_factory.mktemp("other")
    (other / "only").touch()
    cache = DirectoryCache()
    all_names(cache, fd)
    other_fd = os.open(other, os.O_RDONLY)

    assert all_names(cache, other_fd) == ["only"]
    assert len(all_names(cache, fd)) == directory_cache.MIN_NAMES
    os.close(other_fd)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_page_is_the_same_with_and_without_the_cache(directory, monkeypatch, fresh):
    _, fd = directory
    monkeypatch.setattr(directory_cache, "MIN_AGE_NS", 10**18 if fresh else -(10**18))
    cache = DirectoryCache()
    names = sorted(map(str, range(directory_cache.MIN_NAMES)))

    for after, most in (("", 3), ("5", 4), ("50", 10_000), ("999", 5), ("zzz", 1)):
        assert cache.names_after(fd, after, most) == [name for name in names if name > after][:most]
    assert is_cached(cache) == (not fresh)


def test_a_directory_with_whole_second_times_is_cached_only_after_three_seconds():
    now = 1_500_000_000 * directory_cache.SECOND_NS

    assert directory_cache._has_just_changed((1, 1, now - 2 * directory_cache.SECOND_NS, 0), now)
    assert not directory_cache._has_just_changed((1, 1, now - 2 * directory_cache.SECOND_NS - 1, 0), now)
    assert not directory_cache._has_just_changed((1, 1, now - 4 * directory_cache.SECOND_NS, 0), now)
    assert directory_cache._has_just_changed((1, 1, 0, now - 1), now)
