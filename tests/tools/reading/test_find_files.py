import os

import pytest


def paths_of(pages):
    return [item["path"] for page in pages for item in page]


def find(reader, pattern, **more):
    return paths_of(reader.pages("find_files", pattern=pattern, **more))


@pytest.fixture
def project(reader):
    for path in ("src/app.py", "src/deep/er/mod.py", "src/note.md", "app.py", "tests/test_app.py"):
        reader.write(path, "four")
    return reader


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["app.py"]),
        ("**/*.py", ["app.py", "src/app.py", "src/deep/er/mod.py", "tests/test_app.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**", ["src/app.py", "src/deep", "src/deep/er", "src/deep/er/mod.py", "src/note.md"]),
        ("**/er", ["src/deep/er"]),
        ("src/app.py", ["src/app.py"]),
        ("**/[a-n]*.??", ["app.py", "src/app.py", "src/deep/er/mod.py", "src/note.md"]),
        ("**/APP.py", []),
        ("nothing/**", []),
    ],
)
def test_a_glob_is_matched_against_the_whole_path(project, pattern, expected):
    assert find(project, pattern) == expected


def test_items_have_type_and_size(project):
    os.symlink("app.py", project.path / "link.py")
    items = project.call("find_files", pattern="*")["items"]

    assert items == [
        {"path": "app.py", "type": "file", "size": 4},
        {"path": "link.py", "type": "link"},
        {"path": "src", "type": "directory"},
        {"path": "tests", "type": "directory"},
    ]


def test_the_glob_is_relative_to_the_given_path(project):
    assert find(project, "**/*.py", path="src") == ["src/app.py", "src/deep/er/mod.py"]
    assert find(project, "*.py", path=f"{project.root}/src") == ["src/app.py"]


def test_a_symbolic_link_to_a_directory_is_walked_under_its_real_path(project):
    os.symlink("src", project.path / "alias")

    assert find(project, "*.py", path="alias") == ["src/app.py"]


def test_ignored_files_are_found_only_with_include_ignored(project):
    project.write(".gitignore", "*.md\n/tests/\n")
    project.write(".git/config", "x")

    assert find(project, "**/*") == [
        ".gitignore",
        "app.py",
        "src",
        "src/app.py",
        "src/deep",
        "src/deep/er",
        "src/deep/er/mod.py",
    ]
    assert {"src/note.md", "tests/test_app.py"} <= set(find(project, "**/*", include_ignored=True))
    assert not any(".git/" in path for path in find(project, "**/*", include_ignored=True))


def test_all_pages_together_are_all_paths_in_order(project):
    whole = find(project, "**/*")

    assert whole == sorted(whole)
    for size in (1, 2, 3, 200):
        pages = project.pages("find_files", pattern="**/*", pageSize=size)
        assert paths_of(pages) == whole
        assert all(len(page) == size for page in pages[:-1])


def test_a_cursor_is_valid_only_for_its_request(project):
    cursor = project.call("find_files", pattern="**/*.py", pageSize=1)["nextCursor"]

    for other in (
        {"pattern": "**/*"},
        {"pattern": "**/*.py", "path": "src"},
        {"pattern": "**/*.py", "include_ignored": True},
    ):
        assert project.code("find_files", cursor=cursor, **other) == "CURSOR_INVALID"
    assert project.code("find_files", pattern="**/*.py", cursor="garbage") == "CURSOR_INVALID"


@pytest.mark.parametrize("pattern", ["/etc/**", "../x", "a//b", "[", "a\\b", "src/", "!a", "./a"])
def test_an_invalid_glob_is_refused(reader, pattern):
    assert reader.code("find_files", pattern=pattern) == "INVALID_INPUT_VALUE"


@pytest.mark.parametrize(
    ("path", "code"), [("missing", "PATH_NOT_FOUND"), ("..", "PATH_TRAVERSAL_BLOCKED"), (".kaiza", "POLICY_VIOLATION")]
)
def test_a_directory_that_cannot_be_walked_is_refused(reader, path, code):
    reader.write(".kaiza/journal")

    assert reader.code("find_files", pattern="**", path=path) == code


@pytest.mark.rows("S4-60")
def test_a_pattern_without_a_slash_that_finds_nothing_gets_a_hint(project):
    assert project.call("find_files", pattern="mod.py")["diagnostics"] == [
        "A pattern without a slash matches in one directory only; begin it with **/ for any depth."
    ]
    assert "diagnostics" not in project.call("find_files", pattern="app.py")


@pytest.mark.rows("S4-54", "S4-57", "S4-58", "S4-61")
def test_an_unpaged_scan_past_its_soft_limit_is_partial_and_says_so(project):
    project.caps = project.caps._replace(find_guard_ms=0)

    answer = project.call("find_files", pattern="**/*")

    assert answer["items"] == []
    assert len(answer["diagnostics"]) == 1
    note = answer["diagnostics"][0]
    assert note.startswith("Scan stopped after ")
    assert note.endswith("ms. Processed 0 of 3 items. Results may be partial.")


def test_a_paged_scan_has_no_soft_limit(project):
    project.caps = project.caps._replace(find_guard_ms=0)

    assert "diagnostics" not in project.call("find_files", pattern="**/*", pageSize=200)


def test_a_call_past_its_deadline_fails(project):
    project.is_late = True

    assert project.code("find_files", pattern="**/*", pageSize=1) == "CAP_EXCEEDED"


@pytest.mark.rows("S2-27")
def test_too_many_hits_are_refused_on_one_page_and_over_pages(project):
    project.caps = project.caps._replace(total_hits=5)

    assert project.code("find_files", pattern="**/*") == "CAP_EXCEEDED"
    with pytest.raises(Exception, match="CAP_EXCEEDED"):
        project.pages("find_files", pattern="**/*", pageSize=2)
    assert len(find(project, "src/**")) == 5


def test_protected_files_are_found_by_name(reader):
    reader.write(".env", "SECRET=1")

    assert find(reader, "**/.env") == [".env"]


def test_unusual_file_names_are_found_and_escaped(reader):
    reader.write("a\nb")
    reader.write("\u202eevil")
    os.close(os.open(os.fsencode(reader.root) + b"/odd\xff", os.O_CREAT, 0o600))

    assert sorted(find(reader, "**/*", pageSize=1)) == ["a\nb", "odd\\xff", "\u202eevil"]
