"""Rules in the order in which they are judged: five lists, each at its own step of a call.

The first refusal is the answer, and an empty list refuses.
"""

from collections.abc import Callable, Sequence

from kaiza.domain import errors
from kaiza.domain.tool_card import ADD_ONLY, CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.rules.content_clean import check_content_clean
from kaiza.policy.rules.control_plane_untouched import check_control_plane_untouched
from kaiza.policy.rules.log_sound import check_log_sound
from kaiza.policy.rules.not_frozen import check_not_frozen
from kaiza.policy.rules.not_locked import check_not_locked
from kaiza.policy.rules.path_sound import check_path_sound
from kaiza.policy.rules.paths_in_scope import check_paths_in_scope
from kaiza.policy.rules.phase_named import check_phase_named
from kaiza.policy.rules.plan_approved import check_plan_approved, check_plan_not_withdrawn, check_plan_unchanged
from kaiza.policy.rules.plan_found import check_plan_found
from kaiza.policy.rules.plan_sound import check_plan_sound
from kaiza.policy.rules.readable import check_readable
from kaiza.policy.rules.role_allowed import check_role_allowed
from kaiza.policy.rules.role_bound import check_role_bound
from kaiza.policy.rules.session_open import check_session_open
from kaiza.policy.rules.steering_files_unlocked import check_steering_files_unlocked
from kaiza.policy.rules.within_limits import check_limits_after, check_limits_before

Rule = Callable[[Case], errors.SystemError | None]

# 1. Before the tool runs, on arguments and session: `boundary.wrap_handler`.
OPENING_RULES: tuple[Rule, ...] = (check_role_bound,)
READ_RULES: tuple[Rule, ...] = (check_session_open, check_role_allowed, check_path_sound, check_readable)
REPORT_RULES: tuple[Rule, ...] = (check_session_open, check_role_allowed, check_log_sound)
"""A report may always be written, as long as there is a sound log to record it."""
ADD_RULES: tuple[Rule, ...] = (
    check_session_open,
    check_role_allowed,
    check_log_sound,
    check_not_frozen,
    check_not_locked,
    check_path_sound,
)
CHANGE_RULES: tuple[Rule, ...] = (
    check_session_open,
    check_role_allowed,
    check_log_sound,
    check_not_frozen,
    check_not_locked,
    check_path_sound,
    check_control_plane_untouched,
)

# 2. Before a change's tool runs, on the plan itself: `boundary.case.under_plan`.
APPROVAL_RULES: tuple[Rule, ...] = (
    check_plan_found,
    check_plan_not_withdrawn,
    check_plan_unchanged,
    check_plan_sound,
    check_plan_approved,
    check_steering_files_unlocked,
)
APPROVAL_AND_PHASE: tuple[Rule, ...] = (*APPROVAL_RULES, check_phase_named)

# 3. Right after, on what is to happen to which file: `boundary.case.under_plan`.
SCOPE_RULES: tuple[Rule, ...] = (check_paths_in_scope, check_limits_before)

# 4. Once the tool's result is known, on the paths it really touches: `boundary.commit`.
RESULT_RULES: tuple[Rule, ...] = (
    check_control_plane_untouched,
    check_steering_files_unlocked,
    check_limits_after,
    check_content_clean,
)
PUT_BACK: tuple[Rule, ...] = (check_control_plane_untouched, check_steering_files_unlocked)
"""The same for an undo of what the plan allowed and counted before."""

# 5. Under the log's lock, as the intent is written, on what others may have changed meanwhile: `boundary.commit`.
# The same list is judged before each command of `run_checks`: `boundary.case.refusal_by_now`.
INTENT_RULES: tuple[Rule, ...] = (check_log_sound, check_not_frozen, check_not_locked, *APPROVAL_RULES)

EXEMPT_TOOLS = frozenset({"undo_changes"})
"""Tools whose changes may be exempt from scope and limits; only their result says which are."""


def rules_for(card: ToolCard) -> tuple[Rule, ...]:
    """The rules that a tool's calls must pass before it runs."""
    if not card.needs_session:
        return OPENING_RULES
    if card.name == "write_report":
        return REPORT_RULES
    return {CHANGES_FILES: CHANGE_RULES, ADD_ONLY: ADD_RULES}.get(card.safety_level, READ_RULES)


def judge_plan_rules(case: Case) -> tuple[Rule, ...]:
    """The rules about the plan itself. For an undo the phase is judged with its result."""
    return APPROVAL_RULES if case.card.name in EXEMPT_TOOLS else APPROVAL_AND_PHASE


def rules_on_result(case: Case) -> tuple[Rule, ...]:
    """The rules for a change whose result is known. Only then is it clear what an undo does, and to which files."""
    if case.exempt:
        return PUT_BACK
    return (check_phase_named, *SCOPE_RULES, *RESULT_RULES) if case.card.name in EXEMPT_TOOLS else RESULT_RULES


def rules_at_intent(case: Case) -> tuple[Rule, ...]:
    """The rules that are judged again under the log's lock, with all that others did meanwhile."""
    return INTENT_RULES if case.exempt else (*INTENT_RULES, check_limits_before, check_limits_after)


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
