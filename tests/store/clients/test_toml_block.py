"""Edits of a TOML text: marked blocks are added and removed, all other bytes stay."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.store.clients import toml_block
from kaiza.store.clients.client import ConfigError

SETTINGS = {"sandbox_mode": "read-only"}
TABLE = ("mcp_servers", "kaiza")
ENTRY = {"command": "/bin/kaiza", "args": ["serve", "--workspace", '/w "x"\\'], "env": {"XDG_STATE_HOME": "/s"}}

TOP = [
    "# a comment",
    "",
    'model = "m"',
    "numbers = [\n  1, # one\n  2,\n]",
    "text = '''\n[not.a.table]\n'''",
    "#:schema s",
]
TABLES = ["[tui]\ntheme = 1", "[mcp_servers.other]\ncommand = 'x' # mine", "[[hooks]]\na = 1", "# [mcp_servers.kaiza]"]
EXISTING = ["[mcp_servers.kaiza]\ncommand = 'old'", "[mcp_servers.kaiza]\nargs = []\n[mcp_servers.kaiza.env]\nA = '1'"]


@st.composite
def documents(draw, *, has_entry=False):
    parts = draw(st.lists(st.sampled_from(TOP), unique=True)) + draw(st.lists(st.sampled_from(TABLES), unique=True))
    if has_entry:
        parts.insert(len(parts), draw(st.sampled_from(EXISTING)))
        parts += draw(st.lists(st.sampled_from(["[later]\nz = 1", "# the end"]), unique=True))
    text = "\n".join(parts) + draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def install(text):
    return toml_block.set_table(text, SETTINGS, TABLE, ENTRY)


@given(documents())
def test_set_table_preserves_other_values_and_is_idempotent(text):
    edited = install(text)
    before, after = tomllib.loads(text), tomllib.loads(edited)

    assert after["mcp_servers"].pop("kaiza") == ENTRY
    assert after.pop("sandbox_mode") == "read-only"
    assert after | {"mcp_servers": after["mcp_servers"]} == {"mcp_servers": {}} | before
    assert install(edited) == edited
    assert all(line in edited.splitlines() for line in text.splitlines())


@given(documents())
def test_removing_an_inserted_table_restores_the_text(text):
    restored = toml_block.remove_table(install(text), TABLE)

    assert restored.rstrip("\r\n") == text.rstrip("\r\n")


@given(documents(has_entry=True))
def test_an_existing_table_outside_the_block_is_replaced(text):
    edited = tomllib.loads(install(text))
    before = tomllib.loads(text)

    assert edited["mcp_servers"]["kaiza"] == ENTRY
    assert edited.get("later") == before.get("later")
    assert ("# the end" in install(text)) == ("# the end" in text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_string_is_encoded_so_that_toml_reads_it_back(value):
    edited = toml_block.set_table("", {}, TABLE, {"command": value})

    assert tomllib.loads(edited)["mcp_servers"]["kaiza"] == {"command": value}


def test_an_existing_sandbox_mode_is_not_changed():
    edited = install('sandbox_mode = "workspace-write"\n')

    assert tomllib.loads(edited)["sandbox_mode"] == "workspace-write"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = \n", 2),
        ("a = 1\n[x\n", 2),
        ('mcp_servers = {other = {command = "x"}}\n', None),
        ('mcp_servers = "none"\n', None),
        ("mcp_servers = {kaiza = {}}\n", None),
        ("[mcp_servers]\nkaiza = {command = 'x'}\n", None),
        ("\ufeffa = 1\n", 1),
    ],
)
def test_invalid_or_unsupported_toml_is_refused_with_its_line(text, line):
    with pytest.raises(ConfigError) as error:
        install(text)

    assert error.value.line == line
