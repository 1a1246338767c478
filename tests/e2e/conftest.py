"""A browser, and a project with `dagster dev` behind it."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.components.project import Project

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[e2e]'")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
