"""How kernels are compiled: one decorator for kernels, and the few machine operations that they are made of.

Kernels take addresses and sizes as int64 instead of arrays: Arrow's buffers pass as they are, read-only or not, and a
call costs next to nothing. Nothing checks bounds; the Python beside each kernel keeps every buffer alive and large
enough.

Memory operations are unaligned and little-endian, as the TFRecord format and both supported CPUs are.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from tfr_assets.records.kernels.compile_progress import compiling
from tfr_assets.records.kernels.kernel_cache import KernelCache

if sys.byteorder != "little":
    raise ImportError("tfr_assets supports little-endian CPUs only (x86-64, arm64)")

PADDING = 64
"""Bytes that a buffer must have beyond its end: kernels copy up to 32 bytes at a time and may run over."""


def _has_crc_instruction() -> bool:
    features = binding.get_host_cpu_features()
    return bool(features.get("sse4.2") or features.get("crc"))


PORTABLE = os.environ.get("TFR_CRC32C") == "portable" or not _has_crc_instruction()
"""Whether CRC32C is computed by table rather than by the CPU's own instruction (SSE 4.2, or arm64's CRC extension)."""

_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
_KERNELS = sum(path.read_bytes().count(b"\n@kernel(") for path in Path(__file__).parents[1].rglob("*.py"))


def _stamp(function: Callable[..., Any]) -> str:
    """Returns what stands for all sources of a kernel: this folder, since kernels call across files, and its own file.

    A kernel that lies elsewhere calls nothing but what is in these; tests/test_architecture.py holds that.
    """
    own = Path(function.__code__.co_filename).read_bytes()
    return hashlib.sha256(_SOURCES + own).hexdigest() + ("-portable" if PORTABLE else "")


def kernel(signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compiles a function for exactly one signature, without the GIL, kept on disk for the next process.

    Numba's own cache looks at one file only and would keep a kernel whose callee in another file has changed.
    """

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher = njit(nogil=True)(function)
        dispatcher._cache = KernelCache(function, _stamp(function), _KERNELS)  # type: ignore[attr-defined]
        with compiling():
            dispatcher.compile(signature)
        dispatcher.disable_compile()  # another type at run time is a bug of ours, not a reason to compile for seconds
        return dispatcher

    return compile_now


def c_function(signature: str, function: Callable[..., Any]) -> CFunc:
    """Compiles a function that C calls at its `address`, kept on disk as kernels are.

    Whatever it calls as `numba.types.ExternalFunction` must be known to LLVM before: `llvmlite.binding.add_symbol`.
    """
    compiled = CFunc(function, normalize_signature(signature), {}, {"nopython": True})
    compiled._cache = KernelCache(function, _stamp(function), _KERNELS)  # type: ignore[attr-defined]
    with compiling():
        compiled.compile()
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that kernels call often: it becomes part of each of them."""
    return njit(nogil=True, forceinline=True)(function)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that kernels call seldom, or that is large: it stays one of its own."""
    return njit(nogil=True)(function)


def address_of(array: np.ndarray) -> int:
    """Returns where an array's first element lies. The caller keeps the array alive while a kernel uses it."""
    return array.__array_interface__["data"][0]


def _load(numba_type: Any, llvm_type: ir.Type) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvm_type.as_pointer())
            return builder.load(pointer, align=1)

        return numba_type(types.int64), codegen

    return load


def _store(numba_type: Any, llvm_type: ir.Type) -> Any:
    @intrinsic
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], llvm_type.as_pointer())
            builder.store(args[1], pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, numba_type), codegen

    return store


_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))

load_u8, load_i8 = _load(types.uint8, _I8), _load(types.int8, _I8)
load_u16, load_i16 = _load(types.uint16, _I16), _load(types.int16, _I16)
load_u32, load_i32 = _load(types.uint32, _I32), _load(types.int32, _I32)
load_u64, load_i64 = _load(types.uint64, _I64), _load(types.int64, _I64)
load_f32, load_f64 = _load(types.float32, ir.FloatType()), _load(types.float64, ir.DoubleType())
store_u8, store_u32 = _store(types.uint8, _I8), _store(types.uint32, _I32)
store_u64, store_i64 = _store(types.uint64, _I64), _store(types.int64, _I64)
store_f32 = _store(types.float32, ir.FloatType())


@intrinsic
def stack_block(typing_context: Any) -> Any:
    """Returns the address of 2 KB on the stack, until the function that calls it returns."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once(builder, ir.ArrayType(_I64, 256)), _I64)

    return types.int64(), codegen


@intrinsic
def finish_stores(typing_context: Any) -> Any:
    """Has all that was stored before be seen by whoever sees what is stored after, also on CPUs that reorder stores."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("release")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def copy_32(typing_context: Any, target: Any, source: Any) -> Any:
    """Copies 32 bytes with the widest moves that the CPU has."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [builder.inttoptr(arg, ir.VectorType(_I64, 4).as_pointer()) for arg in args]
        builder.store(builder.load(pointers[1], align=1), pointers[0], align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def fits_32(typing_context: Any, address: Any, pattern: Any, byte: Any) -> Any:
    """Whether 32 bytes are those of a pattern: three times 32 bytes, of which the first are what is expected.

    The second ones tell where `byte` is added to that (255) and where it is not (0), the third ones which bytes count
    (255) and which do not (0).
    """
    vector = ir.VectorType(_I8, 32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def load(address: Any, offset: int) -> Any:
            pointer = builder.inttoptr(builder.add(address, ir.Constant(_I64, offset)), vector.as_pointer())
            return builder.load(pointer, align=1)

        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, builder.trunc(args[2], _I8), ir.Constant(_I32, 0))
        added = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, 32), [0] * 32))
        expected = builder.add(load(args[1], 0), builder.and_(load(args[1], 32), added))
        differs = builder.and_(builder.xor(load(args[0], 0), expected), load(args[1], 64))
        word = ir.IntType(256)
        return builder.icmp_unsigned("==", builder.bitcast(differs, word), ir.Constant(word, 0))

    return types.boolean(types.int64, types.int64, types.int64), codegen


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """memcpy(target, source, count)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [builder.inttoptr(arg, _I8.as_pointer()) for arg in args[:2]]
        cgutils.raw_memcpy(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def move_bytes(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """memmove(target, source, count): the two may overlap."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = [builder.inttoptr(arg, _I8.as_pointer()) for arg in args[:2]]
        cgutils.raw_memmove(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def leading_zeros(typing_context: Any, value: Any) -> Any:
    """Number of leading zero bits of a u64; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


def _crc_step(value_type: Any, x86_name: str, arm_name: str, x86_wide: bool) -> Any:
    """One CRC32C instruction: folds one value into the state, a u64 whose upper half is zero."""
    x86 = binding.get_default_triple().startswith(("x86_64", "amd64", "i686"))
    bits = value_type.bitwidth

    @intrinsic
    def step(typing_context: Any, crc: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            crc, value = args
            if x86 and x86_wide:
                function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [_I64, _I64]), x86_name)
                return builder.call(function, [crc, value])
            # arm64 takes bytes as 32-bit values
            wide = ir.IntType(bits) if x86 else ir.IntType(max(bits, 32))
            name = x86_name if x86 else arm_name
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [_I32, wide]), name)
            value = builder.zext(value, wide) if wide.width > bits else value
            return builder.zext(builder.call(function, [builder.trunc(crc, _I32), value]), _I64)

        return types.uint64(types.uint64, value_type), codegen

    return step


crc_u64 = _crc_step(types.uint64, "llvm.x86.sse42.crc32.64.64", "llvm.aarch64.crc32cx", x86_wide=True)
crc_u8 = _crc_step(types.uint8, "llvm.x86.sse42.crc32.32.8", "llvm.aarch64.crc32cb", x86_wide=False)
