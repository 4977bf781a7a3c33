"""Instructions that the server sends to a model with the first answer: how to read, plan and change; under 2 KB."""

INSTRUCTIONS = """\
Kaiza's tools read, search, list, write, edit, move and delete this workspace's files, and undo changes. Start with
begin_session. Every call is recorded.

1. Call begin_session: role executor (the default) or planner. Pass its session_id to every other tool.
2. Read freely: find_files, search_text, list_directory, read_file. Paths are relative to the workspace, without "..".
   Lines are counted from 0. Answers are short; the summary says how to read on. max_lines and pageSize ask for more.
3. Every change needs a plan that a person approved. begin_session and list_plans show plans with their plan_hash.
   If none fits, draft one with save_plan (lint_plan lists its errors). Then ask the person to open
   plans/<plan_id>.md and change status: DRAFT to APPROVED. You cannot approve.
   Approval changes the file, so call list_plans again and use the new plan_hash.
4. Change files with edit_file, write_file, apply_patch, move_file, delete_file. Pass plan_hash, the hash from read_file
   as expected_hash, and phase_id if the plan has phases. dry_run: true changes nothing. undo_changes restores files.
5. Call end_session when you are done.

A refusal is JSON with error_code, human_message (which ends with the next step) and cause. Act on error_code:
SESSION_NOT_INITIALIZED: begin_session. MISSING_REQUIRED_FIELD, INVALID_INPUT_*: correct what cause lists.
HASH_MISMATCH, PATCH_APPLY_FAILED: read the file again. FILE_ALREADY_EXISTS: pass expected_hash to replace it.
PLAN_NOT_FOUND, PLAN_NOT_APPROVED: list_plans, then ask the person. PLAN_SCOPE_VIOLATION: keep to the plan, or draft
another. SESSION_LOCKED: write_report about what happened. POLICY_VIOLATION: leave that path or content alone.
Do not work around a refusal; ask the person."""
