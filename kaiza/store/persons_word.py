"""What a person decides is a record of kind `person`, durable before it takes effect."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kaiza.domain.record import Body, compose
from kaiza.store.ground import Ground

Check = Callable[[], None]


def now() -> str:
    """The time as records tell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def follow(ground: Ground) -> None:
    """What every process recorded so far is known when this returns."""
    if ground.recording():
        ground.log.catch_up()


def give(ground: Ground, action: str, person: str, check: Check | None = None, **members: Any) -> Mapping[str, Any]:
    """The word is on disk when this returns. `check` is asked under the log's lock; what it raises, nothing is written.

    `members` are the record's own, `detail` more of what it tells.
    """
    detail = {"action": action, "person": person, **members.pop("detail", {})}

    def make() -> Body:
        if check is not None:
            check()
        return compose("person", timestamp=now(), workspace_root=ground.root, outcome="ok", detail=detail, **members)

    return ground.log.append(make, durable=True)


def seal(ground: Ground, plan_id: str, plan_hash: str, detail: Mapping[str, Any]) -> None:
    """The bytes that a person approved by command count from now on, and no others of that name."""
    members = {"plan_id": plan_id, "plan_hash": plan_hash, "detail": {"how": "command", **detail}}
    ground.log.append(lambda: compose("plan", timestamp=now(), workspace_root=ground.root, **members), durable=True)
