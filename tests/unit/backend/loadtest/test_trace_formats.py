"""Trace files: what their rows become, and what is said of a bad one."""

import json
import random
from pathlib import Path

import pytest

from backend.loadtest.plan import Segment
from backend.loadtest.trace_formats import Trace, read_mooncake, read_seedlike
from backend.loadtest.workload_error import WorkloadError

PATH = Path("trace.jsonl")
SEEDLIKE = {
    "timestamp": 116,
    "input_length": 100,
    "output_length": 9,
    "tenant": "t05",
    "priority": "batch",
    "prefix_id": 7,
    "prefix_tokens": 64,
}
MOONCAKE = {"timestamp": 40, "input_length": 1_100, "output_length": 3, "hash_ids": [0, 1, 2]}
Row = dict[str, object]


def lines(*rows: Row) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def mooncake(*rows: Row, tenants: int = 1, batch_share: float = 0.0, seed: int = 1) -> Trace:
    chance = random.Random(seed)  # noqa: S311 - times, no secrets
    return read_mooncake(PATH, lines(*rows), tenants=tenants, batch_share=batch_share, rng=chance)


def conversation(*hash_ids: int, at: int = 0) -> Row:
    return {
        "timestamp": at,
        "input_length": 512 * len(hash_ids),
        "output_length": 1,
        "hash_ids": list(hash_ids),
    }


def test_a_seedlike_row_is_a_prefix_and_a_rest_of_its_own() -> None:
    trace = read_seedlike(PATH, lines(SEEDLIKE))
    assert trace.times_ms == [116]
    request = trace.drafts[0].planned(3, 250.0)
    assert request.segments == (Segment("prefix-7", 64), Segment("request-3", 36))
    assert (request.tenant, request.traffic_class) == ("t05", "batch")
    assert (request.number, request.send_at_ms, request.output_tokens) == (3, 250.0, 9)


def test_a_seedlike_row_may_be_all_prefix_or_have_none() -> None:
    rows = [SEEDLIKE | {"prefix_tokens": 100}, SEEDLIKE | {"prefix_tokens": 0}]
    trace = read_seedlike(PATH, lines(*rows))
    assert [draft.planned(0, 0.0).segments for draft in trace.drafts] == [
        (Segment("prefix-7", 100),),
        (Segment("request-0", 100),),
    ]


def test_rows_come_in_the_order_of_their_times() -> None:
    rows = [SEEDLIKE | {"timestamp": at, "output_length": at} for at in (300, 100, 200)]
    trace = read_seedlike(PATH, b"\n" + lines(*rows) + b"\n")
    assert trace.times_ms == [100, 200, 300]
    assert [draft.output_tokens for draft in trace.drafts] == [100, 200, 300]


def test_a_mooncake_row_has_a_segment_for_each_block() -> None:
    draft = mooncake(MOONCAKE).drafts[0]
    assert draft.shared == (
        Segment("block-0", 512),
        Segment("block-1", 512),
        Segment("block-2", 76),
    )
    assert (draft.suffix_tokens, draft.prompt_tokens) == (0, 1_100)
    assert (draft.tenant, draft.traffic_class) == ("t00", "interactive")


def test_rounded_times_are_spread_and_others_left() -> None:
    rounded = mooncake(*(conversation(n, at=at) for n, at in enumerate((0, 0, 2_999, 3_000))))
    assert [at // 3_000 for at in rounded.times_ms] == [0, 0, 1, 1]
    assert len(set(rounded.times_ms)) == 4
    exact = mooncake(*(conversation(n, at=at) for n, at in enumerate((0, 0, 40, 3_000))))
    assert exact.times_ms == [0, 0, 40, 3_000]


def test_a_conversation_stays_with_one_tenant_and_no_block_is_shared_between_two() -> None:
    # All rows begin with block 0; what follows it is the conversation.
    rows = [conversation(0, root, 1_000 + n) for n in range(8) for root in range(1, 41)]
    trace = mooncake(*rows, tenants=5)
    tenant_of: dict[object, set[str]] = {}
    owner: dict[str, set[str]] = {}
    for row, draft in zip(rows, trace.drafts, strict=True):
        tenant_of.setdefault(row["hash_ids"][1], set()).add(draft.tenant)  # type: ignore[index]
        for segment in draft.shared:
            owner.setdefault(segment.key, set()).add(draft.tenant)
    assert {len(tenants) for tenants in tenant_of.values()} == {1}
    assert {len(tenants) for tenants in owner.values()} == {1}
    assert {tenant for tenants in tenant_of.values() for tenant in tenants} == {
        "t00", "t01", "t02", "t03", "t04",
    }  # fmt: skip


def test_prompts_of_nothing_but_the_common_lead_are_spread_too() -> None:
    trace = mooncake(*(conversation(0) for _ in range(100)), tenants=2)
    assert {draft.tenant for draft in trace.drafts} == {"t00", "t01"}


def test_a_share_of_mooncake_may_be_batch() -> None:
    trace = mooncake(*(conversation(n) for n in range(1_000)), batch_share=0.25)
    batch = sum(draft.traffic_class == "batch" for draft in trace.drafts)
    assert batch == pytest.approx(250, abs=70)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "trace.jsonl has no rows"),
        (b"\n \n", "trace.jsonl has no rows"),
        (lines(SEEDLIKE) + b"{oops}\n", "trace.jsonl, line 2 is not JSON"),
        (b"\xff\xfe\n", "trace.jsonl, line 1 is not JSON"),
        (b'{"timestamp": 1', "trace.jsonl, line 1 is not JSON"),
        (b"[1]", "line 1: Expected `object`, got `array`"),
        (lines(SEEDLIKE, SEEDLIKE | {"input_length": -5}), "line 2: Expected `int` >= 1 - at"),
        (lines(SEEDLIKE | {"output_length": 0}), "line 1: Expected `int` >= 1 - at"),
        (lines(SEEDLIKE | {"input_length": 10**9}), "line 1: Expected `int` <= 1000000"),
        (lines(SEEDLIKE | {"timestamp": -1}), "line 1: Expected `float` >= 0"),
        (lines(SEEDLIKE | {"timestamp": 1_796_000_000_000}), "line 1: Expected `float` <= "),
        (lines(SEEDLIKE | {"priority": "high"}), "line 1: Invalid enum value 'high'"),
        (lines(SEEDLIKE | {"prefix_tokens": 101}), "prefix_tokens 101 is more than input_length"),
        (lines(MOONCAKE), "line 1: Object missing required field `tenant`"),
    ],
)
def test_a_bad_seedlike_line_is_named(content: bytes, said: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        read_seedlike(PATH, content)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_blocks_must_be_as_many_as_the_prompt_has() -> None:
    with pytest.raises(WorkloadError, match="line 1: 2 hash_ids for 1100 tokens, not 3"):
        mooncake(MOONCAKE | {"hash_ids": [0, 1]})
