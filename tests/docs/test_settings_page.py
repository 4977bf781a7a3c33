"""docs/settings.md lists what the code accepts; anything else stops the start with its line."""

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


def fields(model, prefix=""):
    """Every setting of the model, with its field."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, pydantic.BaseModel):
            yield from fields(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def test_the_settings_page_lists_every_setting_with_its_default():
    known = dict(fields(SettingsFile))

    assert set(ROWS) == set(known)
    assert {key: json.loads(default) for key, (_, default) in ROWS.items()} == {
        key: field.default for key, field in known.items()
    }


def test_values_on_the_settings_page_are_accepted_and_others_refused():
    for key, (values, _) in ROWS.items():
        section, _, name = key.rpartition(".")
        head = f"[{section}]\n" if section else ""
        for value in re.findall(r'`("[a-z]+")`', values):
            settings.parse(f"{head}{name} = {value}\n")
        bounds = re.fullmatch(r"(\d+) to (\d+)", values)
        for value in (int(bounds[1]) - 1, int(bounds[2]) + 1, '"300"') if bounds else ('"another"', "1", "true"):
            with pytest.raises(errors.SystemError):
                settings.parse(f"{head}{name} = {value}\n")


def test_the_example_on_the_settings_page_is_valid_and_sets_every_key():
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1]
    document = tomllib.loads(example)
    names = {f"{key}.{inner}" for key, value in document.items() if isinstance(value, dict) for inner in value}
    names |= {key for key, value in document.items() if not isinstance(value, dict)}

    assert names == set(ROWS)
    assert settings.parse(example) != settings.Settings()


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
def test_an_invalid_setting_stops_the_server_with_its_line_and_no_traceback(workspace, text, line):
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
