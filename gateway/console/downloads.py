"""Files that pages offer."""

from litestar import Response

from gateway.console.rendering import PAGE_HEADERS


def file_response(content: str, name: str, media_type: str) -> Response[str]:
    """A file in UTF-8, to be kept under that name, of plain letters."""
    return Response(
        content,
        media_type=media_type,
        headers={**PAGE_HEADERS, "content-disposition": f'attachment; filename="{name}"'},
    )
