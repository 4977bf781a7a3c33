import base64
import hashlib
import os
import resource
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def raw(output):
    content = output["content"]
    return base64.b64decode(content) if output["encoding"] == "base64" else content.encode()


def read_on(reader, path, **first):
    """The whole file, as an agent puts it together by following what the answers say."""
    line, offset, parts = first.get("start_line", 0), 0, []
    while True:
        answer = reader.call("read_file", path=path, start_line=line, byte_offset=offset)
        part = raw(answer)
        parts.append(part)
        if not answer["truncated"]:
            return b"".join(parts)
        assert part
        if part.endswith(b"\n"):
            line, offset = answer["start_line"] + answer["line_count"], 0
        else:
            offset += len(part)


def test_a_file_is_read_whole_with_its_hash_and_lines(reader):
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
        "summary": "Lines 0 to 2 of 3.",
    }


def test_a_window_has_the_hash_of_the_whole(reader):
    reader.write("a", "0\n1\n2\n3\n")

    answer = reader.call("read_file", path="a", start_line=1, max_lines=2)

    assert answer["content"] == "1\n2\n"
    assert (answer["start_line"], answer["line_count"], answer["total_lines"]) == (1, 2, 4)
    assert answer["truncated"]
    assert answer["hash"] == hashlib.sha256(b"0\n1\n2\n3\n").hexdigest()
    assert answer["summary"] == "Lines 1 to 2 of 4. Call again with start_line 3 to read the rest."


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


def test_a_return_at_the_edge_of_a_chunk_still_counts(plain_reader):
    plain_reader.write("a", b"x" * (256 * 1024 - 1) + b"\r\n" + b"y\r\n")

    assert plain_reader.call("read_file", path="a", start_line=1)["line_ending"] == "crlf"


def test_a_start_after_the_end_is_an_empty_window(reader):
    reader.write("a", "0\n1\n")

    answer = reader.call("read_file", path="a", start_line=7)

    assert (answer["content"], answer["start_line"], answer["line_count"]) == ("", 7, 0)
    assert not answer["truncated"]
    assert answer["summary"] == "No lines at or after line 7 of 2."


def test_bytes_that_are_not_utf8_come_as_base64_and_only_that_window_does(reader):
    reader.write("a", b"plain\n\xff\xfe\n")

    whole = reader.call("read_file", path="a")
    first = reader.call("read_file", path="a", max_lines=1)

    assert (whole["encoding"], raw(whole)) == ("base64", b"plain\n\xff\xfe\n")
    assert (first["encoding"], first["content"]) == ("utf-8", "plain\n")


def test_half_a_character_at_the_end_of_a_file_is_not_text(reader):
    reader.write("a", "é".encode()[:1])

    assert reader.call("read_file", path="a")["encoding"] == "base64"


def test_nothing_is_translated(reader):
    content = "\ufeffa\r\n\tb \u2028é\U0001f600\x00\x7f".encode()
    reader.write("a", content)

    assert raw(reader.call("read_file", path="a")) == content


def test_a_long_line_is_windowed_by_bytes(plain_reader):
    content = ("ä" * 5_000_000).encode() + b"\nend\n"
    plain_reader.write("a", content)

    first = plain_reader.call("read_file", path="a")
    offset = len(raw(first))
    second = plain_reader.call("read_file", path="a", byte_offset=offset, max_lines=1)

    assert first["truncated"]
    assert (first["encoding"], first["line_count"], first["total_lines"]) == ("utf-8", 1, 2)
    assert first["summary"].endswith(f"The last line is cut: call again with {offset} added to byte_offset to read the rest.")
    assert raw(second) == content[offset : offset + len(raw(second))]


def test_an_offset_into_the_next_line_says_which_line_it_is(reader):
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
def test_a_large_file_is_read_to_its_end_in_answers_that_fit(plain_reader, content):
    plain_reader.write("a", content)

    assert read_on(plain_reader, "a") == content


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.text(st.sampled_from('ab\n\r"é\U0001f600\x01')).map(str.encode), st.binary(), st.text().map(str.encode)
    )
)
def test_any_file_is_read_to_its_end_however_small_the_answers_are(plain_reader, content):
    plain_reader.caps = plain_reader.caps._replace(response_bytes=4096 + 1024 + 700)
    plain_reader.write("a", content)

    assert read_on(plain_reader, "a") == content


def test_at_most_5000_lines_come_at_once(plain_reader):
    plain_reader.write("a", "x\n" * 6000)

    answer = plain_reader.call("read_file", path="a")

    assert (answer["line_count"], answer["truncated"]) == (5000, True)


def test_a_window_ends_where_a_line_does_if_one_fits(plain_reader):
    plain_reader.write("a", ("y" * 997 + "\n") * 1000)

    answer = plain_reader.call("read_file", path="a")

    assert answer["content"].endswith("y\n")
    assert answer["summary"].endswith(f"Call again with start_line {answer['line_count']} to read the rest.")


def test_a_line_beyond_64_mib_is_found(plain_reader):
    with plain_reader.write("a", "\n").open("r+b") as file:
        file.seek(70 << 20)
        file.write(b"\ntail")

    answer = plain_reader.call("read_file", path="a", start_line=2)

    assert (answer["content"], answer["truncated"]) == ("tail", False)


def test_a_large_file_has_the_hash_of_all_of_it(plain_reader):
    content = b"a line like any other\n" * 500_000
    plain_reader.write("a", content)

    assert plain_reader.call("read_file", path="a")["hash"] == hashlib.sha256(content).hexdigest()


def test_a_sparse_file_of_4_gib_is_answered_at_once_without_hash(plain_reader):
    with plain_reader.write("big").open("wb") as file:
        file.truncate(4 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()

    answer = plain_reader.call("read_file", path="big")

    assert time.monotonic() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    assert answer["truncated"]
    assert answer["size"] == 4 << 30
    assert not {"hash", "total_lines", "line_ending"} & set(answer)


def test_the_hash_stops_at_64_mib(plain_reader):
    for name, size in (("at", 64 << 20), ("above", (64 << 20) + 1)):
        with plain_reader.write(name).open("wb") as file:
            file.truncate(size)

    assert "hash" in plain_reader.call("read_file", path="at", max_lines=1)
    assert "hash" not in plain_reader.call("read_file", path="above", max_lines=1)


def test_what_is_no_plain_file_is_refused_at_once(reader):
    os.mkfifo(reader.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        where = os.open(reader.root, os.O_PATH)
        server.bind(f"/proc/self/fd/{where}/sock")
        os.close(where)
        began = time.monotonic()

        codes = [reader.code("read_file", path=path) for path in ("pipe", "sock", ".")]

        assert codes == ["FILE_READ_FAILED"] * 3
        assert time.monotonic() - began < 1


def test_a_link_to_a_device_is_outside(reader):
    (reader.root / "zero").symlink_to("/dev/zero")

    assert reader.code("read_file", path="zero") == "OUTSIDE_WORKSPACE"


def test_a_link_inside_is_followed_and_the_real_path_told(reader):
    reader.write("real/a", "x")
    (reader.root / "alias").symlink_to("real")

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
def test_a_path_that_may_not_be_read_is_refused_by_its_code(reader, path, code):
    reader.write(".env", "SECRET=1")

    assert reader.code("read_file", path=path) == code


@pytest.mark.parametrize("name", ["a\nb", "\u202eevil", "späce \t", "100%#?", "-rf"])
def test_odd_names_are_read_and_named_as_they_are(reader, name):
    reader.write(name, "x")

    answer = reader.call("read_file", path=name)

    assert (answer["path"], answer["content"]) == (name, "x")
    assert reader.call("read_location", uri=answer["uri"], position={"line": 0, "character": 0})["path"] == name


def test_a_call_whose_time_is_up_stops(reader):
    reader.write("a", "x")
    reader.late = True

    assert reader.code("read_file", path="a") == "CAP_EXCEEDED"
