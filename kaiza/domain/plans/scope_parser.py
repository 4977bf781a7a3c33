"""Parser of a plan's scope, with warnings about patterns that a person should check before approving."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

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


def read_scope(reader: FieldReader, node: YamlNode, *, of_phase: bool = False) -> Scope | None:
    """Read the scope of a plan or of a phase, which cannot have `unlock`."""
    items: dict[str, Callable[[YamlNode], Any]] = {
        **dict.fromkeys(("modify", "create", "delete"), partial(_read_allowed, reader)),
        "move": partial(_read_move, reader),
        "deny": lambda item: (glob := _read_glob(reader, item)) and DenyGlob.from_glob(glob),
        "unlock": partial(_read_unlocked, reader),
    }
    if of_phase:
        del items["unlock"]
    readers = {name: partial(reader.read_list, read=read_item) for name, read_item in items.items()}
    finding_count = len(reader.findings)
    scope = Scope(**reader.read_mapping(node, readers))
    lists = (scope.modify, scope.create, scope.delete, scope.move, scope.deny, scope.unlock)
    if sum(map(len, lists)) > MAX_PATTERNS:
        reader.add_error(node.position, "too-large", f"The scope has more than {MAX_PATTERNS} patterns", "Use fewer")
    # Not where patterns could not be read: then they are missing only because of an error.
    if len(reader.findings) == finding_count and not (scope.modify or scope.create or scope.delete or scope.move):
        reader.add_warning(
            node.position, "empty-scope", "The scope allows no changes", "List paths under modify, create or delete"
        )
    return scope


def _read_glob(reader: FieldReader, node: YamlNode) -> Glob | None:
    if not isinstance(node, ScalarNode) or not node.is_one_line:
        reader.add_error(node.position, "type", "A pattern is expected here", "Write it on one line, in quotes")
        return None
    try:
        glob = Glob.parse(node.value)
    except GlobError as error:
        reader.add_error(node.position, "glob", error.message, error.fix)
        return None
    _warn_about_text(reader, node)
    return glob


def _warn_about_text(reader: FieldReader, node: ScalarNode) -> None:
    for _, character in find_suspicious(node.value):
        message = f"The pattern contains a character that looks like another: {make_visible(character)}"
        reader.add_warning(node.position, "lookalike", message, "Check that it is intended")
        break
    if node.value != node.value.strip() or "/ " in node.value or " /" in node.value:
        message = "A name in the pattern begins or ends with a space"
        reader.add_warning(node.position, "blank", message, "Remove the space")
    if re.search(r"\{[^}]*,[^}]*\}", node.value):
        message = "Braces do not list alternatives here"
        reader.add_warning(node.position, "braces", message, "Write one pattern for each alternative")


def _read_allowed(reader: FieldReader, node: YamlNode) -> Glob | None:
    glob = _read_glob(reader, node)
    if glob is None:
        return None
    if _WILDCARD.search(glob.text.split("/")[0]):
        message = f"The pattern {glob.text!a} reaches the whole workspace"
        reader.add_warning(node.position, "broad-scope", message, "Begin it with a directory")
    _warn_out_of_reach(reader, node, glob)
    return glob


def _warn_out_of_reach(reader: FieldReader, node: YamlNode, glob: Glob) -> None:
    """Warn about a pattern that names protected paths; changes to them would be refused later."""
    prefix = glob.prefix if glob.is_literal else glob.prefix.rpartition("/")[0]
    path = RelPath(tuple(part for part in prefix.split("/") if part))
    if protected_names.is_control_plane(path):
        message = "No plan can allow changes to Kaiza's own files or to git's"
        reader.add_warning(node.position, "never-allowed", message, "Remove it")
    elif protected_names.is_unreadable(path):
        message = "No plan can allow changes to files that may not be read"
        reader.add_warning(node.position, "never-allowed", message, "Remove it")
    elif protected_names.find_steering_part(path):
        message = "This path steers agents, editors or automation"
        reader.add_warning(node.position, "needs-unlock", message, "List the path under unlock, too")


def _read_move(reader: FieldReader, node: YamlNode) -> MoveRule | None:
    allowed = partial(_read_allowed, reader)
    fields = reader.read_mapping(node, {"from": allowed, "to": allowed}, ("from", "to"))
    source, target = fields.get("from"), fields.get("to")
    return MoveRule(source, target) if source and target else None


def _read_unlocked(reader: FieldReader, node: YamlNode) -> RelPath | None:
    """Read a literal path. No patterns: the person who approves must see exactly what is unlocked."""
    glob = _read_glob(reader, node)
    if glob is None or not isinstance(node, ScalarNode):
        return None
    if _WILDCARD.search(node.value):
        reader.add_error(node.position, "unlock-literal", "A pattern cannot be unlocked", "Write the path itself")
        return None
    try:
        path = rel_path.parse(node.value)
    except errors.SystemError:
        reader.add_error(node.position, "unlock-literal", "This is not a valid path", "Write the path itself")
        return None
    if protected_names.is_control_plane(path) or protected_names.is_unreadable(path):
        reader.add_error(node.position, "unlock-never", "This path cannot be unlocked", "Remove it")
        return None
    if protected_names.find_steering_part(path) is None:
        reader.add_warning(node.position, "unlock-nothing", "This path is not protected", "Remove it")
    else:
        reader.add_warning(node.position, "unlock", f"The plan unlocks {path}", "Approve only if agents may change it")
    return path
