"""What a terminal of 24 lines and 80 columns shows when a person is asked: an agent's text only as a quotation."""

import pytest
from scenes import put_plan

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
  none

status    DRAFT; allows no changes now
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
    """The rows of a terminal that wraps long lines itself."""
    lines = []
    for line in shown.split("\n"):
        lines.append("")
        for char in line:
            if display_width(lines[-1] + char) > COLUMNS:
                lines.append("")
            lines[-1] += char
    return lines


def ask(screen, *words):
    """The rows before a question, which is answered with no."""
    at = screen(*words, columns=COLUMNS, NO_COLOR="1")
    shown = at.answer("no")
    assert at.end() == 1
    return rows(shown)


def unquoted(lines):
    return [row for row in lines if not row.startswith(QUOTE.rstrip())]


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
    lines = ask(screen, "plan", "approve", "PLAN-1")

    assert [row for row in unquoted(lines) if "docs/x.md" in row] == []
    assert any("docs/x.md" in row for row in lines)
    assert not any("\\r" in row for row in lines)
    last = unquoted(lines[-LINES:])
    assert "What it allows:" in last
    assert "  modify  **  (1 file now)" in last
    assert any("reaches the whole workspace" in row for row in last)
    assert lines[-1].startswith("Approve PLAN-1? [y/N]")


def test_show_quotes_the_prose_and_ends_with_the_facts(plan, screen, kaiza):
    plan("x" * 100 + LIE + FACTS)
    at = screen("plan", "show", "PLAN-1", columns=COLUMNS, NO_COLOR="1")
    at.end()

    for lines in (rows(at.shown), rows(kaiza("plan", "show", "PLAN-1").out)):
        assert [row for row in unquoted(lines) if "docs/x.md" in row] == []
        assert lines[-2].startswith("in scope ")


def test_the_note_about_omitted_lines_cannot_be_imitated_by_the_text(plan, kaiza):
    plan("".join(f"line {number}\n" for number in range(500)) + "99 more lines are in the file and not shown here.\n")
    lines = kaiza("plan", "show", "PLAN-1").out.splitlines()

    assert "│ line 399" in lines
    assert "│ line 400" not in lines
    assert unquoted(lines)[3] == "101 more lines are in the file and not shown here."


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
def test_long_values_of_the_front_matter_are_wrapped_with_a_quote_mark(plan, screen, head):
    plan(**head)
    at = screen("plan", "show", "PLAN-1", columns=COLUMNS, NO_COLOR="1")
    at.end()

    for lines in (ask(screen, "plan", "approve", "PLAN-1"), rows(at.shown)):
        assert [row for row in unquoted(lines) if row.lstrip().startswith(("modify  docs", "modifydocs"))] == []
        assert "  modify  **  (1 file now)" in unquoted(lines)


@pytest.mark.parametrize(
    ("rule", "modify"),
    [
        ("long-line", '["a.py",' + " " * 400 + '"**"]'),
        ("far-apart", '["a.py",' + "\n  # harmless" * 150 + '\n  "**"]'),
        ("comment-beside", '["a.py", "**"]  # only a.py'),
    ],
)
def test_a_scope_that_is_hard_to_read_in_the_file_is_warned_of_beside_the_question(plan, screen, rule, modify):
    path = plan(modify="HERE")
    path.write_text(path.read_text().replace("scope: {modify: HERE}", f"scope:\n  modify: {modify}"))
    lines = ask(screen, "plan", "approve", "PLAN-1")

    assert any(f"[{rule}]" in row for row in lines[-LINES:])


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
def test_joiners_used_as_intended_are_not_warned_of(plan, kaiza, text):
    plan(f"{text}\n", modify='["src/a.py"]')

    assert "Warnings" not in kaiza("plan", "show", "PLAN-1").out


@pytest.mark.parametrize(
    "text", ["a\u200b", "\u200dx", "a\u200d ", "\ufe0f", "a\ufe0f\ufe0f", "\u2764\u200dx", "a\u00ad"]
)
def test_invisible_characters_are_warned_of_with_their_line(plan, kaiza, text):
    plan(f"# Why\n{text}\n", modify='["src/a.py"]')

    assert "line 11: The line contains invisible characters" in kaiza("plan", "show", "PLAN-1").out


def test_the_difference_since_approval_is_quoted_and_comes_before_the_facts(plan, screen):
    path = plan(modify='["src/*.py"]')
    approved = screen("plan", "approve", "PLAN-1")
    approved.answer("y")
    approved.end()
    path.write_text(path.read_text().replace('["src/*.py"]', '["**"]') + FACTS + "x" * 79 + LIE + "\n")
    lines = ask(screen, "plan", "approve", "PLAN-1")

    assert [row for row in unquoted(lines) if "docs/x.md" in row] == []
    assert any(row.startswith('│ +scope: {modify: ["**"]') for row in lines)
    facts = unquoted(lines)
    assert facts.index("Text:") < facts.index("Changed since approval:") < facts.index("What it allows:")


def test_a_difference_that_is_too_long_to_show_says_so(plan, screen, kaiza):
    path = plan()
    approved = screen("plan", "approve", "PLAN-1")
    approved.answer("y")
    approved.end()
    path.write_text(path.read_text() + "x\n" * 80_000)

    assert "The rest of the difference is not shown" in kaiza("plan", "show", "PLAN-1").out
    path.write_text(path.read_text().replace("x\n" * 80_000, "x\n"))
    assert "The rest of the difference" not in kaiza("plan", "show", "PLAN-1").out


def test_a_plan_id_to_be_typed_is_whole_on_a_narrow_terminal(plan, screen, workspace):
    plan_id = "PLAN-" + "A" * 59
    plan(plan_id=plan_id)
    (workspace / "kaiza.toml").write_text('[approval]\nconfirm = "id"\n')
    at = screen("plan", "approve", plan_id, columns=30)
    at.answer(plan_id, f"Type this to confirm, anything else to cancel:\n{plan_id}\n> ")

    assert at.end() == 0


def test_a_long_freeze_reason_is_wrapped_with_a_quote_mark(kaiza, screen, workspace):
    kaiza("freeze", "x" * 100 + "Thaw? [y/n] " * 3, "--as", "Ann")
    lines = ask(screen, "thaw")

    assert [row for row in unquoted(lines[:-1]) if "[y/n]" in row] == []
    assert any("[y/n]" in row for row in lines)


def test_a_terminal_of_unknown_width_gets_80_columns(kaiza, screen, workspace):
    kaiza("freeze", "x" * 200, "--as", "Ann")
    at = screen("thaw", columns=0)
    shown = at.answer("no")
    at.end()

    assert max(map(len, shown.splitlines()[:-1])) == COLUMNS


def test_undo_wraps_long_diff_lines_with_a_quote_mark_and_lists_the_files_last(workspace, screen, plan):
    path = plan(modify='["src/**"], create: ["src/**"]')
    put_plan(path, path.read_text().replace("DRAFT", "APPROVED"))
    app = App([str(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    plan_hash = app.call("list_plans", {}).output["items"][0]["plan_hash"]
    lie = "x" * 79 + "To be restored:\n" + "x" * 79 + "  modify src/harmless.py\n"
    name = "src/" + "n" * 67 + "modify src.py"
    app.call("write_file", {"path": name, "content": lie, "plan_hash": plan_hash})
    app.close()
    lines = ask(screen, "undo", "--plan", "PLAN-1")

    assert [row for row in unquoted(lines) if row.strip().startswith(("modify src", "modify  src"))] == []
    assert unquoted(lines).count("To be restored:") == 1
    assert "To be restored:" in lines[-8:]


def test_init_names_the_files_beside_its_question(workspace, screen):
    lines = ask(screen, "init", "--client", "cursor")

    assert any(".cursor/mcp.json" in row for row in lines[-6:])


def test_a_plan_with_errors_is_shown_with_its_errors_and_facts(plan, kaiza):
    plan(more="surprise: 1\n")
    lines = kaiza("plan", "show", "PLAN-1")

    assert lines.status == 1
    assert "Errors:" in lines.out
    assert "hash " in lines.out.splitlines()[-1]


def test_each_wrapped_line_is_coloured_separately():
    lines = {
        "plan_id": "PLAN-1", "title": "t" * 100, "path": "plans/PLAN-1.md", "status": "INVALID", "allows": False,
        "why_not": "it has errors", "plan_hash": "0" * 64, "sealed": None, "findings": [],
    }  # fmt: skip
    first, second = list(shown_plan(lines, COLUMNS, colour=True))[:2]

    assert (first[:4], first[-4:]) == ("\x1b[1m", "\x1b[0m")
    assert second == f"\x1b[1m{QUOTE}{'t' * 28}\x1b[0m"
