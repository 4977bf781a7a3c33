import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LONG = "KAIZA_LONG" in os.environ


def names(pages):
    return [item["name"] for page in pages for item in page]


def test_entries_are_sorted_and_have_type_and_size(reader):
    reader.write("b.txt", "four")
    reader.write("a/inner", "x")
    (reader.path / "link").symlink_to("b.txt")
    os.mkfifo(reader.path / "pipe")

    answer = reader.call("list_directory", path=".")

    assert answer["path"] == "."
    assert [(item["name"], item["type"], item.get("size")) for item in answer["items"]] == [
        ("a", "directory", None),
        ("b.txt", "file", 4),
        ("link", "link", None),
        ("pipe", "other", None),
    ]
    assert "nextCursor" not in answer
    assert reader.call("list_directory", path="a")["items"][0]["path"] == "a/inner"


def test_modification_times_are_utc_with_milliseconds(reader):
    os.utime(reader.write("a"), ns=(0, 1_500_000_000_123_456_789))

    assert reader.call("list_directory", path=".")["items"][0]["modified"] == "2017-07-14T02:40:00.123Z"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(1, 7), count=st.integers(0, 20))
def test_all_pages_together_are_the_directory(reader, size, count):
    directory = f"d{size}-{count}"
    (reader.path / directory).mkdir(exist_ok=True)
    expected = sorted(f"n{number * 7919 % 1000}é" for number in range(count))
    for name in expected:
        reader.write(f"{directory}/{name}")

    pages = reader.pages("list_directory", path=directory, pageSize=size)

    assert names(pages) == expected
    assert all(len(page) == size for page in pages[:-1])


def test_a_page_has_200_entries_by_default(reader):
    for number in range(201):
        reader.write(f"{number:03d}")

    assert [len(page) for page in reader.pages("list_directory", path=".")] == [200, 1]


def test_entries_added_or_deleted_between_pages_shift_no_others(reader):
    for name in "bdfh":
        reader.write(name)
    first = reader.call("list_directory", path=".", pageSize=2)
    reader.write("a")
    reader.write("e")
    (reader.path / "d").unlink()

    second = reader.call("list_directory", path=".", pageSize=9, cursor=first["nextCursor"])

    assert names([first["items"], second["items"]]) == ["b", "d", "e", "f", "h"]


def test_a_cursor_is_valid_only_for_its_request(reader):
    for name in ("a/1", "a/2", "b/1", "b/2"):
        reader.write(name)
    cursor = reader.call("list_directory", path="a", pageSize=1)["nextCursor"]

    assert reader.call("list_directory", path="./a/", cursor=cursor)["items"][0]["path"] == "a/2"
    assert reader.code("list_directory", path="b", cursor=cursor) == "CURSOR_INVALID"
    assert reader.code("find_files", pattern="*", path="a", cursor=cursor) == "CURSOR_INVALID"


@pytest.mark.parametrize("cursor", ["", "x", "????", "e30", "A" * 5000, "é", "a b", "=" * 9])
def test_a_forged_cursor_is_refused(reader, cursor):
    assert reader.code("list_directory", path=".", cursor=cursor) == "CURSOR_INVALID"


def test_names_that_are_not_utf8_are_escaped(reader):
    os.close(os.open(os.fsencode(reader.root) + b"/odd\xff\xfe", os.O_CREAT, 0o600))
    reader.write("z")

    pages = reader.pages("list_directory", path=".", pageSize=1)

    assert sorted(names(pages)) == ["odd\\xff\\xfe", "z"]


def test_unusual_names_are_listed_unchanged(reader):
    unusual = ["a\nb", "\u202eevil", " ", "\x7f", '"']
    for name in unusual:
        reader.write(name)

    assert names(reader.pages("list_directory", path=".")) == sorted(unusual)


def test_a_page_ends_early_where_the_response_is_full(reader):
    expected = [f"{number:03d}" + "\x01" * 200 for number in range(200)]
    deep = "/".join(["\x02" * 250] * 5)
    for name in expected:
        reader.write(f"{deep}/{name}")

    pages = reader.pages("list_directory", path=deep)

    assert len(pages) > 1
    assert names(pages) == expected


@pytest.mark.long
def test_a_page_of_a_huge_directory_takes_less_than_two_seconds(reader):
    count = 100_000 if LONG else 5_000
    (reader.path / "many").mkdir()
    directory = os.open(reader.path / "many", os.O_RDONLY)
    for number in range(count):
        os.symlink("x", f"{number:06d}", dir_fd=directory)
    os.close(directory)
    start = time.thread_time()

    answer = reader.call("list_directory", path="many", pageSize=3)

    assert time.thread_time() - start < 2
    assert names([answer["items"]]) == ["000000", "000001", "000002"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing", "PATH_NOT_FOUND"),
        ("file", "PATH_NOT_FOUND"),
        ("..", "PATH_TRAVERSAL_BLOCKED"),
        ("out", "OUTSIDE_WORKSPACE"),
    ],
)
def test_listing_anything_but_a_directory_inside_is_refused(reader, path, code):
    reader.write("file")
    (reader.path / "out").symlink_to("/")

    assert reader.code("list_directory", path=path) == code


def test_protected_files_are_listed_by_name(reader):
    reader.write(".env", "SECRET=1")

    assert reader.call("list_directory", path=".")["items"][0].keys() == {"name", "path", "type", "size", "modified"}
