import json
import os
import re
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def hits(pages):
    return [
        (
            item["path"],
            item["range"]["start"]["line"],
            item["range"]["start"]["character"],
            item["range"]["end"]["character"],
        )
        for page in pages
        for item in page
    ]


def search(reader, query, **more):
    return hits(reader.pages("search_text", query=query, **more))


def test_each_hit_has_its_path_range_and_line(reader):
    reader.write("src/app.py", "first\nan é here, here\n")

    answer = reader.call("search_text", query="here")

    assert answer["items"][0] == {
        "path": "src/app.py",
        "range": {"start": {"line": 1, "character": 5}, "end": {"line": 1, "character": 9}},
        "line": "an é here, here",
    }
    assert hits([answer["items"]]) == [("src/app.py", 1, 5, 9), ("src/app.py", 1, 11, 15)]
    assert answer["summary"] == "2 hits in 1 files, lines counted from 0."
    assert "diagnostics" not in answer


def test_a_query_is_literal_unless_regex_is_set(reader):
    reader.write("a", "a.c\nabc\nA.C\n")

    assert search(reader, "a.c") == [("a", 0, 0, 3)]
    assert search(reader, "a.c", regex=True) == [("a", 0, 0, 3), ("a", 1, 0, 3)]
    assert search(reader, "a.c", ignore_case=True) == [("a", 0, 0, 3), ("a", 2, 0, 3)]
    assert len(search(reader, "a.c", regex=True, ignore_case=True)) == 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (r"^b", [(1, 0, 1)]),
        (r"a$", [(0, 2, 3)]),
        (r"\Ab.", [(1, 0, 2)]),
        (r".\z", [(0, 2, 3), (1, 2, 3), (3, 2, 3)]),
        (r"^$", [(2, 0, 0)]),
        (r"x*", [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]),
        (r"[^q]+", [(0, 0, 3), (1, 0, 3), (3, 0, 3)]),
        (r"a\nb", []),
        (r"a\s+b", []),
        (r"É.", [(3, 0, 2)]),
        (r"(?-m)^b", [(1, 0, 1)]),
        (r"\bba", [(1, 0, 2)]),
        (r"(b)(a)", [(1, 0, 2)]),
        (r"(?i)BA", [(1, 0, 2)]),
    ],
)
def test_a_regular_expression_is_matched_against_each_line_separately(reader, query, expected):
    reader.write("a", "aba\nbar\n\nÉcu".replace("aba", "qaa").replace("qaa", "cca"))

    assert [hit[1:] for hit in search(reader, query, regex=True)] == expected


@pytest.mark.parametrize("query", ["(", "[z-a]", "(?=a)", r"\1", "a{2000}", "*"])
def test_an_invalid_regular_expression_is_refused(reader, query):
    assert reader.code("search_text", query=query, regex=True) == "INVALID_INPUT_VALUE"


@pytest.mark.parametrize("query", ["a\nb", "\ud800"])
def test_a_query_that_no_line_can_contain_is_refused(reader, query):
    assert reader.code("search_text", query=query) == "INVALID_INPUT_VALUE"


def test_a_hostile_regular_expression_takes_linear_time(reader):
    reader.write("a", "a" * 200_000 + "\n" + "ab" * 100_000)
    start = time.thread_time()

    assert search(reader, "(a+)+$x", regex=True) == []
    assert search(reader, "(.*)*" * 20 + "z", regex=True) == []
    reader.write("a", "a\n" * 120_000 + "c\n")
    assert search(reader, "a[^b]*c", regex=True) == []
    assert time.thread_time() - start < 5


def test_context_lines_end_at_the_ends_of_the_file(reader):
    reader.write("a", "0\n1\nhit\n3\n4\n5")

    item = reader.call("search_text", query="hit", context_lines=3)["items"][0]

    assert (item["before"], item["line"], item["after"]) == (["0", "1"], "hit", ["3", "4", "5"])
    assert reader.call("search_text", query="5", context_lines=1)["items"][0]["after"] == []


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.sampled_from("ab\n\ré\U0001f600"), max_size=60),
    query=st.text(st.sampled_from("abé"), min_size=1, max_size=2),
    context=st.integers(0, 3),
)
def test_hits_are_what_python_finds_line_by_line(reader, text, query, context):
    reader.write("a", text)
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    expected = [(n, m.start(), m.end()) for n, line in enumerate(lines) for m in re.finditer(re.escape(query), line)]

    for more in ({}, {"regex": True}, {"pageSize": 1}):
        pages = reader.pages("search_text", query=query, context_lines=context, **more)
        assert [hit[1:] for hit in hits(pages)] == expected
        for item in (item for page in pages for item in page):
            number = item["range"]["start"]["line"]
            assert item["line"] == lines[number]
            if context:
                assert item["before"] == lines[max(0, number - context) : number]
                assert item["after"] == lines[number + 1 : number + 1 + context]


def test_a_file_of_many_chunks_is_searched_as_one(reader):
    lines = [f"line {number} " + "x" * (number % 97) for number in range(40_000)]
    for number in range(0, 40_000, 1_777):
        lines[number] += " needle"
    reader.write("a", "\n".join(lines))

    items = [item for page in reader.pages("search_text", query="needle", context_lines=5) for item in page]

    assert [item["range"]["start"]["line"] for item in items] == list(range(0, 40_000, 1_777))
    for item in items:
        number = item["range"]["start"]["line"]
        assert item["before"] == lines[max(0, number - 5) : number]
        assert item["after"] == lines[number + 1 : number + 6]


def test_files_are_searched_in_the_order_of_paths_without_ignored_ones(reader):
    for path in ("b.py", "a/x.py", "a.py", "a/no.log", "tests/t.md"):
        reader.write(path, "hit\n")
    reader.write(".gitignore", "*.log\n")
    reader.write(".git/config", "hit\n")

    assert [hit[0] for hit in search(reader, "hit")] == ["a.py", "a/x.py", "b.py", "tests/t.md"]
    assert [hit[0] for hit in search(reader, "hit", include_ignored=True)][1] == "a/no.log"
    assert [hit[0] for hit in search(reader, "hit", glob="**/*.py")] == ["a.py", "a/x.py", "b.py"]
    assert [hit[0] for hit in search(reader, "hit", path="a")] == ["a/x.py"]
    assert [hit[0] for hit in search(reader, "hit", path="a", glob="*.py")] == ["a/x.py"]
    assert [hit[0] for hit in search(reader, "hit", path="a/no.log")] == ["a/no.log"]
    assert search(reader, "hit", path="b.py", glob="*.md") == []


def test_all_pages_together_are_all_hits(reader):
    for name in "abc":
        reader.write(name, "hit hit\nno\nhit\n")
    whole = search(reader, "hit")

    assert len(whole) == 9
    for size in (1, 2, 4, 5, 200):
        assert search(reader, "hit", pageSize=size) == whole


def test_a_cursor_is_valid_only_for_its_request(reader):
    reader.write("a", "hit hit Hit\n")
    cursor = reader.call("search_text", query="hit", pageSize=1)["nextCursor"]

    for other in ({"query": "it"}, {"query": "hit", "ignore_case": True}, {"query": "hit", "glob": "*"}):
        assert reader.code("search_text", cursor=cursor, **other) == "CURSOR_INVALID"
    assert (
        reader.call("search_text", query="hit", cursor=cursor, pageSize=7)["items"][0]["range"]["start"]["character"]
        == 4
    )


@pytest.mark.rows("S4-59")
def test_skipped_files_are_counted_in_the_diagnostics(reader):
    reader.write("binary", b"hit\0")
    reader.write(".env", "hit")
    reader.write("secret.pem", "hit")
    reader.write("odd", b"hit \xff\n")
    with reader.write("huge").open("wb") as file:
        file.truncate(1 << 40)

    answer = reader.call("search_text", query="hit")

    assert [(item["path"], item["line"]) for item in answer["items"]] == [("odd", "hit \ufffd")]
    assert answer["diagnostics"] == [
        "Not UTF-8, invalid bytes shown as \ufffd: 1 files.",
        "Skipped, binary: 1 files.",
        "Skipped, may not be read: 2 files.",
        "Skipped, too large: 1 files.",
    ]


def test_searching_a_protected_file_by_name_is_refused(reader):
    reader.write(".env", "hit")

    assert reader.code("search_text", query="hit", path=".env") == "POLICY_VIOLATION"
    assert reader.code("search_text", query="hit", path="missing") == "FILE_NOT_FOUND"


def test_pipes_and_symbolic_links_are_not_searched(reader):
    os.mkfifo(reader.path / "pipe")
    (reader.path / "zero").symlink_to("/dev/zero")
    reader.write("a", "hit")
    (reader.path / "again").symlink_to("a")

    assert search(reader, "hit") == [("a", 0, 0, 3)]
    assert reader.code("search_text", query="hit", path="pipe") == "FILE_READ_FAILED"


def test_a_10_mb_line_is_truncated_around_each_hit(reader):
    reader.write("a", ("x" * 99_996 + "here") * 100 + "\nhere\n")
    start = time.thread_time()

    pages = reader.pages("search_text", query="here", context_lines=1)

    assert time.thread_time() - start < 5
    assert hits(pages) == [("a", 0, 100_000 * n + 99_996, 100_000 * (n + 1)) for n in range(100)] + [("a", 1, 0, 4)]
    for item in pages[0][1:99]:
        assert len(item["line"]) == 502
        assert "xherex" in item["line"]


def test_a_line_above_16_mib_ends_the_search_of_its_file_with_a_note(reader):
    reader.write("a", "x" * (17 << 20) + "\nhere\n")

    assert reader.call("search_text", query="here")["diagnostics"] == [
        "Skipped from a line on that is too long: 1 files."
    ]


def test_memory_does_not_grow_with_the_number_of_files(reader):
    for number in range(40):
        reader.write(f"{number}", "some text on a line\n" * 20_000)
    reader.call("search_text", query="nothing of it", pageSize=1)
    tracemalloc.start()
    reader.call("search_text", query="nothing of it", pageSize=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


def test_a_page_ends_early_where_the_response_is_full(reader):
    reader.write("a", ("\x01" * 400 + "hit\n") * 150)

    pages = reader.pages("search_text", query="hit", context_lines=5)

    assert len(pages) > 1
    assert [hit[1] for hit in hits(pages)] == list(range(150))


def test_too_many_hits_are_refused_on_one_page_and_over_pages(reader):
    reader.write("a", "hit\n" * 20_001)

    assert reader.code("search_text", query="hit") == "CAP_EXCEEDED"
    reader.write("a", "hit\n" * 20_000)
    assert "nextCursor" in reader.call("search_text", query="hit")
    reader.caps = reader.caps._replace(total_hits=5)
    with pytest.raises(Exception, match="CAP_EXCEEDED"):
        reader.pages("search_text", query="hit", pageSize=2)


@pytest.mark.rows("S2-27")
@pytest.mark.parametrize("page_size", [{}, {"pageSize": 50}, {"pageSize": 1}])
def test_the_size_of_a_page_does_not_decide_whether_there_are_too_many_hits(reader, page_size):
    for number in range(6):
        reader.write(f"{number}.txt", "hit\n" * 4_000)

    assert reader.code("search_text", query="hit", **page_size) == "CAP_EXCEEDED"
    assert reader.call("search_text", query="hit", path="0.txt", **page_size)["items"]
    reader.caps = reader.caps._replace(total_hits=5)
    assert reader.code("find_files", pattern="*.txt", **page_size) == "CAP_EXCEEDED"


def test_hits_are_not_counted_for_longer_than_a_scan_may_take(reader):
    for number in range(6):
        reader.write(f"{number}.txt", "hit\n")
    reader.caps = reader.caps._replace(total_hits=5, search_guard_ms=0, find_guard_ms=0)

    assert "nextCursor" in reader.call("search_text", query="hit", pageSize=2)
    assert "nextCursor" in reader.call("find_files", pattern="*.txt", pageSize=2)


def test_an_unpaged_search_past_its_soft_limit_is_partial_and_says_so(reader):
    for name in "abcdef":
        reader.write(name, "hit\n")
    reader.caps = reader.caps._replace(search_guard_ms=0)

    answer = reader.call("search_text", query="hit")

    assert answer["items"] == []
    assert re.fullmatch(
        r"Scan stopped after \d+ms\. Processed 0 of 6 items\. Results may be partial\.", answer["diagnostics"][0]
    )
    assert len(reader.call("search_text", query="hit", pageSize=200)["items"]) == 6


@pytest.mark.parametrize("milliseconds", [1, 3, 9])
def test_a_partial_scan_is_continued_by_its_cursor(reader, milliseconds):
    for number in range(600):
        reader.write(f"{number:03d}", "hit\n" if number % 10 == 0 else "no\n")
    reader.caps = reader.caps._replace(search_guard_ms=milliseconds, find_guard_ms=milliseconds)

    assert [hit[0] for hit in search(reader, "hit")] == [f"{number:03d}" for number in range(0, 600, 10)]
    assert len([item for page in reader.pages("find_files", pattern="*") for item in page]) == 600


def test_a_call_past_its_deadline_fails(reader):
    reader.write("a", "hit")
    reader.is_late = True

    assert reader.code("search_text", query="hit") == "CAP_EXCEEDED"
    assert reader.code("search_text", query="hit", path="a") == "CAP_EXCEEDED"


@pytest.mark.rows("S2-35")
def test_summaries_and_diagnostics_contain_no_query_and_no_content(reader):
    reader.write("a", b"secretive \xff\n")

    answer = reader.call("search_text", query="secretive")

    assert "secretive" not in json.dumps([answer["summary"], answer["diagnostics"]])
