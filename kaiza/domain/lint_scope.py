"""The scope of a plan, read strictly, with warnings about what a person should look at twice."""

import re
from functools import partial

from kaiza.domain import errors, paths, protected_names
from kaiza.domain.denial import Denial
from kaiza.domain.glob_parser import GlobError
from kaiza.domain.globs import Glob
from kaiza.domain.lookalike import suspicious, visible
from kaiza.domain.paths import RelPath
from kaiza.domain.plan import Move, Scope
from kaiza.domain.shape import Shape
from kaiza.domain.words import Node, Word

MAX_PATTERNS = 1000
_WILD = re.compile(r"[*?\[]")


def read_scope(shape: Shape, node: Node) -> Scope | None:
    """A plan's own scope."""
    return _scope(shape, node, unlocking=True)


def read_phase_scope(shape: Shape, node: Node) -> Scope | None:
    """A phase's scope, which unlocks nothing."""
    return _scope(shape, node, unlocking=False)


def _scope(shape: Shape, node: Node, *, unlocking: bool) -> Scope | None:
    allowed, denied = partial(_allowed, shape), partial(_denied, shape)
    known = {
        "modify": lambda value: shape.items(value, allowed),
        "create": lambda value: shape.items(value, allowed),
        "delete": lambda value: shape.items(value, allowed),
        "move": lambda value: shape.items(value, partial(_move, shape)),
        "deny": lambda value: shape.items(value, denied),
    }
    if unlocking:
        known["unlock"] = lambda value: shape.items(value, partial(_unlocked, shape))
    before = len(shape.findings)
    scope = Scope(**shape.keys(node, known))
    if _size(scope) > MAX_PATTERNS:
        shape.error(node.place, "too-large", f"The scope has more than {MAX_PATTERNS} patterns", "Name fewer")
    if len(shape.findings) == before and not (scope.modify or scope.create or scope.delete or scope.move):
        shape.warn(node.place, "empty-scope", "The scope allows nothing", "Name paths under modify, create or delete")
    return scope


def _size(scope: Scope) -> int:
    return sum(map(len, (scope.modify, scope.create, scope.delete, scope.move, scope.deny, scope.unlock)))


def _glob(shape: Shape, node: Node) -> Glob | None:
    if not isinstance(node, Word) or not node.one_line:
        shape.error(node.place, "type", "A pattern is expected here", "Write it on one line, in quotes")
        return None
    try:
        glob = Glob.parse(node.value)
    except GlobError as fault:
        shape.error(node.place, "glob", fault.message, fault.fix)
        return None
    for _, character in suspicious(node.value):
        message = f"The pattern holds a character that is easily mistaken: {visible(character)}"
        shape.warn(node.place, "lookalike", message, "Make sure that it is meant")
        break
    if node.value != node.value.strip() or "/ " in node.value or " /" in node.value:
        shape.warn(node.place, "blank", "A name in the pattern begins or ends with a blank", "Remove the blank")
    if re.search(r"\{[^}]*,[^}]*\}", node.value):
        shape.warn(node.place, "braces", "Braces are no alternatives here", "Write one pattern for each")
    return glob


def _denied(shape: Shape, node: Node) -> Denial | None:
    glob = _glob(shape, node)
    return Denial.of(glob) if glob else None


def _allowed(shape: Shape, node: Node) -> Glob | None:
    glob = _glob(shape, node)
    if glob is None:
        return None
    if _WILD.search(glob.text.split("/")[0]):
        message = f"The pattern {glob.text!a} reaches the whole workspace"
        shape.warn(node.place, "broad-scope", message, "Begin with the directory that is meant")
    _warn_out_of_reach(shape, node, glob)
    return glob


def _warn_out_of_reach(shape: Shape, node: Node, glob: Glob) -> None:
    """Say so early where a pattern names what no plan, or no plan without `unlock`, reaches."""
    fixed = glob.prefix if glob.literal else glob.prefix.rpartition("/")[0]
    named = RelPath(tuple(part for part in fixed.split("/") if part))
    if protected_names.is_control_plane(named):
        shape.warn(node.place, "never-allowed", "No plan reaches what governs the agent", "Leave it out")
    elif protected_names.is_unreadable(named):
        shape.warn(node.place, "never-allowed", "What may not be read may not be changed", "Leave it out")
    elif protected_names.steering(named):
        shape.warn(node.place, "needs-unlock", "This steers agents or editors", "Name the path under unlock, too")


def _move(shape: Shape, node: Node) -> Move | None:
    allowed = partial(_allowed, shape)
    told = shape.keys(node, {"from": allowed, "to": allowed}, ("from", "to"))
    source, target = told.get("from"), told.get("to")
    return Move(source, target) if source and target else None


def _unlocked(shape: Shape, node: Node) -> RelPath | None:
    """One literal path; a person must see exactly what is opened."""
    glob = _glob(shape, node)
    if glob is None or not isinstance(node, Word):
        return None
    if _WILD.search(node.value):
        shape.error(node.place, "unlock-literal", "A pattern unlocks nothing", "Name the path itself")
        return None
    try:
        path = paths.parse(node.value)
    except errors.SystemError:
        shape.error(node.place, "unlock-literal", "This is no path", "Name the path itself")
        return None
    return _judged(shape, node, path)


def _judged(shape: Shape, node: Node, path: RelPath) -> RelPath | None:
    if protected_names.is_control_plane(path) or protected_names.is_unreadable(path):
        shape.error(node.place, "unlock-never", "Nothing unlocks this path", "Leave it out")
        return None
    if protected_names.steering(path) is None:
        shape.warn(node.place, "unlock-nothing", "This path is not protected", "Leave it out")
    else:
        shape.warn(node.place, "unlock", f"The plan unlocks {path}", "Approve only if agents may change it")
    return path
