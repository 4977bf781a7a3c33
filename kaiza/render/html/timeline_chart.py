"""Timeline as an SVG drawing: a lane for each actor, a shape for each kind of event, the spans of locks behind them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kaiza.domain.review.report import (
    ACTOR_NAMES,
    ACTORS,
    EventKind,
    LockedSpan,
    ReviewReport,
    Timeline,
    TimelineEvent,
)
from kaiza.render.html.markup import Html, escape, escape_plain, render_section, tag
from kaiza.render.terminal import format_count, format_time

_LEFT, _RIGHT, _TOP, _LANE, _WIDTH = 96, 880, 22, 42, 900
_HEIGHT = _TOP + _LANE * len(ACTORS) + 26
_MAX_MARKS = 400
"""Marks of a lane that are drawn one by one; above it they are counted in bins."""
_BINS = 120
_TICKS = 4
_MAX_STEPS = 60
"""Up to so many events each has a place of its own; more are placed in proportion to the time."""
_NEVER_BINNED = frozenset({"refusal", "locking_refusal", "approval", "decision", "outside", "recovery"})
_STYLES: dict[EventKind, tuple[str, str]] = {
    "read": ("tick", "read"),
    "draft": ("tick", "read"),
    "report": ("tick", "read"),
    "change": ("square", "change"),
    "undo": ("square", "undone"),
    "undone_change": ("square", "undone"),
    "refusal": ("diamond", "refused"),
    "locking_refusal": ("octagon", "locking"),
    "approval": ("flag", "approval"),
    "decision": ("flag", "approval"),
    "recovery": ("triangle", "change"),
    "outside": ("triangle", "outside"),
}
_LEGEND: tuple[tuple[EventKind, str], ...] = (
    ("read", "read, draft, report"),
    ("change", "change"),
    ("undone_change", "undo, or undone"),
    ("refusal", "refusal"),
    ("locking_refusal", "refusal that locked"),
    ("approval", "approval, decision"),
    ("outside", "without Kaiza"),
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Times to places from left to right: in proportion, or one step for each event where there are few."""

    begin: float
    end: float
    steps: tuple[tuple[float, int], ...] = ()
    """Time and record of each event of a short timeline, in order."""

    def place(self, timestamp: str, seq: int | None = None) -> float:
        seconds = _seconds(timestamp, self.begin)
        if self.steps:
            share = bisect_left(self.steps, (seconds, seq or 0)) / max(len(self.steps) - 1, 1)
        else:
            share = (seconds - self.begin) / ((self.end - self.begin) or 1.0)
        return round(_LEFT + min(max(share, 0.0), 1.0) * (_RIGHT - _LEFT), 1)

    def time_at(self, share: float) -> float:
        """The time that belongs to a place, for the axis."""
        if self.steps:
            return self.steps[round(share * (len(self.steps) - 1))][0]
        return self.begin + share * (self.end - self.begin)


def _make_scale(timeline: Timeline) -> _Scale:
    begin, end = _seconds(timeline.begins_at, 0.0), _seconds(timeline.ends_at, 0.0)
    if len(timeline.events) > _MAX_STEPS:
        return _Scale(begin, end)
    keys = {(_seconds(event.at, begin), event.seq or 0) for event in timeline.events if event.until is None}
    untils = {(_seconds(event.until, end), 0) for event in timeline.events if event.kind == "approval" and event.until}
    return _Scale(begin, end, tuple(sorted(keys | untils)))


def render_timeline(report: ReviewReport) -> Html:
    """The section with the drawing and its legend."""
    timeline = report.timeline
    if not timeline.events:
        return render_section("timeline", "What happened", "", tag("p", {}, escape("Nothing was recorded.")))
    scale = _make_scale(timeline)
    drawing = (*_draw_locks(timeline.locks, scale), *_draw_lanes(timeline, scale), *_draw_axis(scale))
    # The marks are links for the mouse only: the same records are in the list, and the label says what is drawn.
    svg = tag("svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "aria-hidden": "true"}, *drawing)
    scroll = {"class": "timeline", "tabindex": 0, "role": "group", "aria-label": _describe_lanes(timeline)}
    begin, end = timeline.begins_at or "", timeline.ends_at or ""
    remark = (
        f"{format_time(begin)} to {format_time(end)}" if begin and end else "",
        format_count(len(report.sessions), "session"),
        *sorted({card.client for card in report.sessions if card.client}),
    )
    chart = tag("div", scroll, svg)
    return render_section("timeline", "What happened", ", ".join(filter(None, remark)), chart, _render_legend())


def _describe_lanes(timeline: Timeline) -> str:
    """The drawing in words, for readers who cannot see it."""
    counts = []
    for actor in ACTORS:
        events = [event for event in timeline.events if event.actor == actor]
        refused = sum(event.kind in {"refusal", "locking_refusal"} for event in events)
        words = f"{ACTOR_NAMES[actor]}: {format_count(len(events), 'event')}"
        counts.append(words + (f", {refused:,} of them refused" if refused else ""))
    return "; ".join(counts)


def _draw_lanes(timeline: Timeline, scale: _Scale) -> Iterator[Html]:
    for number, actor in enumerate(ACTORS):
        middle = _TOP + _LANE * number + _LANE // 2
        yield tag("text", {"x": 4, "y": middle + 4}, escape(ACTOR_NAMES[actor]))
        yield tag("line", {"class": "lane", "x1": _LEFT, "x2": _RIGHT, "y1": middle, "y2": middle})
        yield from _draw_lane([event for event in timeline.events if event.actor == actor], middle, scale)


def _draw_lane(events: Sequence[TimelineEvent], middle: int, scale: _Scale) -> Iterator[Html]:
    single = events
    if len(events) > _MAX_MARKS:
        single = [event for event in events if event.kind in _NEVER_BINNED]
        yield from _draw_bins([event for event in events if event.kind not in _NEVER_BINNED], middle, scale)
    # Refusals are drawn last, so that nothing lies over them.
    for event in sorted(single, key=lambda each: each.kind in {"refusal", "locking_refusal"}):
        yield from _draw_event(event, middle, scale)


def _draw_bins(events: Iterable[TimelineEvent], middle: int, scale: _Scale) -> Iterator[Html]:
    counts = [0] * _BINS
    width = (_RIGHT - _LEFT) / _BINS
    for event in events:
        counts[min(int((scale.place(event.at) - _LEFT) / width), _BINS - 1)] += 1
    highest = max(counts)
    for number, count in enumerate(counts):
        if count:
            height = round(2 + 14 * count / highest, 1)
            place = {"x": round(_LEFT + number * width, 1), "y": middle - height, "width": width - 1}
            title = tag("title", {}, escape_plain(format_count(count, "call")))
            yield tag("rect", {"class": "bin", **place, "height": height}, title)


def _draw_event(event: TimelineEvent, middle: int, scale: _Scale) -> Iterator[Html]:
    shape, name = _STYLES[event.kind]
    x = scale.place(event.at, event.seq if event.until is None else None)
    if event.until is not None:
        begin, x = x, scale.place(event.until)
        yield tag("line", {"class": f"interval {name}", "x1": begin, "x2": x, "y1": middle, "y2": middle})
    words = " ".join(filter(None, (event.label, event.path, event.error_code, format_time(event.at))))
    mark = tag("g", {"class": name}, tag("title", {}, escape_plain(words)), _draw_shape(shape, x, middle))
    yield mark if event.seq is None else tag("a", {"href": f"#r-{event.seq}", "tabindex": -1}, mark)


def _draw_shape(shape: str, x: float, y: float) -> Html:
    if shape == "tick":
        return tag("line", {"x1": x, "x2": x, "y1": y - 5, "y2": y + 5})
    if shape == "square":
        return tag("rect", {"x": x - 4.5, "y": y - 4.5, "width": 9, "height": 9})
    corners = {
        "diamond": ((0, -6.5), (6.5, 0), (0, 6.5), (-6.5, 0)),
        "octagon": ((-3, -7), (3, -7), (7, -3), (7, 3), (3, 7), (-3, 7), (-7, 3), (-7, -3)),
        "flag": ((0, 8), (0, -9), (9, -5), (1.5, -1), (1.5, 8)),
        "triangle": ((0, -7), (7, 6), (-7, 6)),
    }[shape]
    points = " ".join(f"{round(x + dx, 1)},{round(y + dy, 1)}" for dx, dy in corners)
    return tag("polygon", {"points": points})


def _draw_locks(locks: Iterable[LockedSpan], scale: _Scale) -> Iterator[Html]:
    for lock in locks:
        begin = scale.place(lock.since)
        end = scale.place(lock.to) if lock.to else _RIGHT
        top = _TOP + _LANE * ACTORS.index(lock.actor)
        words = f"locked by #{lock.locked_by}" + (f", released by #{lock.released_by}" if lock.released_by else "")
        place = {"x": begin, "y": top, "width": round(max(end - begin, 2.0), 1), "height": _LANE}
        yield tag("rect", {"class": "locked", **place}, tag("title", {}, escape_plain(words)))
        yield tag("text", {"class": "lock", "x": begin + 2, "y": top + 10}, escape("locked"))


def _draw_axis(scale: _Scale) -> Iterator[Html]:
    times = [datetime.fromtimestamp(scale.time_at(number / _TICKS), UTC) for number in range(_TICKS + 1)]
    pattern = "%H:%M:%S" if times[0].date() == times[-1].date() else "%Y-%m-%d %H:%M"
    for number, time in enumerate(times):
        place = _LEFT + number * (_RIGHT - _LEFT) // _TICKS
        anchor = "start" if number == 0 else "end" if number == _TICKS else "middle"
        yield tag("text", {"x": place, "y": _HEIGHT - 6, "text-anchor": anchor}, escape(time.strftime(pattern)))


def _render_legend() -> Html:
    items = []
    for kind, words in _LEGEND:
        shape, name = _STYLES[kind]
        mark = tag("g", {"class": name}, _draw_shape(shape, 0, 0))
        icon = tag("svg", {"viewBox": "-9 -10 20 20", "aria-hidden": "true"}, mark)
        items.append(tag("span", {}, icon, escape(words)))
    return tag("div", {"class": "legend timeline"}, *items)


def _seconds(timestamp: str | None, otherwise: float) -> float:
    """Seconds since 1970; `otherwise` for a time that a damaged log has in another form."""
    try:
        return datetime.fromisoformat(timestamp or "").timestamp()
    except ValueError:
        return otherwise
