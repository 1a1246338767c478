"""Which project a command works for: that of the working directory, as `dg` finds it, or one that is named."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tfr_assets.errors import ConfigError
from tfr_assets.layout import data_root
from tfr_assets.project import current_project, find_project
from tfr_assets.reading.locate.files import locate
from tfr_assets.urls import place_of

CONFIGURED = '[tool.dg.project]\nroot_module = "sales_data"\n'


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TFR_PROJECT", raising=False)
    monkeypatch.delenv("TFR_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_nearest_project_above_the_working_directory(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / "pyproject.toml").write_text(CONFIGURED)
    inner = elsewhere / "some" / "package"
    inner.mkdir(parents=True)
    (elsewhere / "some" / "pyproject.toml").write_text("[project]\nname = 'not of dagster'\n")
    monkeypatch.chdir(inner)
    project = current_project()
    assert (project.root, project.root_module) == (elsewhere, "sales_data")
    assert (project.defs_module, project.definitions_module) == ("sales_data.defs", "sales_data.definitions")
    assert project.location == elsewhere.name
    assert data_root() == elsewhere / "data"


def test_a_project_says_where_its_data_lies_unless_the_environment_does(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFR_SPOOL", str(elsewhere / "spool"))
    (elsewhere / "inner").mkdir()
    monkeypatch.chdir(elsewhere / "inner")
    for said, is_at in (("s3://lake/team", "s3://lake/team"), ("../shared", f"{elsewhere}/../shared"), ("/a", "/a")):
        (elsewhere / "pyproject.toml").write_text(f"{CONFIGURED}[tool.tfr-assets]\ndata = '{said}'\n")
        assert place_of(data_root()) == place_of(data_root(elsewhere)) == is_at
    assert data_root(elsewhere / "inner") == elsewhere / "inner" / "data"
    monkeypatch.setenv("TFR_DATA", "s3://other")
    assert place_of(data_root()) == place_of(data_root(elsewhere)) == "s3://other"
    monkeypatch.setenv("TFR_DATA", "")
    assert data_root() == Path("/a")


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("data = 3", r"expected a folder or a URL, such as 's3://lake/team'; found 3"),
        ("dta = 's3://lake'", r"dta: .*data"),
        ("data = 'ftp://lake'", r"\[tool.tfr-assets\] data: ftp://lake: must be a URL that begins with s3://"),
        ("data = 's3://me:secret@lake'", r"\[tool.tfr-assets\] data: s3://…@lake: a URL must hold no credentials"),
    ],
)
def test_what_a_project_says_wrongly_of_its_data_is_told(elsewhere: Path, says: str, told: str) -> None:
    (elsewhere / "pyproject.toml").write_text(f"{CONFIGURED}[tool.tfr-assets]\n{says}\n")
    with pytest.raises(ConfigError, match=told):
        data_root()


def test_what_is_configured_beside_the_package(elsewhere: Path) -> None:
    (elsewhere / "dg.toml").write_text(
        '[project]\nroot_module = "sales_data"\ndefs_module = "sales_data.all"\ncode_location_name = "sales"\n'
        'code_location_target_module = "sales_data.entry"\n'
    )
    (elsewhere / "src" / "sales_data" / "all").mkdir(parents=True)
    project = current_project()
    assert (project.defs_module, project.definitions_module, project.location) == (
        "sales_data.all", "sales_data.entry", "sales",
    )  # fmt: skip
    assert project.defs == elsewhere / "src" / "sales_data" / "all"


def test_the_named_project_comes_first(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "there"):
        (elsewhere / name).mkdir()
        (elsewhere / name / "pyproject.toml").write_text(CONFIGURED)
    monkeypatch.chdir(elsewhere / "here")
    monkeypatch.setenv("TFR_PROJECT", str(elsewhere / "there"))
    assert current_project().root == elsewhere / "there"
    monkeypatch.setenv("TFR_PROJECT", str(elsewhere))
    with pytest.raises(
        ConfigError, match=r"is not a Dagster project: it has no pyproject.toml with \[tool.dg.project\]"
    ):
        current_project()


def test_no_project_at_all(elsewhere: Path) -> None:
    assert find_project() is None
    assert data_root() == elsewhere / "data"
    with pytest.raises(ConfigError, match=r"there is no Dagster project in .* or above it\. .*tfr --project FOLDER"):
        current_project()


def test_a_broken_configuration_is_named(elsewhere: Path) -> None:
    (elsewhere / "pyproject.toml").write_text("[tool.dg.project]\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml: \[tool.dg.project\] needs `root_module`"):
        find_project()
    (elsewhere / "pyproject.toml").write_text("[tool.dg\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml: .*line 1"):
        find_project()


def test_a_project_without_definitions_offers_none_of_its_folders_as_datasets(elsewhere: Path) -> None:
    (elsewhere / "pyproject.toml").write_text(CONFIGURED)
    (elsewhere / "documents").mkdir()
    assert current_project().defs is None
    with pytest.raises(ConfigError, match=r"there is no dataset 'flights' in .*; there is none"):
        locate("flights")


@pytest.mark.parametrize("base", [".", "src"])
def test_the_projects_own_package_comes_before_an_installed_one(
    base: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "project" / base).mkdir(parents=True)
    (elsewhere / "project" / "pyproject.toml").write_text(CONFIGURED)
    monkeypatch.chdir(elsewhere / "project")
    installed, own = elsewhere / "installed" / "sales_data", elsewhere / "project" / base / "sales_data"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    searched = [str(installed.parent), *sys.path]
    monkeypatch.setattr(sys, "path", list(searched))
    current_project().make_importable()
    assert sys.path == searched  # there is no other
    own.mkdir()
    (own / "__init__.py").touch()
    current_project().make_importable()
    found = importlib.util.find_spec("sales_data")
    assert found and found.origin == str(own.resolve() / "__init__.py")
    searched = list(sys.path)
    current_project().make_importable()
    assert sys.path == searched
