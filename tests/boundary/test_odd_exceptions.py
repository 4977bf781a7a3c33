"""Whatever a tool raises or returns: one outcome, one record, and in every dialect something that can be sent."""

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from agents import plan
from monsters import MEMBERS, Monsters, Sulk, refuse
from scenes import make_ready, records

from kaiza.app import App
from kaiza.domain import error_codes, error_envelope, errors
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.trust.plan_watch import PlanWatch
from kaiza.tools.registry import AGENT_TOOLS, Tool
from kaiza.tools.view import Answer
from kaiza.wire.dialects.canonical import CanonicalDialect
from kaiza.wire.dialects.context_v0 import MESSAGES
from kaiza.wire.dialects.editor import encode_error
from kaiza.wire.dialects.mcp_result import ResultFormat, encode_result

SEEDS = range(5_000 if os.environ.get("KAIZA_LONG") else 300)
ARGUMENTS = {"debug_fault": {"kind": "x"}, "context_resolve": {"cache": "a", "query": "b", "budget": 1}}


class Misbehaving:
    """An application with a tool and a context tool that do what `act` does now."""

    def __init__(self, registry, root):
        self.log = make_ready(root) / "audit/audit-log.jsonl"
        self.act = lambda: None
        context = AGENT_TOOLS["context_resolve"]
        tools = {
            **AGENT_TOOLS,
            "debug_fault": Tool("debug_fault", lambda *_: None, lambda *_: self.act()),
            "context_resolve": Tool(context.name, context.parse, lambda *_: self.act()),
        }
        self.app = App([os.path.realpath(root)], tools=tools, registry=registry)
        self.app.call("begin_session", {"role": "WINDSURF"})

    def call(self, tool, act):
        """Call a tool, and require one outcome and one record that say the same; returns what an MCP client reads."""
        self.act = act
        before = self.log.stat().st_size
        outcome = self.app.call(tool, ARGUMENTS[tool])
        written = [json.loads(line) for line in self.log.read_bytes()[before:].splitlines()]

        assert [one["tool_name"] for one in written] == [tool]
        assert written[0]["outcome"] == ("error" if outcome.output is None else "ok")
        if outcome.envelope is not None:
            envelope = {key: value for key, value in outcome.envelope.items() if key != "stack_trace"}
            assert {key: written[0][key] for key in error_envelope.KEYS} == envelope
            assert envelope["error_code"] in error_codes.SYSTEM_ERROR_CODES
            assert isinstance(envelope["cause"], str | dict | None)
            encode_error("7", outcome, tool)
        json.loads(CanonicalDialect().encode("7", outcome, tool))
        return json.loads(encode_result("7", outcome, ResultFormat())).get("result")


@pytest.fixture
def misbehaving(faulty_registry, tmp_path):
    made = Misbehaving(faulty_registry, tmp_path / "odd")
    yield made
    made.app.close()


def raising(error):
    def act():
        raise error

    return act


@pytest.mark.rows("S1-1", "S1-2", "S1-3", "S1-56", "S1-73", "S1-74", "S1-75", "S1-76", "S1-77", "S1-97")
@pytest.mark.long
@pytest.mark.parametrize("debug", ["", "true"])
def test_any_exception_becomes_one_envelope_and_one_record(misbehaving, monkeypatch, debug):
    monkeypatch.setenv("DEBUG_STACK", debug)
    for seed in SEEDS:
        misbehaving.call("debug_fault", raising(Monsters(seed).exception()))


def test_an_error_of_another_class_does_not_describe_itself(misbehaving):
    class Sly(errors.SystemError):
        evidence = property(lambda _: 1 / 0, lambda *_: None)

        def copy_plain(self):
            return self

        def to_envelope(self, _known=None):
            return {}

    misbehaving.call("debug_fault", raising(Sly("FILE_NOT_FOUND", {})))


@pytest.mark.rows("S0-1", "S0-15", "S0-37")
@pytest.mark.long
def test_any_exception_in_a_context_tool_becomes_one_body_of_version_0(misbehaving):
    for seed in SEEDS:
        result = misbehaving.call("context_resolve", raising(Monsters(seed).exception()))
        body = json.loads(result["content"][0]["text"])

        code = body["error"]["code"]
        assert body == {"error": {"code": code, "message": MESSAGES[code]}}
        assert result["isError"] is True


@pytest.mark.rows("S1-3", "S1-77")
@pytest.mark.long
@pytest.mark.parametrize("tool", ARGUMENTS)
def test_any_answer_becomes_one_outcome_and_one_record(misbehaving, tool):
    answered = 0
    for seed in SEEDS:
        result = misbehaving.call(tool, lambda seed=seed: Monsters(seed).answer())
        answered += not result["isError"]

    assert 0 < answered < len(SEEDS) or tool == "context_resolve"


def make_odd(tool, place):
    """A tool with a step that raises or answers otherwise each time: parsing, saying what it will do, or running."""
    seeds = count()

    def step(*arguments):
        odd = Monsters(next(seeds))
        if place != "answer":
            raise odd.exception()
        answer, other = tool.run(*arguments), odd.answer()
        is_answer = type(other) is Answer
        return replace(answer, detail=other.detail, diagnostics=other.diagnostics) if is_answer else other

    return replace(tool, **{"run" if place == "answer" else place: step})


@pytest.mark.rows("S1-72", "S1-77")
@pytest.mark.parametrize("place", ["parse", "requested_operations", "run", "answer"])
def test_an_odd_step_of_a_change_leaves_all_of_it_or_nothing(workspace, place):
    plan_hash = plan(workspace, scope='{create: ["**"]}')
    tools = {**AGENT_TOOLS, "write_file": make_odd(AGENT_TOOLS["write_file"], place)}
    app = App([os.path.realpath(workspace)], tools=tools)
    app.call("begin_session", {"role": "WINDSURF"})
    for number in range(40):
        outcome = app.call("write_file", {"path": f"f{number}", "content": "x\n", "plan_hash": plan_hash})
        last = records(workspace)[-1]

        assert (last["kind"], last["outcome"]) == ("call", "error" if outcome.output is None else "ok")
        assert (workspace / f"f{number}").exists() == (outcome.output is not None)
        encode_result("7", outcome, ResultFormat())
    app.close()

    assert Counter(one["kind"] for one in records(workspace))["call"] == 41


@pytest.mark.parametrize("failure", [MemoryError, Sulk, ValueError("\ud800")])
def test_what_fails_after_the_record_changes_no_answer(begun, workspace, monkeypatch, failure):
    plan_hash = plan(workspace, scope='{create: ["**"]}')
    monkeypatch.setattr(TransactionManager, "finalize", refuse(failure))
    outcome = begun.call("write_file", {"path": "f", "content": "x\n", "plan_hash": plan_hash})

    assert outcome.output["summary"]
    assert len(outcome.diagnostics) == 1
    assert records(workspace)[-1]["outcome"] == "ok"
    assert (workspace / "f").read_text() == "x\n"


def test_a_session_that_is_recorded_begins_though_what_follows_fails(app, workspace, monkeypatch):
    monkeypatch.setattr(PlanWatch, "start", refuse(RuntimeError("can't start new thread")))
    outcome = app.call("begin_session", {"role": "WINDSURF"})

    assert outcome.output["session_id"] == records(workspace)[-1]["session_id"]
    assert len(outcome.diagnostics) == 1
    assert app.call("session_status", {}).output["session_id"] == outcome.output["session_id"]


@pytest.mark.parametrize("length", [120_000, 400_000])
def test_an_answer_whose_record_would_be_too_long_is_a_recorded_failure(misbehaving, length):
    answer = Answer({"said": "x", "summary": "fine"}, detail={"much": ["x" * length] * 3})
    result = misbehaving.call("debug_fault", lambda: answer)

    assert json.loads(result["content"][0]["text"])["error_code"] == "CAP_EXCEEDED"


def test_a_failure_with_the_longest_members_is_recorded(misbehaving):
    members = dict.fromkeys(MEMBERS, "\x01\ud800" * 100_000)
    error = errors.SystemError.tool_failure("HASH_MISMATCH", {**members, "evidence": {"lines": ["x" * 1000] * 1000}})
    result = misbehaving.call("debug_fault", raising(error))

    assert json.loads(result["content"][0]["text"])["error_code"] == "HASH_MISMATCH"


@pytest.mark.rows("S1-77")
def test_a_call_whose_arguments_cannot_be_recorded_has_a_record_without_them(begun, workspace):
    outcome = begun.call("read_file", {1: "x"})

    assert outcome.envelope["error_code"] in error_codes.SYSTEM_ERROR_CODES
    assert records(workspace)[-1]["error_code"] == outcome.envelope["error_code"]
    assert records(workspace)[-1]["arguments"] is None
