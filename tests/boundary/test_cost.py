"""Size of the tool list and instructions that an agent receives."""

import orjson
import pytest

from kaiza.domain.server_instructions import INSTRUCTIONS
from kaiza.domain.tool_card import ToolCard, ToolOffer
from kaiza.store.config.schema_registry import SchemaRegistry, list_items

KIB = 1024


@pytest.mark.parametrize(("role", "model_kib", "list_kib"), [("WINDSURF", 17, 45), ("ANTIGRAVITY", 11, 33)])
def test_the_list_of_tools_stays_within_its_size_budget(role, model_kib, list_kib):
    tools = list_items(SchemaRegistry(), ToolOffer(bound_role=role))
    model = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]

    assert len(orjson.dumps(model)) < model_kib * KIB
    assert len(orjson.dumps(tools)) < list_kib * KIB


def test_the_server_instructions_are_shorter_than_2_kib():
    assert len(INSTRUCTIONS.encode()) < 2 * KIB


def test_every_tool_that_needs_a_session_names_begin_session():
    cards = list(map(ToolCard.from_row, SchemaRegistry().catalog()))

    assert {card.name for card in cards if "begin_session" in card.description} == {
        card.name for card in cards if card.needs_session
    }


WORDS = {
    "read file": "read_file",
    "write file": "write_file",
    "edit file": "edit_file",
    "search code": "search_text",
    "grep": "search_text",
    "find file": "find_files",
    "list directory": "list_directory",
    "delete file": "delete_file",
    "rename file": "move_file",
    "undo change": "undo_changes",
    "revert change": "undo_changes",
    "run test": "run_checks",
}


@pytest.mark.parametrize(("query", "tool"), WORDS.items())
def test_a_tool_is_found_by_the_words_that_people_search_for(query, tool):
    row = next(row for row in SchemaRegistry().catalog() if row["id"] == tool)
    opening = INSTRUCTIONS.partition("\n\n")[0].lower()
    words = query.split()

    assert all(word in f"{row['title']} {row['description']}".lower() for word in words)
    assert all(word in opening for word in ("read", "search", "list", "write", "edit", "move", "delete", "undo"))
    assert "begin_session" in opening


def test_tools_that_read_at_length_say_how_much_a_client_may_hand_on():
    tools = list_items(SchemaRegistry(), ToolOffer())
    long = {tool["name"] for tool in tools if tool.get("_meta") == {"anthropic/maxResultSizeChars": 500_000}}

    assert {"read_file", "read_files", "search_text", "find_files", "list_directory", "read_plan"} <= long
    assert not {"begin_session", "write_file", "apply_patch"} & long
