"""Documents over HTTP: an id with an ending is a file of it."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
from litestar import Response

from billing.documents.formats import MEDIA_TYPES, Format, file_name, written
from billing.domain.invoicing.document import CreditDocument, Document
from billing.domain.invoicing.lifecycle import Status
from gateway.administration.invoice_desk import InvoiceDesk
from gateway.administration.views import View


def split_format(text: str) -> tuple[str, Format | None]:
    """What names a document, and the format where an ending asks for one."""
    plain, dot, ending = text.rpartition(".")
    if dot and ending in set(Format):
        return plain, Format(ending)
    return text, None


async def file_response(
    document: Document | CreditDocument, wanted: Format, *, void: bool = False
) -> Response[bytes]:
    """The file. It is drawn beside the loop that serves requests."""
    content = await asyncio.to_thread(written, document, wanted, void=void)
    name = file_name(document, wanted)
    return Response(
        content,
        media_type=MEDIA_TYPES[wanted],
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


async def invoice_file(desk: InvoiceDesk, invoice_id: UUID, wanted: Format) -> Response[bytes]:
    """The file of an invoice, which says of a void one that it is void."""
    stored, document = await desk.document(invoice_id)
    return await file_response(document, wanted, void=stored.status is Status.VOID)


def json_response(view: View) -> Response[Any]:
    """A view where a file might have been asked for."""
    return Response(msgspec.json.encode(view), media_type="application/json")
