"""Rules in the order in which they are judged: five lists, each at its own step of a call.

The first refusal is the answer, and an empty list refuses.
"""

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

# 1. Before the tool runs, on arguments and session: `boundary.wrap_handler`.
OPENING: tuple[Rule, ...] = (role_bound,)
READING: tuple[Rule, ...] = (session_open, role_may, path_sound, readable)
REPORTING: tuple[Rule, ...] = (session_open, role_may, log_sound)
"""A report may always be written, as long as there is a sound log to record it."""
KEEPING: tuple[Rule, ...] = (session_open, role_may, log_sound, not_frozen, not_locked, path_sound)
CHANGING: tuple[Rule, ...] = (session_open, role_may, log_sound, not_frozen, not_locked, path_sound, ours_untouched)

# 2. Before a change's tool runs, on the plan itself: `boundary.case.under_plan`.
APPROVAL: tuple[Rule, ...] = (plan_found, plan_not_withdrawn, plan_unchanged, plan_sound, plan_approved, unlocked)
APPROVAL_AND_PHASE: tuple[Rule, ...] = (*APPROVAL, phase_named)

# 3. Right after, on what is to happen to which file: `boundary.case.under_plan`.
IN_SCOPE: tuple[Rule, ...] = (paths_in_scope, limits_before)

# 4. Once the tool's result is known, on the paths it really touches: `boundary.commit`.
ON_RESULT: tuple[Rule, ...] = (ours_untouched, unlocked, limits_after, content_clean)
PUT_BACK: tuple[Rule, ...] = (ours_untouched, unlocked)
"""The same for an undo of what the plan allowed and counted before."""

# 5. Under the log's lock, as the intent is written, on what others may have changed meanwhile: `boundary.commit`.
# The same list is judged before each command of `run_checks`: `boundary.case.refusal_by_now`.
AT_INTENT: tuple[Rule, ...] = (log_sound, not_frozen, not_locked, *APPROVAL)

EXEMPT = frozenset({"undo_changes"})
"""Tools whose changes may be exempt from scope and limits; only their result says which are."""


def rules_for(card: Card) -> tuple[Rule, ...]:
    """The rules that a tool's calls must pass before it runs."""
    if not card.needs_session:
        return OPENING
    if card.name == "write_report":
        return REPORTING
    return {CHANGES: CHANGING, KEEPS: KEEPING}.get(card.safety_level, READING)


def on_plan(case: Case) -> tuple[Rule, ...]:
    """The rules about the plan itself. For an undo the phase is judged with its result."""
    return APPROVAL if case.card.name in EXEMPT else APPROVAL_AND_PHASE


def on_result(case: Case) -> tuple[Rule, ...]:
    """The rules for a change whose result is known. Only then is it clear what an undo does, and to which files."""
    if case.exempt:
        return PUT_BACK
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
