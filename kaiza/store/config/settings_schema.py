"""The shape of `kaiza.toml`, closed: what is not named here does not exist."""

from typing import Literal

import pydantic


class ClosedModel(pydantic.BaseModel):
    """No unknown keys, no coercion, no changing afterwards."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class AuditSection(ClosedModel):
    """`batched` syncs reads within a second; `every` syncs each record before its answer."""

    sync: Literal["batched", "every"] = "batched"


class ApprovalSection(ClosedModel):
    """`edit`: the changed word in the plan approves; `command`: only `kaiza plan approve` does."""

    require: Literal["edit", "command"] = "edit"


class LockSection(ClosedModel):
    """`report`: a report unlocks, three times a day; `person`: only a person does."""

    release: Literal["report", "person"] = "report"


class ChecksSection(ClosedModel):
    """How long a plan's checks may take."""

    seconds: int = pydantic.Field(default=300, ge=1, le=3600)


class SettingsFile(ClosedModel):
    """The whole file."""

    deny_read: list[str] = []
    allow_read: list[str] = []
    audit: AuditSection = AuditSection()
    approval: ApprovalSection = ApprovalSection()
    lock: LockSection = LockSection()
    checks: ChecksSection = ChecksSection()
