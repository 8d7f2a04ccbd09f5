#!/usr/bin/env python3
"""Writes the cases of operators of the set com.microsoft, with what ONNX Runtime computes.

usage: microsoft.py DIR        (needs onnx, onnxruntime, numpy)
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(28)
CASES = []


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def case(name, op, inputs, outputs=1, constants=(), domain="com.microsoft", rtol=1e-5, atol=1e-5, **attributes):
    """`inputs` by name, `None` for one left out; those in `constants` are initializers."""
    CASES.append((name, op, inputs, outputs, constants, domain, (rtol, atol), attributes))


def write(root, name, op, inputs, outputs, constants, domain, tolerance, attributes):
    given = {k: v for k, v in inputs.items() if v is not None}
    node = helper.make_node(
        op, [k if v is not None else "" for k, v in inputs.items()], [f"y{i}" if i >= 0 else "" for i in range(outputs)],
        domain=domain, **attributes)
    values = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in given.items() if k not in constants]
    inits = [numpy_helper.from_array(given[k], k) for k in constants]
    # ONNX Runtime says the types of the outputs.
    outs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], name, values, outs, inits), opset_imports=opsets, ir_version=9)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, {k: v for k, v in given.items() if k not in constants})
    for out, result in zip(model.graph.output, results):
        out.CopyFrom(helper.make_tensor_value_info(
            out.name, helper.np_dtype_to_tensor_dtype(result.dtype), result.shape))
    folder = root / name
    place = folder / "set_0"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance").write_text("%g %g\n" % tolerance)
    for i, v in enumerate(values):
        (place / f"input_{i}.pb").write_bytes(numpy_helper.from_array(given[v.name], v.name).SerializeToString())
    for i, v in enumerate(results):
        (place / f"output_{i}.pb").write_bytes(numpy_helper.from_array(v, f"y{i}").SerializeToString())


x = f32(2, 5, 8)
case("ms_gelu", "Gelu", {"x": x})
case("ms_fast_gelu", "FastGelu", {"x": x, "b": f32(8)}, rtol=1e-4)
case("ms_bias_gelu", "BiasGelu", {"x": x, "b": f32(8)})
case("ms_quick_gelu", "QuickGelu", {"x": x}, alpha=1.3)
case("ms_skip_layer_norm", "SkipLayerNormalization",
     {"x": x, "skip": f32(2, 5, 8), "g": f32(8), "b": f32(8), "bias": f32(8)}, epsilon=1e-5)
case("ms_skip_simplified_layer_norm", "SkipSimplifiedLayerNormalization",
     {"x": x, "skip": f32(2, 5, 8), "g": f32(8)}, epsilon=1e-6)
case("ms_simplified_layer_norm", "SimplifiedLayerNormalization", {"x": x, "g": f32(8)}, domain="", epsilon=1e-6)
case("ms_fused_matmul", "FusedMatMul", {"a": f32(2, 4, 3), "b": f32(2, 5, 4)}, transA=1, transB=1, alpha=0.5)
case("ms_fused_matmul_batch", "FusedMatMul", {"a": f32(3, 2, 4), "b": f32(2, 4, 5)}, transBatchA=1)
for bits, k in ((4, 40), (8, 32)):
    blocks = (k + 15) // 16
    blob = 16 * bits // 8
    case(f"ms_matmul_{bits}bits", "MatMulNBits", {
        "a": f32(3, k), "b": rng.integers(0, 256, (5, blocks, blob)).astype(np.uint8), "s": np.abs(f32(5 * blocks)),
        "z": rng.integers(0, 256, 5 * ((blocks * bits + 7) // 8)).astype(np.uint8)},
         constants=("b", "s", "z"), K=k, N=5, bits=bits, block_size=16, rtol=1e-4, atol=1e-3)
case("ms_matmul_4bits_no_zero", "MatMulNBits", {
    "a": f32(3, 32), "b": rng.integers(0, 256, (5, 2, 8)).astype(np.uint8), "s": np.abs(f32(10))},
     constants=("b", "s"), K=32, N=5, bits=4, block_size=16, rtol=1e-4, atol=1e-3)

u8 = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)
scale = lambda v: np.array(v, np.float32)
zero = lambda v: np.array(v, np.uint8)
two = {"a": u8(2, 3, 4), "as": scale(0.02), "az": zero(120), "b": u8(3, 4), "bs": scale(0.05), "bz": zero(10),
       "cs": scale(0.1), "cz": zero(7)}
case("ms_qlinear_add", "QLinearAdd", two, atol=1)
case("ms_qlinear_mul", "QLinearMul", two, atol=1)
one = {"x": u8(2, 3, 4, 4), "xs": scale(0.02), "xz": zero(128), "ys": scale(0.004), "yz": zero(3)}
case("ms_qlinear_sigmoid", "QLinearSigmoid", one, atol=1)
case("ms_qlinear_leaky_relu", "QLinearLeakyRelu", one, atol=1, alpha=0.1)
case("ms_qlinear_global_average_pool", "QLinearGlobalAveragePool", one, atol=1, channels_last=0)
case("ms_qlinear_concat", "QLinearConcat", {
    "ys": scale(0.03), "yz": zero(5), "a": u8(2, 3), "as": scale(0.02), "az": zero(1), "b": u8(2, 2), "bs": scale(0.05),
    "bz": zero(9)}, atol=1, axis=1)
case("ms_matmul_integer_to_float", "MatMulIntegerToFloat", {
    "a": u8(3, 4), "b": u8(4, 5), "as": scale(0.02), "bs": scale(0.03), "az": zero(12), "bz": zero(100), "bias": f32(5)})
case("ms_dynamic_quantize_matmul", "DynamicQuantizeMatMul", {
    "a": f32(3, 4), "b": u8(4, 5), "bs": scale(0.03), "bz": zero(100)}, atol=1e-2)

angle = np.arange(16)[:, None] / 10 ** (np.arange(4)[None] / 2)
cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
case("ms_rotary_offset", "RotaryEmbedding", {"x": f32(2, 3, 16), "p": np.array([5], np.int64), "c": cos, "s": sin})
case("ms_rotary_ids_interleaved", "RotaryEmbedding", {
    "x": f32(2, 3, 16), "p": rng.integers(0, 16, (2, 3)).astype(np.int64), "c": cos, "s": sin}, interleaved=1)

mha = {"q": f32(2, 3, 8), "k": f32(2, 4, 8), "v": f32(2, 4, 8)}
case("ms_multi_head_attention", "MultiHeadAttention", mha, num_heads=2)
case("ms_multi_head_attention_bias_mask", "MultiHeadAttention", {
    **mha, "bias": f32(24), "mask": np.array([[1, 1, 0, 1], [1, 0, 1, 1]], np.int32)}, num_heads=2)
case("ms_multi_head_attention_past", "MultiHeadAttention", {
    "q": f32(2, 3, 8), "k": f32(2, 3, 8), "v": f32(2, 3, 8), "bias": None, "mask": None, "add": f32(1, 2, 3, 8),
    "pk": f32(2, 2, 5, 4), "pv": f32(2, 2, 5, 4)}, outputs=3, num_heads=2)
case("ms_attention", "Attention", {"x": f32(2, 3, 6), "w": f32(6, 24), "b": f32(24)}, num_heads=2)
case("ms_attention_mask_unidirectional", "Attention", {
    "x": f32(2, 3, 6), "w": f32(6, 24), "b": f32(24), "m": np.array([2, 3], np.int32)}, num_heads=2, unidirectional=1)


wide = np.arange(16)[:, None] / 10 ** (np.arange(8)[None] / 2)
cos, sin = np.cos(wide).astype(np.float32), np.sin(wide).astype(np.float32)


def gqa(batch, length, past, lengths, **extra):
    return {
        "q": f32(batch, length, 64), "k": f32(batch, length, 32), "v": f32(batch, length, 32),
        "pk": f32(batch, 2, past, 16) if past else None, "pv": f32(batch, 2, past, 16) if past else None,
        "n": np.array(lengths, np.int32), "t": np.array(max(lengths) + 1, np.int32), **extra}


heads = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3}
case("ms_gqa_prompt", "GroupQueryAttention", gqa(2, 5, 0, [4, 4]), **heads)
case("ms_gqa_decode", "GroupQueryAttention", gqa(1, 1, 6, [6]), **heads)
case("ms_gqa_rotary", "GroupQueryAttention", gqa(1, 1, 6, [6], c=cos, s=sin), do_rotary=1, **heads)
case("ms_gqa_prompt_rotary_window", "GroupQueryAttention", gqa(2, 5, 0, [4, 4], c=cos, s=sin), do_rotary=1,
     rotary_interleaved=1, local_window_size=3, softcap=20.0, **heads)

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for row in CASES:
        try:
            write(pathlib.Path(sys.argv[1]), *row)
        except Exception as e:
            print(row[0], str(e).splitlines()[0][:300])
