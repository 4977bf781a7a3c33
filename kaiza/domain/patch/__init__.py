"""Unified diffs: parsed strictly, cross-checked with a second parser, applied exactly or not at all.

One parser decides what a patch changes and applies it. With two, a patch that they read differently could be approved
for one file and change another.
"""

from kaiza.domain.patch.apply import apply_file_patch
from kaiza.domain.patch.cross_check import check_with_unidiff
from kaiza.domain.patch.file_patch import MAX_BYTES, MAX_FILES, MAX_HUNKS, FilePatch, Hunk
from kaiza.domain.patch.parser import parse

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "MAX_HUNKS",
    "FilePatch",
    "Hunk",
    "apply_file_patch",
    "check_with_unidiff",
    "parse",
]
