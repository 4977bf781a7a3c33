"""Style and script of the review page, and the policy that lets a browser run exactly these."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Assets:
    """Content of the page's style and script elements."""

    style: str
    script: str

    @property
    def policy(self) -> str:
        """Content security policy of the page: no request, and no style or script but these two."""
        return (
            f"default-src 'none'; style-src '{_source_of(self.style)}'; script-src '{_source_of(self.script)}'; "
            "img-src 'none'; base-uri 'none'; form-action 'none'"
        )


@cache
def load_assets() -> Assets:
    """The files `review.css` and `review.js` of this package."""
    folder = files(__package__)
    return Assets((folder / "review.css").read_text("utf-8"), (folder / "review.js").read_text("utf-8"))


def _source_of(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
