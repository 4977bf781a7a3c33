"""Settings for the terminal: the value in force, where it comes from, and what is not adopted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaiza.render.terminal import escape


def render_setting(key: str, value: Any, places: Sequence[str]) -> str:
    """One setting and the places that it comes from."""
    return f"{key} = {render_value(value)} ({', '.join(map(escape, places))})"


def render_unadopted(settings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Values of `kaiza.toml` that do not count, and what adopts them; nothing if there are none."""
    for setting in settings:
        yield f"{setting['key']} = {render_value(setting['value'])}, in force: {render_value(setting['in_force'])}"
    if settings:
        yield "Adopt them with: kaiza adopt"


def render_value(value: Any) -> str:
    """The value as in JSON, escaped."""
    return escape(json.dumps(value, ensure_ascii=False))
