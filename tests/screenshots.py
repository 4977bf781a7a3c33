"""Screenshots of the review page in docs/, taken of the demo's session.

`CI=true python tests/screenshots.py` takes them anew in Chromium. Each carries the digest of the page that it shows,
without ids, times and places in the timeline, so that the ordinary suite finds an outdated one without a browser.
"""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = {
    "review-light.png": {"width": 1280, "height": 1640, "colorScheme": "light"},
    "review-dark.png": {"width": 1280, "height": 1640, "colorScheme": "dark"},
    "review-narrow.png": {"width": 320, "height": 1640, "colorScheme": "light"},
}
_KEYWORD = b"kaiza-page"
_MASKS = (
    (r'<script id="record-data".*?</script>', ""),
    (r"<svg.*?</svg>", ""),
    (r"sha256-[\w+/=]+", "sha256"),
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "id"),
    (r"\b[0-9a-f]{8,64}\b", "hash"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(\.\d+)?Z?", "time"),
    (r"docs/reports/[^<]*", "report"),
    (r"<code>/[^<]*</code>", "workspace"),
    (r"type these in /[^<]*", "workspace"),
)


def play_demo(directory: Path) -> str:
    """Play the demo in a new directory; the page of its session."""
    command = [sys.executable, "-m", "kaiza", "demo", "--fast", "--keep", str(directory)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory.parent)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    (page,) = directory.glob("project/.kaiza/reviews/*.html")
    return page.read_text()


def digest_of(page: str) -> str:
    """Digest of what does not differ from one demo to the next."""
    for pattern, replacement in _MASKS:
        page = re.sub(pattern, replacement, page, flags=re.DOTALL)
    return hashlib.sha256(page.encode()).hexdigest()


def read_digest(picture: Path) -> str | None:
    """The digest that a picture carries."""
    content = picture.read_bytes()
    at = content.find(b"tEXt" + _KEYWORD + b"\0")
    return None if at < 0 else content[at + len(_KEYWORD) + 5 :][:64].decode()


def write_digest(picture: Path, digest: str) -> None:
    """Add the digest to a picture, in a chunk before the last."""
    data = b"tEXt" + _KEYWORD + b"\0" + digest.encode()
    chunk = struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    content = picture.read_bytes()
    end = content.rindex(b"IEND") - 4
    picture.write_bytes(content[:end] + chunk + content[end:])


def take_screenshots(folder: Path) -> None:
    """Write all pictures; `folder` has the browser's driver."""
    with tempfile.TemporaryDirectory() as scratch:
        page = play_demo(Path(scratch) / "demo")
        path = Path(scratch) / "review.html"
        path.write_text(page)
        shutil.copy(Path(__file__).parent / "browser" / "page.mjs", folder)
        for name, look in PICTURES.items():
            options = json.dumps({**look, "path": str(DOCS / name)})
            subprocess.run(["node", str(folder / "page.mjs"), "shoot", str(path), options], check=True)
            write_digest(DOCS / name, digest_of(page))


if __name__ == "__main__":
    from clients.conftest import _install

    take_screenshots(_install(Path(__file__).parent / "browser" / "package.json"))
