import pytest

from kaiza.domain import error_codes
from kaiza.domain.canonical_error import CanonicalError


@pytest.mark.rows("S3-17")
def test_every_registered_code_has_a_status_and_a_json_rpc_error():
    for name, row in error_codes.SYSTEM_ERROR_CODES.items():
        error = CanonicalError.to_jsonrpc_error(name)

        assert CanonicalError.to_http_status(name) == row.http
        assert error.keys() == {"code", "message"}
        assert error["code"] == row.rpc
        assert error["message"]


def test_the_timeout_cap_has_a_status_and_a_code_of_its_own():
    assert CanonicalError.to_http_status("CAP_EXCEEDED", "timeout") == 504
    assert CanonicalError.to_jsonrpc_error("CAP_EXCEEDED", "timeout")["code"] == -32003
    assert CanonicalError.to_http_status("CAP_EXCEEDED") == 413
    assert CanonicalError.to_jsonrpc_error("CAP_EXCEEDED")["code"] == -32000
