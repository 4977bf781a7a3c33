"""Files that calls changed: a tree, the net diff of each, and the diff of each call behind its number."""

from collections.abc import Iterable

from kaiza.domain.review.report import FileCall, FileReview, ReviewReport
from kaiza.render.html.diff_table import render_diff
from kaiza.render.html.markup import EMPTY, Html, escape, join, tag
from kaiza.render.html.parts import link_record, render_counts, render_path, render_section, render_tag
from kaiza.render.terminal import format_time

_LETTERS = {"create": "A", "modify": "M", "delete": "D", "move": "R", "mode": "M", "none": "="}
_OPERATIONS = {
    "create": "created",
    "modify": "modified",
    "delete": "deleted",
    "move": "moved",
    "mode": "mode changed",
    "none": "no change left",
}
_TONES = {
    "as_left": "ok",
    "put_back": "note",
    "unknown": "warn",
    "changed_since": "warn",
    "changed_by_later_call": "note",
}


def render_files(report: ReviewReport) -> Html:
    """The section of all files."""
    if not report.files:
        return render_section("files", "Files changed", "", tag("p", {}, escape("No file was changed.")))
    articles = (_render_file(f"f-{number}", file) for number, file in enumerate(report.files))
    remark = "what is left in the end; each line names the call that wrote it"
    grid = tag("div", {"class": "files"}, _render_tree(report), tag("div", {}, *articles))
    return render_section("files", "Files changed", remark, grid)


def _render_tree(report: ReviewReport) -> Html:
    folders: dict[str, list[Html]] = {}
    for number, file in enumerate(report.files):
        folder, _slash, name = file.path.rpartition("/")
        folders.setdefault(folder, []).append(tag("li", {}, _render_tree_link(f"f-{number}", name, file)))
    parts = []
    for folder, items in sorted(folders.items()):
        heading = tag("span", {"class": "folder path"}, escape(f"{folder}/")) if folder else EMPTY
        parts.append(tag("li", {}, heading, tag("ul", {}, *items)))
    return tag("nav", {"class": "tree", "aria-label": "Changed files"}, tag("ul", {}, *parts))


def _render_tree_link(anchor: str, name: str, file: FileReview) -> Html:
    letter = tag("span", {"class": "letter", "title": _OPERATIONS[file.operation]}, escape(_LETTERS[file.operation]))
    return tag(
        "a",
        {"href": f"#{anchor}"},
        letter,
        render_path(name),
        _render_lines(file),
    )


def _render_lines(file: FileReview) -> Html:
    is_known = file.diff.lines_added is not None
    return render_counts(file.lines_added, file.lines_removed) if is_known else render_counts(None, None)


def _render_file(anchor: str, file: FileReview) -> Html:
    attributes = {"id": anchor, "class": "file", "tabindex": -1, "aria-label": file.path}
    return tag("article", attributes, _render_header(file), _render_calls(file), _render_notes(file), _render_net(file))


def _render_header(file: FileReview) -> Html:
    title = render_path(file.path)
    if file.source:
        title = join([render_path(file.source), escape(" → "), title])
    return tag(
        "header",
        {},
        tag("span", {"class": "letter", "title": _OPERATIONS[file.operation]}, escape(_LETTERS[file.operation])),
        tag("h3", {}, title),
        _render_lines(file),
        render_tag(_TONES[file.state], file.state_words),
    )


def _render_notes(file: FileReview) -> Html:
    notes = []
    if file.state == "changed_since":
        words = "The lines marked “no call” were written by something else. Kaiza does not know by what, or when."
        notes.append(tag("p", {"class": "note warn"}, escape(words)))
    if file.mode_before is not None and file.mode_now is not None and file.mode_before != file.mode_now:
        notes.append(tag("p", {"class": "note"}, escape(f"Mode {file.mode_before:o} → {file.mode_now:o}")))
    return join(notes)


def _render_net(file: FileReview) -> Html:
    if file.diff.hunks or file.diff.fold:
        return render_diff(file.path, file.diff)
    words = (
        "Nothing is left of these calls: the file is what it was before."
        if file.state == "put_back"
        else "No line changed."
    )
    return tag("p", {"class": "note"}, escape(words))


def _render_calls(file: FileReview) -> Html:
    return tag("div", {"class": "calls"}, *_render_each_call(file))


def _render_each_call(file: FileReview) -> Iterable[Html]:
    for call in file.calls:
        words = _describe_call(call)
        # The only call's diff is the net diff already.
        if call.diff == file.diff or not (call.diff.hunks or call.diff.fold):
            yield tag("div", {}, link_record(call.seq), escape(f" {words}"))
        else:
            summary = tag("summary", {}, escape(f"#{call.seq} {words}"))
            record = tag("p", {"class": "note"}, escape("Record "), link_record(call.seq))
            yield tag("details", {}, summary, record, render_diff(file.path, call.diff))


def _describe_call(call: FileCall) -> str:
    words = f"{call.tool_name}, {format_time(call.at)}"
    if call.is_undone:
        words += ", undone"
    return words if call.is_selected else f"{words}, not part of this review"
