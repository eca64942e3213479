"""The `weir` command. Each subcommand lives in a module of its own and is imported when used, so
that `weir --help` starts quickly and a gateway never loads what only `weir dev` needs.

A bad input is one line on standard error and exit status 2; a failed operation is one line and 1.
"""

import importlib
import sys
from collections.abc import Sequence

import click

from gateway.errors import WeirError
from gateway.settings import SettingsError

COMMANDS: dict[str, tuple[str, str]] = {
    "dev": ("gateway.dev:dev", "The whole system on this machine."),
    "serve": ("gateway.serve:serve", "One production gateway, configured by environment."),
    "check": ("gateway.check:check", "Preflight: reach everything a gateway needs."),
    "migrate": ("gateway.migrate:migrate", "Bring the database schema to head."),
    "tenant": ("gateway.commands.tenant:tenant", "Tenants."),
    "key": ("gateway.commands.key:key", "API keys."),
    "limit": ("gateway.commands.limit:limit", "Limits of tenants and keys."),
    "model": ("gateway.commands.model:model", "Models."),
    "worker": ("gateway.commands.worker:worker", "Workers."),
    "hosted": ("gateway.commands.hosted:hosted", "Hosted providers, the fallback."),
    "price": ("gateway.commands.price:price", "Prices and plans."),
    "invoice": ("gateway.commands.invoice:invoice", "Invoices."),
    "credit-note": ("gateway.commands.credit_note:credit_note", "Credit notes."),
    "seller": ("gateway.commands.seller:seller", "Who invoices are from."),
    "budget-alert": ("gateway.commands.budget_alert:budget_alert", "Alerts about budgets."),
    "user": ("gateway.commands.user:user", "Users and their tokens."),
    "audit": ("gateway.commands.audit:audit", "The audit log."),
    "usage": ("gateway.commands.usage:usage", "Usage records."),
    "unit-cost": ("gateway.commands.unit_cost:unit_cost", "The pool's bill, and whom it is for."),
    "journal": ("gateway.commands.journal:journal", "Journals that gateways left on a disk."),
    "dead-letters": (
        "gateway.commands.dead_letters:dead_letters",
        "Usage records that Postgres refused.",
    ),
    "restore": (
        "gateway.commands.restore:restore",
        "What Postgres lacks since it was restored from a backup.",
    ),
    "reconcile": (
        "gateway.commands.reconcile:reconcile",
        "Prove usage records against journals, engines and roll-ups.",
    ),
    "backend": ("backend.command:backend", "Run one worker."),
    "loadtest": ("backend.loadtest.command:loadtest", "Open-loop load, goodput and the knee."),
}


class LazyGroup(click.Group):
    """A click group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, attribute = entry[0].split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 - a wrong registry is our own bug
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="weir")
def weir() -> None:
    """Weir: exact limits, fair queues and billing for self-hosted language models."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        # Undecodable bytes come as lone surrogates, which neither a store nor a message can take.
        "\n".join(arguments).encode()
    except UnicodeEncodeError:
        _fail("an argument is not valid UTF-8", status=2)
    try:
        status = weir.main(args=arguments, prog_name="weir", standalone_mode=False)
    except UnicodeEncodeError:
        _fail("a text from the environment is not valid UTF-8, or cannot be printed", status=2)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.UsageError as error:
        _fail(error.format_message(), status=2)
    except click.ClickException as error:
        _fail(error.format_message(), status=error.exit_code)
    except SettingsError as error:
        _fail(str(error), status=2)
    except WeirError as error:
        _fail(error.message, status=2 if 400 <= error.status < 500 else 1)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, *, status: int) -> None:
    click.echo("weir: " + " ".join(message.split()), err=True)
    sys.exit(status)
