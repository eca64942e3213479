"""`weir backend simulated` on the command line: what its options make of a replica."""

from dataclasses import asdict

import pytest
from click.testing import CliRunner

from backend.simulated import command
from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import PROFILES
from backend.simulated.settings import SimulatedSettings
from backend.simulated.startup import realistic_start_up_ms


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[SimulatedSettings]:
    """The settings of the replicas that a command would have run."""
    settings: list[SimulatedSettings] = []

    def run(engines: list[SimulatedSettings], *_serving: object) -> None:
        settings.extend(engines)

    monkeypatch.setattr(command, "SimulatedEngine", lambda each: each)
    monkeypatch.setattr(command, "run_workers", run)
    return settings


def invoke(*arguments: str) -> int:
    """The exit status."""
    return CliRunner().invoke(command.simulated, arguments).exit_code


def test_defaults_are_the_profiles(made: list[SimulatedSettings]) -> None:
    """Pool and context of the profile, SGLang's defaults for the rest."""
    assert invoke("--profile", "h100x4-70b-fp8-kvfp8") == 0
    (settings,) = made
    assert settings.profile is PROFILES["h100x4-70b-fp8-kvfp8"]
    assert asdict(settings.flags) == asdict(SchedulerFlags()) | {"max_total_tokens": 1_280_000}
    assert (settings.speed, settings.start_up_ms, settings.reports_cache) == (1.0, 0.0, True)


def test_flags_have_sglangs_names(made: list[SimulatedSettings]) -> None:
    """Each is an option, and each is shown in /server_info under the same name."""
    given = {
        "max_total_tokens": 5000,
        "context_length": 2048,
        "page_size": 16,
        "max_running_requests": 3,
        "max_queued_requests": 0,
        "chunked_prefill_size": -1,
        "max_prefill_tokens": 700,
        "prefill_decode_interval": 2,
        "schedule_policy": "lpm",
        "schedule_conservativeness": 0.3,
        "priority_scheduling_preemption_threshold": 4,
        "retraction_policy": "priority",
        "radix_eviction_policy": "lfu",
        "load_snapshot_publish_interval": 1,
        "stream_interval": 4,
    }
    switches = (
        *("enable_mixed_chunk", "enable_priority_scheduling", "disable_radix_cache"),
        *("schedule_low_priority_values_first", "disable_priority_preemption"),
    )
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    options += [f"--{name.replace('_', '-')}" for name in switches]
    assert invoke(*options, "--no-cache-report") == 0
    shown = made[0].shown()
    assert given.items() <= shown.items()
    assert all(shown[name] is True for name in switches)
    assert shown["enable_cache_report"] is False
    assert {*given, *switches} - {"stream_interval"} == {*asdict(SchedulerFlags())}


def test_each_replica_draws_its_start_up(made: list[SimulatedSettings]) -> None:
    """From the seed and its number; the seed of the text is the same."""
    assert invoke("--replicas", "3", "--start-up", "realistic", "--seed", "5") == 0
    assert [each.start_up_ms for each in made] == [realistic_start_up_ms(s) for s in (5, 6, 7)]
    assert {each.seed for each in made} == {5}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--profile", "h200"),
        ("--speed", "0"),
        ("--speed", "nan"),
        ("--start-up", "soon"),
        ("--start-up", "nan"),
        ("--start-up", "inf"),
        ("--schedule-conservativeness", "nan"),
        ("--schedule-conservativeness", "inf"),
        ("--start-up", "-1"),
        ("--schedule-policy", "random"),
        ("--radix-eviction-policy", "5"),
        ("--replicas", "0"),
        ("--step-base-us", "5"),
    ],
)
def test_bad_input(arguments: tuple[str, ...]) -> None:
    """Anything else is a usage error."""
    assert invoke(*arguments) == 2
