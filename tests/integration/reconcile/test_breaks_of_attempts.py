"""REC-7 on attempts that were changed behind their journal's back."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("change", "sizes"),
    [
        ("worker_id = 'other', outcome = 'worker_failed'", {"worker_id": 1, "outcome": 1}),
        (
            "provider = 'hosted:x', provider_cost_pico = 5, provider_request_id = 'r'",
            {"provider": 1, "provider_cost_pico": 1, "provider_request_id": 1},
        ),
        (
            "usage_source = 'counted', cached_prompt_tokens = 3",
            {"usage_source": 1, "cached_prompt_tokens": 1},
        ),
        (
            "started_at = started_at - interval '1 hour', ended_at = ended_at + interval '0.4 ms'",
            {"started_at": 3_600_000, "ended_at": 1},
        ),
        ("prompt_tokens = 13, output_tokens = 15", {"prompt_tokens": 1, "output_tokens": 5}),
    ],
)
async def test_rec_7_an_attempt_that_was_changed(
    books: Any, change: str, sizes: dict[str, int]
) -> None:
    """Each column that says who served it, what it cost and how it ended, and which attempt."""
    changed = books.records[0]
    await books.sql(
        f"UPDATE usage_attempt SET {change} WHERE request_id = :id", id=changed.request_id
    )
    found = (await books.found("--journal", str(books.directory)))["REC-7"]
    assert {each["request_id"] for each in found} == {str(changed.request_id)}
    assert all(" of attempt 1 of choice 0 is " in each["what"] for each in found)
    assert {each["what"].split()[0]: each["size"] for each in found} == sizes


async def test_rec_7_an_attempt_too_many_or_too_few(books: Any) -> None:
    """One under another number is both; all that are gone are told of each of their records."""
    first, second = (record.request_id for record in books.records[:2])
    await books.sql("UPDATE usage_attempt SET attempt = 2 WHERE request_id = :id", id=first)
    await books.sql("DELETE FROM usage_attempt WHERE request_id = :id", id=second)
    found = (await books.found("--journal", str(books.directory)))["REC-7"]
    assert sorted((each["request_id"], each["what"]) for each in found) == sorted(
        (str(request_id), f"outcome of attempt {number} of choice 0 is {words}")
        for request_id, number, words in (
            (first, 1, "nothing in its row and 'completed' in its journal"),
            (first, 2, "'completed' in its row and nothing in its journal"),
            (second, 1, "nothing in its row and 'completed' in its journal"),
        )
    )
