"""Work that is done again and again beside what serves, whatever becomes of one turn of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

AWAY = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
"""What is raised where Postgres is away."""


async def repeat(
    name: str,
    work: Callable[[], Awaitable[None]],
    period_s: float,
    *,
    logger: logging.Logger,
) -> None:
    """For ever, a period before each turn. That Postgres is away is told once, until a turn
    comes through; all it has left undone is there at the next."""
    is_failing = False
    while True:
        await asyncio.sleep(period_s)
        try:
            await work()
            is_failing = False
        except AWAY as error:
            if not is_failing:
                logger.warning("%s: not now (%s)", name, type(error).__name__)
            is_failing = True
        except Exception:
            # A bug in one turn must not end the work for good without a word: it is logged whole.
            logger.exception("%s: unexpected failure", name)
