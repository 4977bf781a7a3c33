"""Editing a TOML text: one marked block comes and goes, every other byte stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.store.clients import toml_block
from kaiza.store.clients.errors import ConfigError

FIRST = {"sandbox_mode": "read-only"}
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
OLD = ["[mcp_servers.kaiza]\ncommand = 'old'", "[mcp_servers.kaiza]\nargs = []\n[mcp_servers.kaiza.env]\nA = '1'"]


@st.composite
def documents(draw, *, old=False):
    parts = draw(st.lists(st.sampled_from(TOP), unique=True)) + draw(st.lists(st.sampled_from(TABLES), unique=True))
    if old:
        parts.insert(len(parts), draw(st.sampled_from(OLD)))
        parts += draw(st.lists(st.sampled_from(["[later]\nz = 1", "# the end"]), unique=True))
    text = "\n".join(parts) + draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def put(text):
    return toml_block.set_table(text, FIRST, TABLE, ENTRY)


@given(documents())
def test_set_table_preserves_other_values_and_is_idempotent(text):
    done = put(text)
    before, after = tomllib.loads(text), tomllib.loads(done)

    assert after["mcp_servers"].pop("kaiza") == ENTRY
    assert after.pop("sandbox_mode") == "read-only"
    assert after | {"mcp_servers": after["mcp_servers"]} == {"mcp_servers": {}} | before
    assert put(done) == done
    assert all(line in done.splitlines() for line in text.splitlines())


@given(documents())
def test_removing_an_inserted_table_restores_the_text(text):
    back = toml_block.remove_table(put(text), TABLE)

    assert back.rstrip("\r\n") == text.rstrip("\r\n")


@given(documents(old=True))
def test_an_existing_table_outside_the_block_is_replaced(text):
    done = tomllib.loads(put(text))
    before = tomllib.loads(text)

    assert done["mcp_servers"]["kaiza"] == ENTRY
    assert done.get("later") == before.get("later")
    assert ("# the end" in put(text)) == ("# the end" in text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_string_is_encoded_so_that_toml_reads_it_back(word):
    done = toml_block.set_table("", {}, TABLE, {"command": word})

    assert tomllib.loads(done)["mcp_servers"]["kaiza"] == {"command": word}


def test_an_existing_sandbox_mode_is_not_changed():
    done = put('sandbox_mode = "workspace-write"\n')

    assert tomllib.loads(done)["sandbox_mode"] == "workspace-write"


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
    with pytest.raises(ConfigError) as refused:
        put(text)

    assert refused.value.line == line
