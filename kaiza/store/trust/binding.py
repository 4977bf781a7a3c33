"""Binding of a workspace to this machine's state directory: new, bound or foreign."""

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """Whether the workspace's own files may give authority here."""

    NEW = "new"
    BOUND = "bound"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Binding:
    """Standing of a workspace, and the log's records that may only restrict."""

    standing: Standing = Standing.BOUND
    adopted_seq: int = 0
    """Records up to this number were written elsewhere: of them only restrictions count."""

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else may have written the workspace, and no person here has adopted it."""
        return self.standing is Standing.FOREIGN
