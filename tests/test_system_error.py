"""The error contract in one place: the eight kinds of tests it demands, and a test for each registered code."""

import ast
import json
from pathlib import Path

import pytest
from agents import plan
from scenes import records

import kaiza
from kaiza import boundary
from kaiza.domain import error_codes, error_envelope, errors
from kaiza.domain.call import CallRequest

TESTS = Path(__file__).parent
CONTEXT = {
    "human_message": "The file could not be read. Try again.",
    "role": "WINDSURF",
    "session_id": "550e8400-e29b-41d4-a716-446655440000",
    "workspace_root": "/home/ada/project",
    "tool_name": "read_file",
    "phase_id": "PHASE_5A",
    "plan_hash": "ab" * 32,
    "cause": {"path": "a.txt"},
    "timestamp": "2026-01-31T09:00:00.000Z",
}
MAKERS = {
    "from_unknown": (
        lambda context: errors.SystemError.from_unknown("boom", {**context, "error_code": "FILE_READ_FAILED"}),
        {"error_code": "FILE_READ_FAILED", "invariant_id": None},
    ),
    "invariant_violation": (
        lambda context: errors.SystemError.invariant_violation("MANDATORY_DIAGNOSTICS", context),
        {"error_code": "INVARIANT_VIOLATION", "invariant_id": "MANDATORY_DIAGNOSTICS"},
    ),
    "tool_failure": (
        lambda context: errors.SystemError.tool_failure("FILE_READ_FAILED", context),
        {"error_code": "FILE_READ_FAILED", "invariant_id": None},
    ),
    "startup_failure": (
        lambda context: errors.SystemError.startup_failure("BOOTSTRAP_FAILURE", context),
        {"error_code": "BOOTSTRAP_FAILURE", "invariant_id": None},
    ),
}
PROVOKED_BY = {
    "PARSE_ERROR": "wire/test_message.py::test_a_line_that_is_not_strict_json_is_a_parse_error",
    "INVALID_ENVELOPE": "wire/test_message.py::test_an_invalid_request_is_rejected_under_its_id",
    "METHOD_NOT_FOUND": "wire/dialects/test_mcp.py::test_an_unknown_method_is_refused",
    "INVALID_PARAMS": "boundary/test_boundary.py::test_arguments_that_are_not_an_object_are_refused_and_recorded",
    "HEADER_MISMATCH": "server/http/test_mcp_route.py::test_a_header_that_differs_from_the_body_is_a_mismatch",
    "TOOL_NOT_FOUND": "boundary/test_boundary.py::test_an_unknown_tool_is_refused_and_recorded_by_its_name",
    "INVALID_TOOL_INPUT": "wire/test_shape.py::test_a_call_of_the_wrong_shape_names_no_tool",
    "INVALID_INPUT_TYPE": "boundary/test_boundary.py"
    "::test_arguments_are_not_coerced_and_the_most_important_fault_sets_the_code",
    "INVALID_INPUT_FORMAT": "boundary/test_boundary.py"
    "::test_arguments_are_not_coerced_and_the_most_important_fault_sets_the_code",
    "INVALID_INPUT_VALUE": "boundary/test_boundary.py::test_all_errors_are_reported_at_once",
    "MISSING_REQUIRED_FIELD": "boundary/test_boundary.py::test_all_errors_are_reported_at_once",
    "CURSOR_INVALID": "tools/planning/test_plan_tools.py::test_plans_are_listed_in_pages",
    "CAP_EXCEEDED": "boundary/test_boundary.py::test_a_call_past_its_deadline_is_recorded_and_answered_once",
    "SESSION_NOT_INITIALIZED": "boundary/test_boundary.py"
    "::test_a_call_refused_for_want_of_a_session_succeeds_after_begin_session",
    "SESSION_LOCKED": "boundary/test_approval.py"
    "::test_a_lock_holds_in_every_process_and_reports_release_it_three_times",
    "SESSION_INITIALIZATION_FAILED": "boundary/test_boundary.py::test_a_session_is_opened_only_on_a_configured_root",
    "UNAUTHORIZED_ACTION": "boundary/test_changes.py"
    "::test_a_forbidden_role_and_an_unapproved_plan_have_different_codes",
    "INSUFFICIENT_PERMISSIONS": "attacks/test_checks.py::test_without_a_sandbox_checks_are_refused_and_nothing_runs",
    "ROLE_MISMATCH": "boundary/test_boundary.py::test_a_server_bound_to_a_role_refuses_sessions_of_the_other_role",
    "INVALID_PATH": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "PATH_TRAVERSAL_BLOCKED": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "OUTSIDE_WORKSPACE": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "PATH_NOT_FOUND": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "FILE_NOT_FOUND": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "FILE_READ_FAILED": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "FILE_WRITE_FAILED": "boundary/test_changes.py::test_a_read_only_file_is_not_overwritten",
    "FILE_ALREADY_EXISTS": "boundary/test_changes.py::test_a_retried_write_is_safe_and_a_stale_hash_is_refused",
    "HASH_MISMATCH": "boundary/test_changes.py::test_a_retried_write_is_safe_and_a_stale_hash_is_refused",
    "PATCH_APPLY_FAILED": "boundary/test_changes.py::test_a_patch_is_applied_whole_or_not_at_all",
    "PATCH_INVALID": "boundary/test_changes.py::test_a_patch_is_applied_whole_or_not_at_all",
    "PLAN_NOT_FOUND": "boundary/test_changes.py::test_nothing_changes_without_an_approved_plan",
    "PLAN_NOT_APPROVED": "boundary/test_changes.py::test_nothing_changes_without_an_approved_plan",
    "PLAN_ENFORCEMENT_FAILED": "boundary/test_changes.py::test_nothing_changes_without_an_approved_plan",
    "PLAN_SCOPE_VIOLATION": "boundary/test_changes.py"
    "::test_a_change_out_of_scope_locks_every_session_and_a_report_unlocks",
    "POLICY_VIOLATION": "boundary/test_boundary.py::test_an_unreadable_path_is_refused_with_its_code",
    "RUST_POLICY_VIOLATION": "policy/rules/test_plan_rules.py"
    "::test_content_findings_are_refused_with_their_position_and_rust_with_its_own_code",
    "PREFLIGHT_FAILED": "boundary/test_run_checks.py::test_the_output_of_a_failed_check_is_returned_but_not_recorded",
    "INVARIANT_VIOLATION": "policy/test_judge.py::test_an_empty_list_of_rules_refuses_every_call",
    "BOOTSTRAP_FAILURE": "cli/test_serve.py::test_a_failed_start_prints_its_error_envelope_and_exits_with_3",
    "SELF_AUDIT_FAILURE": "attacks/test_whole_verification.py"
    "::test_an_edited_old_record_is_found_when_the_session_begins",
    "INTERNAL_ERROR": "boundary/test_boundary.py::test_an_exception_in_a_rule_becomes_one_envelope_and_one_record",
    "AUDIT_LOG_FAILED": "boundary/test_boundary.py::test_no_answer_is_given_without_a_record",
    "AUDIT_LOCK_FAILED": "boundary/test_boundary.py::test_a_log_locked_for_too_long_is_an_audit_lock_failure",
    "CONTEXT_CACHE_MISSING": "tools/context/test_context_tools.py"
    "::test_a_name_that_no_cache_can_have_is_a_missing_cache",
    "CONTEXT_CACHE_INVALID": "tools/context/test_context_tools.py"
    "::test_a_damaged_cache_is_invalid_for_every_query_and_each_time",
    "CONTEXT_QUERY_INVALID": "tools/context/test_context_tools.py::test_a_query_that_is_no_text_or_too_long_is_invalid",
    "CONTEXT_BUDGET_INVALID": "tools/context/test_context_tools.py"
    "::test_a_budget_that_is_no_whole_number_in_range_is_invalid",
    "CONTEXT_IO_ERROR": "tools/context/test_context_tools.py"
    "::test_a_failed_read_is_an_io_error_and_a_later_call_may_succeed",
    "UNKNOWN_TOOL_FAILURE": "boundary/test_boundary.py"
    "::test_an_exception_in_any_tool_becomes_one_envelope_and_one_record",
}
NEVER_RAISED = {
    "MISSING_CAPABILITY",
    "UNSUPPORTED_PROTOCOL_VERSION",
}
"""Codes of MCP whose errors have no `error_code`."""


def failing(app, kind, **arguments):
    return app.call("debug_fault", {"kind": kind, **arguments}).envelope


def function_of(test):
    """The syntax tree of a test that is given as `file::name`; None if there is no such test."""
    path, _, name = test.partition("::")
    tree = ast.parse((TESTS / path).read_text())
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def strings_in(tree):
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@pytest.mark.rows("S1-90")
def test_a_raised_exception_becomes_a_system_error(begun):
    envelope = failing(begun, "raise")

    assert envelope["error_code"] == "UNKNOWN_TOOL_FAILURE"
    assert envelope["cause"] == {"message": "boom", "code": None, "name": "OwnError"}


@pytest.mark.rows("S1-91", "S1-92")
@pytest.mark.parametrize("thrown", ["boom", {"ok": False, "error": "boom"}], ids=["string", "object"])
def test_a_string_or_an_object_becomes_a_system_error(thrown):
    error = errors.SystemError.from_unknown(thrown, tool_name="read_file")

    assert (error.error_code, error.tool_name) == ("UNKNOWN_TOOL_FAILURE", "read_file")
    assert error.to_envelope()["cause"] == thrown


@pytest.mark.rows("S1-91", "S1-92")
@pytest.mark.parametrize("kind", ["str", "object"])
def test_a_string_or_an_object_in_place_of_an_answer_becomes_a_system_error(begun, kind):
    assert failing(begun, kind)["error_code"] == "INTERNAL_ERROR"


@pytest.mark.rows("S1-93")
def test_an_invariant_violation_includes_its_invariant_id(begun):
    envelope = failing(begun, "invariant")

    assert (envelope["error_code"], envelope["invariant_id"]) == ("INVARIANT_VIOLATION", "MANDATORY_DIAGNOSTICS")


@pytest.mark.rows("S1-94")
def test_an_error_before_a_session_has_a_null_session_and_workspace(app):
    envelope = failing(app, "raise")

    assert envelope["error_code"] == "SESSION_NOT_INITIALIZED"
    assert (envelope["session_id"], envelope["workspace_root"], envelope["role"]) == (None, None, None)


@pytest.mark.rows("S1-95")
def test_phase_and_plan_hash_are_preserved(begun, workspace):
    approved = plan(workspace)
    envelope = failing(begun, "raise", phase_id="PHASE_5A", plan_hash=approved)

    assert (envelope["phase_id"], envelope["plan_hash"]) == ("PHASE_5A", approved)


@pytest.mark.rows("S1-96")
def test_an_envelope_is_json_without_cycles_and_without_missing_keys(begun):
    envelope = failing(begun, "cycle")

    assert json.loads(json.dumps(envelope, allow_nan=False)) == envelope
    assert tuple(envelope) == error_envelope.KEYS


@pytest.mark.rows("S1-97")
def test_a_failure_is_written_to_the_audit_log(begun, workspace):
    before = len(records(workspace))
    envelope = failing(begun, "raise")

    assert len(records(workspace)) == before + 1
    assert {key: records(workspace)[-1][key] for key in error_envelope.KEYS} == envelope


@pytest.mark.rows("S1-67", "S1-68", "S1-69", "S1-70", "S1-103", "S1-104", "S1-4", "S1-5")
@pytest.mark.parametrize("maker", MAKERS)
def test_an_error_carries_all_that_its_maker_is_given(maker):
    make, fixed = MAKERS[maker]

    assert make(CONTEXT).to_envelope() == {**CONTEXT, **fixed}
    assert tuple(make(CONTEXT).to_envelope()) == error_envelope.KEYS


@pytest.mark.rows("S1-103")
@pytest.mark.parametrize("key", CONTEXT)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_maker_takes_each_key_alone(maker, key):
    envelope = MAKERS[maker][0]({key: CONTEXT[key]}).to_envelope()

    assert envelope[key] == CONTEXT[key]
    assert tuple(envelope) == error_envelope.KEYS


@pytest.mark.rows("S1-103", "S1-104")
@pytest.mark.parametrize("with_session", [True, False])
def test_the_client_gets_the_envelope_of_the_error_with_what_the_boundary_knows_better(app, workspace, with_session):
    known = {"tool_name": "debug_fault", "phase_id": "PHASE_6"}
    if with_session:
        session = app.call("begin_session", {"role": "ANTIGRAVITY"}).output
        known |= {"role": "ANTIGRAVITY", **{key: session[key] for key in ("session_id", "workspace_root")}}
    raised = errors.SystemError.tool_failure("FILE_READ_FAILED", CONTEXT)
    call = app.stamp(CallRequest("debug_fault", {"phase_id": "PHASE_6"}))
    outcome = boundary.refuse_call(call, app.services, raised)

    known["timestamp"] = call.timestamp
    assert outcome.envelope == {**CONTEXT, "error_code": "FILE_READ_FAILED", "invariant_id": None, **known}
    assert outcome.envelope == raised.to_envelope(known)
    assert {key: records(workspace)[-1][key] for key in error_envelope.KEYS} == outcome.envelope


@pytest.mark.rows("S1-15", "S1-58")
def test_the_cause_of_a_wrapped_exception_is_its_message_code_and_name_beside_our_details():
    error = errors.SystemError.from_unknown(
        PermissionError(13, "Permission denied", "/somewhere/private"),
        error_code="FILE_READ_FAILED",
        cause={"path": "a"},
    )

    assert error.to_envelope()["cause"] == {
        "message": "Permission denied",
        "code": 13,
        "name": "PermissionError",
        "path": "a",
    }


@pytest.mark.rows("S1-105")
def test_every_registered_code_is_provoked_by_a_test_that_names_it():
    registered = error_codes.SYSTEM_ERROR_CODES.keys()
    missing = [test for test in PROVOKED_BY.values() if function_of(test) is None]
    silent = [
        code for code, test in PROVOKED_BY.items() if test not in missing and code not in strings_in(function_of(test))
    ]

    assert PROVOKED_BY.keys() | NEVER_RAISED == registered
    assert not PROVOKED_BY.keys() & NEVER_RAISED
    assert (missing, silent) == ([], [])


@pytest.mark.rows("S1-105")
def test_codes_without_a_test_are_raised_nowhere():
    package = Path(kaiza.__file__).parent
    tables = {"error_codes.py", "canonical_error.py"}
    sources = [path for path in package.rglob("*.py") if path.name not in tables]
    raised = {code for path in sources for code in NEVER_RAISED & strings_in(ast.parse(path.read_text()))}

    assert len(sources) >= 200
    assert raised == set()
