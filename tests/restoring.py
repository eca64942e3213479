"""Postgres of a run backed up, lost and put back, with the programs that an operator uses, and what
was asked of gateways meanwhile."""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from metering_run.arena import MODEL, Arena
from weir_dev import Json

from backend.embedded.account import postgres_account
from backend.embedded.binaries import postgres_programs
from gateway.domain.tenant import RequestClass

POLL_S = 0.1
ROWS = """
SELECT request_id, to_jsonb(usage_record) - 'recorded_at' AS said FROM usage_record
"""
ATTEMPTS = "SELECT to_jsonb(usage_attempt) FROM usage_attempt ORDER BY request_id, choice, attempt"


async def program(name: str, *arguments: str) -> str:
    """What one of Postgres's own programs says; it must end with 0."""
    process = await asyncio.create_subprocess_exec(
        str(postgres_programs() / name),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


async def back_up(made: Arena, path: Path) -> None:
    """As `docs/operations/backup.md` says."""
    await program("pg_dump", "--format=custom", f"--file={path}", made.database_url)


async def back_up_whole(made: Arena, folder: Path) -> None:
    """The same, of the whole server."""
    await program(
        "pg_basebackup", f"--pgdata={folder}", f"--dbname={made.database_url}", "--checkpoint=fast"
    )


async def put_back_whole(made: Arena, folder: Path) -> None:
    """A server on the files of that backup."""
    data = made.folder / "stores" / "postgres"
    shutil.copytree(folder, data)
    data.chmod(0o700)
    account = postgres_account(made.folder / "stores")
    if account is not None:
        for path in (data, *data.rglob("*")):
            os.chown(path, *account, follow_symlinks=False)
    await made.processes["postgres"].start()


async def lose_postgres(made: Arena) -> None:
    """The server and all that it had."""
    made.processes["postgres"].kill()
    shutil.rmtree(made.folder / "stores" / "postgres")


async def put_back(made: Arena, path: Path) -> None:
    """A new server, which holds what the backup held."""
    await made.processes["postgres"].start()
    await program("pg_restore", "--single-transaction", f"--dbname={made.database_url}", str(path))


async def fetch(made: Arena, query: str, *arguments: object) -> list[asyncpg.Record]:
    """Rows of a query."""
    connection = await asyncpg.connect(made.database_url)
    try:
        rows: list[asyncpg.Record] = await connection.fetch(query, *arguments)
        return rows
    finally:
        await connection.close()


async def rows(made: Arena) -> dict[str, Json]:
    """Each record, by its request, without when it was written."""
    found = await fetch(made, ROWS)
    assert len({row["request_id"] for row in found}) == len(found)
    return {str(row["request_id"]): json.loads(row["said"]) for row in found}


async def attempts(made: Arena) -> list[Json]:
    """Every attempt."""
    return [json.loads(row[0]) for row in await fetch(made, ATTEMPTS)]


async def ask(made: Arena, gateway: int, count: int, *, max_tokens: int = 4) -> list[str]:
    """So many answers of one gateway, 16 at a time; their requests' ids."""
    room = asyncio.Semaphore(16)
    secret = made.secrets[RequestClass.INTERACTIVE]
    headers = {"authorization": f"Bearer {secret}"}
    message = {"role": "user", "content": "Tell me of rivers."}
    body = {"model": MODEL, "messages": [message], "max_tokens": max_tokens}
    url = made.gateway_urls[gateway] + "/v1/chat/completions"

    async def one(session: aiohttp.ClientSession) -> str:
        async with room, session.post(url, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
            return answer.headers["x-request-id"]

    async with aiohttp.ClientSession() as session:
        return list(await asyncio.gather(*(one(session) for _ in range(count))))


async def begin(made: Arena, gateway: int, count: int) -> Sequence[aiohttp.ClientResponse]:
    """So many streams that have begun, of which nobody reads more: they run on."""
    secret = made.secrets[RequestClass.INTERACTIVE]
    headers = {"authorization": f"Bearer {secret}"}
    message = {"role": "user", "content": "Tell me of mills."}
    body = {"model": MODEL, "messages": [message], "max_tokens": 2000, "stream": True}
    url = made.gateway_urls[gateway] + "/v1/chat/completions"
    session = aiohttp.ClientSession()
    answers = [await session.post(url, json=body, headers=headers) for _ in range(count)]
    for answer in answers:
        assert answer.status == 200
        await answer.content.readany()
    return answers


async def until(made: Arena, query: str, expected: Any, *, within_s: float = 40.0) -> None:
    """Return once the query's one value is that."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while (found := (await fetch(made, query))[0][0]) != expected:
        assert loop.time() < deadline, f"{query}: {found}, not {expected}"
        await asyncio.sleep(POLL_S)


async def said(made: Arena, *arguments: str) -> tuple[int, Json]:
    """Status and `--json` of a command."""
    status, out = await made.command(*arguments, "--json")
    view: Json = json.loads(out)
    return status, view


async def until_words(made: Arena, gateway: int, expected: set[str]) -> None:
    """Return once `/readyz` says just these."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 40
    while set(found := await readiness(made, gateway)) != expected:
        assert loop.time() < deadline, found
        await asyncio.sleep(POLL_S)


async def readiness(made: Arena, gateway: int) -> list[str]:
    """The words of `/readyz`."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(made.gateway_urls[gateway] + "/readyz") as answer,
    ):
        words: list[str] = (await answer.json(content_type=None))["degraded"]
        return words
