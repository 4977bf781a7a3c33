"""Plan files, report files and the files that `kaiza init` creates."""

__all__ = ["nested_workspaces", "plan_files", "review_files", "scope_preview", "workspace_template"]
