"""Manifests, indexes, specs, inventories and YAML may hold anything: a typed error, soon, or no harm."""

import hashlib
import json
import random
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tfr_assets.components.config.load import dataset_names, load_component
from tfr_assets.errors import TfrError
from tfr_assets.project import find_project
from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.recommendation import Recommendation, recommended_reader
from tfr_assets.records.frames import marks
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.kernels.crc32c import crc32c
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.writing.audit_plan import audit_plan
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import load_inventory
from tfr_assets.writing.sizing import save_planned, split_sizes

from .scenarios import dataset, put_raw, read_rows, refresh, table
from .settings import cases, choices
from .traced import run_forked
from .truth import Tree, is_verified, meaning, put_tree, tree_of

MEMORY = 6 << 30  # bytes of addresses; what is loaded already takes most of them
PATIENCE = 60  # seconds for one case on a busy machine
_HUGE = "a number of 5,000 digits"  # which Python does not write
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**63) - 1, _HUGE, 1.5, float("nan"), float("inf"), "", "\0", "none",
    "../../etc/passwd", "é" * 100_000, [], {}, [[]], [None] * 1000, {"": None}, ["a", 1], {"a": {"b": {}}},
)  # fmt: skip


@pytest.mark.parametrize("how", ["as it is", "sealed again"])
@pytest.mark.parametrize("source", ["raw.parquet", "raw.jsonl"])
def test_what_describes_a_dataset_may_hold_anything(source: str, how: str, fast_folder: Path) -> None:
    put_raw(fast_folder, 1)
    (fast_folder / "data").mkdir()
    ended = run_forked(_mutate_files, fast_folder, source, how)
    case = (fast_folder / "case").read_text()
    assert ended.exit_code == 0 and ended.error is None, f"{case}\nexit code {ended.exit_code}\n{ended.error}"


def _mutate_files(root: Path, source: str, how: str) -> None:
    choose, made, data = choices(f"mutations {source} {how}"), dataset(root, 2, source), root / "data"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    marks.SPAN = 300  # bytes: so that there are some
    _run(made)
    whole = tree_of(data)
    names = [name for name in whole if name.endswith((".json", ".idx"))]
    for _ in cases(short=40):
        put_tree(data, whole)
        name = choose.choice(names)
        changed = _sealed_again(name, whole, choose) if how == "sealed again" else {name: mutate(whole[name], choose)}
        (root / "case").write_text("\n".join(f"{name}: {content[:5000]!r}" for name, content in changed.items()))
        for each, content in changed.items():
            (data / each).write_bytes(content)
        signal.alarm(PATIENCE)
        _check_rows(data / "sample")
        _or_error(lambda: is_verified(data / "sample"))
        _or_error(lambda: audit_plan(made))
        _or_error(lambda: recommended_reader(data / "sample"))
        if how == "sealed again" and name.endswith(".idx"):
            for merged in (data / "sample/merged/manifest").glob("*"):
                merged.unlink()
            _or_error(lambda: merge_shards(made))
            _check_rows(data / "sample")
            continue  # what a manifest says of its index is believed: nothing but such a merge depends on it
        _run(made)
        now = tree_of(data)
        if meaning(now) != meaning(whole):
            assert _says_the_same(now[name], whole[name]), "the next run does not heal it"
            assert read_rows(data / "sample") == table(1).to_pylist() and is_verified(data / "sample")
            now[name] = whole[name]
            assert meaning(now) == meaning(whole)
        signal.alarm(0)


def _says_the_same(manifest: bytes, original: bytes) -> bool:
    """Whether a manifest means what another one does: it may lack marks, and defaults."""
    found, expected = Manifest.from_json(manifest), Manifest.from_json(original)
    return bool(found and expected) and replace(found, marks=()) == replace(expected, marks=())


def _run(made: Dataset) -> None:
    refresh(made, merge=True)
    save_planned(made.layout, split_sizes(made, load_inventory(made)))
    found = Recommendation("columnar", "it is fast", {"columnar": 5.0}, {}, 1, Hardware.here(), "1", "now")
    found.save(made.layout.readers)


def _check_rows(folder: Path) -> None:
    for files in ("shards", "merged"):
        rows = _or_error(lambda files=files: read_rows(folder, files))
        assert rows is None or rows == table(1).to_pylist(), "wrong rows"


def _sealed_again(name: str, tree: Tree, choose: random.Random) -> Tree:
    """Changes a file so that all checksums are right, those of an index in its manifest among them."""
    if name.endswith(".json"):
        return {name: _seal(_with_strange(_unsealed(tree[name]), choose.choice(("value", "value", "key")), choose))}
    index = mutate(tree[name], choose) if choose.random() < 0.5 else _other_lines(tree[name], choose)
    manifest = name.replace("/index/", "/manifest/").removesuffix(".idx") + ".json"
    values = {**_unsealed(tree[manifest]), "index": [len(index), f"{crc32c(index):08x}"]}
    return {name: index, manifest: _seal(json.dumps(values).encode())}


def _unsealed(content: bytes) -> dict[str, Any]:
    values = json.loads(content)
    values.pop("checksum", None)  # files for other tools have none
    return values


def _seal(content: bytes) -> bytes:
    """Seals a JSON object, whatever is in it."""
    rest = content[1:]
    return b'{\n "checksum": "' + hashlib.sha256(rest).hexdigest().encode() + b'",' + rest


def _other_lines(index: bytes, choose: random.Random) -> bytes:
    """Returns an index that is well-formed, of other sizes: as many, or more, or fewer."""
    sizes = [int(line.split()[1]) for line in index.splitlines()]
    for _ in range(choose.randint(1, 3)):
        at, delta = choose.randrange(len(sizes)), choose.choice((1, 16, -1, 2**40, 2**62, -(2**62)))
        sizes[at] += delta
        if choose.random() < 0.5:
            sizes[choose.randrange(len(sizes))] -= delta
    sizes = choose.choice((sizes, sizes, sizes[1:], sizes * 2, sizes[::-1]))
    starts = accumulate([0, *sizes[:-1]])
    return "".join(f"{start} {size}\n" for start, size in zip(starts, sizes, strict=True)).encode()


def test_sealing_again_is_sealing() -> None:
    assert _seal(b'{"a": 1}') != seal({"a": 1}) and unseal(_seal(b'{"a": 1}')) == unseal(seal({"a": 1})) == {"a": 1}


def _or_error(function: Callable[[], Any]) -> Any:
    """Returns what a function returns; None where it raises one of the errors that users are meant to see."""
    try:
        return function()
    except TfrError:
        return None


def mutate(content: bytes, choose: random.Random) -> bytes:
    """Changes a text file, as an accident or a joker might."""
    kind = choose.choice(
        ("value", "value", "value", "key", "byte", "cut", "deep", "not text", "long", "nothing", "lines")
    )
    place = choose.randrange(len(content) or 1)
    if kind in ("value", "key"):
        try:
            return _with_strange(json.loads(content), kind, choose)
        except ValueError:
            kind = "byte"
    if kind == "deep":
        opening = choose.choice(("[", '{"a":'))
        return content[:place] + (opening * 50_000).encode() + content[place:]
    if kind == "not text":
        return content[:place] + choose.randbytes(20) + content[place:]
    if kind == "long":
        return content[:place] + b"9" * choose.choice((20, 5_000, 1_000_000)) + content[place:]
    if kind == "lines":
        lines = content.splitlines(keepends=True)
        choose.shuffle(lines)
        return b"".join(lines)
    if kind == "byte":
        return content[:place] + bytes([choose.randrange(256)]) + content[place + 1 :]
    return content[:place] if kind == "cut" else b""


def _with_strange(document: Any, kind: str, choose: random.Random) -> bytes:
    """Puts a strange value, or a strange key, at a random place of a document."""
    places: list[tuple[Any, Any]] = []
    _collect(document, places)
    if not places:
        return json.dumps(choose.choice(STRANGE)).encode()
    holder, key = choose.choice(places)
    if kind == "key" and isinstance(holder, dict):
        value = holder.pop(key)
        if choose.random() < 0.5:
            holder[choose.choice(("", "unknown", key * 2, "\ud800"))] = value
    else:
        holder[key] = choose.choice(STRANGE)
    return json.dumps(document).replace(f'"{_HUGE}"', "9" * 5000).encode()


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        places.append((value, key))
        _collect(inner, places)


YAML = """
type: tfr_assets.TFRecordDataset
attributes:
  source: raw.parquet
  shards: {train: 2, test: 1}
  splits: {train: 0.9, test: 0.1}
  compression: gzip
  features: {drop: [t], rename: {n: number}, fill: {n: -1}, cast: {n: float32}, shape: {l: [2]}}
  schedule: "0 6 * * *"
  owners: [team:data]
"""
LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
YAML_SNIPPETS = (
    "\t", "[" * 3000, "{a: " * 3000, "9" * 5000, "&a [*a]", "*b",
    "!!python/object/apply:os.system [false]", "\x85", "---",
    "{{ 1/0 }}", "{{ env.NOTHING }}", "{% for %}", "0x" + "f" * 5000, "1e999", ".nan", "2026-99-99", "? ", ": ", LAUGHS,
    "!!binary x", "<<: *a", "- - - -", "\ufeff", "''", "null", "yes", "12:30:45", "|", "%YAML 9.9",
)  # fmt: skip


def test_yaml_may_hold_anything(fast_folder: Path) -> None:
    defs = fast_folder / "demo" / "defs" / "sample"
    defs.mkdir(parents=True)
    for folder in (defs.parent.parent, defs.parent):
        (folder / "__init__.py").touch()
    (fast_folder / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n'
        '[tool.dg.project]\nroot_module = "demo"\nregistry_modules = ["tfr_assets"]\n'
    )
    ended = run_forked(_mutate_yaml, fast_folder, defs / "defs.yaml")
    case = (fast_folder / "case").read_text()
    assert ended.exit_code == 0 and ended.error is None, f"{case}\nexit code {ended.exit_code}\n{ended.error}"


def _mutate_yaml(root: Path, file: Path) -> None:
    choose = choices("yaml")
    project = find_project(root)
    sys.path.insert(0, str(root))
    for case in cases(short=len(YAML_SNIPPETS)):
        text = YAML.encode()
        for _ in range(choose.randint(1, 2)):
            place = choose.randrange(len(text) or 1)
            snippet = YAML_SNIPPETS[case % len(YAML_SNIPPETS)].encode()
            text = choose.choice((text[:place] + snippet + text[place:], text[:place] + snippet, mutate(text, choose)))
        (root / "case").write_text(repr(text[:2000]))
        file.write_bytes(text)
        signal.alarm(PATIENCE)
        _or_error(lambda: [load_component(name, project) for name in dataset_names(project)])
        signal.alarm(0)
