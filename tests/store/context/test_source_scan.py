"""Sources that cannot all be seen, or that are changed while they are read."""

import os
from contextlib import contextmanager

import pytest

from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.rel_path import ROOT
from kaiza.store.context.source_scan import CacheBuildError, Source, scan_source
from kaiza.store.files.confined_root import ConfinedRoot


@contextmanager
def without_privileges():
    """As another account, if this one may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_that_cannot_be_listed_stops_the_build(tmp_path):
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "closed").mkdir(mode=0)
    tmp_path.chmod(0o755)
    with ConfinedRoot(str(tmp_path)) as files, without_privileges():
        scanned = scan_source(Source(files, ROOT, "docs"), Glob.parse("**/*.md"), lambda _: False, lambda *_: False)
        with pytest.raises(CacheBuildError) as refused:
            list(scanned)

    assert "could not be listed" in str(refused.value)


def test_a_directory_that_becomes_a_link_while_it_is_read_stops_the_build(tmp_path):
    for name in ("sub", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(name)

    def swap(path):
        """Called between the listing of a document and its reading."""
        if str(path) == "sub/a.md":
            (tmp_path / "sub").rename(tmp_path / "moved")
            (tmp_path / "sub").symlink_to("other")
        return str(path) != "sub/a.md"

    with ConfinedRoot(str(tmp_path)) as files, pytest.raises(CacheBuildError):
        list(scan_source(Source(files, ROOT, "docs"), Glob.parse("**/*.md"), swap, lambda *_: False))
