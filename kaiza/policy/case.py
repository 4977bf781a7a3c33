"""Everything a rule may look at, gathered before it is asked. Rules look at nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors
from kaiza.domain.card import Card
from kaiza.domain.paths import RelPath
from kaiza.domain.session import Facts, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call before the law."""

    card: Card
    arguments: Mapping[str, Any]
    now: str
    facts: Facts
    session: Session | None = None
    bound_role: str | None = None
    damage: str | None = None
    fault: errors.SystemError | None = None
    """What was wrong with a path the caller named, held back until the paths' turn."""
    paths: Sequence[RelPath] = ()
    """Every path the request names, as asked."""
    hidden: Sequence[RelPath] = ()
    """Those of them whose content nobody may read."""
    settings: Mapping[str, Any] = field(default_factory=dict)
