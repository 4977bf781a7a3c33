"""What it costs an agent to be told about Kaiza."""

import orjson
import pytest

from kaiza.domain.server_instructions import INSTRUCTIONS
from kaiza.store.config.schema_registry import SchemaRegistry, list_items

KIB = 1024


@pytest.mark.parametrize(("role", "handed", "whole"), [("WINDSURF", 16, 40), ("ANTIGRAVITY", 10, 28)])
def test_the_list_of_tools_stays_within_its_size_budget(role, handed, whole):
    tools = list_items(SchemaRegistry(), role)
    model = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]

    assert len(orjson.dumps(model)) < handed * KIB
    assert len(orjson.dumps(tools)) < whole * KIB


def test_the_server_instructions_are_shorter_than_2_kib():
    assert len(INSTRUCTIONS.encode()) < 2 * KIB
