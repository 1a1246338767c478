"""A TensorFlow whose private interface is not as expected: `columnar` says so once, and reads the same, slower."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tfr_assets

_TABLE = pa.table(
    {
        "n": pa.array(range(100), pa.int64()),
        "x": pa.array([None if n % 7 == 0 else n / 4 for n in range(100)], pa.float32()),
        "flag": pa.array([n % 3 == 0 for n in range(100)]),
        "text": pa.array(["", "ü" * 11, "y" * 23, "long " * 60] * 25),
        "pair": pa.array([[f"a{n}", f"{n}" * 30] for n in range(100)], pa.list_(pa.string(), 2)),
        "list": pa.array([[n] * (n % 4) for n in range(100)], pa.list_(pa.int32())),
        "deep": pa.array([[["w"] * (n % 3), ["z" * n]][: n % 3] for n in range(100)], pa.list_(pa.list_(pa.string()))),
        "maybe": pa.array([None if n % 5 else n for n in range(100)], pa.int64()),
    }
)
HIDDEN = {
    "no C API for ops": "CDLL.__getattr__ = hiding('TF_RegisterKernelBuilder')",
    "no look at strings": "CDLL.__getattr__ = hiding('TF_TensorByteSize')",
    "no library": "import tensorflow; tensorflow.sysconfig.get_lib = lambda: '/nonexistent'",
    "longer strings": "import tfr_assets.reading.tensors.op as h; h.STRING_SIZE = 32",
    "shorter strings inside": "import tfr_assets.reading.tensors.op as h; h.SHORT = 14",
}
_SAYS = {
    "longer strings": "it keeps strings otherwise in memory",
    "shorter strings inside": "it keeps strings otherwise in memory",
}
_SCRIPT = """
import os, pickle, sys, warnings
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from ctypes import CDLL

def hiding(hidden, found=CDLL.__getattr__):
    def get(library, name):
        if name == hidden:
            raise AttributeError(name)
        return found(library, name)
    return get

{hide}
import tensorflow as tf
import tfr_assets

def values(tensor):
    return tensor.to_list() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy().tolist()

def read(**options):
    found = tfr_assets.read({folder!r}, 32, reader="columnar", **options)
    return [repr(found.element_spec), *[{{name: values(tensor) for name, tensor in batch.items()}} for batch in found]]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    got = [
        read(), read(drop_remainder=True), read(shard=(1, 3)), read(shuffle=20, seed=1), read(repeat=2),
        read(columns=["deep", "n"]), len(tfr_assets.read({folder!r}, 32, reader="columnar")),
    ]
print([str(one.message) for one in caught if one.category is RuntimeWarning])
import hashlib
print(hashlib.sha256(repr(got).encode()).hexdigest())
path = {damaged!r}
try:
    for batch in tfr_assets.read(path, 32, reader="columnar"):
        pass
except tf.errors.InvalidArgumentError as error:
    print("refused", "CRC" in str(error) and "Traceback" not in str(error))
"""


def _run(hide: str, root: Path) -> list[str]:
    script = _SCRIPT.format(hide=hide, folder=str(root / "rows"), damaged=str(root / "damaged"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fallback")
    tfr_assets.write(_TABLE, root / "rows", shards=3)
    tfr_assets.write(_TABLE, root / "damaged", shards=1)
    (path,) = (root / "damaged").glob("damaged-*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return root


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[str]:
    found = _run("", folder)
    assert found[0] == "[]" and found[2:] == ["refused True"], found
    return found


@pytest.mark.parametrize("what", HIDDEN)
def test_columnar_reads_the_same_with_one_warning(what: str, folder: Path, expected: list[str]) -> None:
    warned, *found = _run(HIDDEN[what], folder)
    assert warned.count("reader 'columnar' is slower with TensorFlow") == 1, warned
    assert _SAYS.get(what, "it has no C API for ops, or another one") in warned
    assert found == expected[1:]
