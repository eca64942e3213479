"""Files that pages offer."""

from litestar import Response

from gateway.console.rendering import PAGE_HEADERS


def file_response(content: str, name: str, media_type: str) -> Response[str]:
    """A file to be kept under that name, of plain letters."""
    return Response(
        content,
        media_type=f"{media_type}; charset=utf-8",
        headers={**PAGE_HEADERS, "content-disposition": f'attachment; filename="{name}"'},
    )
