from kaiza.domain.plans import parser
from kaiza.store.documents.scope_preview import match_files
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


def look(root, scope):
    plan = parser.parse(HEAD.replace("{scope}", scope).encode(), "PLAN-1").plan
    with ConfinedRoot(str(root)) as workspace:
        return match_files(plan, workspace)


def make(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def test_preview_lists_files_with_their_operations_and_counts_matches_of_each_pattern(tmp_path):
    make(tmp_path, "a/1", "a/2", "a/keys/3", "b/4", "c/5")
    found = look(tmp_path, '{modify: ["a/**"], delete: ["a/1"], move: [{from: "b/*", to: "c/*"}], deny: ["a/keys/**"]}')

    assert (found.file_count, found.listed_paths) == (3, ("a/1", "a/2", "b/4"))
    assert found.operations == {"a/1": ("modify", "delete"), "a/2": ("modify",), "b/4": ("move",)}
    assert found.match_counts == {("modify", "a/**"): 2, ("delete", "a/1"): 1, ("move", "b/*"): 1}


def test_preview_leaves_out_protected_files_however_broad_the_pattern(tmp_path):
    make(tmp_path, "plans/P.md", "audit/x", ".kaiza/x", "kaiza.toml", ".git/x", ".env", "k.pem", "AGENTS.md", "a")

    assert look(tmp_path, '{modify: ["**"]}').listed_paths == ("a",)
    assert look(tmp_path, '{modify: ["**"], unlock: ["AGENTS.md"]}').listed_paths == ("AGENTS.md", "a")
    assert look(tmp_path, '{modify: ["a"], move: [{from: "a", to: "b"}], deny: ["a"]}').file_count == 0
