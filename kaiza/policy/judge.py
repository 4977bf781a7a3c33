"""The rules in their fixed order; the first refusal is the answer, and no rules at all means no."""

from collections.abc import Callable, Sequence

from kaiza.domain import errors
from kaiza.domain.card import CHANGES, KEEPS, Card
from kaiza.policy.case import Case
from kaiza.policy.content_clean import content_clean
from kaiza.policy.log_sound import log_sound
from kaiza.policy.not_frozen import not_frozen
from kaiza.policy.not_locked import not_locked
from kaiza.policy.ours_untouched import ours_untouched
from kaiza.policy.path_sound import path_sound
from kaiza.policy.paths_in_scope import paths_in_scope
from kaiza.policy.phase_named import phase_named
from kaiza.policy.plan_approved import plan_approved, plan_not_withdrawn, plan_unchanged
from kaiza.policy.plan_found import plan_found
from kaiza.policy.plan_sound import plan_sound
from kaiza.policy.readable import readable
from kaiza.policy.role_bound import role_bound
from kaiza.policy.role_may import role_may
from kaiza.policy.session_open import session_open
from kaiza.policy.unlocked import unlocked
from kaiza.policy.within_limits import limits_after, limits_before

Rule = Callable[[Case], errors.SystemError | None]

OPENING: tuple[Rule, ...] = (role_bound,)
READING: tuple[Rule, ...] = (session_open, role_may, path_sound, readable)
REPORTING: tuple[Rule, ...] = (session_open, role_may, log_sound)
"""A report may always be written, as long as there is a sound record to say so."""
KEEPING: tuple[Rule, ...] = (session_open, role_may, log_sound, not_frozen, not_locked, path_sound)
CHANGING: tuple[Rule, ...] = (session_open, role_may, log_sound, not_frozen, not_locked, path_sound, ours_untouched)

APPROVAL: tuple[Rule, ...] = (plan_found, plan_not_withdrawn, plan_unchanged, plan_sound, plan_approved, unlocked)
"""The plan itself; also for what is exempt from its scope and limits."""
IN_SCOPE: tuple[Rule, ...] = (paths_in_scope, limits_before)
"""What is to happen to which file, against scope and limits."""
AT_INTENT: tuple[Rule, ...] = (log_sound, not_frozen, not_locked, *APPROVAL)
"""What may have come to hold, or ceased to, while the change was worked out."""
UNDER_PLAN: tuple[Rule, ...] = (*APPROVAL, phase_named, *IN_SCOPE)
"""What a change must pass before its tool runs, after the rules of CHANGING."""
ON_RESULT: tuple[Rule, ...] = (ours_untouched, unlocked, limits_after, content_clean)
"""What a change must pass once its result is known; the paths it really touches are judged once more."""
EXEMPT = frozenset({"undo_changes"})
"""What puts back may be held by the plan's approval only; whether it is, its result says."""


def rules_for(card: Card) -> tuple[Rule, ...]:
    """The rules that a tool's calls must pass before it runs."""
    if not card.needs_session:
        return OPENING
    if card.name == "write_report":
        return REPORTING
    return {CHANGES: CHANGING, KEEPS: KEEPING}.get(card.safety_level, READING)


def on_result(case: Case) -> tuple[Rule, ...]:
    """The rules for a change whose result is known. Only then is it clear what an undo does, and to which files."""
    if case.exempt:
        return (ours_untouched, unlocked)
    return (phase_named, *IN_SCOPE, *ON_RESULT) if case.card.name in EXEMPT else ON_RESULT


def at_intent(case: Case) -> tuple[Rule, ...]:
    """The rules that are judged again under the log's lock, with all that others did meanwhile."""
    return AT_INTENT if case.exempt else (*AT_INTENT, limits_before, limits_after)


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
