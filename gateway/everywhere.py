"""What makes an administrator's change hold on this gateway at once, and says so to the others."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from gateway.adapters.confirmations import Confirmations, Confirming
from gateway.adapters.directory_content import DirectoryChange
from gateway.administration import Administration
from gateway.administration.restoring import RevokedAgain
from gateway.serving.withdrawal import Endable, withdrawn_in

if TYPE_CHECKING:
    from gateway.app import Gateway


def everywhere_loops(gateway: "Gateway") -> list[Coroutine[Any, Any, None]]:
    """From now on what is under way for a withdrawn key or tenant ends; the loops that tell other
    gateways which changes this one goes by."""
    under_way: tuple[Endable, ...] = (gateway.places, gateway.live)

    def end_withdrawn(change: DirectoryChange) -> None:
        withdrawn = withdrawn_in(
            change.tenants,
            change.keys,
            now_ms=gateway.clock.now_ms(),
            is_new=not change.whole,
            rotated_before=change.rotated_before,
        )
        if not withdrawn.is_nothing:
            for part in under_way:
                part.end_withdrawn(withdrawn)

    gateway.directory.on_change.append(end_withdrawn)
    confirming = Confirming(
        Confirmations(gateway.redis, gateway.gateways),
        gateway.journal.gateway_id,
        lambda: gateway.directory.applied,
        gateway.directory.moved,
    )
    again = RevokedAgain(
        Administration(gateway.postgres, redis=gateway.redis),
        gateway.directory.unwritten_revocations,
    )
    return [confirming.run(), again.run()]
