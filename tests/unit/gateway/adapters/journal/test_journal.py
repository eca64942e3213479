import asyncio
from pathlib import Path

import pytest
from usage_examples import a_record, an_admission

from gateway.adapters.journal import Journal, JournalUnusable
from gateway.adapters.journal.identity import IDENTITY_NAME


async def test_two_awaits_and_all_is_durable(tmp_path: Path) -> None:
    """An admission and its end are in the file when they return, under growing numbers."""
    journal = await Journal.open(tmp_path)
    admission = an_admission()
    await journal.admitted(admission)
    assert (journal.durable.seq, journal.durable.oldest_open) == (1, (journal.boot, 1))
    await journal.ended(a_record(admission))
    assert (journal.durable.seq, journal.durable.oldest_open) == (2, None)
    assert not journal.failing
    await journal.close()


async def test_listeners_hear_of_it(tmp_path: Path) -> None:
    """Whoever follows the journal is told on the event loop when there is more."""
    journal = await Journal.open(tmp_path)
    heard: list[int] = []
    journal.on_durable(lambda: heard.append(journal.durable.seq))
    await journal.admitted(an_admission())
    assert heard == [1]
    await journal.close()


async def test_one_journal_a_directory(tmp_path: Path) -> None:
    """A second one is refused in one line; after the first has closed it opens."""
    first = await Journal.open(tmp_path)
    with pytest.raises(JournalUnusable, match="in use by another gateway"):
        await Journal.open(tmp_path)
    await first.close()
    await (await Journal.open(tmp_path)).close()


async def test_what_was_running_is_lost_once(tmp_path: Path) -> None:
    """The next open says which requests were running, the one after it none."""
    journal = await Journal.open(tmp_path)
    done, running = an_admission(), an_admission()
    await asyncio.gather(journal.admitted(done), journal.admitted(running))
    await journal.ended(a_record(done))
    await journal.close()
    second = await Journal.open(tmp_path)
    assert second.recovered.lost == (running,)
    assert (second.gateway_id, second.boot > journal.boot) == (journal.gateway_id, True)
    await second.close()
    third = await Journal.open(tmp_path)
    assert third.recovered.lost == ()
    await third.close()


async def test_the_id_survives_its_file(tmp_path: Path) -> None:
    """Without identity.json the segments still say whose they are and which boots they know."""
    journal = await Journal.open(tmp_path)
    await journal.close()
    (tmp_path / IDENTITY_NAME).unlink()
    again = await Journal.open(tmp_path, now_ms=lambda: 5)
    assert again.gateway_id == journal.gateway_id
    assert again.boot == journal.boot + 1
    await again.close()


async def test_a_cancelled_end_is_written_all_the_same(tmp_path: Path) -> None:
    """A caller that goes away takes nothing with it."""
    journal = await Journal.open(tmp_path)
    admission = an_admission()
    await journal.admitted(admission)
    ending = asyncio.create_task(journal.ended(a_record(admission)))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    await journal.close()
    again = await Journal.open(tmp_path)
    assert again.recovered.lost == ()
    await again.close()


async def test_a_body_that_cannot_be_encoded_harms_only_its_caller(tmp_path: Path) -> None:
    """A number beyond 64 bits fails the one call; the others in the same moment succeed."""
    journal = await Journal.open(tmp_path)
    results = await asyncio.gather(
        journal.admitted(an_admission()),
        journal.admitted(an_admission(prompt_tokens=2**70)),
        journal.admitted(an_admission()),
        return_exceptions=True,
    )
    assert [type(result).__name__ for result in results] == [
        "NoneType",
        "OverflowError",
        "NoneType",
    ]
    assert not journal.failing
    await journal.close()


async def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    """Using it after its end is an error, not a lost record."""
    journal = await Journal.open(tmp_path)
    await journal.close()
    with pytest.raises(RuntimeError, match="closed"):
        await journal.ended(a_record())
