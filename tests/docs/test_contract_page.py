"""docs/CONTRACT.md matches the code, and the four reference pages state their order of precedence."""

import json
import re
from pathlib import Path

import contract_page
import pytest

from kaiza.domain import error_codes, error_envelope
from kaiza.domain.caps import Caps
from kaiza.store.config.schema_registry import SchemaRegistry

DOCS = Path(__file__).parent.parent.parent / "docs"
ORDER = ["PROTOCOL.md", "SECURITY.md", "CONTRACT.md", "SCHEMA.md"]


@pytest.mark.rows("S2-40")
def test_contract_page_matches_the_code():
    assert contract_page.PAGE.read_text() == contract_page.page(), "run `python tests/contract_page.py`"


def test_contract_page_names_every_tool_code_cap_and_argument():
    text = contract_page.PAGE.read_text()
    registry = SchemaRegistry()
    tools = [row["id"] for row in registry.catalog()]
    arguments = {name for tool in tools for name in registry.load_tool_schemas(tool).input["properties"]}

    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == tools
    assert all(f"| `{name}` |" in text for name in [*error_codes.SYSTEM_ERROR_CODES, *Caps().as_json()])
    assert all(f"`{name}`" in text or f"`{name}?`" in text for name in arguments)


@pytest.mark.rows("S2-1")
@pytest.mark.parametrize("name", ORDER)
def test_reference_pages_state_their_order_of_precedence(name):
    introduction = (DOCS / name).read_text().split("\n## ")[0]

    assert "where two disagree, the earlier one applies" in introduction
    assert re.findall(r"\[(\w+\.md)\]\(\1\)", introduction) == ORDER


CONTENTS = {
    "PROTOCOL.md": ["Transport and revisions", "Sessions", "Results", "The order of judgement", "Time limits"],
    "SECURITY.md": ["Threat model", "What is protected", "What is not protected"],
    "CONTRACT.md": ["Tools", "Determinism", "Error codes", "Caps", "Commands"],
    "SCHEMA.md": ["Conventions", "Files", "Changing a schema"],
}


@pytest.mark.rows("S2-45", "S2-1", "S2-2")
@pytest.mark.parametrize("name", ORDER)
def test_each_reference_page_has_the_sections_of_its_subject(name):
    sections = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n?)+)", (DOCS / name).read_text(), re.MULTILINE))
    others = {section for page, found in CONTENTS.items() if page != name for section in found}

    assert set(CONTENTS[name]) <= sections.keys()
    assert not others & sections.keys() - {"The order of judgement"}
    assert all(len(sections[section].split()) >= 20 for section in CONTENTS[name])


@pytest.mark.rows("S2-46", "S2-44")
def test_schema_page_says_how_a_change_is_made_reviewed_and_validated():
    page = (DOCS / "SCHEMA.md").read_text()
    section = page.partition("\n## Changing a schema\n")[2]
    tests = re.search(r"pytest (\S+?)`", section)[1]

    assert all(word in page for word in ("`uri`", "`position`", "INVALID_PARAMS", "CAP_EXCEEDED", "structuredContent"))
    assert all(word in section for word in ("kaiza schema lint", "contract_page.py", "kaiza schema fingerprint"))
    assert len(re.findall(r"^def test_", (DOCS.parent / tests).read_text(), re.MULTILINE)) >= 3
    assert "A change that no test can check is not merged." in section


@pytest.mark.rows("S2-2")
def test_schema_page_does_not_specify_behaviour_paging_or_security():
    words = set(re.findall(r"[a-z]+", (DOCS / "SCHEMA.md").read_text().lower()))

    assert not words & {"cursor", "nextcursor", "retry", "lock", "locks", "approved", "workspace", "secret", "role"}


def test_failure_example_in_protocol_page_has_the_envelope_keys():
    (block,) = re.findall(r"^```json\n(.*?)^```$", (DOCS / "PROTOCOL.md").read_text(), re.MULTILINE | re.DOTALL)

    assert list(json.loads(block)) == list(error_envelope.KEYS)
    assert json.loads(block)["error_code"] in error_codes.SYSTEM_ERROR_CODES
