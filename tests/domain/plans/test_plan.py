import pytest

from kaiza.domain.plans.plan import Limits, PlanUsage, overrun_after, overrun_before


def used():
    return PlanUsage(files={"a": 2, "b": 1}, lines=10, bytes=100, operations=3, refusals=1)


@pytest.mark.parametrize(
    ("limits", "paths", "operations", "limit"),
    [
        (Limits(), ["c", "d"], 2, None),
        (Limits(files=3), ["c"], 1, None),
        (Limits(files=3), ["c", "d"], 2, "files"),
        (Limits(files=3), ["c", "c"], 2, None),
        (Limits(files=2), ["a", "b"], 2, None),
        (Limits(files=2), ["c"], 1, "files"),
        (Limits(files=0), ["a"], 1, None),
        (Limits(operations=4), ["a"], 1, None),
        (Limits(operations=4), ["a", "b"], 2, "operations"),
        (Limits(operations=3), ["a"], 1, "operations"),
        (Limits(refusals=2), ["a"], 1, None),
        (Limits(refusals=1), ["a"], 1, "refusals"),
        (Limits(refusals=1, operations=1, files=1), ["c"], 1, "refusals"),
        (Limits(operations=1, files=1), ["c"], 1, "operations"),
    ],
)
def test_limits_on_refusals_operations_and_files_are_checked_before_the_change(limits, paths, operations, limit):
    overrun = overrun_before(limits, used(), paths, operations)

    assert (overrun.limit if overrun else None) == limit


@pytest.mark.parametrize(
    ("limits", "lines", "size", "limit"),
    [
        (Limits(), 10**9, 10**9, None),
        (Limits(lines=12), 2, 0, None),
        (Limits(lines=12), 3, 0, "lines"),
        (Limits(lines=5), 0, 0, None),
        (Limits(bytes=110), 0, 10, None),
        (Limits(bytes=110), 0, 11, "bytes"),
        (Limits(lines=1, bytes=1), 1, 1, "lines"),
    ],
)
def test_limits_on_lines_and_bytes_are_checked_on_the_result(limits, lines, size, limit):
    overrun = overrun_after(limits, used(), lines, size)

    assert (overrun.limit if overrun else None) == limit


def test_an_overrun_has_limit_used_and_asked():
    overrun = overrun_after(Limits(lines=12), used(), 3, 0)

    assert (overrun.allowed, overrun.used, overrun.asked) == (12, 10, 3)
