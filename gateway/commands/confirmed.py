"""How a command says which gateways do not go by its change yet."""

import click

from gateway.administration.views import View
from gateway.domain.confirmation import Confirmation


def with_confirmation(view: View, found: Confirmation) -> View:
    """What was changed, and who has not confirmed it: nobody, gateways by their ids, or None, where
    `unknown` says why that is not known. The change is made either way."""
    unconfirmed = None if found.unconfirmed is None else list(found.unconfirmed)
    return {**view, "unconfirmed": unconfirmed, "unknown": found.unknown}


def tell_confirmation(found: Confirmation, *, as_json: bool) -> None:
    """The same as a line of its own, below limits, whose JSON is what `limit show` prints too and
    says nothing more."""
    if as_json:
        return
    if found.unconfirmed is None:
        click.echo(f"unconfirmed: not known, {found.unknown}")
    else:
        click.echo(f"unconfirmed: {', '.join(found.unconfirmed) or 'none'}")
