import hashlib
import os
import threading

import pytest

from kaiza.domain import errors
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_BYTES
from kaiza.store.disk import atomic_rename
from kaiza.store.documents import plan_files
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import ConfinedRoot

HEAD = """\
---
kaiza_plan: 1
plan_id: {}
title: t
status: DRAFT
author: a
created: 2026-11-18
scope: {{modify: [src/*]}}
---
"""


def plan_content(plan_id="PLAN-1", more=""):
    return (HEAD.format(plan_id) + more).encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "plans").mkdir()
    return tmp_path


@pytest.fixture(params=[None, "walk"])
def plans(root, request):
    with ConfinedRoot(str(root), resolver=request.param) as workspace:
        yield PlanFiles(workspace)


def write_plan(root, plan_id="PLAN-1", content=None):
    (root / "plans" / f"{plan_id}.md").write_bytes(content or plan_content(plan_id))


def test_only_files_named_like_a_plan_are_listed_sorted_by_id(root, plans):
    for name in ("PLAN-2", "PLAN-1", "PLAN-10"):
        write_plan(root, name)
    for name in ("readme.md", "plan-3.md", "PLAN-4.txt", "PLAN-5", ".PLAN-6.md", "P" * 65 + ".md"):
        (root / "plans" / name).write_bytes(plan_content())

    assert plans.plan_ids() == ["PLAN-1", "PLAN-10", "PLAN-2"]
    assert [stored.plan_id for stored in plans.read_all()] == plans.plan_ids()


def test_an_edit_is_seen_at_the_next_read_whatever_its_mtime(root, plans):
    write_plan(root)
    before = plans.read("PLAN-1")
    write_plan(root, content=plan_content(more="more\n"))
    os.utime(root / "plans" / "PLAN-1.md", ns=(0, 0))
    after = plans.read("PLAN-1")

    assert before.parsed.plan_hash == digest(plan_content()) == before.parsed.plan.plan_hash
    assert after.parsed.plan_hash == digest(plan_content(more="more\n"))
    assert after.content == plan_content(more="more\n")


@pytest.fixture
def parsed_ids(monkeypatch):
    """The id of each plan that is parsed, in order."""
    ids = []

    def parse(content, plan_id, *, original=parser.parse):
        ids.append(plan_id)
        return original(content, plan_id)

    monkeypatch.setattr(plan_files.parser, "parse", parse)
    return ids


def test_however_many_plans_there_are_each_is_parsed_once(root, plans, parsed_ids):
    for number in range(300):
        write_plan(root, f"PLAN-{number}", plan_content(f"PLAN-{number}"))
    for _ in range(3):
        assert len(list(plans.read_all())) == 300

    assert len(parsed_ids) == 300


def test_what_exceeds_the_memory_for_parsed_plans_is_parsed_each_time_and_the_rest_is_not(
    root, plans, parsed_ids, monkeypatch
):
    monkeypatch.setattr(plan_files, "MAX_CACHED_BYTES", 3 * len(plan_content("PLAN-0")))
    for number in range(5):
        write_plan(root, f"PLAN-{number}", plan_content(f"PLAN-{number}"))
    for _ in range(3):
        list(plans.read_all())

    assert [parsed_ids.count(f"PLAN-{number}") for number in range(5)] == [1, 1, 1, 3, 3]

    (root / "plans/PLAN-0.md").unlink()
    write_plan(root, "PLAN-1", plan_content("PLAN-1").replace(b"title: t", b"title: u"))
    parsed_ids.clear()
    for _ in range(3):
        list(plans.read_all())

    assert [parsed_ids.count(f"PLAN-{number}") for number in range(1, 5)] == [1, 0, 1, 3]


def test_a_plan_replaced_by_one_with_the_same_size_and_times_is_not_taken_for_the_old_one(root, plans):
    path = root / "plans/PLAN-1.md"
    write_plan(root)
    before = path.stat()
    assert plans.read("PLAN-1").parsed.plan.status == "DRAFT"
    path.write_bytes(plan_content().replace(b"title: t", b"title: u"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert path.stat().st_size == before.st_size
    assert plans.read("PLAN-1").parsed.title == "u"
    assert plans.find_by_hash(digest(plan_content())) is None


def test_links_directories_and_fifos_in_plans_are_not_read(root, plans):
    (root / "elsewhere.md").write_bytes(plan_content())
    (root / "plans" / "PLAN-1.md").symlink_to("../elsewhere.md")
    (root / "plans" / "PLAN-2.md").symlink_to("/etc/passwd")
    (root / "plans" / "PLAN-3.md").mkdir()
    os.mkfifo(root / "plans" / "PLAN-4.md")

    assert [plans.read(plan_id) for plan_id in plans.plan_ids()] == [None] * 4


def test_a_plans_directory_that_is_a_link_is_neither_read_nor_written(root, plans):
    (root / "plans").rmdir()
    (root / "real").mkdir()
    (root / "real" / "PLAN-1.md").write_bytes(plan_content())
    (root / "plans").symlink_to("real")

    assert plans.plan_ids() == []
    assert plans.read("PLAN-1") is None
    with pytest.raises(errors.SystemError):
        plans.create("PLAN-2", plan_content("PLAN-2"))


def test_at_most_one_byte_beyond_the_size_limit_of_a_plan_is_read(root, plans):
    content = plan_content(more="x" * 600_000)
    write_plan(root, content=content)
    os.truncate(root / "plans" / "PLAN-1.md", 1 << 42)
    read = plans.read("PLAN-1")

    assert [finding.rule for finding in read.parsed.findings] == ["too-large"]
    assert read.content == content[: MAX_BYTES + 1]
    assert plans.find_by_hash(read.parsed.plan_hash).plan_id == "PLAN-1"


def test_a_plan_is_found_by_its_current_hash_only(root, plans):
    for number in range(5):
        write_plan(root, f"PLAN-{number}")
    plan_hash = digest(plan_content("PLAN-3"))

    assert plans.find_by_hash(plan_hash).plan_id == "PLAN-3"
    assert plans.find_by_hash(plan_hash).plan_id == "PLAN-3"
    write_plan(root, "PLAN-3", plan_content("PLAN-3", "changed"))
    assert plans.find_by_hash(plan_hash) is None
    assert plans.find_by_hash(digest(plan_content("PLAN-3", "changed"))).plan_id == "PLAN-3"


@pytest.mark.parametrize("existing", ["file", "link", "dangling"])
def test_creating_a_plan_never_overwrites_a_file_or_link(root, plans, existing):
    target = root / "plans" / "PLAN-1.md"
    if existing == "file":
        target.write_bytes(b"mine")
    else:
        (root / "mine").write_bytes(b"mine") if existing == "link" else None
        target.symlink_to("../mine")
    with pytest.raises(errors.SystemError) as refused:
        plans.create("PLAN-1", plan_content())

    assert refused.value.error_code == "FILE_ALREADY_EXISTS"
    assert os.listdir(root / "plans") == ["PLAN-1.md"]
    assert existing == "dangling" or target.read_bytes() == b"mine"


def test_of_many_threads_that_create_one_plan_at_once_one_succeeds(root, plans):
    created, refused = [], []

    def save(number):
        try:
            plans.create("PLAN-1", plan_content(more=str(number)))
            created.append(number)
        except errors.SystemError as error:
            refused.append(error.error_code)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(created) == 1
    assert refused == ["FILE_ALREADY_EXISTS"] * 11
    assert (root / "plans" / "PLAN-1.md").read_bytes() == plan_content(more=str(created[0]))
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_a_created_plan_is_removed_again_unless_it_was_edited(root, plans):
    plans.create("PLAN-1", plan_content())
    plans.remove_created("PLAN-1", plan_content())
    assert plans.plan_ids() == []

    plans.create("PLAN-1", plan_content())
    write_plan(root, content=b"mine")
    plans.remove_created("PLAN-1", plan_content())
    plans.remove_created("PLAN-2", plan_content())

    assert plans.plan_ids() == ["PLAN-1"]


def test_replace_requires_the_expected_hash_and_preserves_the_mode(root, plans):
    write_plan(root)
    (root / "plans" / "PLAN-1.md").chmod(0o640)

    assert not plans.replace("PLAN-1", digest(b"other"), b"new")
    assert not plans.replace("PLAN-2", digest(plan_content()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == plan_content()
    assert plans.replace("PLAN-1", digest(plan_content()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"new"
    assert (root / "plans" / "PLAN-1.md").stat().st_mode & 0o777 == 0o640
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_replace_keeps_an_edit_saved_just_before_the_exchange(root, plans, monkeypatch):
    write_plan(root)
    read = plans.read

    def read_then_edit(plan_id):
        stored = read(plan_id)
        write_plan(root, content=b"saved meanwhile")
        return stored

    monkeypatch.setattr(plans, "read", read_then_edit)

    assert not plans.replace("PLAN-1", digest(plan_content()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"saved meanwhile"
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_replace_keeps_the_newest_of_several_edits_saved_during_the_exchange(root, plans, monkeypatch):
    def exchange_after_edit(directory, temporary, name):
        if saves:
            write_plan(root, content=saves.pop(0))
        exchange(directory, temporary, name)

    write_plan(root)
    saves, exchange = [b"saved first", b"saved last"], atomic_rename.exchange
    monkeypatch.setattr(atomic_rename, "exchange", exchange_after_edit)

    assert not plans.replace("PLAN-1", digest(plan_content()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"saved last"


def test_lists_contain_the_plans_that_changed_last_and_count_the_others(root, monkeypatch):
    monkeypatch.setattr(plan_files, "MAX_LISTED", 3)
    for number in (5, 1, 4, 2, 3):
        (root / f"plans/PLAN-{number}.md").write_bytes(plan_content(f"PLAN-{number}"))
        os.utime(root / f"plans/PLAN-{number}.md", ns=(0, 0))  # does not make one look older
    with ConfinedRoot(str(root)) as files:
        seen = []
        plans = PlanFiles(files, seen.append)
        listed, read = plans.listed_ids(), [stored.plan_id for stored in plans.read_all()]
        plans.read_changed()

        assert listed == read == ["PLAN-2", "PLAN-3", "PLAN-4"]
        assert plans.count_unlisted() == 2
        assert {stored.plan_id for stored in seen} == set(listed)
        assert plans.read("PLAN-5").plan_id == "PLAN-5"
        assert plans.find_by_hash(digest(plan_content("PLAN-5"))).plan_id == "PLAN-5"
