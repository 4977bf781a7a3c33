"""Size of the tool list and instructions that an agent receives."""

import orjson
import pytest

from kaiza.domain.server_instructions import INSTRUCTIONS
from kaiza.domain.tool_card import ToolOffer
from kaiza.store.config.schema_registry import SchemaRegistry, list_items

KIB = 1024


@pytest.mark.parametrize(("role", "model_kib", "list_kib"), [("WINDSURF", 16, 40), ("ANTIGRAVITY", 10, 28)])
def test_the_list_of_tools_stays_within_its_size_budget(role, model_kib, list_kib):
    tools = list_items(SchemaRegistry(), ToolOffer(bound_role=role))
    model = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]

    assert len(orjson.dumps(model)) < model_kib * KIB
    assert len(orjson.dumps(tools)) < list_kib * KIB


def test_the_server_instructions_are_shorter_than_2_kib():
    assert len(INSTRUCTIONS.encode()) < 2 * KIB
