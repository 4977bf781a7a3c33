import errno
import json
import os
from pathlib import Path

import pytest
from context_caches import (
    MINIMAL,
    REALISTIC,
    TIED,
    cache_version_of,
    file_of,
    manifest_of,
    version_of,
    write_cache,
    write_json,
)
from scenes import records

from kaiza.domain.call import CallRequest, Principal
from kaiza.domain.caps import Caps

HELLO = {"cache": "minimal", "query": "hello", "budget": 100}


@pytest.fixture
def cached(app, workspace):
    write_cache(workspace, "minimal", MINIMAL)
    write_cache(workspace, "realistic", REALISTIC)
    return app


def code_of(app, tool, arguments):
    outcome = app.call(tool, arguments)
    return outcome.envelope["error_code"] if outcome.envelope else "ok"


def resolved(app, cache, query, budget):
    return app.call("context_resolve", {"cache": cache, "query": query, "budget": budget}).output


@pytest.mark.rows("S0-4", "S0-31")
def test_a_cache_of_the_reference_resolves_to_the_reference_answers(cached, workspace):
    write_cache(workspace, "tied", TIED)
    basic = resolved(cached, "minimal", "deployment", 4000)
    realistic = resolved(cached, "realistic", "deployment security", 4000)
    tied = resolved(cached, "tied", "xyznotfound", 4000)

    assert [(one["id"], one["score"], one["tokens"]) for one in basic["documents"]] == [
        ("goodbye.md", 0.0, 4),
        ("hello.md", 0.0, 3),
    ]
    assert basic["selection"]["tokens_used"] == 7
    assert [(one["id"], one["score"]) for one in realistic["documents"]] == [
        ("deployment.md", 0.75),
        ("security.md", 0.33333334),
        ("empty.md", 0.0),
    ]
    assert [one["id"] for one in tied["documents"]] == ["a.md", "b.md"]
    assert all(one.keys() == {"documents", "selection"} for one in (basic, realistic, tied))


@pytest.mark.rows("S0-13")
def test_a_budget_of_0_is_valid_and_selects_nothing(cached):
    selection = resolved(cached, "realistic", "deployment", 0)["selection"]

    assert (selection["documents_considered"], selection["documents_selected"]) == (3, 0)
    assert selection["documents_excluded_by_budget"] == 3


def test_a_resolve_needs_no_session_and_a_session_changes_nothing(cached):
    without = cached.call("context_resolve", HELLO).output
    begun = cached.call("begin_session", {"role": "WINDSURF"}).output["session_id"]

    assert cached.call("context_resolve", {**HELLO, "session_id": begun}).output == without
    assert cached.call("context_resolve", {**HELLO, "session_id": "no such session"}).output == without


def test_a_resolve_is_recorded_with_what_it_selected(cached, workspace):
    cached.call("context_resolve", HELLO)
    detail = records(workspace)[-1]["detail"]

    assert detail == {
        "cache": "minimal",
        "cache_version": cache_version_of(MINIMAL),
        "query_sha256": version_of("hello")[7:],
        "budget": 100,
        "selected": ["hello.md", "goodbye.md"],
    }


def test_caches_are_listed_by_name_and_nothing_else_is(cached, workspace):
    home = workspace / ".kaiza/context"
    (home / "b-cache").mkdir()
    (home / "a file").touch()
    (home / ".new-0").mkdir()
    (home / "Upper").mkdir()
    (home / "link").symlink_to("minimal")

    assert cached.call("context_list_caches", {}).output == {
        "caches": [
            {"path": "b-cache", "has_manifest": False},
            {"path": "minimal", "has_manifest": True},
            {"path": "realistic", "has_manifest": True},
        ]
    }


def test_a_workspace_without_caches_lists_none(app):
    assert app.call("context_list_caches", {}).output == {"caches": []}


def test_an_inspection_counts_documents_and_the_bytes_beside_them(cached, workspace):
    home = workspace / ".kaiza/context/minimal"
    sizes = [(home / name).stat().st_size for name in ("manifest.json", "index.json")]

    assert cached.call("context_inspect_cache", {"cache": "minimal"}).output == {
        "cache_version": cache_version_of(MINIMAL),
        "document_count": 2,
        "total_bytes": sum(sizes),
        "valid": True,
    }


def test_an_invalid_cache_is_an_answer_of_an_inspection(cached, workspace):
    Path(workspace, ".kaiza/context/minimal/manifest.json").write_text("not-json")

    assert cached.call("context_inspect_cache", {"cache": "minimal"}).output == {
        "cache_version": "",
        "document_count": 0,
        "total_bytes": 0,
        "valid": False,
    }


@pytest.mark.rows("S0-10")
def test_a_cache_that_cannot_be_reached_is_missing(cached, workspace):
    (workspace / ".kaiza/context/a-file").touch()

    for name in ("does-not-exist", "a-file"):
        assert code_of(cached, "context_resolve", {**HELLO, "cache": name}) == "CONTEXT_CACHE_MISSING"
        assert code_of(cached, "context_inspect_cache", {"cache": name}) == "CONTEXT_CACHE_MISSING"


BAD_NAMES = [
    "../etc/passwd", "../../secret", "/absolute/path", "\\windows\\path", "..", ".", "", "a/b", "weird/../minimal",
    "minimal\n", "minimal\0", "Minimal", ".hidden", "a" * 65, 5, None, True, ["minimal"], {"cache": "minimal"},
]  # fmt: skip


@pytest.mark.rows("S0-10")
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_no_cache_can_have_is_a_missing_cache(cached, name):
    assert code_of(cached, "context_resolve", {**HELLO, "cache": name}) == "CONTEXT_CACHE_MISSING"
    assert code_of(cached, "context_inspect_cache", {"cache": name}) == "CONTEXT_CACHE_MISSING"


@pytest.mark.rows("S0-12")
@pytest.mark.parametrize("query", [5, None, True, ["x"], "x" * 513, "\ud800"])
def test_a_query_that_is_no_text_or_too_long_is_invalid(cached, query):
    assert code_of(cached, "context_resolve", {**HELLO, "query": query}) == "CONTEXT_QUERY_INVALID"
    assert code_of(cached, "context_resolve", {**HELLO, "query": "x" * 512}) == "ok"


@pytest.mark.rows("S0-13")
@pytest.mark.parametrize("budget", [-1, 1.5, 10.0, "10", True, None, 100_001, 10**30, [5]])
def test_a_budget_that_is_no_whole_number_in_range_is_invalid(cached, budget):
    assert code_of(cached, "context_resolve", {**HELLO, "budget": budget}) == "CONTEXT_BUDGET_INVALID"
    assert code_of(cached, "context_resolve", {**HELLO, "budget": 100_000}) == "ok"


@pytest.mark.rows("S0-12")
def test_the_first_argument_at_fault_decides_and_an_unknown_one_comes_last(cached):
    for arguments, code in [
        ({"cache": "../x", "query": 5, "budget": -1, "more": 1}, "CONTEXT_CACHE_MISSING"),
        ({"query": 5, "budget": -1, "more": 1}, "CONTEXT_CACHE_MISSING"),
        ({"cache": "minimal", "query": 5, "budget": -1, "more": 1}, "CONTEXT_QUERY_INVALID"),
        ({"cache": "minimal", "query": "", "budget": -1, "more": 1}, "CONTEXT_BUDGET_INVALID"),
        ({"cache": "minimal", "budget": 1}, "CONTEXT_QUERY_INVALID"),
        ({"cache": "minimal", "query": ""}, "CONTEXT_BUDGET_INVALID"),
        ({**HELLO, "more": 1}, "CONTEXT_QUERY_INVALID"),
        ({**HELLO, "session_id": 5}, "CONTEXT_QUERY_INVALID"),
        *((arguments, "CONTEXT_CACHE_MISSING") for arguments in (None, [], "minimal", 5, {})),
    ]:
        assert code_of(cached, "context_resolve", arguments) == code, arguments
    assert code_of(cached, "context_inspect_cache", {"cache": "minimal", "more": 1}) == "CONTEXT_QUERY_INVALID"
    for arguments in (None, [], "x", {"root": "."}):
        assert code_of(cached, "context_list_caches", arguments) == "CONTEXT_QUERY_INVALID"


def test_a_refused_context_call_locks_nothing(begun, workspace):
    for arguments in ({**HELLO, "cache": "../../etc"}, {**HELLO, "query": 5}, HELLO):
        begun.call("context_resolve", arguments)

    assert begun.call("session_status", {}).output["state"] == "active"


def spoil_manifest(directory):
    (directory / "manifest.json").write_text("not-json")


def spoil_index(directory):
    write_json(directory / "index.json", {})


def edit_document(directory):
    path = directory / file_of("Hello world")
    path.write_text(path.read_text().replace("Hello world", "Hello World"))


def swap_documents(directory):
    first, second = (directory / file_of(text) for text in MINIMAL.values())
    contents = first.read_text(), second.read_text()
    first.write_text(contents[1])
    second.write_text(contents[0])


def remove_documents(directory):
    for path in (directory / "documents").iterdir():
        path.unlink()
    (directory / "documents").rmdir()


DAMAGES = {
    "no manifest": lambda directory: (directory / "manifest.json").unlink(),
    "malformed manifest": spoil_manifest,
    "no index": lambda directory: (directory / "index.json").unlink(),
    "other index": spoil_index,
    "edited document": edit_document,
    "missing document": lambda directory: (directory / file_of("Hello world")).unlink(),
    "swapped documents": swap_documents,
    "orphan": lambda directory: (directory / "documents/000000000000.json").write_text("{}"),
    "no documents": remove_documents,
    "other version": lambda directory: write_json(
        directory / "manifest.json",
        manifest_of(MINIMAL, build_config={"version": "999", "hash_algorithm": "sha256"}),
    ),
}


@pytest.mark.rows("S0-11", "S0-16", "S0-17", "S0-18", "S0-19", "S0-20")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_cache_is_invalid_for_every_query_and_each_time(cached, workspace, damage):
    damage(workspace / ".kaiza/context/minimal")

    for query in ("hello", "nothing", "hello"):
        assert code_of(cached, "context_resolve", {**HELLO, "query": query}) == "CONTEXT_CACHE_INVALID"
    assert cached.call("context_inspect_cache", {"cache": "minimal"}).output["valid"] is False
    assert code_of(cached, "context_resolve", {**HELLO, "cache": "realistic"}) == "ok"


@pytest.mark.rows("S0-22")
@pytest.mark.parametrize("number", [errno.EIO, errno.EAGAIN, errno.ENOSPC])
def test_a_failed_read_is_an_io_error_and_a_later_call_may_succeed(cached, workspace, monkeypatch, number):
    path = Path(workspace, ".kaiza/context/minimal", file_of("Hello world"))
    real_pread = os.pread

    def fail(fd, size, offset):
        if os.path.samestat(os.fstat(fd), path.stat()):
            raise OSError(number, os.strerror(number))
        return real_pread(fd, size, offset)

    monkeypatch.setattr(os, "pread", fail)

    assert code_of(cached, "context_resolve", HELLO) == "CONTEXT_IO_ERROR"
    assert code_of(cached, "context_inspect_cache", {"cache": "minimal"}) == "CONTEXT_IO_ERROR"
    monkeypatch.undo()
    assert code_of(cached, "context_resolve", HELLO) == "ok"


def test_an_answer_larger_than_a_response_is_an_invalid_budget(make_app, workspace):
    write_cache(workspace, "large", {f"{number}.md": f"{number} " + '"' * 4000 for number in range(40)})
    app = make_app(workspace, caps=Caps(response_bytes=100_000))

    assert code_of(app, "context_resolve", {"cache": "large", "query": "", "budget": 100_000}) == (
        "CONTEXT_BUDGET_INVALID"
    )
    assert code_of(app, "context_resolve", {"cache": "large", "query": "", "budget": 4000}) == "ok"


def test_selected_ids_that_do_not_fit_into_a_record_are_an_invalid_budget(app, workspace):
    write_cache(workspace, "long", {f"{number}-{'x' * 4000}.md": f"{number}" for number in range(60)})

    assert code_of(app, "context_resolve", {"cache": "long", "query": "", "budget": 60}) == "CONTEXT_BUDGET_INVALID"
    assert code_of(app, "context_resolve", {"cache": "long", "query": "", "budget": 5}) == "ok"


def test_a_call_past_its_deadline_stops_reading(make_app, workspace):
    write_cache(workspace, "minimal", MINIMAL)
    app = make_app(workspace, caps=Caps(tool_timeout_ms=0))

    for tool, arguments in (("context_resolve", HELLO), ("context_inspect_cache", {"cache": "minimal"})):
        assert app.call(tool, arguments).envelope["cause"]["cap"] == "timeout"


def test_every_output_conforms_to_its_schema(cached, faulty_registry):
    for tool, arguments in (
        ("context_resolve", HELLO),
        ("context_list_caches", {}),
        ("context_inspect_cache", {"cache": "minimal"}),
    ):
        output = cached.call(tool, arguments).output
        faulty_registry.load_tool_io(tool).output.validate(json.loads(json.dumps(output)))


def test_a_resolve_answers_from_the_workspace_of_its_session(make_app, workspace, tmp_path):
    other = tmp_path / "other"
    for name in ("plans", "audit"):
        (other / name).mkdir(parents=True)
    write_cache(workspace, "minimal", MINIMAL)
    app = make_app(workspace, other)
    session = app.call("begin_session", {"role": "WINDSURF", "workspace_root": os.path.realpath(other)}).output

    assert code_of(app, "context_resolve", {**HELLO, "session_id": session["session_id"]}) == "CONTEXT_CACHE_MISSING"


def test_a_token_resolves_from_its_own_workspace_without_a_session(make_app, workspace, tmp_path):
    other = tmp_path / "other"
    for name in ("plans", "audit"):
        (other / name).mkdir(parents=True)
    write_cache(workspace, "first", MINIMAL)
    write_cache(other, "second", MINIMAL)
    app = make_app(workspace, other)
    principal = Principal("ada#00000000", os.path.realpath(other))

    def listed(caller):
        return app.answer(app.stamp(CallRequest("context_list_caches", {}, principal=caller))).output["caches"]

    assert [each["path"] for each in listed(principal)] == ["second"]
    assert [each["path"] for each in listed(None)] == ["first"]
