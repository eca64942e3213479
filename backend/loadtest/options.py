"""The options of `weir loadtest`, each read and checked by itself."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from backend.loadtest.arrivals import parse_bursts
from backend.loadtest.lengths import Lengths
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.prefix_templates import PrefixTemplates
from backend.loadtest.workload_spec import Format
from backend.simulated.profiles import PROFILES
from backend.simulated.scheduler_options import Finite, read_scheduler_flags

TARGET_NAMES = {"ttft": "ttft_ms", "tpot": "tpot_ms", "under": "prompt_tokens_under"}
RATE_MAX = 100_000.0
Command = Callable[..., int]


class _Read(click.ParamType[Any]):
    """A value that a function reads, which raises ValueError with one line."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value; a click error names the option."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def read_targets(text: str) -> GoodputTargets:
    """`ttft=800,tpot=40[,under=4000]`, milliseconds and tokens; what is absent is the default.

    Raises ValueError.
    """
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        field = TARGET_NAMES.get(name.strip())
        try:
            number = int(value) if field == "prompt_tokens_under" else float(value)
        except ValueError:
            number = 0
        if field is None or field in found or not 0 < number < 1e9:
            raise ValueError("must be like ttft=800,tpot=40 or ttft=800,tpot=40,under=4000")
        found[field] = number
    return GoodputTargets(**found)


def read_rates(text: str) -> tuple[float, ...]:
    """Requests per second, `4,5,6.5`: each once, rising. Raises ValueError."""
    try:
        rates = sorted({float(part) for part in text.split(",")})
    except ValueError:
        rates = []
    if not rates or not 0 < rates[0] <= rates[-1] <= RATE_MAX:
        raise ValueError("must be like 4,5,6.5, in requests per second")
    return tuple(rates)


def read_limits(text: str) -> Mapping[str, Any]:
    """A JSON object, the body of PUT .../limits. Raises ValueError."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ValueError('must be a JSON object such as {"max_sequences": 8}') from None
    return found


RATE = Finite(0, RATE_MAX, min_open=True)
SECONDS = Finite(0, 864_000, min_open=True)
_TARGET = (
    click.option("--url", help="An OpenAI-compatible server or a bare worker."),
    click.option("--api-key", envvar="WEIR_LOADTEST_API_KEY", help="Of --url."),
    click.option("--model", help="Default: the first that the target serves."),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="The whole Weir that `weir dev` runs on this directory.  [default: .weir]",
    ),
    click.option(
        "--virtual",
        type=click.Choice(list(PROFILES)),
        help="Simulated replicas in this process on a virtual clock, without HTTP.",
    ),
    click.option("--replicas", type=click.IntRange(1, 64), help="Of --virtual.  [default: 1]"),
    click.option(
        "--scheduler",
        type=_Read("FLAGS", read_scheduler_flags),
        help="Of --virtual: flags of `weir backend simulated`, such as '--radix-eviction-policy "
        "slru'.",
    ),
    click.option(
        "--limits", type=_Read("JSON", read_limits), help="Of each tenant, on --data-dir."
    ),
    click.option(
        "--speed",
        type=Finite(0, 1000, min_open=True),
        help="The target's milliseconds per real one.  [default: what the target says, or 1]",
    ),
    click.option(
        "--min-tokens/--no-min-tokens",
        default=None,
        help="Send SGLang's min_tokens, so that answers are as long as planned.  [default: where "
        "the target is SGLang, a simulated worker, or a Weir]",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=SECONDS,
        default=600.0,
        show_default=True,
        help="Seconds after its time at which a request that has not ended is given up.",
    ),
)
_WORKLOAD = (
    click.option(
        "--workload",
        "workload_format",
        type=click.Choice(get_args(Format)),
        default="poisson",
        show_default=True,
    ),
    click.option(
        "--trace",
        "path",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="The file of a seedlike or mooncake workload.",
    ),
    click.option("--rate", "rate_rps", type=RATE, help="Requests per second."),
    click.option("--duration", "duration_s", type=SECONDS, help="Seconds; a trace has its own."),
    click.option(
        "--warmup",
        "warmup_s",
        type=Finite(0, 864_000),
        help="Seconds at the start that are not measured.  [default: a fifth of the "
        "schedule, at most 60]",
    ),
    click.option("--start", "start_s", type=Finite(0), default=0.0, help="In the trace."),
    click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True),
    click.option(
        "--suffix-lengths",
        type=_Read("LENGTHS", Lengths.parse),
        help="Of what each prompt has alone: fixed:N, uniform:A-B, lognormal:MEAN,SIGMA[,MIN-MAX].",
    ),
    click.option("--output-lengths", type=_Read("LENGTHS", Lengths.parse), help="Of answers."),
    click.option(
        "--prefixes",
        type=_Read("PREFIXES", PrefixTemplates.parse),
        help="What prompts share: none, or COUNT/ZIPF/LENGTHS.",
    ),
    click.option(
        "--bursts",
        type=_Read("BURSTS", parse_bursts),
        help="gamma:CV or onoff:FACTOR,ON_S,OFF_S.",
    ),
    click.option("--tenants", type=click.IntRange(min=1), help="How many."),
    click.option("--batch-share", type=Finite(0, 1), help="Of the requests, 0 to 1."),
    click.option("--max-input-tokens", type=click.IntRange(min=1), help="Longest prompt sent."),
    click.option(
        "--keep-gaps/--poisson-gaps",
        "keep_gaps",
        default=None,
        help="With --rate: scale the trace's own gaps, or draw Poisson ones.",
    ),
)
_RATES = (
    click.option("--sweep", is_flag=True, help="Find the knee."),
    click.option("--from", "from_rps", type=RATE, help="The lowest rate of a search."),
    click.option("--to", "to_rps", type=RATE, help="The highest rate of a search."),
    click.option(
        "--rates", type=_Read("RATES", read_rates), help="Run each of these, such as 4,5,6."
    ),
    click.option("--seeds", type=click.IntRange(1, 100), help="Runs a rate.  [default: 1]"),
    click.option(
        "--repeats",
        type=click.IntRange(0, 10),
        default=0,
        show_default=True,
        help="How often a run that is void, since the generator did not keep up, is done again.",
    ),
    click.option(
        "--targets",
        type=_Read("TARGETS", read_targets),
        default=GoodputTargets(),
        help="What a good request meets.  [default: ttft=800,tpot=40]",
    ),
    click.option(
        "--output",
        type=click.Path(path_type=Path, file_okay=False),
        help="A folder for summary.json, requests.jsonl, plots and a page.",
    ),
    click.option("--output-goal", type=RATE, help="Output tokens per second to mark in the plot."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
)


def loadtest_options(command: Command) -> Command:
    """Give a command all options."""
    for option in reversed((*_TARGET, *_WORKLOAD, *_RATES)):
        command = option(command)
    return command
