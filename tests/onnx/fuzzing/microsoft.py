"""Operators of com.microsoft."""

import numpy as np

from .base import Case, family, i64, node_case

MS = "com.microsoft"


def one(r, op, inputs, attrs=None, outputs=1, **more):
    return node_case(r, op, inputs, r.pick([13, 17, 20]), attrs, outputs, domain=MS, **more)


@family("microsoft", 2)
def activations(r):
    op = r.pick(["Gelu", "FastGelu", "BiasGelu", "QuickGelu"])
    shape = r.shape(low=1)
    x, bias = r.data("f32", shape), r.data("f32", shape[-1:])
    args = {"Gelu": [x], "FastGelu": [x, r.pick([None, bias])], "BiasGelu": [x, bias], "QuickGelu": [x]}[op]
    return one(r, op, args, r.attrs(alpha=1.3) if op == "QuickGelu" else {}, rtol=1e-3, atol=1e-4)


@family("microsoft", 2)
def norms(r):
    op = r.pick(["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
    shape = (r.randint(1, 3), r.randint(1, 4), r.randint(1, 6))
    x, c = r.data("f32", shape), shape[2:]
    f = lambda: r.data("f32", c)
    beta = [r.pick([None, f()])] if op == "SkipLayerNormalization" else []
    skip = r.data("f32", r.pick([shape, (1,) + shape[1:], shape[1:]]))
    outs = r.pick([[True], [True, False, False, True]])
    return one(r, op, [x, skip, f(), *beta, r.pick([None, f()])], r.attrs(epsilon=r.pick([1e-5, 0.1])), outputs=outs, rtol=1e-3, atol=1e-4)


@family("microsoft", 2)
def fused(r):
    batch = r.shape(high=2, zero=0)
    m, k, n = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    ta, tb = r.randint(0, 1), r.randint(0, 1)
    a, b = r.data("f32", (*batch, *((k, m) if ta else (m, k)))), r.data("f32", (*batch, *((n, k) if tb else (k, n))))
    return one(r, "FusedMatMul", [a, b], {"transA": ta, "transB": tb, **r.attrs(alpha=0.5)})


@family("microsoft", 2)
def bits(r):
    bits, block = r.pick([4, 4, 8]), 16 * r.randint(1, 2)
    k, n = r.randint(1, 50), r.randint(1, 5)
    blocks = -(-k // block)
    zero = r.np.integers(0, 256, n * ((blocks * bits + 7) // 8)).astype(np.uint8) if r.maybe() else None
    return one(r, "MatMulNBits", [
        r.data("f32", (*r.shape(high=2, zero=0, limit=9), k)), r.np.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        np.abs(r.data("f32", (n * blocks,))), zero], {"K": k, "N": n, "bits": bits, "block_size": block},
        constant=("x1", "x2", "x3") if zero is not None else ("x1", "x2"), rtol=1e-3, atol=1e-2)


@family("microsoft", 3)
def quantized(r):
    op = r.pick(["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat", "QLinearGlobalAveragePool",
                 "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QuantizeLinear", "DequantizeLinear"])
    t = r.pick(["u8", "i8"])
    scale, zero = (lambda: np.asarray(r.data("f32", (), low=0.01, high=0.5))), (lambda: r.data(t, (), low=-9, high=9))
    q = lambda *dims: r.data(t, dims, True)
    if op in ("QLinearAdd", "QLinearMul"):
        shape = r.shape(low=1, zero=0)
        return one(r, op, [q(*shape), scale(), zero(), q(*r.broadcast(shape)), scale(), zero(), scale(), r.pick([zero(), None])], rtol=0, atol=1)
    if op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        return one(r, op, [q(*r.shape(low=1, zero=0)), scale(), zero(), scale(), zero()], r.attrs(alpha=0.2) if op != "QLinearSigmoid" else {}, rtol=0, atol=1)
    if op == "QLinearGlobalAveragePool":
        last = r.randint(0, 1)
        return one(r, op, [q(2, 3, 4, 5), scale(), zero(), scale(), zero()], {"channels_last": last}, rtol=0, atol=1)
    if op == "QLinearConcat":
        shape = r.shape(low=1, zero=0)
        axis = r.randrange(len(shape))
        args = [scale(), zero()]
        for _ in range(r.randint(1, 3)):
            dims = list(shape)
            dims[axis] = r.randint(1, 3)
            args += [q(*dims), scale(), zero()]
        return one(r, op, args, {"axis": axis - r.pick([0, len(shape)])}, rtol=0, atol=1)
    if op == "MatMulIntegerToFloat":
        m, k, n = r.randint(1, 3), r.randint(1, 4), r.randint(1, 4)
        per = r.maybe()
        return one(r, op, [r.data("u8", (m, k), True), q(k, n), scale(), r.data("f32", (n,), low=0.01, high=0.5) if per else scale(),
                           r.pick([r.data("u8", ()), None]), r.data(t, (n,)) if per else r.pick([zero(), None]), r.pick([r.data("f32", (n,)), None])])
    if op == "DynamicQuantizeMatMul":
        m, k, n = r.randint(1, 3), r.randint(1, 4), r.randint(1, 4)
        return one(r, op, [r.data("f32", (m, k)), q(k, n), scale(), r.pick([zero(), None]), r.pick([r.data("f32", (n,)), None])], rtol=2e-2, atol=2e-2)
    shape = r.shape(low=1, zero=0)
    t = r.pick(["u8", "i8", "u16", "i16"])
    axis = r.randrange(len(shape))
    dims = r.pick([(), (shape[axis],)])
    attrs = {"axis": axis} if dims else {}
    s = np.asarray(r.data("f32", dims, low=0.05, high=1))
    z = r.pick([r.data(t, dims, low=0, high=9), None]) if t == "u8" else r.data(t, dims, low=-9, high=9)
    x = r.data("f32", shape, low=-40, high=40) if op == "QuantizeLinear" else r.data(t, shape, True)
    return one(r, op, [x, s, z], attrs, rtol=1e-6, atol=0)


@family("microsoft", 2)
def attention(r):
    op = r.pick(["Attention", "MultiHeadAttention"])
    b, s, t, heads, size = r.randint(1, 2), r.randint(1, 4), r.randint(1, 4), r.randint(1, 3), r.pick([1, 2, 4])
    hidden = heads * size
    f = lambda *dims: r.data("f32", dims, low=-1, high=1)
    attrs = {"num_heads": heads, **r.attrs(scale=r.pick([None, 0.4]), unidirectional=r.pick([None, 1, 0]))}
    if op == "Attention":
        i = r.randint(1, 5)
        mask = r.pick([None, r.np.integers(0, 2, (b, s)).astype(np.int32), r.np.integers(1, s + 1, b).astype(np.int32)])
        if mask is not None and mask.ndim == 2:
            mask[:, 0] = 1
        return one(r, op, [f(b, s, i), f(i, 3 * hidden), f(3 * hidden), mask], attrs, rtol=1e-3, atol=1e-4)
    mask = r.pick([None, None, r.np.integers(0, 2, (b, t)).astype(np.int32)])
    if mask is not None:
        mask[:, 0] = 1
    bias = r.pick([None, f(3 * hidden)])
    add = r.pick([None, f(b, heads, s, t), f(1, heads, s, t)])
    return one(r, op, [f(b, s, hidden), f(b, t, hidden), f(b, t, hidden), bias, mask, add], attrs, rtol=1e-3, atol=1e-4)


@family("microsoft", 2)
def grouped(r):
    b, kv, per, half = r.randint(1, 2), r.randint(1, 2), r.randint(1, 3), 8
    size, q = 2 * half, kv * per
    decode = r.maybe()
    s = 1 if decode else r.randint(1, 4)
    past = r.randint(1, 5) if decode else 0
    total = past + s
    f = lambda *dims: r.data("f32", dims, low=-1, high=1)
    rotary = r.maybe()
    attrs = {"num_heads": q, "kv_num_heads": kv, **r.attrs(scale=r.pick([None, 0.3]), softcap=r.pick([None, 5.0]),
             local_window_size=r.pick([None, 2]), rotary_interleaved=r.randint(0, 1) if rotary else None)}
    args = [f(b, s, q * size), f(b, s, kv * size), f(b, s, kv * size), f(b, kv, past, size) if past else None,
            f(b, kv, past, size) if past else None, np.full(b, total - 1, np.int32), np.array(total, np.int32)]
    if rotary:
        attrs["do_rotary"] = 1
        angle = np.arange(32)[:, None] / 10 ** (np.arange(half)[None] / 2)
        args += [np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]
    return one(r, "GroupQueryAttention", args, attrs, outputs=3, rtol=1e-3, atol=1e-4)


@family("microsoft")
def rotary(r):
    b, heads, s, half = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4), r.pick([2, 4])
    angle = np.arange(16)[:, None] / 10 ** (np.arange(half)[None] / 2)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    ids = i64(r.randint(0, 9)) if r.maybe() else r.np.integers(0, 16, (b, s))
    x = r.data("f32", (b, heads, s, 2 * half) if r.maybe() else (b, s, heads * 2 * half))
    return one(r, "RotaryEmbedding", [x, ids, cos, sin], r.attrs(interleaved=r.randint(0, 1)))
