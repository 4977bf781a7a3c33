"""The scope of a plan, read strictly, with warnings about what a person should look at twice."""

import re
from functools import partial

from kaiza.domain import errors
from kaiza.domain.paths import protected_names, rel_path
from kaiza.domain.paths.confusables import find_suspicious, make_visible
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.field_types import FieldReader
from kaiza.domain.plans.plan import MoveRule, Scope
from kaiza.domain.plans.yaml_tree import ScalarNode, YamlNode

MAX_PATTERNS = 1000
_WILDCARD = re.compile(r"[*?\[]")


def read_scope(shape: FieldReader, node: YamlNode) -> Scope | None:
    """A plan's own scope."""
    return _read_scope_keys(shape, node, unlocking=True)


def read_phase_scope(shape: FieldReader, node: YamlNode) -> Scope | None:
    """A phase's scope, which unlocks nothing."""
    return _read_scope_keys(shape, node, unlocking=False)


def _read_scope_keys(shape: FieldReader, node: YamlNode, *, unlocking: bool) -> Scope | None:
    allowed, denied = partial(_read_allowed, shape), partial(_read_denied, shape)
    known = {
        "modify": lambda value: shape.items(value, allowed),
        "create": lambda value: shape.items(value, allowed),
        "delete": lambda value: shape.items(value, allowed),
        "move": lambda value: shape.items(value, partial(_read_move, shape)),
        "deny": lambda value: shape.items(value, denied),
    }
    if unlocking:
        known["unlock"] = lambda value: shape.items(value, partial(_read_unlocked, shape))
    before = len(shape.findings)
    scope = Scope(**shape.mapping(node, known))
    if _count_patterns(scope) > MAX_PATTERNS:
        shape.error(node.position, "too-large", f"The scope has more than {MAX_PATTERNS} patterns", "Name fewer")
    if len(shape.findings) == before and not (scope.modify or scope.create or scope.delete or scope.move):
        shape.warn(
            node.position, "empty-scope", "The scope allows nothing", "Name paths under modify, create or delete"
        )
    return scope


def _count_patterns(scope: Scope) -> int:
    return sum(map(len, (scope.modify, scope.create, scope.delete, scope.move, scope.deny, scope.unlock)))


def _read_glob(shape: FieldReader, node: YamlNode) -> Glob | None:
    if not isinstance(node, ScalarNode) or not node.is_one_line:
        shape.error(node.position, "type", "A pattern is expected here", "Write it on one line, in quotes")
        return None
    try:
        glob = Glob.parse(node.value)
    except GlobError as fault:
        shape.error(node.position, "glob", fault.message, fault.fix)
        return None
    for _, character in find_suspicious(node.value):
        message = f"The pattern holds a character that is easily mistaken: {make_visible(character)}"
        shape.warn(node.position, "lookalike", message, "Make sure that it is meant")
        break
    if node.value != node.value.strip() or "/ " in node.value or " /" in node.value:
        shape.warn(node.position, "blank", "A name in the pattern begins or ends with a blank", "Remove the blank")
    if re.search(r"\{[^}]*,[^}]*\}", node.value):
        shape.warn(node.position, "braces", "Braces are no alternatives here", "Write one pattern for each")
    return glob


def _read_denied(shape: FieldReader, node: YamlNode) -> DenyGlob | None:
    glob = _read_glob(shape, node)
    return DenyGlob.from_glob(glob) if glob else None


def _read_allowed(shape: FieldReader, node: YamlNode) -> Glob | None:
    glob = _read_glob(shape, node)
    if glob is None:
        return None
    if _WILDCARD.search(glob.text.split("/")[0]):
        message = f"The pattern {glob.text!a} reaches the whole workspace"
        shape.warn(node.position, "broad-scope", message, "Begin with the directory that is meant")
    _warn_out_of_reach(shape, node, glob)
    return glob


def _warn_out_of_reach(shape: FieldReader, node: YamlNode, glob: Glob) -> None:
    """Say so early where a pattern names what no plan, or no plan without `unlock`, reaches."""
    fixed = glob.prefix if glob.is_literal else glob.prefix.rpartition("/")[0]
    named = RelPath(tuple(part for part in fixed.split("/") if part))
    if protected_names.is_control_plane(named):
        shape.warn(node.position, "never-allowed", "No plan reaches what governs the agent", "Leave it out")
    elif protected_names.is_unreadable(named):
        shape.warn(node.position, "never-allowed", "What may not be read may not be changed", "Leave it out")
    elif protected_names.find_steering_part(named):
        shape.warn(node.position, "needs-unlock", "This steers agents or editors", "Name the path under unlock, too")


def _read_move(shape: FieldReader, node: YamlNode) -> MoveRule | None:
    allowed = partial(_read_allowed, shape)
    told = shape.mapping(node, {"from": allowed, "to": allowed}, ("from", "to"))
    source, target = told.get("from"), told.get("to")
    return MoveRule(source, target) if source and target else None


def _read_unlocked(shape: FieldReader, node: YamlNode) -> RelPath | None:
    """One literal path; a person must see exactly what is opened."""
    glob = _read_glob(shape, node)
    if glob is None or not isinstance(node, ScalarNode):
        return None
    if _WILDCARD.search(node.value):
        shape.error(node.position, "unlock-literal", "A pattern unlocks nothing", "Name the path itself")
        return None
    try:
        path = rel_path.parse(node.value)
    except errors.SystemError:
        shape.error(node.position, "unlock-literal", "This is no path", "Name the path itself")
        return None
    return _check_unlockable(shape, node, path)


def _check_unlockable(shape: FieldReader, node: YamlNode, path: RelPath) -> RelPath | None:
    if protected_names.is_control_plane(path) or protected_names.is_unreadable(path):
        shape.error(node.position, "unlock-never", "Nothing unlocks this path", "Leave it out")
        return None
    if protected_names.find_steering_part(path) is None:
        shape.warn(node.position, "unlock-nothing", "This path is not protected", "Leave it out")
    else:
        shape.warn(node.position, "unlock", f"The plan unlocks {path}", "Approve only if agents may change it")
    return path
