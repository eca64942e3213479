"""What a failure of Postgres means."""

import pytest
from asyncpg import PostgresError
from asyncpg.exceptions import (
    CannotConnectNowError,
    CharacterNotInRepertoireError,
    DeadlockDetectedError,
    NotNullViolationError,
    ReadOnlySQLTransactionError,
    UndefinedTableError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gateway.administration.store_errors import store_failure
from gateway.errors import StoreUnavailable, Unprocessable


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        FileNotFoundError("no socket"),
        TimeoutError(),
        PoolTimeoutError(),
        CannotConnectNowError("starting up"),
        DeadlockDetectedError("deadlock"),
        ReadOnlySQLTransactionError("a replica"),
    ],
)
def test_what_another_try_may_heal_is_unavailable(error: Exception) -> None:
    """Before the commit nothing was changed; during it nobody knows."""
    before = store_failure(error, committing=False)
    assert isinstance(before, StoreUnavailable)
    assert "nothing was changed" in before.message
    during = store_failure(error, committing=True)
    assert isinstance(during, StoreUnavailable)
    assert during.code == "outcome_unknown"


def test_a_missing_schema_says_what_to_run() -> None:
    """An operator's omission, not an outage."""
    failure = store_failure(UndefinedTableError("tenant"), committing=False)
    assert isinstance(failure, StoreUnavailable)
    assert "weir migrate" in failure.message


def test_text_that_cannot_be_stored_is_the_callers_fault() -> None:
    """A zero byte somewhere in what was sent."""
    failure = store_failure(CharacterNotInRepertoireError("0x00"), committing=False)
    assert isinstance(failure, Unprocessable)


@pytest.mark.parametrize(
    "error", [NotNullViolationError("name"), PostgresError("x"), KeyError("x")]
)
def test_a_bug_stays_what_it_is(error: Exception) -> None:
    """It must not be taken for an outage."""
    assert store_failure(error, committing=False) is error
