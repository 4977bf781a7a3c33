from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.tools.reading.tree_scan import GlobFilter, ScanTimeout


@given(
    text=st.text(st.sampled_from("ab.*?/[]"), min_size=1, max_size=8).map(lambda text: text.strip("/") or "*")
    | st.text(st.sampled_from("ab."), max_size=3).map(lambda text: f"**/*{text}"),
    paths=st.lists(
        st.lists(st.text(st.sampled_from("ab."), min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)
    ),
)
def test_the_glob_filter_agrees_with_the_glob(text, paths):
    try:
        glob = Glob.parse(text)
    except GlobError:
        return
    glob_filter = GlobFilter.parse(text, "pattern")
    matching = [path for path in sorted(paths) if glob.matches_text(path)]

    assert [path for path in sorted(paths) if glob_filter.matches(path)] == matching
    assert [path for path in sorted(paths) if not glob_filter.is_past(path) and glob_filter.matches(path)] == matching


def walked(unlisted=0):
    return SimpleNamespace(visited_count=5, listed_count=7, unlisted_count=unlisted)


def test_a_walk_reports_the_directories_that_it_could_not_list():
    timeout = ScanTimeout(SimpleNamespace(is_out_of_time=lambda: False), None)

    assert timeout.diagnostics(walked()) == []
    assert timeout.diagnostics(walked(unlisted=2)) == ["Could not list 2 directories."]
