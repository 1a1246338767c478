"""The TensorFlow op `TfrColumns`: registered through TensorFlow's C API, without a compiler on the user's machine.

It is what plug-ins for devices use: tensorflow/c/ops.h and tensorflow/c/kernels.h.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

import tensorflow as tf
from llvmlite import binding

from tfr_assets.errors import ConfigError
from tfr_assets.reading.tensors.hand_over import SYMBOLS, hand_over
from tfr_assets.records.kernels.jit import c_function

_NAME = b"TfrColumns"
_registering = Lock()


def tensors_of(batch: tf.Tensor, dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """Returns the outputs of the op.

    Args:
        batch: int64 of shape (4,): a row of `HandedOver.batches`.
        dtypes: Of the outputs.

    Raises:
        ConfigError: See `register`.
    """
    register()
    if tf.executing_eagerly():  # tf.data's debug mode
        return tf.compat.v1.wrap_function(lambda given: tensors_of(given, dtypes), [tf.TensorSpec((4,), tf.int64)])(
            batch
        )
    value = tf.compat.v1.AttrValue
    types = value.ListValue(type=[dtype.as_datatype_enum for dtype in dtypes])
    graph = tf.compat.v1.get_default_graph()
    return list(graph.create_op(_NAME.decode(), [batch], list(dtypes), attrs={"types": value(list=types)}).outputs)


def register() -> None:
    """Registers op and kernel, once a process.

    Raises:
        ConfigError: This TensorFlow has no C API for ops, or refuses.
    """
    with _registering:  # TensorFlow ends the process when a second thread registers the same op
        _register_once()


@cache
def _register_once() -> object:
    """Registers op and kernel; returns what must stay alive."""
    library = _library()
    for symbol in SYMBOLS:
        binding.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
    kernel = c_function("void(int64, int64)", hand_over)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p

    def call(name: str, result: type | None, *arguments: tuple[type, object]) -> object:
        function = getattr(library, name)
        function.restype, function.argtypes = result, [kind for kind, _ in arguments]
        return function(*(value for _, value in arguments))

    op = (pointer, call("TF_NewOpDefinitionBuilder", pointer, (text, _NAME)))
    call("TF_OpDefinitionBuilderAddAttr", None, op, (text, b"types: list(type) >= 1"))
    call("TF_OpDefinitionBuilderAddInput", None, op, (text, b"batch: int64"))
    call("TF_OpDefinitionBuilderAddOutput", None, op, (text, b"columns: types"))
    call("TF_OpDefinitionBuilderSetIsStateful", None, op, (ctypes.c_bool, True))  # it reads what it is not given
    unknown = ctypes.cast(library.TF_ShapeInferenceContextSetUnknownShape, pointer).value
    call("TF_OpDefinitionBuilderSetShapeInferenceFunction", None, op, (pointer, unknown))
    status = (pointer, call("TF_NewStatus", pointer))
    call("TF_RegisterOpDefinition", None, op, status)
    builder = call(
        "TF_NewKernelBuilder", pointer,
        (text, _NAME), (text, b"CPU"), (pointer, None), (pointer, kernel.address), (pointer, None),
    )  # fmt: skip
    if call("TF_GetCode", ctypes.c_int, status) == 0:
        call("TF_RegisterKernelBuilder", None, (text, _NAME), (pointer, builder), status)
    if call("TF_GetCode", ctypes.c_int, status) != 0:
        said = call("TF_Message", text, status)
        raise ConfigError(f"TensorFlow {tf.__version__} refused the op of the reader 'columnar' ({said!r}); {_INSTEAD}")
    call("TF_DeleteStatus", None, status)
    return kernel, library


_INSTEAD = "use reader='vectorized', or tfr_assets.batches"


def _library() -> ctypes.CDLL:
    for path in sorted(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*")):
        library = ctypes.CDLL(str(path))
        if all(hasattr(library, name) for name in (*SYMBOLS, "TF_RegisterOpDefinition", "TF_RegisterKernelBuilder")):
            return library
    raise ConfigError(
        f"TensorFlow {tf.__version__} has no C API for ops, which the reader 'columnar' needs; {_INSTEAD}"
    )
