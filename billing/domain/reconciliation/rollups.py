"""REC-4: roll-ups say what the records say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms


@dataclass(frozen=True)
class Difference:
    """A group whose roll-up is not the sum of its records, or of the roll-ups that it is made of:
    what differs, each with the roll-up's value and what it should be."""

    bucket: datetime
    tenant_id: str
    group: str
    """Key, model, class, provider and what else a roll-up is by."""
    values: Mapping[str, tuple[int, int]]


def check_rollups(
    differences: Sequence[Difference],
    coarse: Sequence[Difference] = (),
    *,
    groups: int,
    dirty: frozenset[tuple[datetime, str]],
) -> Verdict:
    """REC-4 over `groups` groups. Quarters in `dirty` are known to be out of date, and are made
    anew shortly; what differs there is a term. `coarse` are days and totals that are not the sums
    of their quarters, and not known to be."""
    wrong = [each for each in differences if (each.bucket, each.tenant_id) not in dirty]
    return Verdict(
        Check.ROLLUPS,
        terms(
            groups=groups, out_of_date=len(dirty), differ_meanwhile=len(differences) - len(wrong)
        ),
        tuple(map(_finding, (*wrong, *coarse))),
    )


def _finding(difference: Difference) -> Finding:
    """By the largest of what differs, tokens before all others."""
    shown = {name: value for name, value in difference.values.items() if value[0] != value[1]}
    tokens = {name: value for name, value in shown.items() if name.endswith("_tokens")}
    name, (rolled, raw) = max(
        (tokens or shown).items(), key=lambda each: abs(each[1][0] - each[1][1])
    )
    told = ", ".join(f"{each} {was} instead of {is_}" for each, (was, is_) in shown.items())
    return Finding(
        Check.ROLLUPS,
        f"{difference.bucket:%Y-%m-%dT%H:%MZ} {difference.tenant_id} {difference.group}",
        None,
        abs(rolled - raw),
        name,
        f"the roll-up says {told}",
    )
