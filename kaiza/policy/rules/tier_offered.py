"""The tool is in the tier that the server was started with. Judged before the arguments."""

from kaiza.domain import errors
from kaiza.domain.tool_card import ToolCard, ToolOffer


def check_tier_offered(card: ToolCard, offer: ToolOffer) -> errors.SystemError | None:
    """Refuse tools of a higher tier."""
    if offer.has_tier(card):
        return None
    return errors.SystemError.tool_failure(
        "INSUFFICIENT_PERMISSIONS",
        human_message=f"{card.name} is not offered: this server only reads. A person can serve with --tier governed.",
        cause={"required_tier": card.tier, "current_tier": offer.tier},
    )
