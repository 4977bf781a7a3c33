from kaiza.domain.plans import parser
from kaiza.store.documents.scope_preview import count_files, has_more_entries, match_files
from kaiza.store.files.confined_root import ConfinedRoot

HEAD = """---
kaiza_plan: 1
plan_id: PLAN-1
title: t
status: DRAFT
author: a
created: "2026-11-18T09:00:00Z"
scope: {scope}
---
"""


def preview(root, scope):
    plan = parser.parse(HEAD.replace("{scope}", scope).encode(), "PLAN-1").plan
    with ConfinedRoot(str(root)) as workspace:
        return match_files(plan, workspace)


def create_files(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def test_preview_lists_files_with_their_operations_and_counts_matches_of_each_pattern(tmp_path):
    create_files(tmp_path, "a/1", "a/2", "a/keys/3", "b/4", "c/5")
    scope_preview = preview(
        tmp_path, '{modify: ["a/**"], delete: ["a/1"], move: [{from: "b/*", to: "c/*"}], deny: ["a/keys/**"]}'
    )

    assert (scope_preview.file_count, scope_preview.listed_paths) == (3, ("a/1", "a/2", "b/4"))
    assert scope_preview.operations == {"a/1": ("modify", "delete"), "a/2": ("modify",), "b/4": ("move",)}
    assert scope_preview.match_counts == {("modify", "a/**"): 2, ("delete", "a/1"): 1, ("move", "b/*"): 1}


def test_preview_leaves_out_protected_files_however_broad_the_pattern(tmp_path):
    create_files(
        tmp_path, "plans/P.md", "audit/x", ".kaiza/x", "kaiza.toml", ".git/x", ".env", "k.pem", "AGENTS.md", "a"
    )

    assert preview(tmp_path, '{modify: ["**"]}').listed_paths == ("a",)
    assert preview(tmp_path, '{modify: ["**"], unlock: ["AGENTS.md"]}').listed_paths == ("AGENTS.md", "a")
    assert preview(tmp_path, '{modify: ["a"], move: [{from: "a", to: "b"}], deny: ["a"]}').file_count == 0


def count(root, over=lambda: False):
    plan = parser.parse(HEAD.replace("{scope}", '{modify: ["**"]}').encode(), "PLAN-1").plan
    with ConfinedRoot(str(root)) as workspace:
        return count_files(plan, workspace, over)


def test_a_count_is_whole_or_none(tmp_path):
    create_files(tmp_path, "a", "b", "z/c", "z/d")
    times = iter([False, False, False, True])

    assert count(tmp_path) == 4
    assert count(tmp_path, over=lambda: next(times)) is None


def test_a_directory_that_cannot_be_listed_makes_the_count_none(tmp_path):
    create_files(tmp_path, "a", "z/c")

    def move_directory_away():
        if (tmp_path / "z").exists():
            (tmp_path / "z").rename(tmp_path.with_name("elsewhere"))
        return False

    assert count(tmp_path, over=move_directory_away) is None


def test_entries_are_counted_up_to_a_limit_through_directories_and_not_through_links(tmp_path):
    create_files(tmp_path, "a", "d/b", "d/e/c", ".git/x", ".kaiza/y")
    (tmp_path / "loop").symlink_to(tmp_path)
    with ConfinedRoot(str(tmp_path)) as workspace:
        assert [has_more_entries(workspace, most) for most in (0, 5, 6, 100)] == [True, True, False, False]
