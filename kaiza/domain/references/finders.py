"""Table of the functions that find references, by the file's name."""

from collections.abc import Callable, Iterator, Mapping

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.references.configuration import find_package_files, find_project_scripts, find_workflow_paths
from kaiza.domain.references.imports import find_python_imports, find_script_imports
from kaiza.domain.references.links import find_html_links, find_markdown_links
from kaiza.domain.references.reference import Reference, ReferenceKind

Finder = Callable[[str], Iterator[Reference]]
CONFIGURED_KINDS: frozenset[ReferenceKind] = frozenset(
    {"python_script", "package_main", "package_bin", "workflow_path"}
)
"""Kinds of references from configuration to files that it runs."""
_BY_SUFFIX: Mapping[str, Finder] = {
    **dict.fromkeys((".md", ".markdown"), find_markdown_links),
    **dict.fromkeys((".html", ".htm"), find_html_links),
    **dict.fromkeys((".py", ".pyi"), find_python_imports),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), find_script_imports),
}
_BY_NAME: Mapping[str, Finder] = {"pyproject.toml": find_project_scripts, "package.json": find_package_files}
_WORKFLOWS = (".github", "workflows")


def choose_finder(path: RelPath) -> Finder | None:
    """The function that finds a file's references; None if it has none."""
    suffix = path.name[path.name.rfind(".") :].lower() if "." in path.name else ""
    if suffix in {".yml", ".yaml"} and path.parts[-3:-1] == _WORKFLOWS:
        return find_workflow_paths
    return _BY_NAME.get(path.name) or _BY_SUFFIX.get(suffix)
