"""What the server tells a model before it does anything: the whole way, in under 2 KB."""

INSTRUCTIONS = """\
Kaiza gives you this workspace's files under governance. Everything you ask is recorded.

1. Call begin_session first, with role WINDSURF to execute or ANTIGRAVITY to plan.
   Pass the session_id it returns to every other tool.
2. Read freely: find_files, search_text, list_directory, read_file. Paths are relative to the workspace, without "..".
3. Call end_session when you are done.

Every refusal is JSON with error_code, human_message and cause. Act on error_code; human_message says the next step:
SESSION_NOT_INITIALIZED: call begin_session.
MISSING_REQUIRED_FIELD, INVALID_INPUT_*: correct the arguments that cause lists.
FILE_NOT_FOUND, PATH_NOT_FOUND: look with find_files or list_directory. POLICY_VIOLATION: leave that path alone.
CURSOR_INVALID: ask again without the cursor. CAP_EXCEEDED: ask for less at a time.
Do not try another way around a refusal; ask the person."""
