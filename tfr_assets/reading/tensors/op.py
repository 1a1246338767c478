"""The TensorFlow op `TfrColumns`: registered through TensorFlow's C API, without a compiler on the user's machine.

It is what plug-ins for devices use: tensorflow/c/ops.h and tensorflow/c/kernels.h. It also writes strings as TensorFlow
itself does, which no public function offers. So before, another op looks at what TensorFlow makes of a few strings.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
import tensorflow as tf
from llvmlite import binding

from tfr_assets.reading.tensors.hand_over import SYMBOLS, hand_over
from tfr_assets.records.kernels.jit import c_function
from tfr_assets.records.kernels.tensor_strings import SHORT, STRING_SIZE

_NAME, _LAYOUT = b"TfrColumns", b"TfrStringLayout"
_CALLED = (
    "TF_NewOpDefinitionBuilder", "TF_OpDefinitionBuilderAddAttr", "TF_OpDefinitionBuilderAddInput",
    "TF_OpDefinitionBuilderAddOutput", "TF_OpDefinitionBuilderSetIsStateful",
    "TF_OpDefinitionBuilderSetShapeInferenceFunction", "TF_ShapeInferenceContextSetUnknownShape",
    "TF_RegisterOpDefinition", "TF_NewKernelBuilder", "TF_RegisterKernelBuilder", "TF_Message", "TF_TensorByteSize",
)  # fmt: skip
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_LARGEST_LEARNT = 31 << 20
_registering = Lock()


class OpRefused(Exception):
    """This TensorFlow does not take the op. The message says why."""


def tensors_of(batch: tf.Tensor, dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    """Returns the outputs of the op.

    Args:
        batch: int64 of shape (4,): a row of `HandedOver.batches`.
        dtypes: Of the outputs.

    Raises:
        OpRefused: See `register`.
    """
    register()
    if tf.executing_eagerly():  # tf.data's debug mode
        return tf.compat.v1.wrap_function(lambda given: tensors_of(given, dtypes), [tf.TensorSpec((4,), tf.int64)])(
            batch
        )
    value = tf.compat.v1.AttrValue
    types = value.ListValue(type=[dtype.as_datatype_enum for dtype in dtypes])
    return _made(_NAME, batch, dtypes, types=value(list=types))


def _made(name: bytes, given: tf.Tensor, dtypes: Sequence[tf.DType], **attributes: object) -> list[tf.Tensor]:
    graph = tf.compat.v1.get_default_graph()
    return list(graph.create_op(name.decode(), [given], list(dtypes), attrs=attributes).outputs)


def register() -> None:
    """Registers op and kernel, once a process.

    Raises:
        OpRefused: This TensorFlow has no C API for ops, refuses, or keeps strings otherwise.
    """
    with _registering:  # TensorFlow ends the process when a second thread registers the same op
        if isinstance(found := _register_once(), OpRefused):
            raise found


@cache
def _register_once() -> object:
    """Registers op and kernel; returns what must stay alive, or why that cannot be."""
    try:
        library = _library()
        keep = _check_strings(library)
        for symbol in SYMBOLS:
            binding.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
        kernel = c_function("void(int64, int64)", hand_over)
        _register(library, _NAME, b"batch: int64", b"columns: types", kernel.address, b"types: list(type) >= 1")
        _keep_freed_memory()
    except OpRefused as refused:
        return refused
    except (AttributeError, TypeError) as error:  # TensorFlow, numba or llvmlite have other functions than these
        return OpRefused(f"{type(error).__name__}: {error}")
    return kernel, library, keep


def _keep_freed_memory() -> None:
    """Has the C library keep some of the memory that strings leave, for those of the next batches.

    glibc gives memory back as soon as 128 kB at the end of a heap are free, and fresh pages cost more than what is
    written into them. Of a chunk of up to 32 MB that was mapped by itself, and is freed, it learns to keep twice as
    much (mallopt(3), M_MMAP_THRESHOLD), as in any program that frees a large array. Elsewhere this does nothing.
    """
    np.empty(_LARGEST_LEARNT, np.uint8)


def _register(
    library: ctypes.CDLL, name: bytes, takes: bytes, gives: bytes, kernel: int | None, attribute: bytes = b""
) -> None:
    """Registers an op and its kernel for CPUs."""
    pointer, text = ctypes.c_void_p, ctypes.c_char_p

    def call(name: str, result: type | None, *arguments: tuple[type, object]) -> object:
        function = library[name]  # of its own: others may give it other types
        function.restype, function.argtypes = result, [kind for kind, _ in arguments]
        return function(*(value for _, value in arguments))

    op = (pointer, call("TF_NewOpDefinitionBuilder", pointer, (text, name)))
    if attribute:
        call("TF_OpDefinitionBuilderAddAttr", None, op, (text, attribute))
    call("TF_OpDefinitionBuilderAddInput", None, op, (text, takes))
    call("TF_OpDefinitionBuilderAddOutput", None, op, (text, gives))
    call("TF_OpDefinitionBuilderSetIsStateful", None, op, (ctypes.c_bool, True))  # it reads what it is not given
    unknown = ctypes.cast(library.TF_ShapeInferenceContextSetUnknownShape, pointer).value
    call("TF_OpDefinitionBuilderSetShapeInferenceFunction", None, op, (pointer, unknown))
    status = (pointer, call("TF_NewStatus", pointer))
    call("TF_RegisterOpDefinition", None, op, status)
    if call("TF_GetCode", ctypes.c_int, status) == 0:
        builder = call(
            "TF_NewKernelBuilder", pointer,
            (text, name), (text, b"CPU"), (pointer, None), (pointer, kernel), (pointer, None),
        )  # fmt: skip
        call("TF_RegisterKernelBuilder", None, (text, name), (pointer, builder), status)
    if call("TF_GetCode", ctypes.c_int, status) != 0:
        raise OpRefused(f"it refused an op ({call('TF_Message', text, status)!r})")
    call("TF_DeleteStatus", None, status)


def _library() -> ctypes.CDLL:
    for path in sorted(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*")):
        library = ctypes.CDLL(str(path))
        if all(hasattr(library, name) for name in (*SYMBOLS, *_CALLED)):
            return library
    raise OpRefused("it has no C API for ops, or another one")


def _check_strings(library: ctypes.CDLL) -> object:
    """Has TensorFlow make some strings, and looks how they lie in memory, which nothing writes to; as `hand_over` does.

    Returns:
        What must stay alive.

    Raises:
        OpRefused: They lie otherwise.
    """
    values = [b"", b"short", b"s" * SHORT, b"l" * (SHORT + 1), b"long" * 100]
    seen: list[bool] = []

    @_KERNEL
    def look(_: int, context: int) -> None:
        pointer, status = ctypes.c_void_p, pointer_of("TF_NewStatus")
        given, made = pointer(), pointer()
        library["TF_GetInput"](pointer(context), 0, ctypes.byref(given), status)
        size = library["TF_TensorByteSize"]
        size.restype, size.argtypes = ctypes.c_size_t, [pointer]
        if size(given) == len(values) * STRING_SIZE:
            start = pointer_of("TF_TensorData", given).value or 0
            seen.extend(_lies_at(start + place * STRING_SIZE, value) for place, value in enumerate(values))
        allocate = library["TF_AllocateOutput"]
        allocate.restype = pointer
        allocate.argtypes = [pointer, ctypes.c_int, ctypes.c_int, pointer, ctypes.c_int, ctypes.c_size_t, pointer]
        made = pointer(allocate(context, 0, tf.int64.as_datatype_enum, None, 0, 8, status))
        ctypes.memset(pointer_of("TF_TensorData", made).value or 0, 0, 8)
        for tensor in (given, made):
            library["TF_DeleteTensor"](tensor)
        library["TF_DeleteStatus"](status)

    def pointer_of(name: str, *arguments: object) -> ctypes.c_void_p:
        function = library[name]
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))

    _register(library, _LAYOUT, b"strings: string", b"seen: int64", ctypes.cast(look, ctypes.c_void_p).value)
    spec = tf.TensorSpec(None, tf.string)
    try:
        with tf.init_scope():
            tf.compat.v1.wrap_function(lambda given: _made(_LAYOUT, given, [tf.int64]), [spec])(tf.constant(values))
    except tf.errors.OpError as error:
        raise OpRefused(f"it cannot execute an op ({error.message})") from error
    if seen != [True] * len(values):
        raise OpRefused("it keeps strings otherwise in memory")
    return look


def _lies_at(place: int, value: bytes) -> bool:
    """Whether a string lies as `hand_over` writes it; of one that does not, nothing else is looked at."""
    size = len(value)
    if size <= SHORT:
        return ctypes.string_at(place, size + 2) == bytes([size << 2]) + value + b"\0"
    head, capacity, start = (ctypes.c_int64 * 3).from_address(place)
    return head == size << 2 | 1 and capacity >= size and ctypes.string_at(start, size) == value
