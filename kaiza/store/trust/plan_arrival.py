"""Why a plan that says APPROVED was not approved by an edit on this machine, though git does not know its bytes."""

import os
from collections.abc import Collection, Mapping

from kaiza.store.disk.git_directory import is_in_operation, is_index_locked, is_under_other_system
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust import git_plans
from kaiza.store.trust.git_origin import find_repositories

GIT, OTHER_SYSTEM, IN_PROGRESS, BOUND = "git", "other_vcs", "in_progress", "bound"
LOCKED = "locked"
"""Nothing is known until git has written its index."""


def explain_arrivals(root: str, plan_ids: Collection[str]) -> Mapping[str, str]:
    """For each plan that no edit can have approved, how it arrived. Starts git where there is a repository."""
    if not plan_ids:
        return {}
    if is_under_other_system(os.path.join(root, str(DIRECTORY))):  # noqa: PTH118  as text
        return dict.fromkeys(plan_ids, OTHER_SYSTEM)
    repositories = find_repositories(root, str(DIRECTORY))
    if any(is_in_operation(top) for top, _ in repositories):
        return dict.fromkeys(plan_ids, IN_PROGRESS)
    if any(is_index_locked(top) for top, _ in repositories):
        return dict.fromkeys(plan_ids, LOCKED)
    found = (git_plans.find_approved(top, directory, plan_ids) for top, directory in repositories)
    return dict.fromkeys((plan_id for each in found for plan_id in each), GIT)


def is_taken_back(root: str, plan_id: str, objects: Collection[str]) -> bool:
    """Whether a draft that git has takes back an approval with these objects.

    It does if a commit that HEAD contains had the approval as the plan's file. It also does if no repository has the
    approval at all: then nothing was switched or stashed, an edit was discarded.
    """
    repositories = [
        (top, os.path.normpath(os.path.join(prefix, plan_id + SUFFIX)))  # noqa: PTH118  as git names it
        for top, prefix in find_repositories(root, str(DIRECTORY))
    ]
    return any(git_plans.has_in_history(top, path, objects) for top, path in repositories) or (
        bool(objects) and not any(git_plans.has_object(top, objects) for top, _ in repositories)
    )
