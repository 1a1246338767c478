"""The machine that something was measured on."""

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_GB = 10**9


@dataclass(frozen=True)
class Hardware:
    """What determines how fast a reader is.

    Attributes:
        cpu: Model of the processor.
        cores: Logical processors that this process may use.
        memory_gb: Main memory, in whole GB: what a kernel reserves for itself varies a little.
    """

    cpu: str
    cores: int
    memory_gb: int

    @staticmethod
    def here() -> "Hardware":
        """Returns this machine."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Hardware(_cpu_model(), len(os.sched_getaffinity(0)), round(memory / _GB))

    def to_json(self) -> dict[str, Any]:
        """Returns JSON-ready values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} {'core' if self.cores == 1 else 'cores'}, {self.memory_gb} GB"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
