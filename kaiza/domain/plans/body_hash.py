"""Hash of a plan's text without its approval: the same for a draft and for the plan that a person made of it.

It is over values, not bytes, so that an editor or a formatter may change quotes, line ends and trailing blanks.
"""

import json
from hashlib import sha256
from typing import Any

from kaiza.domain.plans.yaml_tree import MappingNode, ScalarNode, YamlNode

_APPROVAL_KEYS = frozenset({"status", "approved_by", "approved_at"})


def compute_body_hash(root: MappingNode, prose: str) -> str:
    """Hash of a valid plan's front matter without status and approval, and of the text below it."""
    head = {name: value for name, value in _as_json(root).items() if name not in _APPROVAL_KEYS}
    lines = [line.rstrip() for line in prose.replace("\r\n", "\n").split("\n")]
    body = {"head": head, "prose": "\n".join(lines).strip("\n")}
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _as_json(node: YamlNode) -> Any:
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, MappingNode):
        return {_as_json(key): _as_json(value) for key, value in node.pairs}
    return [_as_json(item) for item in node.items]
