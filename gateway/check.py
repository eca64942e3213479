"""`weir check`: preflight of one gateway, by the environment that `weir serve` would have."""

import asyncio
import sys

import click
import msgspec

from gateway.adapters.redis import connect_redis
from gateway.preflight import (
    Finding,
    Status,
    check_journal,
    check_migrations,
    check_policy,
    check_postgres,
    check_workers,
)
from gateway.preflight_redis import check_redis
from gateway.settings import Settings, SettingsError, load_settings

REDIS_TIMEOUT_MS = 2_000


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(as_json: bool) -> None:
    """Preflight: reach everything a gateway needs. Exit status 1 on any failure."""
    findings = asyncio.run(examine())
    passed = all(finding.status is not Status.FAIL for finding in findings)
    if as_json:
        document = {"ok": passed, "checks": findings}
        click.echo(msgspec.json.encode(document).decode())
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            click.echo(f"{finding.status:<4}  {finding.name:<{width}}  {finding.detail}")
    if not passed:
        sys.exit(1)


async def examine() -> list[Finding]:
    """All findings, in the order in which they build on one another."""
    try:
        settings = load_settings()
    except SettingsError as error:
        return [Finding("settings", Status.FAIL, str(error))]
    parsed = Finding("settings", Status.OK, "parsed from the environment")
    try:
        return [parsed, *await _examine(settings)]
    except SettingsError as error:
        return [Finding("settings", Status.FAIL, str(error))]


async def _examine(settings: Settings) -> list[Finding]:
    try:
        redis = connect_redis(settings.redis_url, timeout_ms=REDIS_TIMEOUT_MS)
    except ValueError as error:
        # The driver's own message may quote the URL, password included.
        raise SettingsError("WEIR_REDIS_URL is not a Redis URL") from error
    try:
        postgres, migrations, policy, of_redis, workers = await asyncio.gather(
            check_postgres(settings.database_url),
            check_migrations(settings.database_url),
            check_policy(settings.database_url),
            check_redis(redis),
            check_workers(settings.database_url),
        )
    finally:
        await redis.aclose()
    journal = await asyncio.to_thread(
        check_journal, settings.journal_dir, settings.journal_segment_bytes
    )
    return [postgres, migrations, policy, *of_redis, journal, *workers]
