"""A journal that takes as much of its disk as it may."""

from pathlib import Path

from servers import eventually
from usage_examples import a_record, an_admission

from gateway.adapters.journal import Journal
from gateway.adapters.journal.segment import list_segments
from gateway.domain.lease import Admitted
from gateway.errors import Overloaded

SEGMENT_BYTES = 12_000
BYTES_MAX = 100_000


async def opened(directory: Path) -> Journal:
    return await Journal.open(
        directory, segment_bytes=SEGMENT_BYTES, bytes_max=BYTES_MAX, heal_interval_ms=10
    )


async def fill(journal: Journal) -> tuple[list[Admitted], list[Admitted]]:
    """Requests until one is refused: those that ended and those that run."""
    ended: list[Admitted] = []
    running: list[Admitted] = []
    while (admission := await admitted(journal)) is not None:
        running.append(admission)
        if len(running) > 5:
            ended.append(running.pop(0))
            await journal.ended(a_record(ended[-1]))
    return ended, running


async def admitted(journal: Journal) -> Admitted | None:
    """A request, None where it is refused."""
    admission = an_admission()
    try:
        await journal.admitted(admission)
    except Overloaded as refused:
        assert refused.code == "metering_unavailable"  # noqa: PT017 - it may also succeed
        return None
    return admission


def size(directory: Path) -> int:
    return sum(key.path(directory).stat().st_size for key in list_segments(directory)[:-1])


async def test_at_its_bound_admissions_are_refused_and_ends_are_taken(tmp_path: Path) -> None:
    """It stays within the bound, what runs ends in it, and it is said to fail."""
    journal = await opened(tmp_path)
    _, running = await fill(journal)
    assert journal.failing
    assert BYTES_MAX * 0.8 < journal.bytes <= BYTES_MAX
    for each in running:
        await journal.ended(a_record(each))
    assert journal.bytes == size(tmp_path) + journal.durable.end <= BYTES_MAX
    assert await admitted(journal) is None
    await journal.close()


async def test_what_is_shipped_makes_room_although_it_is_young(tmp_path: Path) -> None:
    """Only what is shipped, only as much as is needed; then requests are admitted again."""
    journal = await opened(tmp_path)
    _, running = await fill(journal)
    for each in running:
        await journal.ended(a_record(each))
    segments = list_segments(tmp_path)
    assert journal.needs_space
    assert journal.make_space({}) == 0
    assert journal.failing
    assert journal.make_space({journal.boot: journal.durable.seq}) > 0
    left = list_segments(tmp_path)
    assert left == segments[-len(left) :]
    assert BYTES_MAX // 2 < journal.bytes <= BYTES_MAX * 3 // 4
    await eventually(lambda: not journal.failing, what="room for admissions")
    await journal.admitted(an_admission())
    await journal.close()


async def test_where_a_request_runs_its_admission_stays(tmp_path: Path) -> None:
    """However short space is."""
    journal = await opened(tmp_path)
    first = an_admission()
    await journal.admitted(first)
    await fill(journal)
    assert journal.make_space({journal.boot: journal.durable.seq}) == 0
    await journal.ended(a_record(first))
    await journal.close()


async def test_a_start_over_the_bound_refuses_until_there_is_room(tmp_path: Path) -> None:
    """A bound that was lowered, or a long outage before."""
    journal = await opened(tmp_path)
    ended, running = await fill(journal)
    boot = journal.boot
    await journal.close()
    again = await opened(tmp_path)
    assert len(again.recovered.lost) == len(running)
    while await admitted(again) is not None:
        pass
    assert again.needs_space
    assert again.make_space({boot: len(ended) * 2 + len(running)}) > 0
    await eventually(lambda: not again.failing, what="room for admissions")
    await again.close()


async def test_far_below_the_bound_nothing_young_goes(tmp_path: Path) -> None:
    """A restore of Postgres may need it."""
    journal = await Journal.open(tmp_path, segment_bytes=SEGMENT_BYTES, bytes_max=10**9)
    while len(list_segments(tmp_path)) < 3:
        admission = an_admission()
        await journal.admitted(admission)
        await journal.ended(a_record(admission))
    assert not journal.needs_space
    assert journal.make_space({journal.boot: journal.durable.seq}) == 0
    await journal.close()
