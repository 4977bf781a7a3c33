"""The rules in their fixed order; the first refusal is the answer, and no rules at all means no."""

from collections.abc import Callable, Sequence

from kaiza.domain import errors
from kaiza.domain.card import CHANGES, KEEPS, Card
from kaiza.policy.case import Case
from kaiza.policy.log_sound import log_sound
from kaiza.policy.not_frozen import not_frozen
from kaiza.policy.not_locked import not_locked
from kaiza.policy.ours_untouched import ours_untouched
from kaiza.policy.path_sound import path_sound
from kaiza.policy.readable import readable
from kaiza.policy.role_bound import role_bound
from kaiza.policy.role_may import role_may
from kaiza.policy.session_open import session_open

Rule = Callable[[Case], errors.SystemError | None]

OPENING: tuple[Rule, ...] = (role_bound,)
READING: tuple[Rule, ...] = (session_open, role_may, path_sound, readable)
KEEPING: tuple[Rule, ...] = (session_open, role_may, log_sound, path_sound)
CHANGING: tuple[Rule, ...] = (session_open, role_may, log_sound, not_frozen, not_locked, path_sound, ours_untouched)
AT_INTENT: tuple[Rule, ...] = (log_sound, not_frozen, not_locked)


def rules_for(card: Card) -> tuple[Rule, ...]:
    """The rules that a tool's calls must pass before it runs."""
    if not card.needs_session:
        return OPENING
    return {CHANGES: CHANGING, KEEPS: KEEPING}.get(card.safety_level, READING)


def judge(rules: Sequence[Rule], case: Case) -> None:
    """Raise the first refusal; an empty list of rules refuses everything."""
    if not rules:
        raise errors.SystemError.invariant_violation(
            "NO_RULES", human_message="No rule allows this call. Report this as a fault of Kaiza."
        )
    for rule in rules:
        refusal = rule(case)
        if refusal is not None:
            raise refusal
