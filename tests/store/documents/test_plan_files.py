import hashlib
import os
import threading

import pytest

from kaiza.domain import errors
from kaiza.domain.plans.plan import MAX_BYTES
from kaiza.store.disk import atomic_rename
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


def text(plan_id="PLAN-1", more=""):
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


def put(root, plan_id="PLAN-1", content=None):
    (root / "plans" / f"{plan_id}.md").write_bytes(content or text(plan_id))


def test_plans_are_listed_in_order_and_nothing_else_is(root, plans):
    for name in ("PLAN-2", "PLAN-1", "PLAN-10"):
        put(root, name)
    for name in ("readme.md", "plan-3.md", "PLAN-4.txt", "PLAN-5", ".PLAN-6.md", "P" * 65 + ".md"):
        (root / "plans" / name).write_bytes(text())

    assert plans.plan_ids() == ["PLAN-1", "PLAN-10", "PLAN-2"]
    assert [stored.plan_id for stored in plans.read_all()] == plans.plan_ids()


def test_a_plan_is_read_as_it_is_now(root, plans):
    put(root)
    before = plans.read("PLAN-1")
    put(root, content=text(more="more\n"))
    os.utime(root / "plans" / "PLAN-1.md", ns=(0, 0))
    after = plans.read("PLAN-1")

    assert before.parsed.plan_hash == digest(text()) == before.parsed.plan.plan_hash
    assert after.parsed.plan_hash == digest(text(more="more\n"))
    assert after.content == text(more="more\n")


def test_the_same_bytes_under_another_name_are_another_plan(root, plans):
    put(root)
    put(root, "PLAN-2", text("PLAN-1"))

    assert plans.read("PLAN-1").parsed.plan
    assert plans.read("PLAN-2").parsed.plan is None


@pytest.mark.parametrize("plan_id", ["PLAN-9", "", "../x", "plans/PLAN-1", "PLAN-1.md", "."])
def test_what_is_not_there_or_is_no_name_is_no_plan(root, plans, plan_id):
    put(root)

    assert plans.read(plan_id) is None


def test_without_a_directory_there_are_no_plans(root, plans):
    (root / "plans").rmdir()

    assert plans.plan_ids() == []
    assert plans.read("PLAN-1") is None


def test_links_are_not_followed(root, plans):
    (root / "elsewhere.md").write_bytes(text())
    (root / "plans" / "PLAN-1.md").symlink_to("../elsewhere.md")
    (root / "plans" / "PLAN-2.md").symlink_to("/etc/passwd")
    (root / "plans" / "PLAN-3.md").mkdir()
    os.mkfifo(root / "plans" / "PLAN-4.md")

    assert [plans.read(plan_id) for plan_id in plans.plan_ids()] == [None] * 4


def test_a_directory_that_is_a_link_holds_no_plans(root, plans):
    (root / "plans").rmdir()
    (root / "real").mkdir()
    (root / "real" / "PLAN-1.md").write_bytes(text())
    (root / "plans").symlink_to("real")

    assert plans.plan_ids() == []
    assert plans.read("PLAN-1") is None
    with pytest.raises(errors.SystemError):
        plans.create("PLAN-2", text("PLAN-2"))


def test_of_a_plan_that_is_too_large_only_one_byte_more_than_it_may_have_is_read(root, plans):
    content = text(more="x" * 600_000)
    put(root, content=content)
    os.truncate(root / "plans" / "PLAN-1.md", 1 << 42)
    read = plans.read("PLAN-1")

    assert [finding.rule for finding in read.parsed.findings] == ["too-large"]
    assert read.content == content[: MAX_BYTES + 1]
    assert plans.find_by_hash(read.parsed.plan_hash).plan_id == "PLAN-1"


def test_a_plan_of_exactly_the_bound_is_sound(root, plans):
    content = text()
    content += b"x" * (MAX_BYTES - len(content))
    put(root, content=content)

    assert plans.read("PLAN-1").parsed.plan_hash == digest(content)
    assert plans.read("PLAN-1").parsed.plan is not None


def test_a_plan_is_found_by_the_hash_it_has_now(root, plans):
    for number in range(5):
        put(root, f"PLAN-{number}")
    asked = digest(text("PLAN-3"))

    assert plans.find_by_hash(asked).plan_id == "PLAN-3"
    assert plans.find_by_hash(asked).plan_id == "PLAN-3"
    put(root, "PLAN-3", text("PLAN-3", "changed"))
    assert plans.find_by_hash(asked) is None
    assert plans.find_by_hash(digest(text("PLAN-3", "changed"))).plan_id == "PLAN-3"


def test_a_new_plan_is_there_whole_and_nothing_else_is(root, plans):
    plans.create("PLAN-1", text())

    assert os.listdir(root / "plans") == ["PLAN-1.md"]
    assert (root / "plans" / "PLAN-1.md").read_bytes() == text()
    assert (root / "plans" / "PLAN-1.md").stat().st_nlink == 1


@pytest.mark.parametrize("there", ["file", "link", "dangling"])
def test_a_plan_never_takes_the_place_of_another(root, plans, there):
    target = root / "plans" / "PLAN-1.md"
    if there == "file":
        target.write_bytes(b"mine")
    else:
        (root / "mine").write_bytes(b"mine") if there == "link" else None
        target.symlink_to("../mine")
    with pytest.raises(errors.SystemError) as refused:
        plans.create("PLAN-1", text())

    assert refused.value.error_code == "FILE_ALREADY_EXISTS"
    assert os.listdir(root / "plans") == ["PLAN-1.md"]
    assert there == "dangling" or target.read_bytes() == b"mine"


def test_of_many_that_save_one_name_at_once_one_wins(root, plans):
    won, lost = [], []

    def save(number):
        try:
            plans.create("PLAN-1", text(more=str(number)))
            won.append(number)
        except errors.SystemError as refused:
            lost.append(refused.error_code)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(won) == 1
    assert lost == ["FILE_ALREADY_EXISTS"] * 11
    assert (root / "plans" / "PLAN-1.md").read_bytes() == text(more=str(won[0]))
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_what_was_put_there_is_taken_back_unless_somebody_changed_it(root, plans):
    plans.create("PLAN-1", text())
    plans.remove_created("PLAN-1", text())
    assert plans.plan_ids() == []

    plans.create("PLAN-1", text())
    put(root, content=b"mine")
    plans.remove_created("PLAN-1", text())
    plans.remove_created("PLAN-2", text())

    assert plans.plan_ids() == ["PLAN-1"]


def test_a_persons_words_replace_exactly_the_bytes_they_saw(root, plans):
    put(root)
    (root / "plans" / "PLAN-1.md").chmod(0o640)

    assert not plans.replace("PLAN-1", digest(b"other"), b"new")
    assert not plans.replace("PLAN-2", digest(text()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == text()
    assert plans.replace("PLAN-1", digest(text()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"new"
    assert (root / "plans" / "PLAN-1.md").stat().st_mode & 0o777 == 0o640
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_what_an_editor_saved_in_the_last_moment_is_not_replaced(root, plans, monkeypatch):
    put(root)
    seen = plans.read

    def read_and_lose(plan_id):
        found = seen(plan_id)
        put(root, content=b"saved meanwhile")
        return found

    monkeypatch.setattr(plans, "read", read_and_lose)

    assert not plans.replace("PLAN-1", digest(text()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"saved meanwhile"
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_of_what_an_editor_saves_again_and_again_the_newest_stays(root, plans, monkeypatch):
    def busy(where, own, name):
        if saves:
            put(root, content=saves.pop(0))
        exchange(where, own, name)

    put(root)
    saves, exchange = [b"saved first", b"saved last"], atomic_rename.exchange
    monkeypatch.setattr(atomic_rename, "exchange", busy)

    assert not plans.replace("PLAN-1", digest(text()), b"new")
    assert (root / "plans" / "PLAN-1.md").read_bytes() == b"saved last"
