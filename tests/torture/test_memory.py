"""`tfr run` where memory runs out: the kernel kills a step, the command says so, and the next run completes."""

from pathlib import Path

from .command import limited_memory, make_copy
from .settings import need_time

_LIMIT = 1 << 30
_GREEDY = """
import os
import pyarrow as pa

def rows():
    held = [b"x" * (16 << 20) for _ in range(int(os.environ.get("GREEDY", "0")))]
    yield pa.table({"x": range(100), "held": [len(held)] * 100})
"""
_YAML = """
type: tfr_assets.TFRecordDataset
attributes:
  source: {callable: "greedy:rows"}
  shards: 2
"""


def test_a_step_that_the_kernel_kills_for_its_memory_is_named_and_the_next_run_completes(tmp_path: Path) -> None:
    need_time()
    copy = make_copy(tmp_path / "copy")
    (copy.root / "greedy.py").write_text(_GREEDY)
    (copy.root / "tfr_assets" / "defs" / "small" / "defs.yaml").write_text(_YAML)
    copy.settings["GREEDY"] = "256"  # 4 GiB
    with limited_memory(_LIMIT) as before:
        code, said = copy.run("run", "small", before=before)
    assert code == 1, said
    assert "small__raw" in said and "SIGKILL" in said and "memory ran out" in said
    assert "Traceback" not in said
    copy.settings.clear()
    code, said = copy.run("run", "small")
    assert code == 0, said
