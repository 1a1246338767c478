"""What README and docs show: commands, Python, YAML."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: What it is: `sh`, `python`, `yaml`.
        text: What stands in it.
    """

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Returns all blocks of a page that name their language, in order."""
    return [Block(*found) for found in _BLOCK.findall(page.read_text("utf-8"))]


def pages_with(*languages: str) -> list[Path]:
    """Returns the pages that have blocks of some languages."""
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]
