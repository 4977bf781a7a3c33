"""Addresses of servers: what is checked is what is connected to, and no token leaves this machine unencrypted."""

import pytest

from kaiza.cli.call import parse_server_url, read_token
from kaiza.cli.console.output import USAGE_ERROR, CommandError


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv("KAIZA_TOKEN", "kz_secret")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8750", "http://127.0.0.1:8750/mcp"),
        ("http://127.0.0.1:8750/", "http://127.0.0.1:8750/mcp"),
        ("HTTP://LOCALHOST:1/kaiza/mcp", "http://localhost:1/kaiza/mcp"),
        ("https://kaiza.example.org", "https://kaiza.example.org/mcp"),
        ("http://[::1]:8750/mcp", "http://[::1]:8750/mcp"),
        ("http://[::1]", "http://[::1]/mcp"),
    ],
)
def test_an_address_is_rebuilt_from_its_checked_parts(text, url):
    assert parse_server_url(text).url == url


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1:8750", "ftp://127.0.0.1", "file:///etc/passwd", "http://", "http://[::1", "http://127.0.0.1:99999",
     "http://127.0.0.1@evil.org", "http://me:pass@127.0.0.1", "http://127.0.0.1\\@evil.org", "http://[::1%25x]/",
     "http://127.0.0.1#@evil.org", "http://127.0.0.1?x=1", "http://127.0.0.1/%2e%2e/x", "http://a b/", "http://-x/",
     "http://ev\u0131l.org", "http://127.0.0.1/\x1b[2J"],
)  # fmt: skip
def test_any_other_address_is_a_usage_error(text):
    with pytest.raises(CommandError) as refused:
        parse_server_url(text)

    assert refused.value.status == USAGE_ERROR
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1", "http://127.9.9.9", "http://[::1]", "http://localhost", "https://kaiza.example.org"],
)
def test_the_token_is_sent_to_this_machine_or_encrypted(token, url):
    assert read_token(parse_server_url(url)) == "kz_secret"


@pytest.mark.parametrize(
    "url",
    ["http://kaiza.example.org", "http://localhost.example.org", "http://127.0.0.1.example.org", "http://10.0.0.1",
     "http://0.0.0.0", "http://127.1", "http://2130706433", "http://[::]", "http://[fe80::1]"],
)  # fmt: skip
def test_the_token_is_never_sent_unencrypted_to_another_machine(token, url):
    with pytest.raises(CommandError) as refused:
        read_token(parse_server_url(url))

    assert refused.value.status == USAGE_ERROR
    assert "kz_secret" not in refused.value.message


def test_without_a_token_any_machine_may_be_called(monkeypatch):
    monkeypatch.setenv("KAIZA_TOKEN", "")

    assert read_token(parse_server_url("http://kaiza.example.org")) is None


@pytest.mark.parametrize("broken", ["kz_a b", "kz_a\r\nX-More: 1", "kz_ä"])
def test_a_token_that_no_header_can_carry_is_a_usage_error_that_does_not_show_it(monkeypatch, broken):
    monkeypatch.setenv("KAIZA_TOKEN", broken)
    with pytest.raises(CommandError) as refused:
        read_token(parse_server_url("http://127.0.0.1"))

    assert refused.value.status == USAGE_ERROR
    assert broken not in refused.value.message
