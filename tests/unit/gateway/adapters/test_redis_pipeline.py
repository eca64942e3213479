"""One connection for all calls: no reply goes astray, and no call waits longer than it may."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import AuthenticationError, NoPermissionError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from scripted_redis import ScriptedRedis, bulk, scripted_redis
from servers import eventually

from gateway.adapters.redis import RedisClient, connect_redis
from gateway.adapters.redis_pipeline import IN_FLIGHT_MAX, Pipe, Place
from gateway.adapters.redis_url import Login

TLS = Path(__file__).parents[3] / "tls"
TIMEOUT_MS = 100
WITHIN_S = 3 * TIMEOUT_MS / 1000
AWAY_S = 0.09
"""A call that waits for nothing."""


@pytest.fixture
async def server() -> AsyncIterator[ScriptedRedis]:
    async with scripted_redis() as started:
        yield started


@pytest.fixture
async def pipe(server: ScriptedRedis) -> AsyncIterator[Pipe]:
    made = a_pipe(server)
    yield made
    await made.aclose()


def a_pipe(server: ScriptedRedis, **options: int | bool) -> Pipe:
    async def find() -> Place:
        return Place("127.0.0.1", server.port)

    login = Login(password=server.password.decode() or None)
    return Pipe(find, login, timeout_s=TIMEOUT_MS / 1000, **options)  # type: ignore[arg-type]


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[str], RedisClient]]:
    """Makes clients and closes them."""
    made: list[RedisClient] = []

    def connecting(url: str) -> RedisClient:
        made.append(connect_redis(url, timeout_ms=TIMEOUT_MS))
        return made[-1]

    yield connecting
    for each in made:
        await each.aclose()


async def echo(pipe: Pipe, text: str) -> bytes:
    reply: bytes = await pipe.call("ECHO", text)
    return reply


async def test_calls_of_one_turn_go_out_in_one_write(server: ScriptedRedis, pipe: Pipe) -> None:
    """A hundred concurrent calls are one piece on the wire, over one connection."""
    await echo(pipe, "first")
    writes = pipe.writes
    replies = await asyncio.gather(*(echo(pipe, f"{n}") for n in range(100)))
    assert replies == [b"%d" % n for n in range(100)]
    assert (pipe.writes - writes, server.connections) == (1, 1)


async def test_a_cancelled_call_keeps_its_place(server: ScriptedRedis, pipe: Pipe) -> None:
    """Its reply is dropped; the next caller gets its own."""
    await echo(pipe, "first")
    server.holds = True
    calls = [asyncio.create_task(echo(pipe, f"{n}")) for n in range(5)]
    await eventually(lambda: len(server.commands) == 6)
    calls[0].cancel()
    calls[3].cancel()
    late = asyncio.create_task(echo(pipe, "late"))
    await eventually(lambda: len(server.commands) == 7)
    server.release()
    done = await asyncio.gather(*calls, late, return_exceptions=True)
    assert [type(done[n]) for n in (0, 3)] == [asyncio.CancelledError] * 2
    assert [done[n] for n in (1, 2, 4, 5)] == [b"1", b"2", b"4", b"late"]
    assert server.connections == 1


async def test_replies_never_shift(server: ScriptedRedis, pipe: Pipe) -> None:
    """Callers that leave at any moment, a server that answers in fits and dies in the middle: each
    reply that comes is the caller's own."""
    seeded = random.Random(7)  # noqa: S311 - weather, no secret
    answered = failed = 0

    async def caller(number: int) -> None:
        nonlocal answered, failed
        turn = 0
        while answered < 600 or failed < 30 or server.connections < 4:
            turn += 1
            text = f"{number}.{turn}." + "x" * seeded.randrange(200)
            task = asyncio.create_task(echo(pipe, text))
            if seeded.random() < 0.4:
                await asyncio.sleep(seeded.random() * 0.002)
                task.cancel()
            try:
                assert await task == text.encode()
                answered += 1
            except asyncio.CancelledError:
                pass
            except (RedisConnectionError, TimeoutError):
                failed += 1
                await asyncio.sleep(0.001)

    async def weather() -> None:
        while True:
            server.holds = True
            await asyncio.sleep(seeded.random() * 0.004)
            server.release()
            if seeded.random() < 0.15:
                server.say(bulk(b"never asked for")[: seeded.randrange(1, 20)])
                server.cut()
            await asyncio.sleep(seeded.random() * 0.004)

    raging = asyncio.create_task(weather())
    async with asyncio.timeout(30):
        await asyncio.gather(*(caller(number) for number in range(30)))
    raging.cancel()


async def test_a_server_that_dies_fails_what_waits(server: ScriptedRedis, pipe: Pipe) -> None:
    """At once, not at the time-out; the next call finds the server again."""
    await echo(pipe, "first")
    server.holds = True
    calls = [asyncio.create_task(echo(pipe, f"{n}")) for n in range(9)]
    await eventually(lambda: len(server.commands) == 10)
    began = time.monotonic()
    server.cut()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert time.monotonic() - began < AWAY_S
    assert {type(each) for each in outcomes} == {RedisConnectionError}
    server.holds = False
    assert await echo(pipe, "again") == b"again"


async def test_a_server_that_is_away_fails_at_once_and_heals(
    server: ScriptedRedis, pipe: Pipe
) -> None:
    """No call waits for a server that cannot be reached, and none is needed to find it again."""
    await echo(pipe, "first")
    server.refuse()
    with pytest.raises((RedisConnectionError, TimeoutError)):
        await echo(pipe, "lost")
    await eventually(lambda: pipe.is_known_away, what="the first attempt failed")
    began = time.monotonic()
    for _ in range(20):
        with pytest.raises(RedisConnectionError, match="away"):
            await echo(pipe, "lost")
    assert time.monotonic() - began < AWAY_S
    await server.listen()
    await eventually(lambda: pipe.is_up, within_s=3 * 0.2, what="a new connection")
    assert await echo(pipe, "again") == b"again"


async def test_a_server_that_hangs_costs_one_time_out(server: ScriptedRedis, pipe: Pipe) -> None:
    """A silent connection is given up, and the one after it is greeted by nobody: then calls fail
    at once."""
    await echo(pipe, "first")
    server.holds = True
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await echo(pipe, "lost")
    assert TIMEOUT_MS / 1000 * 0.9 < time.monotonic() - began < WITHIN_S
    await eventually(lambda: server.connections == 2, within_s=WITHIN_S, what="a new connection")
    server.holds = False
    assert await echo(pipe, "again") == b"again"


async def test_a_late_reply_is_dropped(server: ScriptedRedis, pipe: Pipe) -> None:
    """It belongs to the call that gave up, not to the next."""
    await echo(pipe, "first")
    server.holds = True
    lost = asyncio.create_task(echo(pipe, "lost"))
    with pytest.raises(TimeoutError):
        await lost
    late = asyncio.create_task(echo(pipe, "late"))
    await eventually(lambda: len(server.commands) == 3)
    server.release()
    assert await late == b"late"
    assert server.connections == 1


async def test_a_process_that_was_held_up_still_reads_its_reply(
    server: ScriptedRedis, pipe: Pipe
) -> None:
    """The time ran out while nothing ran here: that says nothing of the server."""
    await echo(pipe, "first")
    call = asyncio.create_task(echo(pipe, "slow"))
    await asyncio.sleep(0)
    # The command is written when this turn ends; what follows stops the process, server and all.
    await asyncio.sleep(0)
    time.sleep(2 * TIMEOUT_MS / 1000)  # noqa: ASYNC251 - the point of this test
    assert await call == b"slow"


async def test_a_process_that_is_held_up_again_and_again_reads_its_reply_too(
    server: ScriptedRedis, pipe: Pipe
) -> None:
    """By many requests that come at once: never for long, but for longer than the time-out."""
    await echo(pipe, "first")
    server.holds = True
    call = asyncio.create_task(echo(pipe, "slow"))
    began = time.monotonic()
    while time.monotonic() - began < 1.3 * TIMEOUT_MS / 1000:
        await asyncio.sleep(0)
        time.sleep(0.08 * TIMEOUT_MS / 1000)  # noqa: ASYNC251 - the point of this test
    server.release()
    assert await call == b"slow"


async def test_only_so_many_wait(server: ScriptedRedis) -> None:
    """More calls than may wait fail at once."""
    pipe = a_pipe(server, in_flight_max=10)
    server.holds = True
    calls = [asyncio.create_task(echo(pipe, f"{n}")) for n in range(11)]
    done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [str(each.exception()) for each in done] == [
        "too many calls to Redis wait for their reply"
    ]
    assert IN_FLIGHT_MAX >= 1000
    with suppress(RedisConnectionError, TimeoutError):
        await asyncio.gather(*calls)
    await asyncio.gather(*calls, return_exceptions=True)
    await pipe.aclose()


async def test_nonsense_ends_the_connection(server: ScriptedRedis, pipe: Pipe) -> None:
    """Bytes that are no reply, and replies that nobody asked for, never reach a caller."""
    for said in (b"HTTP/1.1 400 Bad Request\r\n\r\n", bulk(b"not asked for"), b"*-7\r\n"):
        assert await echo(pipe, "first") == b"first"
        before = server.connections
        server.say(said)
        await eventually(lambda before=before: not pipe.is_up or server.connections > before)  # type: ignore[misc]
        assert await echo(pipe, "again") == b"again"


async def test_a_strange_greeting_is_tried_again(server: ScriptedRedis, pipe: Pipe) -> None:
    """A server, or what stands in front of it, that greets with nonsense is away until it heals."""
    for said in (
        b"$-1\r\n",
        b":7\r\n",
        b"+OK\r\n",
        b"*2\r\n$4\r\nrole\r\n*0\r\n",
        b"-ERR what?\r\n",
    ):
        server.answers[b"HELLO"] = lambda _, said=said: said  # type: ignore[misc]
        server.cut()
        await asyncio.sleep(0)
        with suppress(RedisConnectionError, TimeoutError):
            await echo(pipe, "lost")
    del server.answers[b"HELLO"]
    await eventually(lambda: pipe.is_up, within_s=3, what="a new connection")
    assert await echo(pipe, "again") == b"again"


async def test_closing_ends_what_waits(server: ScriptedRedis) -> None:
    """Calls that wait, for a reply or for a connection, fail; later ones are refused."""
    pipe = a_pipe(server)
    await echo(pipe, "first")
    server.holds = True
    call = asyncio.create_task(echo(pipe, "lost"))
    await asyncio.sleep(0)
    await pipe.aclose()
    with pytest.raises(RedisConnectionError):
        await call
    with pytest.raises(RedisConnectionError, match="closed"):
        await echo(pipe, "late")


async def test_passwords(server: ScriptedRedis, connect: Callable[[str], RedisClient]) -> None:
    """The right one opens; a wrong one says so, at once on every later call, and is never shown."""
    server.password = b"p@ss"
    assert await connect(server.url(":p%40ss@")).get("k") == b"k"
    wrong = connect(server.url(":hunter2@"))
    for _ in range(3):
        with pytest.raises(AuthenticationError) as caught:
            await wrong.get("k")
        assert "hunter2" not in repr(caught.value)
    missing = connect(server.url())
    with pytest.raises(AuthenticationError):
        await missing.get("k")


async def test_tls(connect: Callable[[str], RedisClient]) -> None:
    """`rediss://` checks the certificate against what the URL names."""
    server = ScriptedRedis()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "localhost.crt", TLS / "localhost.key")
    await server.listen(context)
    address = f"rediss://localhost:{server.port}"
    trusted = connect(f"{address}?ssl_ca_certs={TLS / 'localhost.crt'}")
    assert await trusted.get("k") == b"k"
    with pytest.raises(RedisConnectionError, match="SSLCert"):
        await connect(address).get("k")
    server.refuse()


async def test_error_replies_are_redis_pys(
    server: ScriptedRedis, connect: Callable[[str], RedisClient]
) -> None:
    """C14, R11: what a server refuses is told apart, and breaks nothing for others."""
    client = connect(server.url())
    server.answers[b"GET"] = lambda _: b"-NOPERM this user has no permissions\r\n"
    with pytest.raises(NoPermissionError):
        await client.get("k")
    server.answers[b"GET"] = lambda _: b"-ERR unknown command\r\n"
    with pytest.raises(ResponseError, match="unknown command"):
        await client.get("k")
    assert server.connections == 1


async def test_a_demoted_primary_is_left(
    server: ScriptedRedis, connect: Callable[[str], RedisClient]
) -> None:
    """READONLY means that another took over: the next call connects anew."""
    client = connect(server.url())
    server.answers[b"SET"] = lambda _: b"-READONLY You can't write against a read only replica.\r\n"
    with pytest.raises(ReadOnlyError):
        await client.set("k", "v")
    del server.answers[b"SET"]
    await client.set("k", "v")
    assert server.connections == 2


async def test_a_forgotten_script_is_sent_whole(
    server: ScriptedRedis, connect: Callable[[str], RedisClient]
) -> None:
    """NOSCRIPT is answered by EVAL on the same server, once."""
    script = connect(server.url()).register_script("return 1")
    server.answers[b"EVALSHA"] = lambda _: b"-NOSCRIPT No matching script.\r\n"
    server.answers[b"EVAL"] = lambda command: bulk(command[1])
    assert await script(["k"], ["a", 1]) == b"return 1"
    assert [command[0] for command in server.commands] == [b"EVALSHA", b"EVAL"]
    assert server.commands[0][2:] == server.commands[1][2:] == [b"1", b"k", b"a", b"1"]
