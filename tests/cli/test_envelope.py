"""`kaiza envelope check`: what is wrong with a request, and where."""

import json
from pathlib import Path

import pytest

from kaiza.wire import framing

ENVELOPES = Path(__file__).parent.parent / "unit" / "fixtures" / "envelopes"
VALID = {"id": "req-1", "jsonrpc": "2.0", "method": "tools/call", "params": {}}


@pytest.fixture
def check(kaiza, tmp_path):
    """Checks one request, given as bytes or as a JSON value; the exit status and what `--json` prints."""

    def run(request, *options):
        file = tmp_path / "request.json"
        file.write_bytes(request if isinstance(request, bytes) else json.dumps(request).encode())
        result = kaiza("envelope", "check", str(file), "--json", *options)
        return result.status, json.loads(result.out)

    return run


def places(report):
    return {(fault["where"], fault["rule"]) for fault in report["faults"]}


@pytest.mark.parametrize("path", sorted(ENVELOPES.iterdir()), ids=lambda path: path.stem)
def test_a_strict_check_agrees_with_the_name_of_the_fixture(kaiza, path):
    result = kaiza("envelope", "check", str(path), "--strict")

    assert result.status == (0 if path.stem.startswith("valid_") else 1)


def test_every_fault_is_named_with_its_place(check):
    status, report = check({"id": "", "jsonrpc": 2, "params": []})

    assert (status, report["valid"], report["error_code"]) == (1, False, "INVALID_ENVELOPE")
    assert places(report) == {
        ("/id", "minLength"),
        ("/jsonrpc", "const"),
        ("/method", "required"),
        ("/params", "type"),
    }


@pytest.mark.rows("S3-6")
@pytest.mark.parametrize("number", [1, 0, 1.5])
def test_a_number_as_id_is_valid_unless_the_check_is_strict(check, number):
    assert check(VALID | {"id": number}) == (0, {"valid": True, "error_code": None, "faults": []})
    assert places(check(VALID | {"id": number}, "--strict")[1]) == {("/id", "type")}


@pytest.mark.parametrize("other", [True, None, [], {}])
def test_an_id_that_is_neither_text_nor_number_is_refused(check, other):
    assert places(check(VALID | {"id": other})[1]) == {("/id", "type")}


@pytest.mark.rows("S3-7")
def test_a_deterministic_check_requires_a_uuid(check):
    assert places(check(VALID, "--deterministic")[1]) == {("/id", "uuid")}
    assert places(check(VALID | {"id": 7}, "--deterministic")[1]) == {("/id", "uuid")}
    assert check(VALID | {"id": "c1fd1c20-77b7-4f73-b39c-8ed2dd2f2d8c"}, "--deterministic", "--strict")[0] == 0
    assert check(VALID | {"id": "c1fd1c20-77b7-4f73-b39c-8ed2dd2f2d8c0"}, "--deterministic")[0] == 1


@pytest.mark.rows("S3-5")
def test_params_are_always_required(check):
    assert places(check({name: VALID[name] for name in ("id", "jsonrpc", "method")})[1]) == {("/params", "required")}


@pytest.mark.parametrize("content", [b"", b"{", b'{"id":1,"id":2}', b'{"id":NaN}', b"\xff", b"{}\n{}", b"[" * 200])
def test_what_is_not_one_strict_json_value_is_a_parse_error(check, content):
    status, report = check(content)

    assert (status, report["error_code"], places(report)) == (1, "PARSE_ERROR", {("", "json")})


@pytest.mark.parametrize("value", [[VALID], 1, "text", None])
def test_a_batch_or_another_value_is_refused(check, value):
    status, report = check(value)

    assert (status, report["error_code"], places(report)) == (1, "INVALID_ENVELOPE", {("", "type")})


def test_a_request_is_as_long_as_a_line_may_be_and_no_longer(check):
    padding = framing.MAX_LINE - len(json.dumps(VALID | {"pad": ""}))
    longest = json.dumps(VALID | {"pad": "x" * padding}).encode()

    assert check(longest + b"\n")[0] == 0
    assert places(check(longest + b" ")[1]) == {("", "size")}


def test_standard_input_is_read_without_a_file(process):
    result = process("envelope", "check", input=json.dumps(VALID).encode())

    assert (result.returncode, result.stdout) == (0, b"The request is valid.\n")


def test_a_file_that_cannot_be_read_could_not_be_checked(kaiza, tmp_path):
    result = kaiza("envelope", "check", str(tmp_path / "nothing.json"))

    assert (result.status, result.out) == (3, "")
    assert "nothing.json" in result.err


def test_faults_are_shown_as_a_table_that_repeats_nothing_of_the_request(kaiza, tmp_path):
    (tmp_path / "odd.json").write_text(json.dumps(VALID | {"jsonrpc": "\x1b[31m"}))
    result = kaiza("envelope", "check", str(tmp_path / "odd.json"))

    assert result.status == 1
    assert "/jsonrpc" in result.out
    assert "\x1b" not in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_a_wrong_command_line_is_a_usage_error(kaiza):
    assert kaiza("envelope", "check", "a", "b").status == 2
    assert kaiza("envelope").status == 2
