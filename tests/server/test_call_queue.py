"""Which call runs next: lanes that never wait for each other, and principals that take turns."""

import json
from pathlib import Path

import pytest

from kaiza.server.call_queue import CHANGES, CHECKS, MAX_STUCK, READS, SCANS, CallQueue, Lane, QueuedCall, find_lane

CATALOG = json.loads((Path(__file__).parents[2] / "schemas" / "catalog.json").read_text())["tools"]
SCAN_CATEGORIES = {"search", "project", "audit", "context"}
SCAN_TOOLS = {"end_session", "undo_changes"}
SMALL = Lane("small", places=2, stuck_after=1.0)


def put(queue, count, principal=None, lane=SCANS):
    calls = [QueuedCall(lane, principal) for _ in range(count)]
    for call in calls:
        queue.add(call)
    return calls


def take_all(queue, now=0.0):
    return list(iter(lambda: queue.take(now), None))


def expected_lane(row):
    if row["id"] == "run_checks":
        return CHECKS
    if row["id"] in SCAN_TOOLS or row["category"] in SCAN_CATEGORIES:
        return SCANS
    return READS if row["safety_level"] == "read" else CHANGES


@pytest.mark.parametrize("row", CATALOG, ids=[row["id"] for row in CATALOG])
def test_each_tool_has_its_lane_by_name_and_alias(row):
    names = [row["id"], *row.get("aliases", ())]

    assert [find_lane(name).name for name in names] == [expected_lane(row).name] * len(names)


def test_calls_of_one_caller_run_in_their_order_up_to_the_places_of_their_lane():
    queue = CallQueue()
    calls = put(queue, SCANS.places + 2)
    first = take_all(queue)
    queue.finish(first[1])

    assert first == calls[: SCANS.places]
    assert take_all(queue) == [calls[SCANS.places]]
    assert queue.is_waiting()


def test_lanes_do_not_wait_for_each_other():
    queue = CallQueue()
    for lane in (CHECKS, CHANGES, SCANS):
        put(queue, 50, lane=lane)
    take_all(queue)
    (read,) = put(queue, 1, lane=READS)

    assert queue.take(0.0) is read


def test_principals_take_turns_however_many_calls_each_has():
    queue = CallQueue()
    put(queue, 40, "a")
    put(queue, 40, "b")
    put(queue, 2, "c")
    running = take_all(queue)
    order = [call.principal for call in running]
    while len(order) < 10:
        queue.finish(running.pop(0))
        running += take_all(queue)
        order.append(running[-1].principal)

    assert "".join(order) == "abcabcabab"


def test_one_principal_leaves_a_place_to_others():
    queue = CallQueue()
    put(queue, 50, "a")
    own = take_all(queue)
    (other,) = put(queue, 1, "b")

    assert len(own) == SCANS.places - 1
    assert take_all(queue) == [other]


def test_a_call_that_takes_long_in_a_small_lane_makes_room_only_when_its_time_is_up():
    queue = CallQueue()
    calls = put(queue, 3, lane=SMALL)
    first = take_all(queue, now=5.0)

    assert take_all(queue, now=5.9) == []
    assert (first, take_all(queue, now=6.0)) == (calls[:2], calls[2:])


def test_stuck_calls_are_bounded_and_one_principal_leaves_a_quarter_of_them_to_others():
    queue = CallQueue()
    put(queue, 100, "a", lane=READS)
    own = sum(len(take_all(queue, now)) for now in range(100))
    put(queue, 100, "b", lane=READS)
    other = sum(len(take_all(queue, now)) for now in range(100, 200))

    assert own == 3 * READS.places // 4 + 3 * MAX_STUCK // 4
    assert own + other == READS.places + MAX_STUCK


def test_a_stuck_call_that_ends_makes_room_for_another_stuck_one():
    queue = CallQueue()
    put(queue, 100)
    running = take_all(queue)
    first = running[-1]
    for _ in range(MAX_STUCK + 1):
        queue.release_stuck(running[-1])
        running += take_all(queue)
    full = len(running)
    queue.finish(first)
    queue.release_stuck(running[-1])

    assert full == MAX_STUCK + SCANS.places
    assert len(take_all(queue)) == 1


def test_a_call_that_was_removed_is_not_taken():
    queue = CallQueue()
    first, second = put(queue, 2, "a")
    queue.remove(first)
    queue.remove(first)
    taken = take_all(queue)
    queue.remove(second)

    assert taken == [second]
    assert not queue.is_waiting()


def test_a_call_that_has_ended_does_not_make_room_twice():
    queue = CallQueue()
    put(queue, 3 * SCANS.places)
    running = take_all(queue)
    queue.finish(running[0])
    queue.release_stuck(running[0])
    queue.finish(running[0])

    assert len(take_all(queue)) == 1
