"""How a simulated worker behaves."""

from dataclasses import asdict, dataclass, field

from backend.simulated.flags import SchedulerFlags
from backend.simulated.profiles import DEFAULT_PROFILE, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSettings:
    """One replica. Times in simulated milliseconds."""

    model: str = "simulated"
    profile: Profile = DEFAULT_PROFILE
    flags: SchedulerFlags = field(default_factory=SchedulerFlags)
    speed: float = 1.0
    """Simulated milliseconds in a real one."""
    stream_interval: int = 1
    """A stream shows its text once so many tokens are unread."""
    reports_cache: bool = True
    start_up_ms: float = 0.0
    natural_output_tokens: int = 512
    """Roughly where text ends by itself: between three and five quarters of it."""
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """What `/server_info` says of it."""
        return {
            **asdict(self.flags),
            "stream_interval": self.stream_interval,
            "enable_cache_report": self.reports_cache,
            "random_seed": self.seed,
            "weir_profile": self.profile.name,
            "weir_profile_source": self.profile.source,
            "weir_clock_speed": self.speed,
        }
