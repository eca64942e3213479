"""`weir limit`: look at and change the limits of tenants and keys."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from gateway.administration import Administration
from gateway.administration.bulk_limits import BulkChange, bulk_view
from gateway.administration.views import tenant_limits
from gateway.commands.confirmed import tell_confirmation
from gateway.commands.connection import Connection, connected
from gateway.commands.limit_effect import show_effect
from gateway.commands.output import show_one
from gateway.domain.confirmation import Confirmation
from gateway.domain.tenant import Limits

SETTABLE = tuple(name for name in Limits.__struct_fields__ if name != "models")
HELP = {
    "max_sequences": "Sequences running at once.",
    "tpm": "Tokens charged in any 60 s.",
    "rpm": "Requests admitted in any 60 s.",
    "max_queued": "Requests waiting at once; a key's can be none: its tenant's holds.",
    "max_wait_ms": "Longest wait in the queue, in milliseconds; a key's can be none: its tenant's "
    "holds. Batch waits for as long as WEIR_QUEUE_BATCH_WAIT_MS says.",
    "weight": "Share among tenants that wait, 1 to 1000.",
    "monthly_budget": "Of a calendar month, in the tenant's currency: 500.00. Every model that it "
    "is for must have a price.",
    "max_prompt_tokens": "Tokens of a request's prompts together.",
    "max_output_tokens": "Tokens of one choice.",
    "data_policy": "self_hosted_only or hosted_allowed; a key's can be none: its tenant's holds.",
    "cache_isolation": "tenant or shared.",
}


@click.group()
def limit() -> None:
    """Limits of tenants and keys."""


@limit.command()
@click.argument("tenant_id", metavar="[TENANT]", required=False)
@click.option("--key", "key_id", help="A key's own limits instead of a tenant's.")
@connected
def show(connection: Connection, tenant_id: str | None, key_id: str | None) -> None:
    """The limits in force."""
    _check_subject(tenant_id, key_id)
    if key_id is not None:
        limits = connection.run(lambda administration: administration.get_key_limits(key_id))
    else:
        found = str(tenant_id)
        limits = connection.run(lambda administration: administration.get_tenant_limits(found))
    _show(connection, limits)


def _limit_options(command: Callable[..., None]) -> Callable[..., None]:
    for name in reversed(SETTABLE):
        command = click.option("--" + name.replace("_", "-"), name, help=HELP[name])(command)
    return command


@limit.command("set")
@click.argument("tenant_ids", metavar="[TENANT]...", nargs=-1)
@click.option("--all", "all_tenants", is_flag=True, help="Every tenant, up to 1000.")
@click.option("--key", "key_id", help="A key's own limits instead of a tenant's.")
@click.option("--model", "model_id", help="Narrow this model only.")
@click.option(
    "--dry-run", is_flag=True, help="Of one tenant: show what it would do, and save nothing."
)
@_limit_options
@connected
def set_limits(
    connection: Connection,
    tenant_ids: tuple[str, ...],
    *,
    all_tenants: bool,
    key_id: str | None,
    model_id: str | None,
    dry_run: bool,
    **given: str | None,
) -> None:
    """Change the limits that are named and leave the others; `none` takes a limit away. Of several
    tenants all are changed or none, each with its own entry of the audit log."""
    if sum((bool(tenant_ids), all_tenants, key_id is not None)) != 1:
        raise click.UsageError("name tenants, or --all of them, or a key with --key")
    changes = {name: _value_of(name, text) for name, text in given.items() if text is not None}
    if not changes:
        raise click.UsageError("name at least one limit, such as --max-sequences 8")
    if dry_run:
        if len(tenant_ids) != 1:
            raise click.UsageError("--dry-run is for one tenant")
        show_effect(connection, tenant_ids[0], changes, model_id=model_id)
        return
    if key_id is not None:
        changed_key, confirmation = connection.run_confirmed(
            lambda administration: administration.change_key_limits(
                connection.actor, key_id, changes, model_id=model_id
            ),
            lambda administration: administration.confirm_key(key_id),
        )
        _show(connection, changed_key.limits)
    elif len(tenant_ids) == 1:
        changed_tenant, confirmation = connection.run_confirmed(
            lambda administration: administration.change_tenant_limits(
                connection.actor, tenant_ids[0], changes, model_id=model_id
            ),
            lambda administration: administration.confirm_tenant(tenant_ids[0]),
        )
        _show(connection, tenant_limits(changed_tenant.limits))
    else:
        confirmation = _set_many(connection, tenant_ids or None, changes, model_id)
    tell_confirmation(confirmation, as_json=connection.as_json)


def _set_many(
    connection: Connection,
    tenant_ids: tuple[str, ...] | None,
    changes: dict[str, object],
    model_id: str | None,
) -> Confirmation:
    async def work(administration: Administration) -> tuple[BulkChange, Confirmation]:
        done = await administration.change_many_limits(
            connection.actor, tenant_ids, changes, model_id=model_id
        )
        return done, await administration.confirm_tenant(done.latest)

    done, confirmation = connection.run(work)
    if connection.as_json:
        click.echo(msgspec.json.encode(bulk_view(done)).decode())
    else:
        unchanged = len(done.limits) - len(done.changed)
        click.echo(f"changed {len(done.changed)} tenants, {unchanged} had these limits already")
    return confirmation


def _check_subject(tenant_id: str | None, key_id: str | None) -> None:
    if (tenant_id is None) == (key_id is None):
        raise click.UsageError("name a tenant, or a key with --key")


def _value_of(name: str, text: str) -> object:
    """What the text means; whether a limit may be so is checked where it is stored."""
    if text == "none":
        return None
    if name == "monthly_budget":
        return text
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 20:
        return int(text)
    return text


def _show(connection: Connection, limits: Limits) -> None:
    view: dict[str, Any] = msgspec.to_builtins(limits)
    show_one(view, as_json=connection.as_json)
