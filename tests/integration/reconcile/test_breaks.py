"""Each check, broken on purpose in a real database, and caught by name with the request and the
size. Books that nobody has touched have no findings."""

from pathlib import Path
from typing import Any

import pytest
from broken_books import TOKENS, named, terms
from usage_examples import an_admission


async def test_whole_books_have_no_findings(books: Any) -> None:
    """Every check that can, has compared something; running it changes nothing."""
    before = await books.query("SELECT count(*), max(recorded_at) FROM usage_record")
    view = await books.reconcile("--journal", str(books.directory))
    assert view["ok"]
    assert view["findings"] == 0
    assert terms(view, "REC-1")["rows"] == terms(view, "REC-1")["ends"] == 6
    assert terms(view, "REC-4") == {"groups": 1, "out_of_date": 0, "differ_meanwhile": 0}
    assert terms(view, "REC-6")["counted"] == 6
    assert terms(view, "REC-7") == {"replayed": 6, "not_shipped_yet": 0}
    skipped = {each["check"]: each["not_applicable"] for each in view["checks"]}
    assert skipped["REC-2"] == "no Redis to ask"
    assert skipped["REC-5"] == "no invoices"
    assert await books.query("SELECT count(*), max(recorded_at) FROM usage_record") == before
    assert await books.query("SELECT count(*) FROM usage_rollup_dirty") == [(0,)]


async def sample(books: Any, seconds_ago: int, prompt: int | None, output: int | None) -> None:
    """What the worker of these books had counted so long ago, in its first life."""
    await books.sql(
        "INSERT INTO engine_turn (worker_id, turn, gateway_id) VALUES ('local-0', 1, 'gw')"
        " ON CONFLICT DO NOTHING"
    )
    await books.sql(
        "INSERT INTO engine_sample (worker_id, turn, life, gateway_id, asked_at, taken_at,"
        " prompt_tokens, output_tokens) SELECT 'local-0', 1000 - :ago, 1, 'gw', at, at, :prompt,"
        " :output FROM (SELECT now() - make_interval(secs => :ago) AS at) AS sampled",
        ago=seconds_ago,
        prompt=prompt,
        output=output,
    )


@pytest.mark.parametrize("over", [-3, 0, 4])
async def test_rec_3_an_engine_that_counted_something_else(
    books: Any, over: int, redis_url: str
) -> None:
    """Six attempts of 12 and 20 tokens, between a sample of a worker that had counted nothing yet
    and one of later: more or fewer tokens are found, with the worker and how many. Where there is
    no Redis to say what is open, what an engine counted past the records may be that."""
    await books.sql(
        "UPDATE usage_attempt SET usage_source = 'engine_final',"
        " ended_at = now() - interval '60 seconds'"
    )
    await sample(books, 120, None, None)
    await sample(books, 10, 6 * 12, 6 * 20 + over)
    found = (await books.found("--redis-url", redis_url)).get("REC-3", [])
    assert [(each["subject"], each["size"], each["unit"]) for each in found] == (
        [("local-0, life 1", abs(over), "tokens")] if over else []
    )
    view = await books.reconcile()
    assert view["ok"] is (over >= 0)
    assert terms(view, "REC-3")["lower_bound"] == max(0, over)


async def test_rec_4_a_roll_up_that_was_changed(books: Any) -> None:
    """By hand, or left behind by a row that was changed behind the trigger's back."""
    await books.sql("UPDATE usage_rollup SET output_tokens = output_tokens + 5")
    (finding,) = (await books.found())["REC-4"]
    assert (finding["size"], finding["unit"]) == (5, "output_tokens")
    assert " acme " in finding["subject"]
    await books.sql("DELETE FROM usage_rollup")
    (finding,) = (await books.found())["REC-4"]
    assert finding["size"] == 6 * 20
    await books.sql("UPDATE usage_record SET queue_ms = queue_ms")  # marks them
    assert await books.found() == {}
    await books.roll_up()
    assert await books.found() == {}


async def test_rec_6_a_second_attempt_that_counts(books: Any) -> None:
    """The request and the tokens it adds."""
    twice = books.records[2]
    await books.sql(
        "INSERT INTO usage_attempt SELECT request_id, admitted_at, choice, 2, worker_id, provider,"
        " started_at, ended_at, outcome, prompt_tokens, output_tokens FROM usage_attempt"
        " WHERE request_id = :id",
        id=twice.request_id,
    )
    found = await books.found()
    assert set(found) == {"REC-6"}
    assert {each["request_id"] for each in found["REC-6"]} == {str(twice.request_id)}
    assert any(each["size"] == 20 and "two attempts" in each["what"] for each in found["REC-6"])


async def test_rec_6_a_bill_that_its_policy_does_not_give(books: Any) -> None:
    free = books.records[3]
    await books.sql(
        "UPDATE usage_record SET billable = false WHERE request_id = :id", id=free.request_id
    )
    await books.roll_up()
    (finding,) = (await books.found())["REC-6"]
    assert (finding["request_id"], finding["size"]) == (str(free.request_id), 20)


async def test_rec_7_a_replay_that_would_write(books: Any) -> None:
    """A row that is not what was shipped: a replay would write it anew. Nothing is written."""
    turned = books.records[0]
    await books.sql(
        "UPDATE usage_record SET final = false, output_tokens = 3 WHERE request_id = :id",
        id=turned.request_id,
    )
    await books.sql(
        "UPDATE usage_attempt SET output_tokens = 3 WHERE request_id = :id", id=turned.request_id
    )
    await books.roll_up()
    assert await books.found() == {}
    found = await books.found("--journal", str(books.directory))
    assert set(found) == {"REC-7"}
    assert named(found["REC-7"]) == [(str(turned.request_id), TOKENS, "tokens")]
    assert await books.query("SELECT count(*) FROM usage_record WHERE NOT final") == [(1,)]


@pytest.mark.parametrize(
    ("change", "sizes"),
    [
        (
            "prompt_tokens = prompt_tokens + 100000, cached_prompt_tokens = 0",
            {"prompt_tokens": (100_000, "tokens"), "cached_prompt_tokens": (4, "tokens")},
        ),
        (
            "model = 'x', api_key_id = 'key_other', tenant_id = 'other'",
            {"model": (1, "records"), "api_key_id": (1, "records"), "tenant_id": (1, "records")},
        ),
        (
            "outcome = 'worker_failed', billable = false, usage_source = 'counted'",
            {
                "outcome": (1, "records"),
                "billable": (1, "records"),
                "usage_source": (1, "records"),
            },
        ),
        (
            "ended_at = ended_at + interval '1 second', usage_flags = '{reaped}', seq = 99",
            {
                "ended_at": (1_000, "ms"),
                "usage_flags": (1, "records"),
                "seq": (1, "records"),
            },
        ),
        (
            "first_token_at = first_token_at + interval '0.4 ms'",
            {"first_token_at": (1, "ms")},
        ),
        (
            "first_token_at = NULL, cost_pico = 7, currency = 'USD', price_id = NULL",
            {
                "first_token_at": (1, "records"),
                "cost_pico": (1, "records"),
                "currency": (1, "records"),
            },
        ),
    ],
)
async def test_rec_7_a_final_row_that_was_changed(
    books: Any, change: str, sizes: dict[str, tuple[int, str]]
) -> None:
    """No replay writes it, yet it is not what its journal says: each column is named."""
    changed = books.records[0]
    await books.sql(
        f"UPDATE usage_record SET {change} WHERE request_id = :id", id=changed.request_id
    )
    await books.roll_up()
    found = (await books.found("--journal", str(books.directory)))["REC-7"]
    assert {each["request_id"] for each in found} == {str(changed.request_id)}
    assert {each["what"].split()[0]: (each["size"], each["unit"]) for each in found} == sizes


async def test_rec_6_a_prompt_that_its_attempt_does_not_give(books: Any) -> None:
    """Also without a journal."""
    changed = books.records[0]
    await books.sql(
        "UPDATE usage_record SET prompt_tokens = prompt_tokens + 100000 WHERE request_id = :id",
        id=changed.request_id,
    )
    await books.roll_up()
    (finding,) = (await books.found())["REC-6"]
    assert (finding["request_id"], finding["size"]) == (str(changed.request_id), 100_000)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--from"),
        (("--from", "yesterday"), "2027-01-31"),
        (("--from", "2026-11-30T12:00:00"), "offset"),
        (("--from", "2999-01-01T00:00:00Z"), "before --to"),
        (("--from", "2026-11-30T12:00:00Z", "--to", "2026-11-30T12:00:00Z"), "before --to"),
        (("--from", "2026-11-30T12:00:00Z", "--journal", "/nowhere"), "/nowhere"),
        (("--from", "2026-11-30T12:00:00Z", "--ledger", "worker"), "--ledger"),
        (("--from", "2026-11-30T12:00:00Z", "--ledger", "http://127.0.0.1:9"), "no ledger"),
    ],
)
def test_bad_input_is_one_line(books: Any, arguments: tuple[str, ...], told: str) -> None:
    """And exit status 2."""
    assert told in books.weir.refused("reconcile", *arguments)


def test_a_folder_without_a_journal_is_bad_input(books: Any, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    arguments = ("reconcile", "--from", "2026-11-30T12:00:00Z", "--journal", str(empty))
    assert "no journal" in books.weir.refused(*arguments)


def test_a_database_that_is_away_is_one_line(books: Any) -> None:
    arguments = ("--from", "2026-11-30T12:00:00Z", "--database-url", "postgresql://127.0.0.1:9/x")
    assert "Postgres" in books.weir.refused("reconcile", *arguments, status=1)


def test_it_is_read_by_people(books: Any) -> None:
    """A line a check, with its terms."""
    out = books.weir.ok("reconcile", "--from", books.since.isoformat())
    lines = out.splitlines()
    assert [line[:5] for line in lines[1:]] == [f"REC-{n}" for n in range(1, 8)]
    assert "records 12, ends 6, rows 6" in lines[1]
    assert "not applicable: no invoices" in lines[5]
    assert str(an_admission().request_id) not in out
