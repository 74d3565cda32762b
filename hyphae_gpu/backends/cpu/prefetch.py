"""Asking the cache for a row before it is needed: a gate's cost is the wait for one row of a large matrix."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FOR_READING, _KEEP, _DATA = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))


def _prefetch(typing_context, array, row, offset):
    """Ask for the cache line `offset` bytes into array[row]; an array of any rank. Changes nothing that can be seen."""
    del typing_context

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        fields = context.make_array(kind)(context, builder, arguments[0])
        strides = cgutils.unpack_tuple(builder, fields.strides, kind.ndim)
        byte = ir.IntType(8).as_pointer()
        start = builder.bitcast(fields.data, byte)
        index, offset = (
            context.cast(builder, value, given, types.intp)
            for value, given in zip(arguments[1:], signature.args[1:], strict=True)
        )
        address = builder.gep(start, [builder.add(builder.mul(index, strides[0]), offset)])
        i32 = ir.IntType(32)
        kind_of_call = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        called = cgutils.get_or_insert_function(builder.module, kind_of_call, "llvm.prefetch.p0")
        builder.call(called, [address, _FOR_READING, _KEEP, _DATA])
        return context.get_dummy_value()

    return types.void(array, row, offset), generate


#: numba's stubs take the typing context for an argument of the call.
prefetch: Any = intrinsic(_prefetch)
