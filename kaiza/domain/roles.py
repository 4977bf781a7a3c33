"""The two roles of sessions: their names in records, envelopes and calls, and the words for them in texts."""

from typing import Final

PLANNER: Final = "ANTIGRAVITY"
EXECUTOR: Final = "WINDSURF"
ROLES: Final = (PLANNER, EXECUTOR)
WORDS: Final = {"planner": PLANNER, "executor": EXECUTOR}
"""Name of a role by its word. `begin_session` takes either."""
_TITLES: Final = {name: word for word, name in WORDS.items()}


def describe_role(role: str | None) -> str:
    """The word for a role in texts that people and agents read."""
    return _TITLES.get(role or "", role or "")


def parse_role(text: str) -> str:
    """The role's name, from its word or its name. Any other text is returned as it is."""
    return WORDS.get(text, text)
