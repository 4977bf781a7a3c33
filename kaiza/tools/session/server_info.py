"""Tool `server_info`: version, protocols, platform and limits of the server. It needs no session."""

from kaiza.tools.view import Answer, WorkspaceView


def run(_request: object, view: WorkspaceView) -> Answer:
    """Return the facts that the application has collected at its start."""
    info = dict(view.server_info)
    return Answer({**info, "summary": f"Kaiza {info['server_version']}, {len(info['categories'])} tool categories."})
