"""What a gateway needs before it serves, looked at one by one without changing any of it.

Findings name hosts by nothing but their kind: addresses may hold passwords.
"""

import asyncio
import os
import shutil
import tempfile
from enum import StrEnum
from pathlib import Path

import aiohttp
import msgspec
from asyncpg import PostgresError
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError

from billing.domain.policy import CURRENT_POLICY, differences
from billing.postgres.policies import load_policies
from gateway.adapters.directory_rows import WORKER_COLUMNS, worker_from
from gateway.adapters.journal import JournalUnusable
from gateway.adapters.journal.identity import LOCK_NAME, DirectoryLock
from gateway.adapters.postgres import async_engine
from gateway.adapters.tables import hosted_provider as hosted_table
from gateway.adapters.tables import worker as worker_table
from gateway.domain.origin import at_no_provider
from gateway.domain.tenant import EngineKind, Worker
from gateway.errors import WeirError
from gateway.migrate import current_and_head

POSTGRES_VERSION_MIN = 15
CLOCK_SKEW_MS_MAX = 1_000
WORKER_TIMEOUT_S = 5.0
SPACE_SEGMENTS_MIN = 4


class Status(StrEnum):
    """What a check found."""

    OK = "ok"
    WARN = "warn"
    """It works, and can cost something that the detail names."""
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True):
    """One line of the preflight."""

    name: str
    status: Status
    detail: str


def failed(name: str, error: BaseException, what: str = "cannot be reached") -> Finding:
    """A failure by its kind and code alone."""
    origin = getattr(error, "orig", None) or error
    if isinstance(origin, WeirError):
        origin = origin.__cause__ or origin
    code = getattr(origin, "sqlstate", None) or getattr(origin, "strerror", None)
    kind = type(origin).__name__ + (f", {code}" if code else "")
    return Finding(name, Status.FAIL, f"{what} ({kind})")


async def check_postgres(database_url: str) -> Finding:
    """It answers, and is of a version that Weir is tested with."""
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.connect() as db:
            number = int(await db.scalar(text("SHOW server_version_num")) or 0)
            read_only = await db.scalar(text("SHOW transaction_read_only"))
    except (OSError, PostgresError, SQLAlchemyError) as error:
        return failed("postgres", error)
    finally:
        await engine.dispose()
    version = f"version {number // 10000}.{number % 10000}"
    if number < POSTGRES_VERSION_MIN * 10000:
        return Finding("postgres", Status.FAIL, f"{version}; {POSTGRES_VERSION_MIN} is needed")
    if read_only != "off":
        return Finding("postgres", Status.FAIL, f"{version}, but it takes no writes")
    return Finding("postgres", Status.OK, version)


async def check_migrations(database_url: str) -> Finding:
    """The schema is this release's."""
    try:
        current, head = await current_and_head(database_url)
    except WeirError as error:
        return failed("migrations", error)
    if current == head:
        return Finding("migrations", Status.OK, f"at {head}")
    if current is not None and current > head:
        later = f"at {current}, of a later release; this one's is {head}"
        return Finding("migrations", Status.WARN, later)
    found = current or "nothing"
    return Finding("migrations", Status.FAIL, f"at {found}, {head} is needed: run weir migrate")


async def check_policy(database_url: str) -> Finding:
    """What Postgres says a tenant pays for is what this release judges by."""
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.connect() as db:
            other = differences(await load_policies(db))
    except (OSError, PostgresError, SQLAlchemyError) as error:
        return failed("billing policy", error, "cannot be read")
    finally:
        await engine.dispose()
    if other:
        return Finding("billing policy", Status.FAIL, f"not this release's: {', '.join(other)}")
    return Finding("billing policy", Status.OK, f"version {CURRENT_POLICY}")


def check_journal(directory: Path, segment_bytes: int) -> Finding:
    """The journal's directory can be written, no gateway uses it, and there is space."""
    existing = next(each for each in (directory, *directory.resolve().parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"0")
            probe.flush()
            os.fsync(probe.fileno())
        if (directory / LOCK_NAME).exists():
            DirectoryLock.take(directory).release()
        free_bytes = shutil.disk_usage(existing).free
    except JournalUnusable as error:
        return Finding("journal", Status.FAIL, error.message)
    except OSError as error:
        return failed("journal", error, "the directory cannot be written")
    free = f"{free_bytes / 2**30:.1f} GiB free"
    if free_bytes < SPACE_SEGMENTS_MIN * segment_bytes:
        return Finding("journal", Status.FAIL, f"only {free}, {SPACE_SEGMENTS_MIN} segments needed")
    return Finding("journal", Status.OK, f"writable, not in use, {free}")


async def check_workers(database_url: str) -> list[Finding]:
    """Each registered worker answers and serves its model. One at a hosted provider's server is
    asked nothing: a gateway does not use it."""
    try:
        workers, provider_urls = await _registered(database_url)
    except (OSError, PostgresError, SQLAlchemyError) as error:
        return [failed("workers", error, "cannot be listed")]
    if not workers:
        return [Finding("workers", Status.WARN, "none is registered")]
    usable = at_no_provider(workers, provider_urls)
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=WORKER_TIMEOUT_S)
    ) as session:
        found = await asyncio.gather(*(_check_worker(session, each) for each in usable.values()))
    return [*found, *(_is_a_providers(each) for each in workers if each.id not in usable)]


def _is_a_providers(worker: Worker) -> Finding:
    detail = "is at a hosted provider's server and is not used: remove one of them"
    return Finding(f"worker {worker.id}", Status.FAIL, detail)


async def _registered(database_url: str) -> tuple[list[Worker], list[str]]:
    """The workers, and the addresses of the hosted providers."""
    engine = async_engine(database_url, pooled=False)
    try:
        async with engine.connect() as db:
            rows = await db.execute(
                select(*WORKER_COLUMNS)
                .where(worker_table.c.removed_at.is_(None))
                .order_by(worker_table.c.id)
            )
            urls = await db.scalars(
                select(hosted_table.c.url).where(hosted_table.c.removed_at.is_(None))
            )
            return [worker_from(row) for row in rows], list(urls)
    finally:
        await engine.dispose()


async def _check_worker(session: aiohttp.ClientSession, worker: Worker) -> Finding:
    name = f"worker {worker.id}"
    headers = {"authorization": f"Bearer {worker.api_key}"} if worker.api_key else {}

    async def get(path: str) -> bytes:
        url = worker.url.rstrip("/") + path
        async with session.get(url, headers=headers, raise_for_status=True) as response:
            return await response.read()

    try:
        if worker.kind is EngineKind.SGLANG:
            # SGLang's /health generates a token and takes a second; /ready is instant.
            await get("/ready")
        served = _model_ids(await get("/v1/models"))
    except aiohttp.ClientResponseError as error:
        return Finding(name, Status.FAIL, f"answers {error.status}")
    except msgspec.MsgspecError:
        return Finding(name, Status.FAIL, "its /v1/models is not OpenAI's")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return failed(name, error)
    if worker.model not in served:
        return Finding(name, Status.FAIL, f"does not serve {worker.model}")
    return Finding(name, Status.OK, f"serves {worker.model}" + ", draining" * worker.draining)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def _model_ids(body: bytes) -> set[str]:
    return {model.id for model in msgspec.json.decode(body, type=_Models).data}
