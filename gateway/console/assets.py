"""Styles and scripts, under a path that changes with them, so that browsers keep them for good."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from gateway.console.access import open_page
from gateway.errors import NotFound

_FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Assets:
    """All files by name, read once; `version` is of their content."""

    files: dict[str, bytes]
    version: str

    def url(self, name: str) -> str:
        """Where a page finds a file. Raises KeyError for one that there is not."""
        self.files[name]
        return f"/console/static/{self.version}/{name}"


def load_assets() -> Assets:
    """The files that are installed with this package."""
    names = sorted(path for path in _FOLDER.iterdir() if path.suffix in _MEDIA_TYPES)
    files = {path.name: path.read_bytes() for path in names}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return Assets(files, digest.hexdigest()[:16])


def asset_handler(assets: Assets) -> HTTPRouteHandler:
    """Serves them. A version that is another gateway's, while a new release rolls out, gets this
    one's file, and the browser does not keep it."""

    @get("/static/{version:str}/{name:str}", opt=open_page())
    async def get_asset(version: FromPath[str], name: FromPath[str]) -> Response[bytes]:
        """One file."""
        content = assets.files.get(name)
        if content is None:
            raise NotFound("there is no such file")
        return Response(
            content,
            media_type=_MEDIA_TYPES[Path(name).suffix],
            headers={
                "cache-control": _KEPT if version == assets.version else "no-store",
                "x-content-type-options": "nosniff",
            },
        )

    return get_asset
