"""How finance's verbs reach Postgres: each change one transaction with its entry in the audit log.

They take as long as a month's records need, so they hold no lock of the directory and have no
deadline of 2 s; the engine's connections serve no request.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

from asyncpg import PostgresError
from sqlalchemy import Select, and_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from billing.domain.invoicing.credit import RefusedCredit
from billing.domain.invoicing.issuing import IssueRefused
from billing.domain.invoicing.lifecycle import RefusedChange, Status, WrongDay
from billing.domain.invoicing.lines import LinesDisagree
from billing.domain.invoicing.numbering import PrefixTaken
from billing.postgres.credit_notes import CreditNoteNotFound
from billing.postgres.invoice_settle import ReferenceTaken
from billing.postgres.invoice_tables import credit_note, invoice
from billing.postgres.invoices import InvoiceNotFound, load_invoice
from gateway.administration.invoice_checks import as_id, is_name
from gateway.administration.invoice_views import blocker_view
from gateway.administration.store import Change
from gateway.administration.store_errors import store_failure
from gateway.errors import Conflict, IssueBlocked, NotFound, Unprocessable


class InvoiceTransactions:
    """What the verbs share."""

    POOL_SIZE = 3

    def __init__(self, postgres: AsyncEngine) -> None:
        self._postgres = postgres

    async def invoice_id(self, named: str) -> UUID:
        """The invoice of that id or number, or what `acme/2026-11` names: the one of a tenant's
        month that is not void. Raises NotFound, and Conflict where there are several: of more than
        one currency."""
        found = as_id(named)
        if found is not None:
            return found
        wanted = invoice.c.number == named
        tenant_id, slash, month_name = named.partition("/")
        if slash:
            wanted = and_(
                invoice.c.tenant_id == tenant_id,
                invoice.c.month == month_name,
                invoice.c.status != Status.VOID,
            )
        query = select(invoice.c.id).where(wanted)
        return await self._one(query, "invoice", named)

    async def invoice_owner(self, named: str) -> str | None:
        """The tenant whose invoice that is; None where there is none, and of a draft, of which its
        tenant knows nothing."""
        try:
            found = await self.invoice_id(named)
            async with self._reading() as db:
                invoice = await load_invoice(db, found)
        except (NotFound, Conflict):
            return None
        return None if invoice.status is Status.DRAFT else invoice.tenant_id

    async def named_invoice_id(self, named: str) -> UUID:
        """The same, where a field or a parameter names it. Raises Unprocessable, naming that."""
        try:
            found = await self.invoice_id(named)
            async with self._reading() as db:
                await load_invoice(db, found)
        except NotFound as error:
            raise Unprocessable(f"invoice_id: {error.message}", param="invoice_id") from error
        return found

    async def credit_note_id(self, named: str) -> UUID:
        """The credit note of that id or number. Raises NotFound."""
        found = as_id(named)
        if found is not None:
            return found
        query = select(credit_note.c.id).where(credit_note.c.number == named)
        return await self._one(query, "credit note", named)

    async def _one(self, query: Select[UUID], kind: str, named: str) -> UUID:
        async with self._reading() as db:
            ids = list(await db.scalars(query.limit(2)))
        if not ids:
            # What has not the form of a name is anybody's text, and is not shown again.
            raise NotFound(f"there is no {kind} {named if is_name(named) else 'of that name'}")
        if len(ids) > 1:
            raise Conflict(f"{named} is of several currencies: name the {kind}'s id")
        return ids[0]

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        try:
            with _told():
                async with self._postgres.connect() as db:
                    yield db
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise store_failure(error, committing=False) from error

    @asynccontextmanager
    async def _changing(self, actor: str) -> AsyncIterator[Change]:
        committing = False
        try:
            with _told():
                async with self._postgres.connect() as db:
                    change = Change(db, actor)
                    yield change
                    await change.write_entries()
                    committing = True
                    await db.commit()
        except (OSError, TimeoutError, PostgresError, SQLAlchemyError) as error:
            raise store_failure(error, committing=committing) from error


@contextmanager
def _told() -> Iterator[None]:
    """What the rules refuse, as an answer."""
    try:
        yield
    except (InvoiceNotFound, CreditNoteNotFound) as error:
        raise NotFound(str(error)) from error
    except IssueRefused as error:
        blockers = [blocker_view(each) for each in error.blockers]
        raise IssueBlocked(f"it cannot be issued: {error}", blockers) from error
    except PrefixTaken as error:
        raise Conflict(f"the seller's {error.field}: {error}") from error
    except (RefusedChange, ReferenceTaken, LinesDisagree) as error:
        raise Conflict(str(error)) from error
    except WrongDay as error:
        raise Unprocessable(f"received_on: {error}", param="received_on") from error
    except RefusedCredit as error:
        raise Unprocessable(f"lines: {error}", param="lines") from error
