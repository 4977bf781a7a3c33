"""Cuts the lists of an answer that has no pages to the size that clients hand on whole."""

from collections.abc import Mapping
from typing import Any

from kaiza.domain.caps import Caps
from kaiza.domain.paging.response_size import AnswerBudget


def cut_lists(output: Mapping[str, Any], caps: Caps, hint: str) -> dict[str, Any]:
    """The output with its longest lists cut until it fits; then it is `truncated`, and its summary ends with the hint.

    The hint names what returns the rest.
    """
    fitting = shorten_lists(output, AnswerBudget.choose(caps))
    if fitting == output:
        return fitting
    most = caps.summary_characters - len(hint) - 1
    return {**fitting, "summary": f"{output['summary'][:most]} {hint}", "truncated": True}


def shorten_lists(document: Mapping[str, Any], budget: AnswerBudget) -> dict[str, Any]:
    """The document, with the last items of its longest lists removed until it fits."""
    over = budget.count_bytes(document) - budget.max_bytes
    lists = {name: list(value) for name, value in document.items() if isinstance(value, list)} if over > 0 else {}
    sizes = {name: sum(_count_item(item, budget) for item in items) for name, items in lists.items()}
    while over > 0 and any(lists.values()):
        longest = max(sizes, key=sizes.__getitem__)
        removed = _count_item(lists[longest].pop(), budget)
        sizes[longest] -= removed
        over -= removed
    return {**document, **lists}


def _count_item(item: object, budget: AnswerBudget) -> int:
    return budget.count_bytes(item) + budget.min_byte_cost
