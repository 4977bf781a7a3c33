"""`kaiza errors`, `tools`, `caps` and `schema`: the contract, from the running code."""

import json
import re

import pytest

from kaiza import boundary
from kaiza.domain import error_codes
from kaiza.domain.caps import Caps
from kaiza.store.config.schema_registry import SchemaRegistry

COLUMNS = ["error_code", "meaning", "http", "rpc", "editor_code", "error_type", "v0", "retryable", "locks", "by_cap"]


@pytest.mark.rows("S1-107")
def test_every_code_is_listed_with_all_its_columns(kaiza):
    result = json.loads(kaiza("errors", "--json").out)

    assert list(result) == ["contract_version", "errors"]
    assert result["contract_version"] == "1.0.0"
    assert [row["error_code"] for row in result["errors"]] == list(error_codes.SYSTEM_ERROR_CODES)
    assert all(list(row) == COLUMNS for row in result["errors"])
    assert kaiza("errors").out.count("\n") == len(error_codes.SYSTEM_ERROR_CODES) + 2
    assert "CAP_EXCEEDED (timeout)" in kaiza("errors").out


@pytest.mark.rows("S3-26", "S3-27")
def test_one_code_is_shown_and_an_unknown_one_is_a_key_error(kaiza):
    known, unknown = kaiza("errors", "map", "HASH_MISMATCH", "--json"), kaiza("errors", "map", "NOT_REAL")

    assert json.loads(known.out)["http"] == 409
    assert kaiza("errors", "map", "HASH_MISMATCH").status == 0
    assert (unknown.status, unknown.out) == (1, "")
    assert "KeyError" in unknown.err


@pytest.mark.rows("S1-72")
def test_every_tool_is_listed_and_wrapped(kaiza):
    rows = json.loads(kaiza("tools", "--json").out)["tools"]

    assert [row["name"] for row in rows] == [row["id"] for row in SchemaRegistry().catalog()]
    assert all(row["wrapped"] is True for row in rows)
    assert {"name", "title", "category", "tier", "roles", "listed", "aliases"} <= rows[0].keys()
    assert {row["tier"] for row in rows if row["safety_level"] == "read"} == {"core"}
    assert {row["tier"] for row in rows if row["safety_level"] != "read"} == {"governed"}
    assert "read_file" in kaiza("tools").out


@pytest.mark.rows("S1-72")
def test_a_tool_served_without_the_boundary_is_listed_as_not_wrapped(kaiza, monkeypatch):
    really = boundary.wrap_handler

    def forgets_one(tool, card, schemas, house):
        return tool.run if card.name == "write_file" else really(tool, card, schemas, house)

    monkeypatch.setattr(boundary, "wrap_handler", forgets_one)
    rows = json.loads(kaiza("tools", "--json").out)["tools"]

    assert [row["name"] for row in rows if row["wrapped"] is not True] == ["write_file"]


@pytest.mark.rows("S4-52")
def test_every_cap_is_listed(kaiza):
    assert json.loads(kaiza("caps", "--json").out) == Caps().as_json()
    assert re.search(r"^tool_timeout_ms +30,000$", kaiza("caps").out, re.MULTILINE)


@pytest.mark.rows(
    "S2-3",
    "S2-4",
    "S2-9",
    "S2-10",
    "S2-11",
    "S2-12",
    "S2-14",
    "S2-17",
    "S2-18",
    "S2-19",
    "S2-20",
    "S2-21",
    "S2-22",
    "S2-31",
    "S2-32",
    "S2-38",
    "S2-39",
    "S2-37",
)
def test_the_projects_own_schemas_have_no_findings(kaiza):
    result = kaiza("schema", "lint", "--json")

    assert json.loads(result.out) == {"findings": []}
    assert result.status == 0
    assert kaiza("schema", "lint").status == 0


@pytest.fixture
def contract(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "catalog.json").write_text('{"tools":[]}')
    monkeypatch.setattr("kaiza.store.config.schema_registry.find_directory", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "rule"),
    [("{", "json"), ('{"type":"nothing"}', "json-schema"), ("{}", "dialect"), ("[]", "root-object")],
)
def test_an_invalid_schema_file_is_a_failure_with_file_and_rule(kaiza, contract, content, rule):
    (contract / "tools" / "odd.json").write_text(content)
    result = kaiza("schema", "lint", "--json")

    assert result.status == 1
    assert ("odd.json", rule) in {(one["file"], one["rule"]) for one in json.loads(result.out)["findings"]}
    assert rule in kaiza("schema", "lint").out


def test_fingerprints_of_one_tool_and_of_all_tools_agree(kaiza):
    result = kaiza("schema", "fingerprint", "read_file")

    assert re.fullmatch(r"[0-9a-f]{64}\n", result.out)
    assert f"{result.out.strip()}  read_file" in kaiza("schema", "fingerprint").out
    every = json.loads(kaiza("schema", "fingerprint", "--json").out)["fingerprints"]
    assert {"tool": "read_file", "fingerprint": result.out.strip()} in every
    assert kaiza("schema", "fingerprint", "no_such_tool").status == 1
