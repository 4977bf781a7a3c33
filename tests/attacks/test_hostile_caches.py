"""Caches and sources whose files an agent, or the author of a clone, has chosen."""

import json
import os
import stat
import tracemalloc
from pathlib import Path

import pytest
from context_caches import MINIMAL, file_of, manifest_of, version_of, write_cache, write_json

from kaiza.domain.context.cache_format import MAX_DOCUMENT_BYTES, MAX_MANIFEST_BYTES
from kaiza.store.context import cache_files
from kaiza.store.disk import byte_io

HELLO = {"cache": "minimal", "query": "hello", "budget": 100}
PARTS = ["manifest.json", "index.json", file_of("Hello world"), "documents"]


@pytest.fixture
def directory(workspace):
    return write_cache(workspace, "minimal", MINIMAL)


def code_of(app, **arguments):
    outcome = app.call("context_resolve", {**HELLO, **arguments})
    return outcome.envelope["error_code"] if outcome.envelope else "ok"


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_cache_is_read_through_a_link(app, directory, tmp_path, part):
    path = directory / part
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")

    assert path.exists()
    assert code_of(app) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize("part", PARTS)
def test_a_fifo_a_socket_or_a_directory_in_place_of_a_part_is_invalid_and_does_not_block(
    app, directory, tmp_path, part
):
    path = directory / part
    path.rename(tmp_path / "moved")
    os.mkfifo(path)
    codes = [code_of(app)]
    path.unlink()
    os.mknod(path, stat.S_IFSOCK | 0o600)
    codes.append(code_of(app))
    path.unlink()
    path.mkdir()
    codes.append(code_of(app))

    assert codes == ["CONTEXT_CACHE_INVALID"] * 3


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_only_a_regular_file_counts_as_manifest(app, directory, make):
    (directory / "manifest.json").unlink()
    make(directory / "manifest.json")

    assert app.call("context_list_caches", {}).output == {"caches": [{"path": "minimal", "has_manifest": False}]}


@pytest.mark.parametrize("change", [b" ", None], ids=["grows", "shrinks"])
def test_a_file_that_changes_its_size_while_it_is_read_is_invalid(app, directory, monkeypatch, change):
    index = directory / "index.json"

    def read_range(descriptor, start, size):
        if os.fstat(descriptor).st_ino == index.stat().st_ino:
            os.truncate(index, size - 1) if change is None else index.write_bytes(index.read_bytes() + change)
        return byte_io.read_range(descriptor, start, size)

    monkeypatch.setattr(cache_files, "read_range", read_range)

    assert code_of(app) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize("level", [".kaiza", ".kaiza/context", ".kaiza/context/minimal"])
def test_a_cache_behind_a_link_is_missing(app, directory, workspace, tmp_path, level):
    (workspace / level).rename(tmp_path / "moved")
    (workspace / level).symlink_to(tmp_path / "moved")

    assert (directory / "manifest.json").exists()
    assert code_of(app) == "CONTEXT_CACHE_MISSING"
    assert app.call("context_list_caches", {}).output == {"caches": []}


def test_a_file_is_never_read_from_where_the_manifest_says(app, directory, workspace):
    secret = workspace / "secret.json"
    secret.write_text((directory / file_of("Hello world")).read_text())
    manifest = manifest_of(MINIMAL)
    manifest["documents"][1]["file"] = "../../../secret.json"
    write_json(directory / "manifest.json", manifest)
    write_json(directory / "index.json", {row["id"]: row["file"] for row in manifest["documents"]})

    assert code_of(app) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize(
    ("part", "size"), [("manifest.json", MAX_MANIFEST_BYTES + 1), (file_of("Hello world"), MAX_DOCUMENT_BYTES + 1)]
)
def test_a_file_beyond_its_bound_is_invalid_and_not_read(app, directory, part, size):
    os.truncate(directory / part, size)

    assert code_of(app) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize("part", ["manifest.json", "index.json"])
@pytest.mark.parametrize("value", [b"[],", b'{"a":{}},', b'"a",', b"1,"])
def test_a_file_of_very_many_values_is_refused_without_making_them(app, directory, part, value):
    code_of(app)
    (directory / part).write_bytes(b'{"documents":[' + value * (32 * 1024 * 1024 // len(value)) + b"0]}")
    tracemalloc.start()
    try:
        code = code_of(app)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert code == "CONTEXT_CACHE_INVALID"
    assert peak < 80 * 1024 * 1024


def test_a_document_is_valid_up_to_2_mib(app, workspace):
    text = "x" * (MAX_DOCUMENT_BYTES - 250)
    document = {"id": "a.md", "version": version_of(text), "source": "a.md", "content": text, "metadata": {}}
    directory = write_cache(workspace, "large", {"a.md": text})
    padding = MAX_DOCUMENT_BYTES - len(json.dumps(document))
    padded = json.dumps({**document, "source": "a.md" + "x" * padding})

    (directory / file_of(text)).write_text(padded)
    assert code_of(app, cache="large", budget=1) == "ok"
    (directory / file_of(text)).write_text(f"{padded} ")
    assert code_of(app, cache="large", budget=1) == "CONTEXT_CACHE_INVALID"


def test_names_in_the_directory_of_caches_are_only_listed_where_they_are_names_of_caches(app, directory, workspace):
    home = workspace / ".kaiza/context"
    for name in ("\x1b[31mred", "a\nb", "..b", "-x"):
        (home / name).mkdir()
    os.mkdir(os.fsencode(home) + b"/\xff")

    assert [each["path"] for each in app.call("context_list_caches", {}).output["caches"]] == ["minimal"]
