"""The trace files that a workload can be read from: JSON lines, one request each."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from backend.loadtest.arrivals import spread_in_buckets
from backend.loadtest.draft import Draft, tenant_name
from backend.loadtest.lengths import LONGEST
from backend.loadtest.plan import Segment, TrafficClass
from backend.loadtest.workload_error import WorkloadError

BLOCK_TOKENS = 512
"""What one of Mooncake's hash ids stands for; the last one of a prompt may stand for less."""
_BUCKET_MS = 3_000
_BUCKET_SLACK_MS = 5

Tokens = Annotated[int, Meta(ge=1, le=LONGEST)]
# A time since the trace began: a date in its place would be an error.
Milliseconds = Annotated[float, Meta(ge=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class Trace:
    """The rows of a file in the order of their times."""

    times_ms: Sequence[float]
    drafts: Sequence[Draft]


class _SeedlikeRow(Struct):
    timestamp: Milliseconds
    input_length: Tokens
    output_length: Tokens
    tenant: Annotated[str, Meta(min_length=1, max_length=100)]
    priority: TrafficClass
    prefix_id: Annotated[int, Meta(ge=0)]
    prefix_tokens: Annotated[int, Meta(ge=0, le=LONGEST)]

    def __post_init__(self) -> None:
        if self.prefix_tokens > self.input_length:
            raise ValueError(
                f"prefix_tokens {self.prefix_tokens} is more than input_length {self.input_length}"
            )


class _MooncakeRow(Struct):
    timestamp: Milliseconds
    input_length: Tokens
    output_length: Tokens
    hash_ids: list[int]

    def __post_init__(self) -> None:
        blocks = -(-self.input_length // BLOCK_TOKENS)
        if len(self.hash_ids) != blocks:
            raise ValueError(
                f"{len(self.hash_ids)} hash_ids for {self.input_length} tokens, not {blocks}"
            )


_Row = TypeVar("_Row", _SeedlikeRow, _MooncakeRow)


def read_seedlike(path: Path, content: bytes) -> Trace:
    """Columns timestamp (ms), input_length, output_length, tenant, priority, prefix_id and
    prefix_tokens. Raises WorkloadError that names the line."""
    rows = _rows(path, content, _SeedlikeRow)
    drafts = [
        Draft(
            tenant=row.tenant,
            traffic_class=row.priority,
            shared=(Segment(f"prefix-{row.prefix_id}", row.prefix_tokens),)
            if row.prefix_tokens
            else (),
            suffix_tokens=row.input_length - row.prefix_tokens,
            output_tokens=row.output_length,
        )
        for row in rows
    ]
    return Trace([row.timestamp for row in rows], drafts)


def read_mooncake(
    path: Path, content: bytes, *, tenants: int, batch_share: float, rng: random.Random
) -> Trace:
    """Columns timestamp (ms), input_length, output_length and hash_ids, one id for each block of
    512 tokens. Raises WorkloadError that names the line.

    Times that were rounded to 3 s are spread over their 3 s again. The trace knows no tenants:
    with several, each conversation (what shares its first block that not every row shares) goes
    whole to one, drawn evenly. What every row begins with is then each tenant's own text, so
    nothing is shared between tenants and `ideal_hit_rate` counts what can really be found.
    """
    rows = _rows(path, content, _MooncakeRow)
    times = [row.timestamp for row in rows]
    if _in_buckets(times):
        times = spread_in_buckets(times, _BUCKET_MS, rng)
    common = _shared_lead([row.hash_ids for row in rows])
    tenant_of: dict[int, int] = {}
    segments: dict[tuple[str, int, int], Segment] = {}
    drafts: list[Draft] = []
    for row in rows:
        root = row.hash_ids[min(common, len(row.hash_ids) - 1)]
        # A row of nothing but the common lead is a conversation of its own.
        lone = len(row.hash_ids) <= common
        tenant = rng.randrange(tenants) if lone else tenant_of.get(root)
        if tenant is None:
            tenant = tenant_of[root] = rng.randrange(tenants)
        name = tenant_name(tenant)
        prefix = "block" if tenants == 1 else f"{name}-block"
        prompt: list[Segment] = []
        for place, block in enumerate(row.hash_ids):
            tokens = min(BLOCK_TOKENS, row.input_length - place * BLOCK_TOKENS)
            segment = Segment(f"{prefix}-{block}", tokens)
            prompt.append(segments.setdefault((name, block, tokens), segment))
        traffic_class: TrafficClass = "batch" if rng.random() < batch_share else "interactive"
        drafts.append(Draft(name, traffic_class, tuple(prompt), 0, row.output_length))
    return Trace(times, drafts)


def _rows(path: Path, content: bytes, kind: type[_Row]) -> list[_Row]:
    decoder = msgspec.json.Decoder(kind)
    rows: list[_Row] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except msgspec.ValidationError as error:
            raise WorkloadError(f"{path}, line {number}: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise WorkloadError(f"{path}, line {number} is not JSON") from None
    if not rows:
        raise WorkloadError(f"{path} has no rows")
    rows.sort(key=lambda row: row.timestamp)
    return rows


def _shared_lead(prompts: Sequence[Sequence[int]]) -> int:
    """How many blocks all prompts begin with; with one prompt there is nothing in common."""
    first = prompts[0]
    lead = len(first) if len(prompts) > 1 else 0
    for prompt in prompts:
        lead = min(lead, len(prompt))
        while prompt[:lead] != first[:lead]:
            lead -= 1
    return lead


def _in_buckets(times_ms: Sequence[float]) -> bool:
    """Rounded times are all near a multiple of the bucket, and some fall together."""
    near = all(
        abs(time - round(time / _BUCKET_MS) * _BUCKET_MS) <= _BUCKET_SLACK_MS for time in times_ms
    )
    return near and len(set(times_ms)) < len(times_ms)
