"""Numbers side by side in one register: the few vector operations the kernels are written in.

numba turns plain loops into vector code when it can prove enough about them, but it cannot be
told to keep a block of sums in registers, and that is where the speed of a matrix product comes
from. So here is a type, ``LANES`` consecutive float32, with the operations that the kernels need,
such as ``load``, ``multiply_add`` and ``store``. They are called from ``compiled`` functions as if
they were ordinary functions, and each becomes one or two machine instructions. ``integers``
has a second type, sums of products of small integers, for weights of 8 bits.

Any processor can run them: LLVM cuts the vectors to the width that is there. Where compiling is
turned off (see ``compiling``) a vector is a numpy array, and each operation is what stands in its
decorator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from nlpkit.kernels.compiling import ENABLED


def has_feature(feature: str) -> bool:
    """Whether the processor has it; where LLVM cannot tell, no."""
    try:
        return bool(binding.get_host_cpu_features().get(feature))
    except RuntimeError:
        return False


# As wide as a register: sums of a block must all fit in the 16 or 32 that there are.
LANES = 16 if has_feature("avx512f") else 8

INDEX = ir.IntType(32)
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FAST = ("fast",)  # lets LLVM fuse a multiplication and an addition, and reorder sums


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"Float32x{LANES}")


_LANES = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes_type: Any) -> None:
        super().__init__(manager, lanes_type, _VECTOR)


def operation(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """An intrinsic, called from compiled code without the typing context it is declared with; or
    the same with numpy."""
    return intrinsic if ENABLED else lambda describe: plain


Code = tuple[Any, Callable[..., Any]]


def pointer(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any) -> Any:
    """The address of ``array[row, column]``, for the first three arguments of a function."""
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    address = cgutils.get_item_pointer(
        context, builder, array_type, array, arguments[1:3], wraparound=False
    )
    return builder.bitcast(address, kind.as_pointer())


def pick(builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
    """A vector of the named lanes of two vectors laid end to end."""
    mask = ir.Constant(ir.VectorType(INDEX, len(lanes)), lanes)
    return builder.shuffle_vector(first, second, mask)


@operation(lambda array, row, column: array[row, column : column + LANES].copy())
def load(typing: Any, array: Any, row: Any, column: Any) -> Code:
    """``array[row, column : column + LANES]``"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(pointer(context, builder, signature, arguments, _VECTOR), align=4)

    return _LANES(array, types.intp, types.intp), code


def _store(array: Any, row: int, column: int, value: Any) -> None:
    array[row, column : column + LANES] = value


@operation(_store)
def store(typing: Any, array: Any, row: Any, column: Any, value: Any) -> Code:
    """``array[row, column : column + LANES] = value``"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature, arguments, _VECTOR)
        builder.store(arguments[3], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _LANES), code


@operation(lambda array, row, column: None)
def prefetch(typing: Any, array: Any, row: Any, column: Any) -> Code:
    """Have the processor bring ``array[row, column]`` nearer; may lie behind the end of the array.

    What it guesses by itself stops at the end of each page of memory.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature, arguments, ir.IntType(8))
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        # for reading, into the second level of caches, data
        builder.call(call, [address, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), code


@operation(lambda: np.zeros(LANES, np.float32))
def zeros(typing: Any) -> Code:
    """A vector of zeros."""
    return _LANES(), lambda *_: ir.Constant(_VECTOR, [0.0] * LANES)


@operation(lambda value: np.full(LANES, value, np.float32))
def splat(typing: Any, value: Any) -> Code:
    """One number in all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, arguments[0], ir.Constant(INDEX, 0))
        return pick(builder, first, nothing, [0] * LANES)

    return _LANES(types.float32), code


@operation(np.multiply)
def multiply(typing: Any, left: Any, right: Any) -> Code:
    """``left * right``"""
    return _LANES(_LANES, _LANES), lambda context, builder, signature, arguments: builder.fmul(
        *arguments, flags=_FAST
    )


@operation(np.divide)
def divide(typing: Any, left: Any, right: Any) -> Code:
    """``left / right``"""
    return _LANES(_LANES, _LANES), lambda context, builder, signature, arguments: builder.fdiv(
        *arguments, flags=_FAST
    )


@operation(lambda left, right, addend: left * right + addend)
def multiply_add(typing: Any, left: Any, right: Any, addend: Any) -> Code:
    """``left * right + addend``, one instruction where the processor has it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, addend = arguments
        return builder.fadd(builder.fmul(left, right, flags=_FAST), addend, flags=_FAST)

    return _LANES(_LANES, _LANES, _LANES), code


@operation(np.maximum)
def larger(typing: Any, left: Any, right: Any) -> Code:
    """The larger number of each lane."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return _LANES(_LANES, _LANES), code


@operation(lambda value: value.max())
def largest(typing: Any, value: Any) -> Code:
    """The largest number of all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, width = arguments[0], LANES
        while width > 1:
            width //= 2
            low = pick(builder, vector, vector, list(range(width)))
            high = pick(builder, vector, vector, list(range(width, 2 * width)))
            vector = builder.select(builder.fcmp_ordered(">", low, high), low, high)
        return builder.extract_element(vector, ir.Constant(INDEX, 0))

    return types.float32(_LANES), code


@operation(np.abs)
def magnitude(typing: Any, value: Any) -> Code:
    """The absolute value of each lane."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        [value] = arguments
        turned = builder.fneg(value)
        return builder.select(builder.fcmp_ordered(">", value, turned), value, turned)

    return _LANES(_LANES), code


@operation(lambda value, bound: np.clip(value, -bound, bound))
def clamp(typing: Any, value: Any, bound: Any) -> Code:
    """``value``, but not below ``-bound`` nor above ``bound``"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, above = arguments
        below = builder.fneg(above)
        value = builder.select(builder.fcmp_ordered("<", value, above), value, above)
        return builder.select(builder.fcmp_ordered(">", value, below), value, below)

    return _LANES(_LANES, _LANES), code


def _between(start: int, stop: int) -> Any:
    lane = np.arange(LANES)
    return ((lane >= start) & (lane < stop)).astype(np.float32)


@operation(_between)
def between(typing: Any, start: Any, stop: Any) -> Code:
    """1 in the lanes ``start:stop`` and 0 in the others; both may lie outside the vector."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = ir.VectorType(INDEX, LANES)
        nothing = ir.Constant(numbers, ir.Undefined)

        def spread(number: Any) -> Any:
            first = builder.insert_element(
                nothing, builder.trunc(number, INDEX), ir.Constant(INDEX, 0)
            )
            return pick(builder, first, nothing, [0] * LANES)

        lane = ir.Constant(numbers, list(range(LANES)))
        inside = builder.and_(
            builder.icmp_signed(">=", lane, spread(arguments[0])),
            builder.icmp_signed("<", lane, spread(arguments[1])),
        )
        return builder.uitofp(inside, _VECTOR)

    return _LANES(types.intp, types.intp), code


def _store_sums(array: Any, row: int, column: int, *vectors: Any) -> None:
    sums = [vector.sum(dtype=np.float32) for vector in vectors]
    array[row, column : column + 4], array[row + 1, column : column + 4] = sums[:4], sums[4:]


@operation(_store_sums)
def store_sums(
    typing: Any,
    array: Any,
    row: Any,
    column: Any,
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    b0: Any,
    b1: Any,
    b2: Any,
    b3: Any,
) -> Code:
    """``array[row, column + j] = sum of the lanes of aj``, and of ``bj`` in the next row.

    Eight vectors are summed together: two are folded into one that holds the half-sums of both
    side by side, and so on, which takes a quarter of the work of eight separate sums.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = list(arguments[3:])
        width = LANES  # lanes that still belong to one sum
        while width > 1:
            count = vectors[0].type.count
            starts = range(0, 2 * count if len(vectors) > 1 else count, width)
            low = [start + lane for start in starts for lane in range(width // 2)]
            high = [lane + width // 2 for lane in low]
            pairs = zip(vectors[::2], vectors[1::2] or vectors[:1], strict=True)
            vectors = [
                builder.fadd(pick(builder, x, y, low), pick(builder, x, y, high), flags=_FAST)
                for x, y in pairs
            ]
            width //= 2
        four = ir.VectorType(_FLOAT, 4)
        for line in range(2):
            where = [arguments[0], builder.add(arguments[1], arguments[1].type(line)), arguments[2]]
            address = pointer(context, builder, signature, where, four)
            sums = pick(builder, vectors[0], vectors[0], list(range(4 * line, 4 * line + 4)))
            builder.store(sums, address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, *[_LANES] * 8), code
