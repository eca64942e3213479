"""What a failure of Postgres means for whoever asked for a change."""

from asyncpg import PostgresError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gateway.errors import StoreUnavailable, Unprocessable

UNAVAILABLE_CLASSES = frozenset({"08", "40", "53", "57", "58"})
"""Connection, rollback of the server's own, resources, operator intervention, system error."""
UNAVAILABLE_STATES = frozenset({"25006", "55P03", "28000", "28P01", "3D000"})
"""Read-only replica, lock not available, may not log in, no such database."""
NO_SCHEMA_STATES = frozenset({"42P01", "42703"})
UNSTORABLE_STATES = frozenset({"22021", "22P05"})
"""Text that Postgres cannot hold: a zero byte, in plain text or in JSON."""


def store_failure(error: BaseException, *, committing: bool) -> BaseException:
    """The WeirError that `error` amounts to, or `error` itself where it is a bug of ours."""
    state = _sqlstate(error)
    if state in UNSTORABLE_STATES:
        return Unprocessable("a text holds a character that cannot be stored")
    if state in NO_SCHEMA_STATES:
        return StoreUnavailable("the database lacks this release's schema: run weir migrate")
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if not (lost or _is_unreachable(error, state)):
        return error
    if committing:
        return StoreUnavailable(
            "Postgres was lost before it confirmed the change: look before you repeat it",
            code="outcome_unknown",
        )
    return StoreUnavailable("Postgres cannot be reached; nothing was changed")


def _is_unreachable(error: BaseException, state: str | None) -> bool:
    if isinstance(error, PoolTimeoutError):
        return True
    if not isinstance(error, SQLAlchemyError | PostgresError):
        return isinstance(error, OSError | TimeoutError)
    if state is None:
        # asyncpg's own complaint about a connection that is closed carries no state.
        return isinstance(error, DBAPIError) and type(error).__name__ in (
            "InterfaceError",
            "OperationalError",
        )
    return state[:2] in UNAVAILABLE_CLASSES or state in UNAVAILABLE_STATES


def _sqlstate(error: BaseException) -> str | None:
    origin = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(origin, "sqlstate", None)
    return state if isinstance(state, str) else None
