import re

import pytest

from kaiza.domain import error_codes

SEED = [
    "SESSION_NOT_INITIALIZED",
    "SESSION_LOCKED",
    "SESSION_INITIALIZATION_FAILED",
    "INVALID_INPUT_TYPE",
    "INVALID_INPUT_FORMAT",
    "INVALID_INPUT_VALUE",
    "MISSING_REQUIRED_FIELD",
    "UNAUTHORIZED_ACTION",
    "INSUFFICIENT_PERMISSIONS",
    "ROLE_MISMATCH",
    "INVALID_PATH",
    "PATH_NOT_FOUND",
    "PATH_TRAVERSAL_BLOCKED",
    "OUTSIDE_WORKSPACE",
    "FILE_NOT_FOUND",
    "FILE_ALREADY_EXISTS",
    "FILE_READ_FAILED",
    "FILE_WRITE_FAILED",
    "PATCH_INVALID",
    "PATCH_APPLY_FAILED",
    "HASH_MISMATCH",
    "PLAN_NOT_FOUND",
    "PLAN_NOT_APPROVED",
    "PLAN_ENFORCEMENT_FAILED",
    "PLAN_SCOPE_VIOLATION",
    "POLICY_VIOLATION",
    "RUST_POLICY_VIOLATION",
    "PREFLIGHT_FAILED",
    "INVARIANT_VIOLATION",
    "BOOTSTRAP_FAILURE",
    "SELF_AUDIT_FAILURE",
    "AUDIT_LOG_FAILED",
    "AUDIT_LOCK_FAILED",
    "INTERNAL_ERROR",
    "UNKNOWN_TOOL_FAILURE",
]


@pytest.mark.rows("S1-18")
def test_every_code_is_uppercase_snake_case():
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in error_codes.SYSTEM_ERROR_CODES)


@pytest.mark.rows("S1-20")
def test_the_registry_holds_every_code_of_the_error_contract():
    assert len(SEED) == 35
    assert set(SEED) <= error_codes.SYSTEM_ERROR_CODES.keys()


@pytest.mark.rows("S1-63")
def test_the_registry_is_immutable():
    with pytest.raises(TypeError):
        error_codes.SYSTEM_ERROR_CODES["NEW"] = error_codes.SYSTEM_ERROR_CODES["INTERNAL_ERROR"]
    with pytest.raises(AttributeError):
        error_codes.SYSTEM_ERROR_CODES["INTERNAL_ERROR"].http = 200


def test_an_unknown_code_raises_key_error():
    with pytest.raises(KeyError):
        error_codes.lookup("NOT_REAL")


@pytest.mark.rows("S1-61")
def test_only_the_timeout_cap_has_a_row_of_its_own():
    other, timeout = error_codes.lookup("CAP_EXCEEDED"), error_codes.lookup("CAP_EXCEEDED", "timeout")

    assert (other.http, other.rpc, other.retryable) == (413, -32000, False)
    assert (timeout.http, timeout.rpc, timeout.error_type, timeout.retryable) == (504, -32003, "timeout", True)
    assert error_codes.lookup("CAP_EXCEEDED", "response_bytes") == other


def test_only_security_codes_lock():
    locking = {name for name, code in error_codes.SYSTEM_ERROR_CODES.items() if code.locks}

    assert locking == {
        "UNAUTHORIZED_ACTION",
        "PATH_TRAVERSAL_BLOCKED",
        "OUTSIDE_WORKSPACE",
        "PLAN_SCOPE_VIOLATION",
        "INVARIANT_VIOLATION",
    }


@pytest.mark.rows("S0-8")
def test_the_registry_names_the_six_codes_of_context_tools_and_none_for_paths_and_files():
    v0 = {name: code.v0 for name, code in error_codes.SYSTEM_ERROR_CODES.items() if code.v0}
    six = {"cache_missing", "cache_invalid", "invalid_query", "invalid_budget", "io_error", "internal_error"}

    assert set(v0.values()) == six
    assert {name: v0[name] for name in v0 if name.startswith("CONTEXT_")} == {
        "CONTEXT_CACHE_MISSING": "cache_missing",
        "CONTEXT_CACHE_INVALID": "cache_invalid",
        "CONTEXT_QUERY_INVALID": "invalid_query",
        "CONTEXT_BUDGET_INVALID": "invalid_budget",
        "CONTEXT_IO_ERROR": "io_error",
    }
    assert v0["INTERNAL_ERROR"] == "internal_error"
    assert (v0["AUDIT_LOG_FAILED"], v0["AUDIT_LOCK_FAILED"]) == ("io_error", "io_error")
    assert not {name for name in v0 if "PATH" in name or name.startswith(("FILE_", "OUTSIDE_"))}
    assert not {name for name in v0 if name.startswith("CONTEXT_") and error_codes.SYSTEM_ERROR_CODES[name].locks}


@pytest.mark.rows("S1-61")
def test_a_code_whose_form_depends_on_the_cap_shows_each_form():
    shown = error_codes.SYSTEM_ERROR_CODES["CAP_EXCEEDED"].as_json()
    forms = {None: shown} | {cap: {**shown, **form} for cap, form in shown["by_cap"].items()}

    assert [name for name, row in error_codes.SYSTEM_ERROR_CODES.items() if row.as_json()["by_cap"]] == ["CAP_EXCEEDED"]
    for cap, form in forms.items():
        row = error_codes.lookup("CAP_EXCEEDED", cap)
        assert [form[name] for name in row._fields[1:]] == list(row[1:])
    for cap in ("response_bytes", 5, ["timeout"], None):
        assert error_codes.lookup("CAP_EXCEEDED", cap).http == 413
