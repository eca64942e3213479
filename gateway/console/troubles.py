"""What the words of `degraded` mean, in sentences for whoever watches: what is so, and what it does
to requests. How each is mended is in `docs/architecture.md`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

NAMED_MAX = 5


class Trouble(NamedTuple):
    """One notice. `kind` is `bad` where requests fail, `warn` where they go on."""

    kind: str
    title: str
    text: str


WORDS = {
    "draining": Trouble(
        "warn", "This gateway is stopping.", "It takes no new requests; what runs on it ends."
    ),
    "journal": Trouble(
        "bad",
        "The journal cannot be written.",
        "New requests are refused, since their usage could be lost. Look at the gateway's disk.",
    ),
    "redis": Trouble(
        "bad",
        "Redis cannot be reached.",
        "Running streams go on. New requests are mostly refused until it is back, and what tenants "
        "use now is not known.",
    ),
    "clock": Trouble(
        "bad",
        "This gateway's clock is wrong.",
        "It is more than a second off Redis's. Set the clock of its machine.",
    ),
    "directory": Trouble(
        "bad",
        "This gateway has not seen the stores for too long.",
        "New requests are refused: a key could have been revoked since.",
    ),
    "postgres": Trouble(
        "warn",
        "Postgres cannot be reached.",
        "Requests are served from memory. Nothing can be changed, and no hosted provider is used.",
    ),
    "redis_empty": Trouble(
        "warn",
        "Redis came back empty.",
        "Tenants with limits are refused for up to a minute, until what runs is counted again.",
    ),
    "metering": Trouble(
        "warn",
        "Usage is stored late.",
        "Records wait in this gateway's journal for more than ten seconds. None is lost.",
    ),
    "usage": Trouble(
        "warn",
        "Usage is not complete yet.",
        "A gateway has ended requests that Postgres does not have. Figures of usage will still "
        "grow.",
    ),
    "second_copy": Trouble(
        "warn",
        "The second copy of the journal has a gap.",
        "Requests go on. Were this gateway's disk lost now, some usage would be lost with it.",
    ),
    "dead_letters": Trouble(
        "warn",
        "Postgres refused a usage record for good.",
        "It is kept, and billed by nobody until a person looks: weir dead-letters list.",
    ),
    "partitions": Trouble(
        "warn",
        "A day's partition could not be made ahead.",
        "Requests go on, and are billed all the same. It is tried again each minute.",
    ),
    "restored": Trouble(
        "warn",
        "Postgres was restored from a backup, and lacks changes.",
        "Keys, limits, prices or invoices are as they were then. No invoice is issued until "
        "somebody has looked: weir restore check.",
    ),
    "reconcile": Trouble(
        "warn",
        "Reconciliation found a difference.",
        "The latest runs say what does not agree: see Reconciliation.",
    ),
    "workers": Trouble(
        "bad",
        "No healthy worker serves {unserved}.",
        "Its requests go to a hosted provider where the tenant allows it. Others wait as long as "
        "they may, and are then refused.",
    ),
    "latencies": Trouble(
        "warn", "Latencies are not known.", "Redis did not tell them. Requests are not affected."
    ),
    "hosted_use": Trouble(
        "warn",
        "It is not known what runs at hosted providers.",
        "Redis did not tell it. Requests are not affected.",
    ),
}
_TENANT, _QUEUE = "redis:", "queue:"


def troubles_of(
    degraded: Sequence[str], *, unreachable: Sequence[str] = (), unserved: Sequence[str] = ()
) -> list[Trouble]:
    """What is degraded, the worst first. `unreachable` workers and `unserved` models are named."""
    found = [_known(word, unserved) for word in degraded if not word.startswith((_TENANT, _QUEUE))]
    if unreachable:
        found.append(
            Trouble(
                "bad",
                f"{_counted(unreachable, 'worker')} cannot be reached: {_named(unreachable)}.",
                "Nothing new is sent there; what ran there has failed, or is asked for elsewhere. "
                "It is probed several times a second, and used again as soon as it answers.",
            )
        )
    tenants = [word.removeprefix(_TENANT) for word in degraded if word.startswith(_TENANT)]
    if tenants:
        found.append(
            Trouble(
                "warn",
                f"What {_counted(tenants, 'tenant')} use is not known: {_named(tenants)}.",
                "Redis did not tell it. They are missing from the list below.",
            )
        )
    queues = [word.removeprefix(_QUEUE) for word in degraded if word.startswith(_QUEUE)]
    if queues:
        found.append(
            Trouble(
                "warn",
                f"The queue is not known: {_named(queues)}.",
                "Redis did not tell it. What waits there, and in all, is not known.",
            )
        )
    return sorted(found, key=lambda trouble: trouble.kind != "bad")


def stores_text(degraded: Sequence[str]) -> str:
    """What could not be asked, within a sentence: `Redis and the queue of m`."""
    names = [
        f"the queue of {word.removeprefix(_QUEUE)}"
        if word.startswith(_QUEUE)
        else word[:1].upper() + word[1:]
        for word in degraded
    ]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _known(word: str, unserved: Sequence[str]) -> Trouble:
    trouble = WORDS.get(word)
    if trouble is None:
        return Trouble("warn", f"Degraded: {word}.", "This page has no words for it.")
    title = trouble.title.replace("{unserved}", _named(unserved) if unserved else "a model")
    return trouble._replace(title=title)


def _named(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = len(shown) - NAMED_MAX
    return ", ".join(shown[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"
