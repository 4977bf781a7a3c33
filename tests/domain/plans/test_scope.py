import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paths.rel_path import parse
from kaiza.domain.plans import parser
from kaiza.domain.plans.scope import (
    CREATE,
    DELETE,
    MODIFY,
    MOVE,
    RequestedOperation,
    find_violation,
    is_allowed,
    is_unlocked,
)

OPERATIONS = (MODIFY, CREATE, DELETE)


def plan(scope, phases="[]"):
    head = (
        "kaiza_plan: 1\nplan_id: P\ntitle: t\nstatus: APPROVED\nauthor: a\ncreated: 2026-11-18\n"
        f"scope: {scope}\nphases: {phases}\n"
    )
    parsed = parser.parse(f"---\n{head}---\n".encode())
    assert parsed.plan, parsed.findings
    return parsed.plan


def requested(operation, path, source=None, **more):
    return RequestedOperation(operation, parse(path), parse(source) if source else None, **more)


SCOPE = "{modify: ['src/*.py'], create: ['new/*'], delete: ['old/**'], deny: ['**/keys/**', 'src/no.py']}"


@pytest.mark.parametrize(
    ("operation", "path"), [(MODIFY, "src/a.py"), (CREATE, "new/a"), (DELETE, "old/a/b"), (DELETE, "old/b")]
)
def test_an_operation_that_matches_its_patterns_is_allowed(operation, path):
    assert find_violation(plan(SCOPE), None, [requested(operation, path)]) is None


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (MODIFY, "src/sub/a.py"),
        (MODIFY, "a.py"),
        (MODIFY, "src/a.PY"),
        (CREATE, "src/a.py"),
        (DELETE, "src/a.py"),
        (MODIFY, "new/a"),
        (CREATE, "new/sub/a"),
        (MODIFY, "src/no.py"),
        (DELETE, "old/keys/a"),
        (DELETE, "old"),
        ("chmod", "src/a.py"),
    ],
)
def test_every_other_operation_is_a_violation(operation, path):
    violation = find_violation(plan(SCOPE), None, [requested(operation, path)])

    assert violation.path == path


def test_the_first_violation_is_returned():
    violation = find_violation(
        plan(SCOPE), None, [requested(MODIFY, "src/a.py"), requested(MODIFY, "lib/a.py"), requested(MODIFY, "x")]
    )

    assert violation.path == "lib/a.py"


def test_an_empty_scope_allows_nothing():
    assert all(find_violation(plan("{}"), None, [requested(operation, "a")]) for operation in OPERATIONS)


def test_a_violation_names_the_nearest_patterns_and_other_operations():
    both = plan("{modify: ['docs/*.md', 'src/auth/*.py', 'src/x/y.py'], create: ['src/auth/new.py'], deny: [a]}")

    assert find_violation(both, None, [requested(MODIFY, "src/auth/deep/a.py")]).nearest_patterns[0] == "src/auth/*.py"
    assert find_violation(both, None, [requested(MODIFY, "src/auth/new.txt")]).allowed_operations == ()
    assert find_violation(both, None, [requested(CREATE, "src/auth/a.py")]).allowed_operations == ("modify",)
    assert find_violation(both, None, [requested(MODIFY, "a")]).denied_by == "a"


def test_a_phase_narrows_and_never_widens():
    phased = plan(
        "{modify: ['src/*'], deny: ['src/no']}",
        "[{phase_id: A, scope: {modify: ['src/a', 'lib/x', 'src/no']}}, {phase_id: B}, {phase_id: C, scope: {}},"
        " {phase_id: D, scope: {modify: ['**'], deny: ['src/d']}}]",
    )

    def is_modifiable(phase, path):
        return find_violation(phased, phased.phase(phase), [requested(MODIFY, path)]) is None

    assert is_modifiable("A", "src/a")
    assert not is_modifiable("A", "src/b")
    assert not is_modifiable("A", "lib/x")
    assert not is_modifiable("A", "src/no")
    assert is_modifiable("B", "src/b")
    assert not is_modifiable("C", "src/a")
    assert is_modifiable("D", "src/a")
    assert not is_modifiable("D", "src/d")
    assert find_violation(phased, phased.phase("A"), [requested(MODIFY, "src/b")]).only_phase


MOVING = "{move: [{from: 'a/*', to: 'b/*'}, {from: 'c/*', to: 'd/*'}], modify: ['a/edit'], deny: ['b/no', 'a/no']}"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a/x", "b/x", True),
        ("c/x", "d/y", True),
        ("a/x", "d/x", False),
        ("b/x", "a/x", False),
        ("a/x", "a/y", False),
        ("a/no", "b/x", False),
        ("a/x", "b/no", False),
        ("a/x", "out", False),
        ("out", "b/x", False),
    ],
)
def test_a_move_needs_one_rule_that_matches_both_paths(source, target, expected):
    assert is_allowed(plan(MOVING).scope, requested(MOVE, target, source)) is expected


def test_an_edited_move_must_also_be_allowed_as_a_modification():
    assert is_allowed(plan(MOVING).scope, requested(MOVE, "b/edit", "a/edit", edited=True))
    assert not is_allowed(plan(MOVING).scope, requested(MOVE, "b/x", "a/x", edited=True))


def test_delete_and_create_do_not_allow_a_move():
    assert not is_allowed(plan("{delete: [a], create: [b], modify: [a, b]}").scope, requested(MOVE, "b", "a"))


def test_a_violation_by_a_move_names_the_path_that_is_not_allowed():
    assert find_violation(plan(MOVING), None, [requested(MOVE, "b/x", "out")]).path == "out"
    assert find_violation(plan(MOVING), None, [requested(MOVE, "out", "a/x")]).path == "out"
    assert find_violation(plan(MOVING), None, [requested(MOVE, "b/no", "a/x")]).denied_by == "b/no"


def test_only_a_listed_path_and_what_is_below_it_is_unlocked():
    unlocking = plan("{modify: ['**'], unlock: [AGENTS.md, .claude/settings.json, .github/workflows]}")

    assert is_unlocked(unlocking, parse("src/a.py"))
    assert is_unlocked(unlocking, parse("AGENTS.md"))
    assert is_unlocked(unlocking, parse(".claude/settings.json"))
    assert is_unlocked(unlocking, parse(".github/workflows/ci.yml"))
    assert not is_unlocked(unlocking, parse("agents.md"))
    assert not is_unlocked(unlocking, parse("sub/AGENTS.md"))
    assert not is_unlocked(unlocking, parse(".claude/hooks.json"))
    assert not is_unlocked(unlocking, parse(".claude"))
    assert not is_unlocked(unlocking, parse(".github/hooks/x"))
    assert not is_unlocked(plan("{modify: ['**']}"), parse("CLAUDE.md"))
    assert not is_unlocked(plan("{modify: ['**'], unlock: [src]}"), parse("src/AGENTS.md"))


_paths = st.lists(st.sampled_from(["a", "b", "src", "x.py"]), min_size=1, max_size=3).map("/".join)
_globs = st.lists(st.sampled_from(["a", "*", "**", "src", "*.py", "b"]), min_size=1, max_size=3).map("/".join)
_lists = st.lists(_globs, max_size=3).map(lambda globs: str(list(globs)))


@given(_lists, _lists, _lists, _lists, st.sampled_from(OPERATIONS), _paths)
def test_phases_and_denials_never_allow_more(modify, create, deny, phase_modify, operation, path):
    without_denials = plan(f"{{modify: {modify}, create: {create}}}")
    narrowed = plan(
        f"{{modify: {modify}, create: {create}, deny: {deny}}}",
        f"[{{phase_id: A, scope: {{modify: {phase_modify}, create: {create}}}}}]",
    )
    operations = [requested(operation, path)]

    if find_violation(narrowed, narrowed.phase("A"), operations) is None:
        assert find_violation(narrowed, None, operations) is None
        assert find_violation(without_denials, None, operations) is None
