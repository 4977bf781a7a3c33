import hashlib
import os

import pytest


def test_a_file_is_described_without_its_content(reader):
    target = reader.write("a", "é\r\n")
    target.chmod(0o640)
    os.utime(target, ns=(0, 1_500_000_000_000_000_000))

    assert reader.call("file_info", path="a") == {
        "path": "a",
        "type": "file",
        "size": 4,
        "hash": hashlib.sha256("é\r\n".encode()).hexdigest(),
        "modified": "2017-07-14T02:40:00.000Z",
        "mode": "0640",
        "line_ending": "crlf",
        "encoding": "utf-8",
        "summary": "file, 4 bytes, mode 0640.",
    }


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"", "utf-8"),
        (b"x" * 262_143 + "é".encode(), "utf-8"),
        (b"x" * 600_000 + b"\xff", "base64"),
        ("é".encode()[:1], "base64"),
    ],
)
def test_the_encoding_is_determined_from_the_whole_file(reader, content, encoding):
    reader.write("a", content)

    assert reader.call("file_info", path="a")["encoding"] == encoding


def test_a_directory_has_neither_size_nor_hash(reader):
    (reader.path / "d").mkdir()

    assert reader.call("file_info", path="d").keys() == {"path", "type", "modified", "mode", "summary"}
    assert reader.call("file_info", path=".")["type"] == "directory"


def test_an_unreadable_file_has_no_hash(reader):
    reader.write("conf/.env", "SECRET=1")
    (reader.path / "alias").symlink_to("conf/.env")

    for path in ("conf/.env", "alias"):
        answer = reader.call("file_info", path=path)
        assert (answer["path"], answer["size"]) == ("conf/.env", 8)
        assert not {"hash", "line_ending", "encoding"} & set(answer)


def test_a_pipe_and_a_huge_file_are_described_at_once(reader):
    os.mkfifo(reader.path / "pipe")
    with reader.write("big").open("wb") as file:
        file.truncate(4 << 30)

    assert reader.call("file_info", path="pipe")["type"] == "other"
    big = reader.call("file_info", path="big")
    assert (big["size"], "hash" in big) == (4 << 30, False)


def test_a_missing_path_is_not_found(reader):
    assert reader.code("file_info", path="missing") == "FILE_NOT_FOUND"
