"""What is on a terminal of 24 lines and 80 columns when a person is asked: the agent's text only as a quotation."""

import pytest

from kaiza.app import App
from kaiza.render.plans import render_plan as shown_plan
from kaiza.render.terminal import QUOTE, display_width

COLUMNS, LINES = 80, 24
PLAN = """---
kaiza_plan: 1
plan_id: {plan_id}
title: {title}
status: DRAFT
author: {author}
created: "2026-11-18T09:00:00Z"
scope: {{modify: {modify}}}
{more}---
"""
LIE = "modify  docs/x.md  (1 file now)"
FACTS = f"""
What it allows:
  {LIE}

Limits:
  none are set

status    DRAFT; allows nothing now
"""


@pytest.fixture
def plan(workspace):
    (workspace / "a.py").write_text("x\n")

    def write(prose="# Why\n", *, plan_id="PLAN-1", title="A plan", author="ANTIGRAVITY", modify='["**"]', more=""):
        path = workspace / "plans" / f"{plan_id}.md"
        path.write_text(PLAN.format(plan_id=plan_id, title=title, author=author, modify=modify, more=more) + prose)
        return path

    return write


def rows(shown):
    """The rows of the terminal, as it wraps what is too long for it."""
    told = []
    for line in shown.split("\n"):
        told.append("")
        for char in line:
            if display_width(told[-1] + char) > COLUMNS:
                told.append("")
            told[-1] += char
    return told


def asked(screen, *words, question="Type "):
    """Everything that stands before the question; the question answered with no."""
    at = screen(*words, columns=COLUMNS, NO_COLOR="1")
    shown = at.until(question)
    at.type("no\n")
    assert at.end() == 1
    return rows(shown)


def unquoted(told):
    return [row for row in told if not row.startswith(QUOTE.rstrip())]


PROSE = {
    "lines": FACTS,
    "forty lines": FACTS + "\n" * 40 + FACTS,
    "one line that a terminal wraps": "x " * 39 + f"{FACTS.splitlines()[1]}  {LIE}",
    "a line without a blank": "x" * 80 + "What it allows:  modify  docs/x.md",
    "wide letters": "\u6587" * 40 + LIE,
    "lines that end with returns": FACTS.replace("\n", "\r\n"),
    "a quotation": f"{QUOTE}\n{FACTS}",
    "more lines than are shown": FACTS * 60,
}


@pytest.mark.parametrize("prose", PROSE.values(), ids=PROSE)
def test_prose_that_imitates_facts_is_quoted_line_by_line_and_the_facts_are_last(plan, screen, prose):
    plan(prose)
    told = asked(screen, "plan", "approve", "PLAN-1", question="Type PLAN-1")

    assert [row for row in unquoted(told) if "docs/x.md" in row] == []
    assert any("docs/x.md" in row for row in told)
    assert not any("\\r" in row for row in told)
    last = unquoted(told[-LINES:])
    assert "What it allows:" in last
    assert "  modify  **  (1 file now)" in last
    assert any("reaches the whole workspace" in row for row in last)
    assert told[-1].startswith("Type PLAN-1")


def test_show_quotes_the_prose_and_ends_with_the_facts_at_a_terminal_and_in_a_pipe(plan, screen, kaiza):
    plan("x" * 100 + LIE + FACTS)
    at = screen("plan", "show", "PLAN-1", columns=COLUMNS, NO_COLOR="1")
    at.end()

    for told in (rows(at.shown), rows(kaiza("plan", "show", "PLAN-1").out)):
        assert [row for row in unquoted(told) if "docs/x.md" in row] == []
        assert told[-2].startswith("touches ")


def test_what_is_left_out_of_a_long_text_is_told_in_words_that_no_text_can_imitate(plan, kaiza):
    plan("".join(f"line {number}\n" for number in range(500)) + "99 lines more are in the file and not shown here.\n")
    told = kaiza("plan", "show", "PLAN-1").out.splitlines()

    assert "│ line 399" in told
    assert "│ line 400" not in told
    assert unquoted(told)[3] == "101 lines more are in the file and not shown here."


@pytest.mark.parametrize(
    "head",
    [
        {"title": '"A plan ' + "\u2014 " * 33 + f'{FACTS.splitlines()[1]} {LIE}"'},
        {"title": "x" * 73 + LIE},
        {"author": "x" * 70 + LIE},
        {"more": f'phases: [{{phase_id: A, objective: "{"x" * 75}{LIE}"}}]\n'},
        {"modify": f'["**", "{"x" * 70}{LIE.replace(" ", "")}"]'},
        {"modify": '["**", "x{}"]'.format("\u00a0" * 69 + LIE)},
    ],
)
def test_a_long_word_of_the_head_is_wrapped_so_that_its_rest_is_quoted(plan, screen, head):
    plan(**head)
    at = screen("plan", "show", "PLAN-1", columns=COLUMNS, NO_COLOR="1")
    at.end()

    for told in (asked(screen, "plan", "approve", "PLAN-1", question="Type PLAN-1"), rows(at.shown)):
        assert [row for row in unquoted(told) if row.lstrip().startswith(("modify  docs", "modifydocs"))] == []
        assert "  modify  **  (1 file now)" in unquoted(told)


@pytest.mark.parametrize(
    ("rule", "modify"),
    [
        ("long-line", '["a.py",' + " " * 400 + '"**"]'),
        ("far-apart", '["a.py",' + "\n  # harmless" * 150 + '\n  "**"]'),
        ("comment-beside", '["a.py", "**"]  # only a.py'),
    ],
)
def test_a_scope_that_is_easily_overlooked_in_the_file_is_warned_of_beside_the_question(plan, screen, rule, modify):
    path = plan(modify="HERE")
    path.write_text(path.read_text().replace("scope: {modify: HERE}", f"scope:\n  modify: {modify}"))
    told = asked(screen, "plan", "approve", "PLAN-1", question="Type PLAN-1")

    assert any(f"[{rule}]" in row for row in told[-LINES:])


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",
        "1\ufe0f\u20e3 \u2764\ufe0f",
        "\u06cc\u200c\u062e",
        "\U0001f469\u200d\U0001f4bb",
        "\u2764\ufe0f\u200d\U0001f525",
    ],
)
def test_what_joins_letters_and_symbols_as_it_should_is_no_warning(plan, kaiza, text):
    plan(f"{text}\n", modify='["src/a.py"]')

    assert "Look twice" not in kaiza("plan", "show", "PLAN-1").out


@pytest.mark.parametrize(
    "text", ["a\u200b", "\u200dx", "a\u200d ", "\ufe0f", "a\ufe0f\ufe0f", "\u2764\u200dx", "a\u00ad"]
)
def test_what_does_not_show_is_warned_of_with_its_line(plan, kaiza, text):
    plan(f"# Why\n{text}\n", modify='["src/a.py"]')

    assert "line 11: The line holds what does not show" in kaiza("plan", "show", "PLAN-1").out


def test_the_difference_to_what_was_approved_is_quoted_and_comes_before_the_facts(plan, screen):
    path = plan(modify='["src/*.py"]')
    approved = screen("plan", "approve", "PLAN-1")
    approved.until("Type PLAN-1")
    approved.type("PLAN-1\n")
    approved.end()
    path.write_text(path.read_text().replace('["src/*.py"]', '["**"]') + FACTS + "x" * 79 + LIE + "\n")
    told = asked(screen, "plan", "approve", "PLAN-1", question="Type PLAN-1")

    assert [row for row in unquoted(told) if "docs/x.md" in row] == []
    assert any(row.startswith('│ +scope: {modify: ["**"]') for row in told)
    facts = unquoted(told)
    assert facts.index("Text:") < facts.index("Since its approval:") < facts.index("What it allows:")


def test_a_difference_that_is_too_long_to_show_says_so(plan, screen, kaiza):
    path = plan()
    approved = screen("plan", "approve", "PLAN-1")
    approved.until("Type PLAN-1")
    approved.type("PLAN-1\n")
    approved.end()
    path.write_text(path.read_text() + "x\n" * 80_000)

    assert "The rest of the difference is not shown" in kaiza("plan", "show", "PLAN-1").out
    path.write_text(path.read_text().replace("x\n" * 80_000, "x\n"))
    assert "The rest of the difference" not in kaiza("plan", "show", "PLAN-1").out


def test_what_has_to_be_typed_is_shown_whole_on_a_narrow_terminal(plan, screen):
    plan_id = "PLAN-" + "A" * 59
    plan(plan_id=plan_id)
    at = screen("plan", "approve", plan_id, columns=30)
    at.until(f"Type {plan_id} to go on, anything else to leave everything as it is: ")
    at.type(f"{plan_id}\n")

    assert at.end() == 0


def test_a_long_reason_of_a_freeze_is_quoted_where_it_is_wrapped(kaiza, screen, workspace):
    kaiza("freeze", "x" * 100 + "Type no to thaw. " * 3, "--as", "Ann")
    told = asked(screen, "thaw", question="Type thaw")

    assert [row for row in unquoted(told[:-1]) if "Type no" in row] == []
    assert any("Type no" in row for row in told)


def test_a_terminal_that_does_not_say_its_width_is_taken_for_one_of_80_columns(kaiza, screen, workspace):
    kaiza("freeze", "x" * 200, "--as", "Ann")
    at = screen("thaw", columns=0)
    shown = at.until("Type thaw")
    at.type("no\n")
    at.end()

    assert max(map(len, shown.splitlines()[:-1])) == COLUMNS


def test_an_undo_quotes_the_rest_of_long_lines_and_lists_the_files_last(workspace, screen, plan):
    path = plan(modify='["src/**"], create: ["src/**"]')
    path.write_text(path.read_text().replace("DRAFT", "APPROVED"))
    app = App([str(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    plan_hash = app.call("list_plans", {}).output["items"][0]["plan_hash"]
    lie = "x" * 79 + "To be put back:\n" + "x" * 79 + "  modify src/harmless.py\n"
    name = "src/" + "n" * 67 + "modify src.py"
    app.call("write_file", {"path": name, "content": lie, "plan_hash": plan_hash})
    app.close()
    told = asked(screen, "undo", "--plan", "PLAN-1", question="[y/N]")

    assert [row for row in unquoted(told) if row.strip().startswith(("modify src", "modify  src"))] == []
    assert unquoted(told).count("To be put back:") == 1
    assert "To be put back:" in told[-6:]


def test_init_names_the_files_beside_its_question(workspace, screen):
    told = asked(screen, "init", "--client", "cursor", question="Type yes")

    assert any(".cursor/mcp.json" in row for row in told[-6:])


def test_a_plan_with_errors_is_shown_with_its_errors_and_facts(plan, kaiza):
    plan(more="surprise: 1\n")
    told = kaiza("plan", "show", "PLAN-1")

    assert told.status == 1
    assert "Errors:" in told.out
    assert "hash " in told.out.splitlines()[-1]


def test_colour_is_put_on_each_line_of_its_own():
    told = {
        "plan_id": "PLAN-1", "title": "t" * 100, "path": "plans/PLAN-1.md", "status": "INVALID", "allows": False,
        "why_not": "it has errors", "plan_hash": "0" * 64, "sealed": None, "findings": [],
    }  # fmt: skip
    first, second = list(shown_plan(told, COLUMNS, colour=True))[:2]

    assert (first[:4], first[-4:]) == ("\x1b[1m", "\x1b[0m")
    assert second == f"\x1b[1m{QUOTE}{'t' * 28}\x1b[0m"
