"""Schemas of the files with settings, as pydantic models. Imported only if there is a file to validate."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pydantic

from kaiza.store.config.settings import PERIOD_PATTERN


class ClosedModel(pydantic.BaseModel):
    """Immutable model that refuses unknown keys and does not coerce values."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class AuditSection(ClosedModel):
    """`batched`: records of reads are synced within a second; `every`: each record before its answer."""

    sync: Literal["batched", "every"] = "batched"


class ApprovalSection(ClosedModel):
    """What approves a plan, and how a person confirms at the terminal.

    `edit`: setting the status in the plan file approves it; `command`: only `kaiza plan approve` does.
    `yes`: commands ask `[y/N]`; `id`: `kaiza plan approve` asks for the plan's id, others for a word.
    """

    require: Literal["edit", "command", "signature"] = "edit"
    confirm: Literal["yes", "id"] = "yes"


class LockSection(ClosedModel):
    """`report`: an agent's report releases its lock, three times a day; `person`: only a person does."""

    release: Literal["report", "person"] = "report"


class ChecksSection(ClosedModel):
    """Time limit of each of a plan's checks, and what their sandbox allows."""

    seconds: int = pydantic.Field(default=300, ge=1, le=3600)
    network: bool = False
    writable: list[Annotated[str, pydantic.Field(pattern=r"^~?/[^/\x00][^\x00]*$")]] = []


class AnswersSection(ClosedModel):
    """Size of an answer that was not asked to be longer."""

    # The largest answer of this size fits into a response, however much of it has to be escaped.
    bytes: int = pydantic.Field(default=32 * 1024, ge=8 * 1024, le=160 * 1024)


class ObjectsSection(ClosedModel):
    """How long `kaiza gc` keeps earlier contents of changed files: days or weeks, such as `90d` or `8w`."""

    keep: str = pydantic.Field(default="30d", pattern=f"^{PERIOD_PATTERN}$")


class SettingsFile(ClosedModel):
    """Schema of `kaiza.toml`."""

    deny_read: list[str] = []
    allow_read: list[str] = []
    audit: AuditSection = AuditSection()
    approval: ApprovalSection = ApprovalSection()
    lock: LockSection = LockSection()
    checks: ChecksSection = ChecksSection()
    answers: AnswersSection = AnswersSection()
    objects: ObjectsSection = ObjectsSection()

    def list_values(self) -> dict[str, Any]:
        """The settings that the file sets, by dotted key."""
        values: dict[str, Any] = {}
        for name, value in self.model_dump(exclude_unset=True, exclude={"trust"}).items():
            values.update(
                {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
            )
        return values


class MergedSection(ClosedModel):
    """A repository, and the ref into which a plan is merged to be approved."""

    repository: str = pydantic.Field(pattern=r"^(/|~/)")
    ref: str = pydantic.Field(min_length=1)


class MachineMergedSection(MergedSection):
    """As above; `everything_below` means every repository below the directory as well."""

    everything_below: bool = False


class TrustSection(ClosedModel):
    """What gives authority apart from a person at the terminal; `project` is the name in signatures."""

    project: str | None = pydantic.Field(default=None, min_length=1)
    merged: Sequence[MergedSection] = []


class MachineTrustSection(TrustSection):
    """As above, for the whole machine."""

    merged: Sequence[MachineMergedSection] = []


class UserFile(SettingsFile):
    """Schema of `~/.config/kaiza/config.toml`."""

    trust: TrustSection = TrustSection()


class MachineFile(UserFile):
    """Schema of `/etc/kaiza/config.toml`."""

    trust: MachineTrustSection = MachineTrustSection()


SCHEMAS = MappingProxyType({"workspace": SettingsFile, "user": UserFile, "machine": MachineFile})
