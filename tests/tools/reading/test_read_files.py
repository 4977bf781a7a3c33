import pytest


def test_each_file_is_returned_as_read_file_returns_it(reader):
    reader.write("a", "one\n")
    reader.write("b", b"\xff")

    files = reader.call("read_files", paths=["b", "a"])["files"]

    assert [file["path"] for file in files] == ["b", "a"]
    for file in files:
        alone = reader.call("read_file", path=file["path"])
        assert {**file, "uri": alone["uri"], "summary": alone["summary"]} == alone


def test_a_file_that_cannot_be_read_gets_an_error_and_does_not_stop_the_others(reader):
    reader.write("a", "one\n")
    reader.write(".env", "SECRET=1")

    answer = reader.call("read_files", paths=["../x", "missing", "/etc/passwd", ".env", ".", "\ud800", "", "a"][:6])
    codes = {file["path"]: file["error_code"] for file in answer["files"]}

    assert codes == {
        "../x": "PATH_TRAVERSAL_BLOCKED",
        "missing": "FILE_NOT_FOUND",
        "/etc/passwd": "OUTSIDE_WORKSPACE",
        ".env": "POLICY_VIOLATION",
        ".": "FILE_READ_FAILED",
        "\\ud800": "INVALID_PATH",
    }
    assert all(set(file) == {"path", "error_code", "human_message"} for file in answer["files"])
    assert answer["summary"] == "0 files read, 0 of them truncated, 6 not read; lines counted from 0."


@pytest.mark.parametrize("content", [b"x" * 200_000, b'"\\' * 100_000, b"\x00\xff" * 100_000])
def test_large_files_share_one_answer_and_the_summary_names_those_left_out(reader, content):
    paths = [f"file{number:02d}" for number in range(50)]
    for path in paths:
        reader.write(path, content)

    answer = reader.call("read_files", paths=paths)
    files = answer["files"]

    assert [file["path"] for file in files] == paths[: len(files)]
    assert 10 < len(files) < 20
    assert all(file["truncated"] and file["content"] and file["next"] for file in files)
    assert answer["truncated"]
    assert f"Call again with the last {50 - len(files)} paths." in answer["summary"]


def test_space_that_a_small_file_leaves_is_given_to_the_next(reader):
    reader.write("small", "x\n")
    reader.write("large", "y" * 28_000)

    files = reader.call("read_files", paths=["small", "small", "large"])["files"]

    assert not any(file["truncated"] for file in files)


def test_files_without_space_for_content_still_get_their_hash(reader):
    reader.caps = reader.caps._replace(answer_bytes=1536 + 2 * 300)
    reader.write("a", "x" * 9_000)

    files = reader.call("read_files", paths=["a"] * 2)["files"]

    assert files
    assert all(file["truncated"] and file["hash"] for file in files)


def test_a_deadline_fails_the_call_and_not_one_file(reader):
    reader.write("a", "x")
    reader.is_late = True

    assert reader.code("read_files", paths=["a"]) == "CAP_EXCEEDED"
