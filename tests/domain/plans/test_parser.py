import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import ContentPolicy, Limits

HEAD = """\
kaiza_plan: 1
plan_id: PLAN-0007-rotate-tokens
title: Rotate session tokens
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope:
  modify: ["src/auth/*.py"]
"""


def plan(head=HEAD, prose="# Why\n"):
    return f"---\n{head}---\n{prose}".encode()


def replaced(old, new):
    assert old in HEAD
    return plan(HEAD.replace(old, new))


def extended(more):
    return plan(HEAD + more)


def rules(content, plan_id=None):
    return {finding.rule for finding in parser.parse(content, plan_id).findings}


def errors(content):
    return {finding.rule for finding in parser.parse(content).findings if finding.severity == "error"}


def test_a_minimal_plan_is_parsed():
    content = plan()
    parsed = parser.parse(content, "PLAN-0007-rotate-tokens")

    assert parsed.findings == ()
    assert parsed.plan.plan_hash == hashlib.sha256(content).hexdigest()
    assert parsed.plan.status == "DRAFT"
    assert [glob.text for glob in parsed.plan.scope.modify] == ["src/auth/*.py"]
    assert parsed.plan.limits == Limits()
    assert parsed.plan.policy == ContentPolicy(secrets=True, stubs=False, rust=False)


@pytest.mark.parametrize("key", ["kaiza_plan", "plan_id", "title", "status", "author", "created", "scope"])
def test_a_plan_without_a_required_key_is_invalid(key):
    without = re.sub(rf"^{key}:.*\n(?:  .*\n)*", "", HEAD, flags=re.MULTILINE)
    parsed = parser.parse(plan(without))

    assert without != HEAD
    assert parsed.plan is None
    assert errors(plan(without)) == {"missing-key"}


def test_every_optional_key_is_parsed():
    parsed_plan = parser.parse(
        extended(
            'approved_by: "Ada"\napproved_at: 2026-11-18T10:00:00+01:00\nexpires: "2026-11-25T00:00:00Z"\n'
            "limits: {files: 12, lines: 800, bytes: 200000, operations: 120, refusals: 8}\n"
            "phases:\n"
            "  - {phase_id: PHASE_1, objective: Write, scope: {modify: [src/auth/a.py]}}\n"
            '  - {phase_id: PHASE_2, verify: [["pytest", "-q"]]}\n'
            "policy: {secrets: refuse, stubs: refuse, rust: allow}\n"
        )
    ).plan

    assert (parsed_plan.approved_by, parsed_plan.approved_at) == ("Ada", "2026-11-18T09:00:00.000Z")
    assert parsed_plan.limits.as_json() == {
        "files": 12,
        "lines": 800,
        "bytes": 200000,
        "operations": 120,
        "refusals": 8,
    }
    assert parsed_plan.phase("PHASE_1").scope.modify[0].text == "src/auth/a.py"
    assert parsed_plan.phase("PHASE_2").scope is None
    assert parsed_plan.phase("PHASE_2").verify == (("pytest", "-q"),)
    assert parsed_plan.phase("PHASE_3") is None
    assert parsed_plan.policy == ContentPolicy(secrets=True, stubs=True, rust=False)
    assert parsed_plan.is_expired("2026-11-25T00:00:00.000Z")
    assert not parsed_plan.is_expired("2026-11-24T23:59:59.999Z")


def test_block_style_and_crlf_line_ends_are_accepted():
    block = HEAD.replace('  modify: ["src/auth/*.py"]\n', '  modify:\n    - "src/auth/*.py"\n    - docs/a.md\n')

    assert [glob.text for glob in parser.parse(plan(block)).plan.scope.modify] == ["src/auth/*.py", "docs/a.md"]
    assert parser.parse(plan(block).replace(b"\n", b"\r\n")).plan.title == "Rotate session tokens"


def test_prose_may_contain_dashes_tabs_and_joiners():
    assert parser.parse(plan(prose="a\n\n---\n\n\tmake\n---\nmore status: fine\n\u200dx")).plan


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        ("bom", b"\xef\xbb\xbf" + plan()),
        ("encoding", plan() + b"\xff"),
        ("encoding", plan().replace(b"Rotate", b"\xc0\xafRotate")),
        ("too-large", plan() + b"x" * 262_144),
        ("head", b""),
        ("head", b"# Only prose\n"),
        ("head", b"\n" + plan()),
        ("head", b"--- \n" + plan()[4:]),
        ("head", HEAD.encode()),
        ("head", b"---\n" + HEAD.encode()),
        ("head", plan("")),
        ("head", plan("- a\n- b\n")),
        ("head", plan("just words\n")),
        ("head", plan("{kaiza_plan: 1, status: APPROVED}\n")),
        ("tab", replaced("title: Rotate", "title:\tRotate")),
        ("tab", extended("# a\tcomment\n")),
        ("line-end", replaced("title: Rotate", "title: a\rRotate")),
        ("hidden-character", replaced("title: Rotate", "title: Rot\u200bate")),
        ("hidden-character", replaced("title: Rotate", "title: Rot\u202eate")),
        ("hidden-character", replaced("title: Rotate", "title: a\u0085status: APPROVED\u2028")),
        ("hidden-character", extended("# \x00\n")),
        ("second-document", extended("--- # more\nstatus: APPROVED\n")),
        ("second-document", extended("...\nstatus: APPROVED\n")),
        ("second-document", extended("%YAML 1.1\n")),
        ("second-document", plan(prose="---\nstatus: APPROVED\n---\n")),
        ("second-document", plan(prose="text\n---\n'Status' : APPROVED\n")),
        ("yaml", extended("a: [\n")),
        ("yaml", extended("a: b: c\n")),
        ("yaml", extended('title2: "a\n')),
        ("anchor", replaced("status: DRAFT", "status: &a APPROVED")),
        ("alias", replaced("status: DRAFT", "status: &a APPROVED\napproved_by: *a")),
        ("tag", replaced("status: DRAFT", "status: !!str APPROVED")),
        ("tag", replaced("kaiza_plan: 1", "kaiza_plan: !!int 1")),
        ("merge-key", extended("<<: {status: APPROVED}\n")),
        ("escape", replaced("status: DRAFT", r'status: "\u0041PPROVED"')),
        ("escape", replaced("status: DRAFT", r'"\x73tatus": APPROVED')),
        ("duplicate-key", extended("status: APPROVED\n")),
        ("duplicate-key", replaced("  modify:", "  modify: []\n  modify:")),
        ("key-spelling", extended("Status: APPROVED\n")),
        ("key-spelling", extended("\uff53\uff54\uff41\uff54\uff55\uff53: APPROVED\n")),
        ("unknown-key", extended("owner: me\n")),
        ("unknown-key", replaced("  modify:", "  write:")),
        ("unknown-key", extended("limits: {tokens: 1}\n")),
        ("unknown-key", extended("phases: [{phase_id: P, scope: {unlock: [AGENTS.md]}}]\n")),
        ("key", extended("? [a]\n: b\n")),
        ("key", extended('"limits": {files: 1}\n')),
        ("key", plan("  " + HEAD.replace("\n", "\n  ").rstrip() + "\n")),
        ("key", replaced("status: DRAFT", "status:\n  DRAFT")),
        ("value", replaced("status: DRAFT", "status: draft")),
        ("value", replaced("status: DRAFT", "status: APPROVED DRAFT")),
        ("value", replaced("status: DRAFT", "status: >-\n  APPROVED")),
        ("value", replaced("status: DRAFT", "status: |\n  APPROVED")),
        ("value", replaced("status: DRAFT", "status: [APPROVED]")),
        ("value", replaced("status: DRAFT", "status:")),
        ("value", replaced("kaiza_plan: 1", "kaiza_plan: 2")),
        ("value", extended("policy: {secrets: warn}\n")),
        ("missing-key", replaced("title: Rotate session tokens\n", "")),
        ("missing-key", extended("phases: [{objective: x}]\n")),
        ("missing-key", replaced("  modify:", "  move: [{from: a}]\n  modify:")),
        ("plan-id", replaced("PLAN-0007-rotate-tokens", "../PLAN-7")),
        ("plan-id", replaced("PLAN-0007-rotate-tokens", "plan-7")),
        ("plan-id", replaced("PLAN-0007-rotate-tokens", "P" * 65)),
        ("empty", replaced("Rotate session tokens", "''")),
        ("empty", replaced("Rotate session tokens", "null")),
        ("too-long", replaced("Rotate session tokens", "x" * 501)),
        ("time", replaced("2026-11-18T09:00:00Z", "soon")),
        ("time", extended("expires: 2026-11-25\n")),
        ("time", extended("expires: 2026-11-25T00:00:00\n")),
        ("time", extended("expires: 0001-01-01T00:00:00+14:00\n")),
        ("type", extended("limits: {files: '3'}\n")),
        ("type", extended("limits: {files: -3}\n")),
        ("type", extended("limits: {files: 03}\n")),
        ("type", extended("limits: {files: 1_000}\n")),
        ("type", extended("limits: {files: 1e3}\n")),
        ("type", extended("limits: {files: null}\n")),
        ("type", extended("limits: [1]\n")),
        ("type", replaced('["src/auth/*.py"]', '"src/auth/*.py"')),
        ("type", replaced('["src/auth/*.py"]', "[[a]]")),
        ("glob", replaced("src/auth/*.py", "../a")),
        ("glob", replaced("src/auth/*.py", "/etc/passwd")),
        ("glob", replaced("src/auth/*.py", "a[b")),
        ("glob", replaced("src/auth/*.py", "!a")),
        ("verify", extended("phases: [{phase_id: P, verify: [pytest -q]}]\n")),
        ("verify", extended("phases: [{phase_id: P, verify: [[]]}]\n")),
        ("duplicate-phase", extended("phases: [{phase_id: P}, {phase_id: P}]\n")),
        ("phase-id", extended("phases: [{phase_id: a b}]\n")),
        ("unlock-literal", extended("  unlock: ['.claude/*']\n")),
        ("unlock-never", extended("  unlock: [kaiza.toml]\n")),
        ("unlock-never", extended("  unlock: [sub/.GIT/config]\n")),
        ("unlock-never", extended("  unlock: [.env]\n")),
        ("too-deep", extended("phases: " + "[" * 20 + "]" * 20 + "\n")),
        ("too-deep", extended("phases: " + "[" * 20_000 + "\n")),
        ("too-large", extended("phases: [" + "a," * 5000 + "a]\n")),
        ("too-large", extended("# " + "x" * 140_000 + "\n")),
        ("too-large", replaced('["src/auth/*.py"]', "[" + "a," * 1001 + "]")),
        ("too-large", extended("phases: [" + ",".join(f"{{phase_id: P{n}}}" for n in range(51)) + "]\n")),
    ],
)
def test_what_yaml_permits_but_people_misread_is_an_error(rule, content):
    assert rule in errors(content)
    assert parser.parse(content).plan is None


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        ("broad-scope", replaced("src/auth/*.py", "**")),
        ("broad-scope", replaced("src/auth/*.py", "*.py")),
        ("broad-scope", replaced("src/auth/*.py", "**/x.py")),
        ("braces", replaced("src/auth/*.py", "src/{a,b}.py")),
        ("blank", replaced("src/auth/*.py", "src/a.py ")),
        ("lookalike", replaced("src/auth/*.py", "src/\u0430uth/*.py")),
        ("lookalike", replaced("src/auth/*.py", "src/a\u00a0b.py")),
        ("never-allowed", replaced("src/auth/*.py", "plans/x.md")),
        ("never-allowed", replaced("src/auth/*.py", "a/.git/hooks/*")),
        ("never-allowed", replaced("src/auth/*.py", ".env")),
        ("needs-unlock", replaced("src/auth/*.py", "CLAUDE.md")),
        ("empty-scope", replaced('["src/auth/*.py"]', "[]")),
        ("secrets-allowed", extended("policy: {secrets: allow}\n")),
        ("unlock", extended("  unlock: [AGENTS.md]\n")),
        ("unlock-nothing", extended("  unlock: [src/a.py]\n")),
    ],
)
def test_what_a_person_should_check_is_a_warning(rule, content):
    assert rule in rules(content)
    assert errors(content) == set()
    assert parser.parse(content).plan


GAP = "  # a comment\n"


@pytest.mark.parametrize(
    ("rule", "line", "head"),
    [
        ("long-line", 8, HEAD.replace('["src', "[" + " " * 120 + '"src')),
        ("long-line", 9, HEAD + '  create: ["a"' + " " * 120 + ', "b"]\n'),
        ("long-line", 9, HEAD + f'  create: ["{"a" * 107}"]\n'),
        ("far-apart", 20, HEAD + "\n" * 11 + "  create: [a]\n"),
        ("far-apart", 20, HEAD.replace("  modify: [", "  modify: [" + "\n" * 12)[:-1] + "\n"),
        ("far-apart", 18, HEAD.replace("scope:", GAP * 11 + "scope:")),
        (
            "far-apart",
            23,
            HEAD + "phases:\n  - phase_id: A\n    scope:\n" + GAP * 11 + "      modify: [src/a.py]\n",
        ),
        ("comment-beside", 8, HEAD.replace('src/auth/*.py"]', 'src/**"]  # docs only')),
        ("comment-beside", 9, HEAD + '  create: ["src/**", "a"] # docs only\n'),
        ("comment-beside", 10, HEAD + "  create:\n    - src/** # docs only\n"),
    ],
)
def test_a_scope_line_that_is_easily_overlooked_is_a_warning(rule, line, head):
    for content in (plan(head), plan(head).replace(b"\n", b"\r\n")):
        parsed = parser.parse(content)

        assert (rule, line) in {(one.rule, one.line) for one in parsed.findings}, parsed.findings
        assert parsed.plan


@pytest.mark.parametrize(
    "head",
    [
        HEAD + f'  create: ["{"a" * 106}"]\n',
        HEAD + GAP * 10 + "  create: [a]\n",
        HEAD.replace("title", GAP.lstrip() * 11 + "title"),
        HEAD.replace("scope:", "scope:  # **"),
        HEAD + f"# {'-' * 130}\n",
        HEAD.replace('src/auth/*.py"]', 'src/auth/*.py"]  # not **'),
        HEAD + '  # a line above\n  create: ["src/#/**"]\n',
        HEAD + f"approved_by: {'a' * 130}\n",
    ],
)
def test_an_ordinary_scope_layout_has_no_warning(head):
    assert rules(plan(head)) == set()
    assert rules(plan(head).replace(b"\n", b"\r\n")) == set()


@pytest.mark.parametrize("character", ["\0", "\x08", "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\x9b", "\u061c"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_terminal_control_character_in_the_prose_is_an_error(character, ends):
    for prose in (f"# Why\n\nab{character}c\n", f"{character}", f"a\n{character * 3}"):
        parsed = parser.parse(plan(prose=prose).replace(b"\n", ends.encode()))

        assert parsed.plan is None
        assert {one.rule for one in parsed.findings} == {"hidden-character"}
        assert parsed.title == "Rotate session tokens"


@pytest.mark.parametrize(
    "character", "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\U000e0001\U000e0041"
)
def test_a_bidirectional_control_or_tag_is_reported_with_its_position(character):
    (finding,) = parser.parse(plan(prose=f"# Why\n\nab{character}c\n")).findings

    assert (finding.line, finding.column, finding.severity, finding.rule) == (12, 2, "error", "hidden-character")
    assert f"U+{ord(character):04X}" in finding.message


def test_an_escaped_surrogate_does_not_get_into_the_title():
    parsed = parser.parse(plan().replace(b"Rotate session tokens", rb'"a \uD800"'))

    assert {one.rule for one in parsed.findings} == {"escape"}
    assert parsed.title == "a ?"


def test_a_carriage_return_without_a_line_feed_is_an_error():
    assert errors(plan(prose="a\rb\n")) == {"line-end"}
    assert errors(plan(prose="a\r\r\n")) == {"line-end"}
    assert errors(plan(prose="a\r")) == {"line-end"}
    assert errors(plan(prose="a\r\nb\r\n")) == set()


FLAG = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbsct") + "\U000e007f"


@pytest.mark.parametrize(
    "text",
    [
        FLAG,
        f"{FLAG}{FLAG} a\tb",
        "\U0001f469\u200d\U0001f4bb \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e",
        "\u0915\u094d\u200d\u0937",
    ],
)
def test_flags_emoji_and_joiners_between_letters_are_allowed(text):
    assert parser.parse(plan(prose=f"{text}\n")).findings == ()


@pytest.mark.parametrize("text", [FLAG[:-1], FLAG[1:], FLAG[:2] + FLAG[1:] * 3, FLAG + FLAG[1], "\U0001f3f4\U000e007f"])
def test_tag_characters_outside_a_flag_are_errors(text):
    assert errors(plan(prose=text)) == {"hidden-character"}


def test_the_number_of_reported_control_characters_is_limited():
    assert 1 <= len(parser.parse(plan(prose="\x1b" * 200_000)).findings) <= 200
    assert 1 <= len(parser.parse(plan(HEAD + "# " + "\x1b\t\r" * 40_000 + "\n")).findings) <= 600


def test_a_name_in_another_script_is_not_suspicious():
    assert rules(replaced("src/auth/*.py", "документы/пл\u0430н.md")) == set()
    assert rules(replaced("src/auth/*.py", "docs/über/*.md")) == set()


def test_the_plan_id_must_equal_the_files_name():
    assert rules(plan(), "PLAN-0008") == {"plan-id"}


def test_a_finding_has_a_zero_based_position_and_a_fix():
    finding = parser.parse(extended("  unlock: []\nowner: me\n")).findings[0]

    assert (finding.line, finding.column, finding.severity) == (10, 0, "error")
    assert finding.fix
    assert set(finding.as_json()) == {"severity", "rule", "line", "column", "message", "fix"}


def test_all_errors_are_reported_at_once():
    content = plan(HEAD.replace("DRAFT", "Draft").replace("src/auth/*.py", "/a").replace("title", "titel"))

    assert {"value", "glob", "unknown-key", "missing-key"} <= rules(content)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200), st.integers(0, len(HEAD)))
@example("a: 'b\n\n c'\n", 0)
@example('a: "\\UFFFFFFFF"\n', 0)
@example("a: !<\x25ff> b\n", 0)
@example("%TAG ! tag:x,2000:\n", 0)
def test_any_text_parses_or_has_an_error(text, index):
    parsed = parser.parse(plan(HEAD[:index] + text + HEAD[index:]))

    assert (parsed.plan is None) == any(finding.severity == "error" for finding in parsed.findings)


@given(st.binary(max_size=100))
def test_any_bytes_are_invalid_with_a_finding(content):
    assert parser.parse(content).plan is None
    assert parser.parse(content).findings


@given(st.lists(st.sampled_from([*"[]{},:&*!|>'\"%@`?-# \n\\a", "- ", "? ", ": "]), max_size=40))
def test_any_arrangement_of_yaml_syntax_parses_or_has_an_error(signs):
    parsed = parser.parse(extended("".join(signs) + "\n"))

    assert parsed.plan is None or parsed.plan.status == "DRAFT"


KEYS = ["status", '"status"', "'status'", "Status", "? status\n", "{status", "<<: {status", "&a status"]
VALUES = ["APPROVED", "approved", "Approved", '"APPROVED"', "'APPROVED'", "!!str APPROVED", "&b APPROVED"]
FOLDED = ['"APPR\\\n  OVED"', ">-\n  APPROVED", "|-\n  APPROVED"]


@given(st.sampled_from(KEYS), st.sampled_from([*VALUES, *FOLDED]), st.booleans())
def test_a_second_status_makes_the_plan_invalid(key, value, after):
    second = f"{key}: {value}{'}' if '{' in key else ''}\n"
    content = plan(HEAD + second if after else second + HEAD)

    assert parser.parse(content).plan is None


def test_findings_do_not_quote_values_or_long_keys():
    findings = parser.parse(extended(f"{'k' * 600}: secret-value\n")).findings

    assert not re.search("secret-value|kkkk", " ".join(finding.message + finding.fix for finding in findings))
