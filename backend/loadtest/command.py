"""`weir loadtest`: an open loop against a URL, a whole Weir, or simulated replicas.

Standard output has the table or the JSON, standard error what goes on. Exit status 0: it ran, and
the books agree; 1: it proves nothing, or the books differ; 2: a bad option; 130: Ctrl-C.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import IO, Any

import click
import uvloop

from backend.loadtest.asked import Request, read_request
from backend.loadtest.opening import open_target
from backend.loadtest.options import loadtest_options
from backend.loadtest.progress import Progress
from backend.loadtest.result import document, exit_status, shown, write_report
from backend.loadtest.session import Result, Session, warmup_ms_of
from backend.loadtest.target_facts import TargetNotReady
from backend.loadtest.tenants import TenantsNotMade
from backend.loadtest.weir_system import SystemNotFound
from backend.loadtest.workload import WorkloadError, read_workload

SEED_MIX = (
    "no lengths were given: prompts and answers are drawn as the seed's mix (about 2,000 tokens "
    "in, 60 % of them shared, and 400 out); --suffix-lengths, --output-lengths and --prefixes say "
    "otherwise"
)
NO_BOOKS = "rows are not compared: only a Weir (--data-dir) has usage records to compare with"


@click.command()
@loadtest_options
def loadtest(**given: Any) -> int:
    """Send a planned load, and say how much of it was served well enough.

    Against a running `weir dev` (--data-dir, the default), any OpenAI-compatible --url, or
    simulated replicas in this process (--virtual). With --sweep it finds the knee: the highest
    rate at which 95 % of what is sent meets its targets.
    """
    asked = read_request(given)
    if asked.output is not None:
        try:
            asked.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"--output cannot be used: {error}") from error
    progress = Progress(sys.stderr, live=sys.stderr.isatty())
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            result = runner.run(_run(asked, progress))
    except (WorkloadError, SystemNotFound) as error:
        raise click.UsageError(str(error)) from error
    except (TargetNotReady, TenantsNotMade) as error:
        raise click.ClickException(str(error)) from error
    for line in result.complaints:
        progress.say(line)
    if result.runs.finished:
        if asked.output is not None:
            for line in _report(asked.output, asked, result):
                progress.say(line)
        _print(document(result) + "\n" if asked.as_json else shown(result))
    return exit_status(result)


def _report(folder: Path, asked: Request, result: Result) -> list[str]:
    try:
        return write_report(folder, asked, result)
    except OSError as error:
        raise click.ClickException(f"the report cannot be written: {error}") from error


def _print(text: str) -> None:
    """All of it: an unbuffered standard output (PYTHONUNBUFFERED) takes what a pipe has room for,
    and Python forgets the rest."""
    output: IO[bytes] = sys.stdout.buffer
    left = text.encode()
    try:
        while left:
            left = left[output.write(left) :]
        output.flush()
    except BrokenPipeError:
        # Who reads it has seen enough; nor shall the interpreter try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


async def _run(asked: Request, progress: Progress) -> Result:
    """Draw the first schedule before anything is touched: what cannot be drawn is a bad option."""
    first = read_workload(asked.first_workload)
    warmup_ms_of(asked, first)
    under_test = await open_target(asked, first)
    if asked.workload.drawn and not asked.names_lengths:
        progress.say(SEED_MIX)
    if asked.data_dir is None:
        progress.say(NO_BOOKS)
    return await Session(asked, under_test, progress).run()
