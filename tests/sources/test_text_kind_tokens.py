"""Tokens: the package `tokenizers` itself, called a text at a time, and the user's own functions are the oracle."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.kind_records import inventory_of, records, records_of
from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources.media.text import tokens
from tfr_assets.sources.model.kinds import kind_named

tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["the cat sat", "", "a dog and the cat and the dog " * 9, "unknown words", "日本"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A tokenizer with special tokens, whose file asks for padding and truncation."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]"], show_progress=False)
    tokenizer.train_from_iterator(["the cat and the dog sat"] * 9, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(length=64, pad_id=3, pad_token="[PAD]")
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokens.json"))
    return tmp_path / "tokens.json"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (folder := tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"t": TEXTS}), folder / "a.parquet")
    return folder


def tokens_of(table: Path, tokenizer: Path | str, **options: Any) -> list[list[Any]]:
    said = {"path": str(table), "column": "t", "tokenizer": str(tokenizer), **options}
    made = records({"text": said}, table.parent)
    assert [record["text"] for record in made] == TEXTS
    return [record["text/tokens"] for record in made]


@pytest.mark.parametrize("most", [None, 3, 7])
def test_ids_are_those_of_each_text_alone(most: int | None, trained: Path, table: Path) -> None:
    oracle = tokenizers.Tokenizer.from_file(str(trained))
    oracle.no_padding()
    oracle.no_truncation()
    if most:
        oracle.enable_truncation(most)
    options = {"max_length": most} if most else {}
    assert tokens_of(table, trained, **options) == [oracle.encode(text).ids for text in TEXTS]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.one_of(st.none(), st.text("ab c日", max_size=30)), max_size=9), chunk=st.integers(1, 40))
def test_neither_chunks_nor_missing_texts_matter(
    texts: list[str | None], chunk: int, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tokens.open_tokenizer(str(trained), None, {})
    oracle = tokenizers.Tokenizer.from_file(str(trained))
    oracle.no_padding()
    oracle.no_truncation()
    monkeypatch.setattr(tokens, "_CHUNK", chunk)
    found = tokenizer.encode(pa.array(texts, pa.large_string()), pa.array(["row"] * len(texts)))
    assert found.type == pa.list_(pa.int64())
    assert found.to_pylist() == [[] if text is None else oracle.encode(text).ids for text in texts]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(text): return text.split()", [text.split() for text in TEXTS]),
        ("def f(text): return tuple(map(len, text.split()))", [[*map(len, text.split())] for text in TEXTS]),
        (
            "import numpy as np\ndef f(text): return np.array([ord(c) for c in text], np.int32)",
            [[*map(ord, text)] for text in TEXTS],
        ),
        (
            "class A:\n    @staticmethod\n    def f(text): return list(text.encode())",
            [[*text.encode()] for text in TEXTS],
        ),
    ],
    ids=["texts", "tuple", "numpy", "method"],
)
@pytest.mark.parametrize("most", [None, 2])
def test_a_function_of_ones_own(
    code: str, expected: list, most: int | None, table: Path, module: Callable[[str], str]
) -> None:
    name = f"{module(code)}:{'A.f' if 'class' in code else 'f'}"
    options = {"max_length": most} if most else {}
    assert tokens_of(table, name, **options) == [found[:most] for found in expected]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "def f(text): return 1 / (len(text) - 11)",
            r"a\.parquet:1: the tokenizer raised ZeroDivisionError: division by",
        ),
        ("def f(text): return text", r"the tokenizer \w+:f returned 'Hello, world!', which is not a list\."),
        ("def f(text): return []", r"gave no token for the text 'Hello, world!'"),
        (
            "def f(text): return [1] if '!' in text else ['a']",
            r"a\.parquet:1: the tokenizer \w+:f returned \['a'\], which is not a list of whole numbers of 64 bits",
        ),
        ("def f(text): return [2**63] if 'and' in text else [1]", r"a\.parquet:3: the tokenizer .* of 64 bits"),
        ("def f(text): return ['a'] if '!' in text else [1]", r"a\.parquet:1: .*which is not a list of texts"),
        ("f = 3", r"is int, not a function"),
        ("def g(text): return []", r"source\.text\.tokenizer: .* has no attribute 'f'\. Check its spelling"),
        ("import no_such_package", r"source\.text\.tokenizer: .*No module named 'no_such_package'\. Check"),
        ("1 / 0", r"importing it raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_that_does_not_do(code: str, message: str, table: Path, module: Callable[[str], str]) -> None:
    code = code.replace("/ (len(text) - 11)", "/ (len(text) - 11) and [1]")
    with pytest.raises((SourceError, ConfigError), match=message):
        tokens_of(table, f"{module(code)}:f")


def test_a_file_that_is_no_tokenizer(table: Path, trained: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.json: there is no such file; `tokenizer` names it"):
        tokens_of(table, table / "none.json")
    (table.parent / "odd.json").write_text("{}")
    with pytest.raises(SourceError, match=r"odd\.json: is not a tokenizer of the package `tokenizers`"):
        tokens_of(table, table.parent / "odd.json")
    with pytest.raises(ConfigError, match=r"max_length: 2 leaves no room .* adds 2 special ones"):
        tokens_of(table, trained, max_length=2)


def test_a_text_that_cannot_be_encoded_is_named(table: Path, tmp_path: Path) -> None:
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"the": 0, "cat": 1, "sat": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "words.json"))
    with pytest.raises(SourceError, match=r"a\.parquet:3: the tokenizer raised .*UNK"):
        tokens_of(table, tmp_path / "words.json")


def test_the_package_may_be_missing(table: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"needs the package `tokenizers`, .*: pip install tokenizers"):
        tokens_of(table, trained)


def test_another_tokenizer_makes_other_records(table: Path, trained: Path) -> None:
    said = {"text": {"path": str(table), "column": "t", "tokenizer": str(trained)}}
    first = inventory_of(said, table.parent)
    assert first.null_counts["text/tokens"] == 0
    assert records_of(first)["text/tokens"].type == pa.list_(pa.int64())
    trained.write_text(trained.read_text().replace("[UNK]", "[ODD]"))
    with pytest.raises(SourceChanged, match=r"tokens\.json: is not what it was when the inventory was taken"):
        records_of(first)
    assert inventory_of(said, table.parent).fingerprint != first.fingerprint


def test_documents_and_lines_have_tokens_too(tmp_path: Path, module: Callable[[str], str]) -> None:
    (raw := tmp_path / "raw").mkdir()
    (raw / "a.txt").write_text("one two\nthree")
    name = f"{module('def f(text): return text.split()')}:f"
    for per, expected in (("document", [["one", "two", "three"]]), ("line", [["one", "two"], ["three"]])):
        said = {"path": str(raw), "per": per, "tokenizer": name}
        assert [record["text/tokens"] for record in records({"text": said}, tmp_path)] == expected


def test_sizes_are_about_those_of_the_columns(table: Path, module: Callable[[str], str]) -> None:

    for options in ({}, {"tokenizer": f"{module('def f(text): return text.split()')}:f"}):
        inventory = inventory_of({"text": {"path": str(table), "column": "t", **options}}, table.parent)
        assert inventory.listing
        expansion = kind_named("text").expansion(inventory.source, inventory.listing, {})
        rows = pa.Table.from_batches(pq.ParquetFile(inventory.landed[0].path).iter_batches()).to_batches()[0]
        sizes = expansion.sizes(rows)
        assert sizes.dtype == np.int64
        texts = np.array([len(text.encode()) for text in TEXTS])
        assert (sizes == texts * (3 if options else 1)).all()


def test_a_tokenizer_is_parsed_once_a_content(trained: Path) -> None:
    tokens._trained.cache_clear()
    first, again = (tokens.open_tokenizer(str(trained), None, {}) for _ in range(2))
    assert first.digest == again.digest
    assert tokens._trained.cache_info().misses == 1
    trained.write_text(trained.read_text() + "\n")
    assert tokens.open_tokenizer(str(trained), None, {}).digest != first.digest
    cut = tokens.open_tokenizer(str(trained), 5, {}).encode(pa.array(["a " * 9], pa.large_string()), pa.array(["x"]))
    assert len(cut[0]) == 5
    assert tokens._trained.cache_info().misses == 3
