"""What the server tells a model before it does anything: the whole way, in under 2 KB."""

INSTRUCTIONS = """\
Kaiza gives you this workspace's files under governance. Everything you ask is recorded.

1. begin_session first: role WINDSURF executes, ANTIGRAVITY plans. Pass its session_id to every other tool.
2. Read freely: find_files, search_text, list_directory, read_file. Paths are relative to the workspace, without "..".
3. To change anything you need a plan that a person approved. begin_session and list_plans show them with plan_hash.
   None that fits? An ANTIGRAVITY session drafts one with save_plan (lint_plan tells what is wrong with it); then ask
   the person to open plans/<plan_id>.md and change status: DRAFT to APPROVED. You cannot approve.
   Approving changes the file, so call list_plans again and use the new plan_hash.
4. Change with edit_file, write_file, apply_patch, move_file, delete_file: pass plan_hash, the hash read_file gave as
   expected_hash, and phase_id where the plan has phases. dry_run: true tries without changing. undo_changes puts back.
5. end_session when you are done.

A refusal is JSON with error_code, human_message (which ends with the next step) and cause. Act on error_code:
SESSION_NOT_INITIALIZED: begin_session. MISSING_REQUIRED_FIELD, INVALID_INPUT_*: correct what cause lists.
HASH_MISMATCH, PATCH_APPLY_FAILED: read the file again. FILE_ALREADY_EXISTS: pass expected_hash to replace it.
PLAN_NOT_FOUND, PLAN_NOT_APPROVED: list_plans, then ask the person. PLAN_SCOPE_VIOLATION: keep to the plan, or draft
another. SESSION_LOCKED: write_report, say what happened. POLICY_VIOLATION: leave that path or content alone.
Never look for a way around a refusal; ask the person."""
