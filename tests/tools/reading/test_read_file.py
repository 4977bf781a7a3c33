import base64
import hashlib
import os
import resource
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def raw(output):
    content = output["content"]
    return base64.b64decode(content) if output["encoding"] == "base64" else content.encode()


def read_on(reader, path, **first):
    """Read the whole file by following the answers, as an agent does."""
    line, offset, parts = first.get("start_line", 0), 0, []
    while True:
        answer = reader.call("read_file", path=path, start_line=line, byte_offset=offset)
        part = raw(answer)
        parts.append(part)
        if not answer["truncated"]:
            return b"".join(parts)
        assert part
        line, offset = answer["next"]["start_line"], answer["next"].get("byte_offset", 0)


def test_a_small_file_is_read_whole_with_its_hash_and_line_counts(reader):
    reader.write("src/app.py", "one\ntwo\nthree")

    answer = reader.call("read_file", path="src/app.py")

    assert answer == {
        "path": "src/app.py",
        "uri": f"file://{reader.root}/src/app.py",
        "hash": hashlib.sha256(b"one\ntwo\nthree").hexdigest(),
        "size": 13,
        "encoding": "utf-8",
        "content": "one\ntwo\nthree",
        "start_line": 0,
        "line_count": 3,
        "total_lines": 3,
        "line_ending": "lf",
        "truncated": False,
        "summary": "Lines 0\u20132 of 3, counted from 0.",
    }


def test_a_window_of_lines_has_the_hash_of_the_whole_file(reader):
    reader.write("a", "0\n1\n2\n3\n")

    answer = reader.call("read_file", path="a", start_line=1, max_lines=2)

    assert answer["content"] == "1\n2\n"
    assert (answer["start_line"], answer["line_count"], answer["total_lines"]) == (1, 2, 4)
    assert (answer["truncated"], answer["next"]) == (True, {"start_line": 3})
    assert answer["hash"] == hashlib.sha256(b"0\n1\n2\n3\n").hexdigest()
    assert answer["summary"] == "Lines 1\u20132 of 4, counted from 0. Call again with start_line 3 to read on."


@pytest.mark.parametrize(
    ("content", "ending", "total"),
    [
        (b"", "none", 0),
        (b"a", "none", 1),
        (b"a\rb\r", "none", 1),
        (b"\n", "lf", 1),
        (b"a\nb", "lf", 2),
        (b"a\r\nb\r\n", "crlf", 2),
        (b"a\r\nb\n", "mixed", 2),
        (b"a\x0bb\x85c\xe2\x80\xa8d\n", "lf", 1),
    ],
)
def test_lines_end_at_lf_and_an_empty_file_has_none(reader, content, ending, total):
    reader.write("a", content)

    answer = reader.call("read_file", path="a")

    assert (answer["line_ending"], answer["total_lines"], answer["line_count"]) == (ending, total, total)
    assert raw(answer) == content


def test_a_crlf_split_between_two_chunks_is_recognized(reader):
    reader.write("a", b"x" * (256 * 1024 - 1) + b"\r\n" + b"y\r\n")

    assert reader.call("read_file", path="a", start_line=1)["line_ending"] == "crlf"


def test_a_start_line_after_the_end_returns_no_lines(reader):
    reader.write("a", "0\n1\n")

    answer = reader.call("read_file", path="a", start_line=7)

    assert (answer["content"], answer["start_line"], answer["line_count"]) == ("", 7, 0)
    assert not answer["truncated"]
    assert answer["summary"] == "No lines at or after line 7 of 2, counted from 0."


def test_a_window_with_bytes_that_are_not_utf8_is_returned_as_base64(reader):
    reader.write("a", b"plain\n\xff\xfe\n")

    whole = reader.call("read_file", path="a")
    first = reader.call("read_file", path="a", max_lines=1)

    assert (whole["encoding"], raw(whole)) == ("base64", b"plain\n\xff\xfe\n")
    assert (first["encoding"], first["content"]) == ("utf-8", "plain\n")


def test_a_long_line_is_read_on_by_byte_offset(reader):
    content = ("ä" * 5_000_000).encode() + b"\nend\n"
    reader.write("a", content)

    first = reader.call("read_file", path="a", with_hash=True)
    offset = len(raw(first))
    second = reader.call("read_file", path="a", byte_offset=offset, max_lines=1)

    assert first["truncated"]
    assert (first["encoding"], first["line_count"], first["total_lines"]) == ("utf-8", 1, 2)
    assert first["next"] == {"start_line": 0, "byte_offset": offset}
    assert first["summary"].endswith(
        f"The last line is cut: call again with start_line 0 and byte_offset {offset} to read on."
    )
    assert raw(second) == content[offset : offset + len(raw(second))]


def test_a_byte_offset_past_a_line_end_moves_start_line(reader):
    reader.write("a", "one\ntwo\nthree\n")

    answer = reader.call("read_file", path="a", start_line=1, byte_offset=5)

    assert (answer["content"], answer["start_line"]) == ("hree\n", 2)


@pytest.mark.parametrize(
    "content",
    [
        b'"quoted" \\ text\n' * 40_000,
        b"\x01\x02\x03" * 300_000,
        ("é\U0001f600" * 200_000).encode(),
        b"\xff\x00" * 400_000,
        b"a" * 3_000_000,
        b"\n" * 600_000,
        b"short\n" + b"\t" * 700_000 + b"\nshort\n",
    ],
    ids=["quotes", "controls", "wide", "binary", "one line", "empty lines", "mixed"],
)
def test_a_large_file_is_read_to_its_end_by_following_the_summaries(reader, content):
    reader.write("a", content)

    assert read_on(reader, "a") == content


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.text(st.sampled_from('ab\n\r"é\U0001f600\x01')).map(str.encode), st.binary(), st.text().map(str.encode)
    )
)
def test_any_file_is_read_to_its_end_with_the_smallest_responses(reader, content):
    reader.caps = reader.caps._replace(answer_bytes=1536 + 700)
    reader.write("a", content)

    assert read_on(reader, "a") == content


@pytest.mark.parametrize(("asked", "lines"), [({}, 500), ({"max_lines": 5000}, 5000)])
def test_500_lines_are_returned_and_up_to_5000_if_asked_for(reader, asked, lines):
    reader.write("a", "x\n" * 6000)

    answer = reader.call("read_file", path="a", **asked)

    assert (answer["line_count"], answer["truncated"]) == (lines, True)


def test_fewer_lines_are_returned_where_500_are_too_large_for_an_answer(reader):
    reader.write("a", ("y" * 99 + "\n") * 600)

    answer = reader.call("read_file", path="a")
    asked = reader.call("read_file", path="a", max_lines=500)

    assert 300 < answer["line_count"] < 328
    assert answer["next"] == {"start_line": answer["line_count"]}
    assert (asked["line_count"], asked["content"][:1000]) == (500, answer["content"][:1000])


def count_read_bytes():
    """The bytes that this process has read so far."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


def test_a_sparse_file_of_4_gib_is_read_only_in_part_and_without_a_hash(reader):
    with reader.write("big").open("wb") as file:
        file.truncate(4 << 30)
    before, read_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, count_read_bytes()

    answer = reader.call("read_file", path="big")

    assert count_read_bytes() - read_before < 16 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    assert answer["truncated"]
    assert answer["size"] == 4 << 30
    assert not {"hash", "total_lines", "line_ending"} & set(answer)


MEMBERS_OF_WHOLE_FILES = {"hash", "total_lines", "line_ending"}


@pytest.mark.parametrize("tool", ["read_file", "file_info"])
def test_a_file_above_4_mib_is_hashed_only_if_asked_for(reader, tool):
    for name, size in (("at", 4 << 20), ("above", (4 << 20) + 1), ("huge", 65 << 20)):
        with reader.write(name).open("wb") as file:
            file.truncate(size)
    expected = MEMBERS_OF_WHOLE_FILES & set(reader.call(tool, path="at"))
    digest = hashlib.sha256(bytes(65 << 20)).hexdigest()

    assert "hash" in expected
    for name in ("above", "huge"):
        without = reader.call(tool, path=name)
        assert not MEMBERS_OF_WHOLE_FILES & set(without)
        assert without["summary"].endswith("with_hash: true.")
        assert expected <= set(reader.call(tool, path=name, with_hash=True))
    assert reader.call(tool, path="huge", with_hash=True)["hash"] == digest


PIECES = [b"\r\n", "é".encode(), "\U0001f600".encode(), b"\xff\xfe", b"\n", b"\0\n"]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("before", range(4))
def test_windows_far_into_a_large_file_are_exactly_its_lines(reader, piece, before):
    block = 64 * 1024
    lead = b"short\r\n" + b"x" * (block - 7 - before) + piece + b"\n" + b"line\n" * 3
    content = lead + "wide \U0001f600\n".encode() * 9_000 + b"y" * (2 * block - before) + piece + b"\nlast"
    reader.write("a", content)
    starts = [0, *(at + 1 for at, byte in enumerate(content) if byte == ord("\n"))]
    total = len(starts)
    reader.caps = reader.caps._replace(summarized_bytes=block)
    for line in (0, 1, 2, 3, 5, 8_000, total - 2, total - 1):
        for skip in (0, block - 9, block - 8, 2 * block):
            answer = reader.call("read_file", path="a", start_line=line, byte_offset=skip, max_lines=3)
            offset = min(starts[line] + skip, len(content))
            end = offset + len(raw(answer))

            assert raw(answer) == content[offset:end]
            assert answer["start_line"] == content.count(b"\n", 0, offset)
            assert answer["truncated"] == (end < len(content))
            assert end in {*starts[1:], len(content)} or answer["next"] == {
                "start_line": line,
                "byte_offset": skip + len(raw(answer)),
            }
            assert (answer["encoding"] == "utf-8") == is_text(content[offset:end])
            assert not MEMBERS_OF_WHOLE_FILES & set(answer)
    assert read_on(reader, "a") == content


def is_text(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_file_that_grows_while_it_is_read_gives_the_window_that_was_asked_for(reader):
    path = reader.write("a", b"line\n" * 1_000)
    reader.caps = reader.caps._replace(summarized_bytes=6_000)
    open_file = reader.open_file

    def open_growing(name):
        file = open_file(name)
        with path.open("ab") as other:
            other.write(b"more\n" * 1_000)
        return file

    reader.open_file = open_growing
    output = reader.call("read_file", path="a", start_line=1_500, max_lines=2)

    assert (output["content"], output["start_line"]) == ("more\nmore\n", 1_500)
    assert "hash" not in output


@pytest.mark.usefixtures("alarm")
def test_devices_and_directories_are_refused_without_waiting(reader):
    os.mkfifo(reader.path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        directory = os.open(reader.path, os.O_PATH)
        server.bind(f"/proc/self/fd/{directory}/sock")
        os.close(directory)

        codes = [reader.code("read_file", path=path) for path in ("pipe", "sock", ".")]

        assert codes == ["FILE_READ_FAILED"] * 3


def test_a_link_inside_the_root_is_followed_and_its_real_path_reported(reader):
    reader.write("real/a", "x")
    (reader.path / "alias").symlink_to("real")

    answer = reader.call("read_file", path="alias/a")

    assert answer["path"] == "real/a"
    assert answer["uri"].endswith("/project/real/a")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing", "FILE_NOT_FOUND"),
        ("../a", "PATH_TRAVERSAL_BLOCKED"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("a\0b", "INVALID_PATH"),
        ("x" * 5000, "INVALID_PATH"),
        (".env", "POLICY_VIOLATION"),
    ],
)
def test_an_unreadable_path_is_refused_with_its_code(reader, path, code):
    reader.write(".env", "SECRET=1")

    assert reader.code("read_file", path=path) == code


@pytest.mark.parametrize("name", ["a\nb", "\u202eevil", "späce \t", "100%#?", "-rf"])
def test_unusual_file_names_are_read_and_returned_unchanged(reader, name):
    reader.write(name, "x")

    answer = reader.call("read_file", path=name)

    assert (answer["path"], answer["content"]) == (name, "x")
    assert reader.call("read_location", uri=answer["uri"], position={"line": 0, "character": 0})["path"] == name


def test_a_call_past_its_deadline_fails(reader):
    reader.write("a", "x")
    reader.is_late = True

    assert reader.code("read_file", path="a") == "CAP_EXCEEDED"
