import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from .settings import SECONDS, SEED

_SETTINGS = f"TFR_TORTURE_SEED={SEED} TFR_TORTURE_SECONDS={SECONDS:g}"


def pytest_report_header() -> str:
    return f"torture: {_SETTINGS}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "torture" in str(item.path):
        report.sections.append(("to see this again", f"{_SETTINGS} python -m pytest '{item.nodeid}'"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells what was tried, where a test says so."""
    done = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    said = [text for report in done for name, text in report.user_properties if name == "torture"]
    if said:
        terminalreporter.section(f"torture: {_SETTINGS}")
        for text in said:
            terminalreporter.line(str(text))


@pytest.fixture
def fast_folder() -> Iterator[Path]:
    """A folder in memory, where there is one: what is done thousands of times is synced in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter: pytest closes its own to them whenever another run begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
