"""Small integers side by side in one register, and sums of their products: see ``simd``."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from nlpkit.kernels.simd import INDEX, Code, has_feature, operation, pick, pointer

STEP = 32  # 8-bit numbers that are multiplied at once
_SUM = ir.IntType(32)
_SUMS = ir.VectorType(_SUM, STEP // 2)


class _SumsType(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"Int32x{STEP // 2}")


_INTEGER_SUMS = _SumsType()


@register_model(_SumsType)
class _SumsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, sums_type: Any) -> None:
        super().__init__(manager, sums_type, _SUMS)


@operation(lambda: np.zeros(STEP // 2, np.int32))
def no_sums(typing: Any) -> Code:
    """Sums of nothing yet."""
    return _INTEGER_SUMS(), lambda *_: ir.Constant(_SUMS, [0] * _SUMS.count)


def _add_products(sums: Any, weights: Any, row: int, inputs: Any, at: int, i: int) -> Any:
    products = weights[row, i : i + STEP].astype(np.int32) * inputs[at, i : i + STEP]
    return sums + products[0::2] + products[1::2]


@operation(_add_products)
def add_products(
    typing: Any, sums: Any, weights: Any, row: Any, inputs: Any, at: Any, i: Any
) -> Code:
    """``sums`` and ``weights[row, i + j] * inputs[at, i + j]`` for each ``j`` below ``STEP``.

    Weights are int8, inputs int16. Neighbouring products are added to each other at once, for which
    many processors have an instruction.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, weights, row, inputs, at, i = arguments
        vectors = []
        for array, line, kind, bits in ((weights, row, 1, 8), (inputs, at, 3, 16)):
            place = types.void(signature.args[kind])
            vector = ir.VectorType(ir.IntType(bits), STEP)
            address = pointer(context, builder, place, [array, line, i], vector)
            number = builder.load(address, align=bits // 8)
            vectors.append(builder.sext(number, ir.VectorType(_SUM, STEP)))
        products = builder.mul(*vectors)
        even = pick(builder, products, products, list(range(0, STEP, 2)))
        odd = pick(builder, products, products, list(range(1, STEP, 2)))
        return builder.add(sums, builder.add(even, odd))

    kinds = (_INTEGER_SUMS, weights, types.intp, inputs, types.intp, types.intp)
    return _INTEGER_SUMS(*kinds), code


def _add_pairs(sums: Any, weights: Any, row: int, column: int, inputs: Any, at: int, i: int) -> Any:
    products = weights[row, column : column + STEP].astype(np.int32).reshape(-1, 2)
    return sums + products @ inputs[at, i : i + 2].astype(np.int32)


@operation(_add_pairs)
def add_pairs(
    typing: Any, sums: Any, weights: Any, row: Any, column: Any, inputs: Any, at: Any, i: Any
) -> Code:
    """``sums`` and for each of them the products of two weights, which stand together from
    ``weights[row, column]`` on, by ``inputs[at, i]`` and ``inputs[at, i + 1]``.

    Weights are int8, inputs int16.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, weights, row, column, inputs, at, i = arguments
        shorts = ir.VectorType(ir.IntType(16), STEP)
        place = types.void(signature.args[1])
        numbers = ir.VectorType(ir.IntType(8), STEP)
        address = pointer(context, builder, place, [weights, row, column], numbers)
        factors = builder.sext(builder.load(address, align=1), shorts)
        place = types.void(signature.args[4])
        address = pointer(context, builder, place, [inputs, at, i], _SUM)
        nothing = ir.Constant(_SUMS, ir.Undefined)
        pair = builder.load(address, align=2)
        first = builder.insert_element(nothing, pair, ir.Constant(INDEX, 0))
        pairs = builder.bitcast(pick(builder, first, nothing, [0] * _SUMS.count), shorts)
        if has_feature("avx512bw"):
            kind = ir.FunctionType(_SUMS, [shorts, shorts])
            name = "llvm.x86.avx512.pmaddw.d.512"
            call = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.add(sums, builder.call(call, [factors, pairs]))
        wide = ir.VectorType(_SUM, STEP)
        products = builder.mul(builder.sext(factors, wide), builder.sext(pairs, wide))
        even = pick(builder, products, products, list(range(0, STEP, 2)))
        odd = pick(builder, products, products, list(range(1, STEP, 2)))
        return builder.add(sums, builder.add(even, odd))

    kinds = (_INTEGER_SUMS, weights, types.intp, types.intp, inputs, types.intp, types.intp)
    return _INTEGER_SUMS(*kinds), code


@operation(np.add)
def join(typing: Any, left: Any, right: Any) -> Code:
    """Sums of two parts added up."""
    kinds = (_INTEGER_SUMS, _INTEGER_SUMS)
    return _INTEGER_SUMS(*kinds), lambda context, builder, signature, arguments: builder.add(
        *arguments
    )


def _store_integers(array: Any, row: int, column: int, sums: Any) -> None:
    array[row, column : column + STEP // 2] = sums


@operation(_store_integers)
def store_integers(typing: Any, array: Any, row: Any, column: Any, sums: Any) -> Code:
    """``array[row, column : column + STEP // 2] = sums``"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature, arguments, _SUMS)
        builder.store(arguments[3], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _INTEGER_SUMS), code


@operation(lambda sums: sums.sum(dtype=np.int32))
def total(typing: Any, sums: Any) -> Code:
    """All of the sums together."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = arguments[0]
        width = _SUMS.count
        while width > 1:
            width //= 2
            low = pick(builder, vector, vector, list(range(width)))
            high = pick(builder, vector, vector, list(range(width, 2 * width)))
            vector = builder.add(low, high)
        return builder.extract_element(vector, ir.Constant(INDEX, 0))

    return types.int32(_INTEGER_SUMS), code
