"""Names that are not UTF-8, or hold control characters: no command fails or prints them raw."""

import json
import os
import re
import subprocess

import pytest
from hostile_texts import file_names
from review_scenes import Scene

BYTES = [
    b"caf\xe9",
    b"\xff",
    b"a\xffb\x7f",
    b"\x1b[31m",
    b"\xe2\x80\xae.py",
    b"new\nline",
    b"\x7f",
    b"\xed\xa0\x80",
    b"\xc2\x9b1m",
]
ODD = "\udcff"
ASCII_ONLY = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
REVIEWS = [["review", form] for form in ("--json", "--sarif", "--markdown", "--output=page.html")]
READING = """
diff | diff --json | diff --stat | diff --name-only | diff src/@ | diff --session @ | diff --plan @ | diff --request @
attest --plan @ | attest --plan PLAN-0007 | status | status --json | status --workspace @ | session list
session list --json | session show @ | audit show | audit show --json | audit tail | audit verify
audit verify --head @
undo | undo --json | undo --last --dry-run | undo --request @ | undo --session @ | plan list | plan list --json
plan show PLAN-0007 | plan show PLAN-0007 --json | plan show PLAN-@ | plan lint | plan lint plans/PLAN-@.md --json
plan approve @ | plan revoke @ | trust | gc --dry-run | context inspect @ | envelope check @ | schema lint @ | errors @
call read_file path=@ | call @ | doctor @ | init @ | token revoke @
"""
"""Commands; @ stands for a byte that is not UTF-8."""


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A session in a workspace of hostile names: of the agent's files, of others' files, of links and of plans."""
    monkeypatch.setenv("HOME", str(tmp_path))
    scene = Scene(tmp_path / "shop")
    monkeypatch.chdir(scene.root)
    (scene.root / "src").mkdir()
    for name in BYTES:
        for kind in ("mod", "del", "ren"):
            scene.write("src/" + kind + os.fsdecode(name), kind.encode() * 20 + name)
    scene.begin()
    scene.approve()
    for name in file_names():
        scene.call("write_file", path=f"src/{name}", content=name)
    scene.call("read_file", path="src/" + ODD)
    for name in map(os.fsdecode, BYTES):
        scene.write(f"src/mod{name}", "changed")
        scene.write(f"src/new{name}", "new")
        (scene.root / f"src/del{name}").unlink()
        (scene.root / f"src/ren{name}").rename(scene.root / f"src/to{name}")
        (scene.root / f"src/link{name}").symlink_to(name)
        scene.write(f"plans/PLAN-{name}.md", "x")
    scene.change("end_session")
    scene.close()
    return scene


def controls(text):
    """Characters that a terminal would act upon. Carriage returns end lines of contents."""
    return re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


def test_no_command_fails_for_hostile_names_or_prints_their_control_characters(hostile, kaiza):
    commands = [command.replace("@", ODD).split() for command in re.split(r"[|\n]", READING.strip())]
    for words in (*REVIEWS, *commands):
        result = kaiza(*words)

        assert result.status in {0, 1, 2, 3}, words
        assert (words, controls(result.out + result.err)) == (words, [])
        assert (words, "Traceback" in result.err) == (words, False)


def test_no_command_fails_where_the_locale_knows_only_ascii(hostile, process):
    results = [process(*words, env=os.environ | ASCII_ONLY) for words in (REVIEWS[0], REVIEWS[3], ["diff"], ["undo"])]

    assert [(result.returncode, result.stderr.count(b"Traceback")) for result in results] == [(0, 0)] * len(results)
    assert {"src/newcaf\\xe9"} <= {file["path"] for file in json.loads(results[0].stdout)["ungoverned"]}


def test_sarif_names_the_bytes_of_a_file(hostile, kaiza):
    results = json.loads(kaiza("review", "--sarif").out)["runs"][0]["results"]
    places = {place["physicalLocation"]["artifactLocation"]["uri"] for each in results for place in each["locations"]}

    assert {"src/new%FF", "src/newcaf%E9", "src/newa%FFb%7F", "src/new%ED%A0%80"} <= places


@pytest.mark.parametrize(
    "words", [["init", "--yes"], ["doctor"], ["call", "server_info"], ["serve"], ["status", "--workspace", "."]]
)
def test_a_workspace_whose_path_is_not_utf8_is_refused_with_the_cure(tmp_path, process, words):
    root = tmp_path / os.fsdecode(b"caf\xe9")
    (root / "plans").mkdir(parents=True)
    (root / "audit").mkdir()
    result = process(*words, cwd=root, stdin=subprocess.DEVNULL)

    assert result.returncode != 0
    assert b"Rename the directory" in result.stderr
    assert b"Traceback" not in result.stderr
    assert sorted(os.listdir(root)) == ["audit", "plans"]


@pytest.mark.parametrize(
    "words",
    [["undo"], ["status"], ["review"], ["audit", "verify"], ["audit"], ["serve", "--port"], ["review", "--since"], []],
)
@pytest.mark.parametrize("name", ["src/e\x1b[31mv", "a\nb", "\u202e.py", "\x9b1m"])
def test_a_usage_error_prints_no_control_characters(kaiza, words, name):
    result = kaiza(*words, name, "--none" + name)

    assert result.status == 2
    assert controls(result.out + result.err) == []
