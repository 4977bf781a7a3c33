"""The fake application behind the real HTTP transport: `python fake_http.py RECORD [NAME=SECONDS ...] [no-auth]`.

`NAME=SECONDS` changes a time limit of a connection or of the shutdown. The tokens are `sesame`, `tahini` and `cumin`.
"""

import socket
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import fake_app

from kaiza.domain.call import Principal
from kaiza.server.dialects import load_dialects
from kaiza.server.http import connection, serve
from kaiza.server.http.admission import LOCAL_NAMES, Admission
from kaiza.server.http.application import Pipelines
from kaiza.server.http.serve import Listener
from kaiza.server.pipeline import Pipeline


def main(record, *options):
    for option in options:
        name, separator, seconds = option.partition("=")
        if separator:
            modules = [module for module in (connection, serve) if hasattr(module, name)]
            assert modules
            for module in modules:
                setattr(module, name, type(getattr(module, name))(seconds))
    names = {"sesame": "ada#01234567", "tahini": "bob#76543210", "cumin": "eve#89abcdef"}
    holders = {token: Principal(label, "/nowhere") for token, label in names.items()}
    authenticate = None if "no-auth" in options else holders.get
    admission = Admission(LOCAL_NAMES | {"kaiza.example"}, {"https://pages.example"}, authenticate)
    bound = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    listener = Listener(bound, None, partial(print, f"listening on {url}", file=sys.stderr, flush=True))
    dialects = load_dialects(fake_app.OPENING, is_http=True)
    pipelines = Pipelines(partial(Pipeline, dialects, mcp_only=True), partial(Pipeline, dialects))
    app = fake_app.UnclosableApp if "unclosable" in options else fake_app.FakeApp
    app = fake_app.LingeringApp if "lingering" in options else app
    return serve.serve_http(lambda: app(record), pipelines, admission, listener)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
