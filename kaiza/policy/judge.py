"""Order of judgement: which rules are checked at which point of a call, and in which order.

A rule is a pure function of a `Case`: it returns the error that refuses the call, or None. `judge` checks a list of
rules and raises the first refusal, so the order below decides which error the caller sees. An empty list refuses.

A call that changes files is judged five times, each time on what is known only then:

| # | when and on what                                | rules              | checked in `boundary`   |
|--:|-------------------------------------------------|--------------------|-------------------------|
| 1 | before the tool runs, on session and arguments  | `rules_for`        | `wrap_handler`          |
| 2 | before the tool runs, on the plan               | `rules_on_plan`    | `case.judge_under_plan` |
| 3 | before the tool runs, on requested operations   | `SCOPE_RULES`      | `case.judge_under_plan` |
| 4 | after the tool ran, on the changes it proposes  | `rules_on_result`  | `change.execute_change` |
| 5 | under the log's lock, as the intent is written  | `rules_at_intent`  | `change._intent_body`   |

Every other call is judged once, at point 1. Arguments are compared with the tool's schema before that
(`rules.arguments_sound`). No file is changed before point 5 has passed. The case is built by the boundary; nothing
here reads the disk, the log or the clock.
"""

from collections.abc import Callable, Sequence

from kaiza.domain import errors
from kaiza.domain.tool_card import ADD_ONLY, CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.rules.arguments_sound import check_path_sound
from kaiza.policy.rules.content_clean import check_content_clean
from kaiza.policy.rules.control_plane_untouched import check_control_plane_untouched
from kaiza.policy.rules.log_sound import check_log_sound
from kaiza.policy.rules.not_frozen import check_not_frozen
from kaiza.policy.rules.not_locked import check_not_locked
from kaiza.policy.rules.paths_in_scope import check_paths_in_scope
from kaiza.policy.rules.phase_named import check_phase_named
from kaiza.policy.rules.plan_approved import check_plan_approved, check_plan_not_withdrawn, check_plan_unchanged
from kaiza.policy.rules.plan_sound import check_plan_found, check_plan_sound
from kaiza.policy.rules.readable import check_readable
from kaiza.policy.rules.role_allowed import check_role_allowed, check_role_bound
from kaiza.policy.rules.session_open import check_session_open
from kaiza.policy.rules.steering_files_unlocked import check_steering_files_unlocked
from kaiza.policy.rules.within_limits import check_limits_after, check_limits_before
from kaiza.policy.rules.workspace_adopted import check_workspace_adopted

Rule = Callable[[Case], errors.SystemError | None]

# 1. Session and arguments.
#
# The session comes first because every later rule needs its role. The state of the workspace (not adopted, damaged
# log, freeze, lock) comes before the path: while nothing may be changed it does not matter which path was named.
# Whether a path is well-formed comes before any comparison of it with protected names.

OPENING_RULES: tuple[Rule, ...] = (check_role_bound,)
"""For tools that need no session: `begin_session` and `server_info`."""
READ_RULES: tuple[Rule, ...] = (check_session_open, check_role_allowed, check_path_sound, check_readable)
"""For tools that read. A damaged log, a freeze or a lock does not stop reading."""
REPORT_RULES: tuple[Rule, ...] = (check_session_open, check_role_allowed, check_log_sound)
"""For `write_report`, which a freeze or a lock does not stop: it is how an agent explains itself and is unlocked."""
ADD_RULES: tuple[Rule, ...] = (
    check_session_open,
    check_role_allowed,
    check_workspace_adopted,
    check_log_sound,
    check_not_frozen,
    check_not_locked,
    check_path_sound,
)
"""For tools that add a file of Kaiza's own, such as a plan draft."""
CHANGE_RULES: tuple[Rule, ...] = (*ADD_RULES, check_control_plane_untouched)
"""For tools that change the user's files, whatever the plan says."""

# 2. The plan.
#
# Withdrawn and changed plans come before faulty ones: a plan that was edited after its approval is reported as that,
# even if the edit also broke it. Steering files come after the approval, because only an approved plan unlocks them.

APPROVAL_RULES: tuple[Rule, ...] = (
    check_plan_found,
    check_plan_not_withdrawn,
    check_plan_unchanged,
    check_plan_sound,
    check_plan_approved,
    check_steering_files_unlocked,
)
PLAN_RULES: tuple[Rule, ...] = (*APPROVAL_RULES, check_phase_named)

# 3. The requested operations, each with the path it is for.
#
# Scope comes before the limits: a violation of the scope locks the role, a limit that is reached does not.

SCOPE_RULES: tuple[Rule, ...] = (check_paths_in_scope, check_limits_before)

# 4. The proposed changes.
#
# The protected paths are checked again, because only the result lists every file that is touched: those of a patch or
# an undo are not arguments of the call. Limits on lines and bytes, and the content, are known only now.

RESULT_RULES: tuple[Rule, ...] = (
    check_control_plane_untouched,
    check_steering_files_unlocked,
    check_limits_after,
    check_content_clean,
)
UNDO_RULES: tuple[Rule, ...] = (check_control_plane_untouched, check_steering_files_unlocked)
"""For an undo that only restores what the plan already allowed and counted: exempt from scope, limits and content."""

# 5. The intent, in the same critical section of the log's lock in which it is written.
#
# Other processes may have recorded a freeze, a lock, a revocation or more usage since points 1 to 4, and the plan's
# file may have been edited or expired. Judging again under the lock closes that race. The intent is appended in the
# same section, so no record can come between the judgement and the intent.

INTENT_RULES: tuple[Rule, ...] = (
    check_session_open,
    check_workspace_adopted,
    check_log_sound,
    check_not_frozen,
    check_not_locked,
    *APPROVAL_RULES,
)
"""Also checked before each command of `run_checks`, without the lock, in `boundary.case.find_current_refusal`."""

EXEMPT_TOOLS = frozenset({"undo_changes"})
"""Tools whose scope, phase and limits are judged at point 4: only their result says which files they change, and
whether the changes are exempt."""


def rules_for(card: ToolCard) -> tuple[Rule, ...]:
    """Point 1: the rules for any call of this tool."""
    if not card.needs_session:
        return OPENING_RULES
    if card.name == "write_report":
        return REPORT_RULES
    return {CHANGES_FILES: CHANGE_RULES, ADD_ONLY: ADD_RULES}.get(card.safety_level, READ_RULES)


def rules_on_plan(case: Case) -> tuple[Rule, ...]:
    """Point 2: the rules for the plan."""
    return APPROVAL_RULES if case.card.name in EXEMPT_TOOLS else PLAN_RULES


def rules_on_result(case: Case) -> tuple[Rule, ...]:
    """Point 4: the rules for the proposed changes."""
    if case.exempt:
        return UNDO_RULES
    return (check_phase_named, *SCOPE_RULES, *RESULT_RULES) if case.card.name in EXEMPT_TOOLS else RESULT_RULES


def rules_at_intent(case: Case) -> tuple[Rule, ...]:
    """Point 5: the rules whose answer may have changed since they were first checked."""
    return INTENT_RULES if case.exempt else (*INTENT_RULES, check_limits_before, check_limits_after)


def judge(rules: Sequence[Rule], case: Case) -> None:
    """Raise the first refusal; an empty list of rules refuses everything."""
    if not rules:
        # A tool for which no rules were chosen is a bug in Kaiza. It must fail closed, not run unjudged.
        raise errors.SystemError.invariant_violation(
            "NO_RULES",
            human_message="Kaiza has no rules for this call, so it is refused. Report this as a bug in Kaiza.",
        )
    for rule in rules:
        refusal = rule(case)
        if refusal is not None:
            raise refusal
