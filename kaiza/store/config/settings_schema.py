"""Schema of `kaiza.toml` as pydantic models. Imported only if there is a file to validate."""

from typing import Literal

import pydantic


class ClosedModel(pydantic.BaseModel):
    """Immutable model that refuses unknown keys and does not coerce values."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class AuditSection(ClosedModel):
    """`batched`: records of reads are synced within a second; `every`: each record before its answer."""

    sync: Literal["batched", "every"] = "batched"


class ApprovalSection(ClosedModel):
    """`edit`: setting the status in the plan file approves it; `command`: only `kaiza plan approve` does."""

    require: Literal["edit", "command"] = "edit"


class LockSection(ClosedModel):
    """`report`: an agent's report releases its lock, three times a day; `person`: only a person does."""

    release: Literal["report", "person"] = "report"


class ChecksSection(ClosedModel):
    """Time limit of each of a plan's checks."""

    seconds: int = pydantic.Field(default=300, ge=1, le=3600)


class SettingsFile(ClosedModel):
    """Schema of `kaiza.toml`."""

    deny_read: list[str] = []
    allow_read: list[str] = []
    audit: AuditSection = AuditSection()
    approval: ApprovalSection = ApprovalSection()
    lock: LockSection = LockSection()
    checks: ChecksSection = ChecksSection()
