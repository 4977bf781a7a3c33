"""docs/settings.md matches the code, and an invalid `kaiza.toml` stops the start and names the line."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pydantic
import pytest

from kaiza.domain import errors
from kaiza.store.config import settings
from kaiza.store.config.settings_schema import SettingsFile

PAGE = (Path(__file__).parent.parent.parent / "docs" / "settings.md").read_text()
ROWS = {
    key: (values, default)
    for key, values, default in re.findall(r"^\| `([\w.]+)` \| (.*?) \| .* \| `(.*)` \|$", PAGE, re.MULTILINE)
}


def keys(model, prefix=""):
    """Every setting of the model, with its field."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, pydantic.BaseModel):
            yield from keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def test_page_lists_exactly_the_settings_with_their_defaults():
    known = dict(keys(SettingsFile))

    assert set(ROWS) == set(known)
    assert {key: json.loads(default) for key, (_, default) in ROWS.items()} == {
        key: field.default for key, field in known.items()
    }


def test_values_on_the_page_are_accepted_and_others_refused():
    for key, (values, _) in ROWS.items():
        section, _, name = key.rpartition(".")
        table = f"[{section}]\n" if section else ""
        for word in re.findall(r'`("[a-z]+"|true|false)`', values):
            settings.parse_values(f"{table}{name} = {word}\n")
        wrong = re.fullmatch(r"(\d+) to (\d+)", values)
        for value in (int(wrong[1]) - 1, int(wrong[2]) + 1, '"300"') if wrong else ('"another"', "1", "[1]"):
            with pytest.raises(errors.SystemError):
                settings.parse_values(f"{table}{name} = {value}\n")


def test_example_on_the_page_is_valid_and_sets_every_key():
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1]
    values = tomllib.loads(example)
    named = {f"{key}.{inner}" for key, value in values.items() if isinstance(value, dict) for inner in value}
    named |= {key for key, value in values.items() if not isinstance(value, dict)}

    assert named == set(ROWS)
    assert set(settings.parse_values(example)) == set(ROWS)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('deny_read = []\nsurprise = "x"\n', 2),
        ('[approval]\n\nrequire = "nobody"\n', 3),
        ("[approval]\nrequired = 1\n", 2),
        ("[lock]\nrelease = true\n", 2),
        ("# fine\n[checks]\nseconds = 0\n", 3),
        ("[checks]\nseconds = 3601\n", 2),
        ("[checks]\nseconds = 1.5\n", 2),
        ("[aduit]\nsync = 'every'\n", 1),
        ("deny_read = ['a']\nallow_read = 'b'\n", 2),
        ("\n\ndeny_read = [\n", 3),
        ("[audit\n", 1),
        ("deny_read = ['[']\n", 1),
        ("[checks]\nseconds = 1\nseconds = 2\n", 3),
    ],
)
def test_an_invalid_setting_stops_the_server_and_names_the_line_without_a_traceback(workspace, text, line):
    (workspace / "kaiza.toml").write_text(text)
    process = subprocess.run(
        [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)],
        input=b"",
        capture_output=True,
        check=False,
    )
    envelope = json.loads(process.stderr)

    assert (process.returncode, process.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["tool_name"]) == ("BOOTSTRAP_FAILURE", "startup")
    assert envelope["cause"] == {"file": "kaiza.toml", "line": line}
    assert f"line {line}" in envelope["human_message"]
    assert str(workspace) not in process.stderr.decode()
