"""Convolutions, pools, resizing, padding and other operators of images."""

import numpy as np

from .base import DTYPES, FLOATS, INTS, family, i64, ints, node_case


def window(r, spatial, pool=False, opset=99):
    """Attributes of a window over `spatial` extents, such that the output is not empty."""
    n = len(spatial)
    kernel = [r.randint(1, 3) for _ in range(n)]
    attrs = {}
    if r.maybe(0.6):
        attrs["strides"] = [r.randint(1, 3) for _ in range(n)]
    if r.maybe(0.4) and (not pool or opset >= 10):
        attrs["dilations"] = [r.randint(1, 2) for _ in range(n)]
    dilations = attrs.get("dilations", [1] * n)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    auto = r.pick([None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if auto:
        attrs["auto_pad"] = auto
    if auto in (None, "NOTSET"):
        pads = [r.randint(0, max(0, (k if not pool else k - 1))) for k in kernel * 2]
        for i in range(n):
            while spatial[i] + pads[i] + pads[n + i] < extents[i]:
                pads[i] += 1
                pads[n + i] += 1
        if any(pads) or r.maybe():
            attrs["pads"] = pads
        if pool and any(p >= k for p, k in zip(pads, kernel * 2)):
            return None
    elif auto == "VALID" and any(s < e for s, e in zip(spatial, extents)):
        return None
    return kernel, attrs


def some_window(r, pool=False, opset=99, low=1, high=3):
    while True:
        spatial = [r.pick([1, 2, 3, 4, 5, 6, 7]) for _ in range(r.randint(low, high))]
        found = window(r, spatial, pool, opset)
        if found:
            return spatial, *found


@family("conv", 4)
def conv(r):
    spatial, kernel, attrs = some_window(r)
    group = r.pick([1, 1, 2, 3])
    c, m = group * r.randint(1, 3), group * r.randint(1, 3)
    if r.maybe(0.2):
        group = c
        m = c * r.randint(1, 2)
    if group > 1 or r.maybe(0.3):
        attrs["group"] = group
    if r.maybe(0.6):
        attrs["kernel_shape"] = kernel
    dtype = r.pick(["f32", "f32", "f32", "f64", "f16"])
    x = r.data(dtype, [r.randint(1, 3), c, *spatial])
    w = r.data(dtype, [m, c // group, *kernel])
    return node_case(r, "Conv", [x, w, r.data(dtype, [m]) if r.maybe() else None], r.opset("Conv"), attrs)


@family("conv", 2)
def conv_integer(r):
    spatial, kernel, attrs = some_window(r, high=2)
    group = r.pick([1, 1, 2])
    c, m = group * r.randint(1, 3), group * r.randint(1, 3)
    attrs["group"] = group
    a, b = r.pick(["u8", "i8"]), r.pick(["u8", "i8"])
    x, w = r.data(a, [2, c, *spatial], low=-99, high=99), r.data(b, [m, c // group, *kernel], low=-99, high=99)
    zx, zw = r.data(a, (), low=-9, high=9), r.data(b, r.pick([(), (m,)]), low=-9, high=9)
    if r.maybe():
        return node_case(r, "ConvInteger", [x, w, zx if r.maybe(0.7) else None, zw if r.maybe() else None],
                         r.opset("ConvInteger"), attrs)
    y = r.pick(["u8", "i8"]) if a == "i8" else "u8"
    scale = lambda shape=(): np.asarray(r.data("f32", shape, low=0.01, high=0.5))
    bias = r.data("i32", [m], low=-999, high=999) if r.maybe() else None
    return node_case(r, "QLinearConv", [x, scale(), zx, w, scale(zw.shape), zw, scale() * 20, r.data(y, (), low=-9, high=9), bias],
                     r.opset("QLinearConv"), attrs, rtol=0, atol=1)


@family("conv", 3)
def conv_transpose(r):
    n = r.randint(1, 3)
    spatial = [r.randint(1, 5) for _ in range(n)]
    kernel = [r.randint(1, 3) for _ in range(n)]
    group = r.pick([1, 1, 2, 3])
    c, per = group * r.randint(1, 2), r.randint(1, 2)
    attrs = r.attrs(strides=[r.randint(1, 3) for _ in range(n)], dilations=[r.randint(1, 2) for _ in range(n)])
    strides, dilations = attrs.get("strides", [1] * n), attrs.get("dilations", [1] * n)
    if group > 1:
        attrs["group"] = group
    full = [s * (i - 1) + (k - 1) * d + 1 for s, i, k, d in zip(strides, spatial, kernel, dilations)]
    how = r.pick(["pads", "auto", "shape", "none"])
    if r.maybe(0.3):
        attrs["output_padding"] = [r.randint(0, max(0, max(s, d) - 1)) if s > 1 else 0 for s, d in zip(strides, dilations)]
    if how == "pads":
        attrs["pads"] = [r.randint(0, min(2, (f - 1) // 2)) for f in full * 2]
    elif how == "auto":
        attrs["auto_pad"] = r.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if attrs["auto_pad"] != "VALID" and any(k < s for k, s in zip(kernel, strides)):
            attrs["auto_pad"] = "VALID"
    elif how == "shape":
        attrs["output_shape"] = [r.randint(max(1, f - 2), f) for f in full]
        attrs.pop("output_padding", None)
        if r.maybe():
            attrs["auto_pad"] = r.pick(["SAME_UPPER", "SAME_LOWER", "NOTSET"])
    if r.maybe(0.6):
        attrs["kernel_shape"] = kernel
    x, w = r.data("f32", [r.randint(1, 2), c, *spatial]), r.data("f32", [c, per, *kernel])
    return node_case(r, "ConvTranspose", [x, w, r.data("f32", [per * group]) if r.maybe() else None], r.opset("ConvTranspose"), attrs)


@family("pool", 5)
def pool(r):
    op = r.pick(["AveragePool", "MaxPool", "MaxPool", "LpPool"])
    opset = r.opset(op)
    spatial, kernel, attrs = some_window(r, True, 19 if op == "AveragePool" and opset < 19 else opset)
    if op == "AveragePool" and opset < 19 or op == "LpPool" and opset < 18:
        attrs.pop("dilations", None)
    attrs["kernel_shape"] = kernel
    if opset >= (18 if op == "LpPool" else 10) and r.maybe(0.4):
        attrs["ceil_mode"] = r.randint(0, 1)
    if op == "AveragePool":
        attrs.update(r.attrs(count_include_pad=r.randint(0, 1)))
    if op == "LpPool":
        attrs.update(r.attrs(p=r.randint(1, 3)))
    dtype = "f32"
    if op == "MaxPool" and opset >= 12:
        dtype = r.pick(["f32", "f32", "i8", "u8", "f64"])
    outs = 1
    if op == "MaxPool" and opset >= 8 and r.maybe(0.3):
        outs = 2
        attrs.update(r.attrs(storage_order=r.randint(0, 1)))
    return node_case(r, op, [r.data(dtype, [r.randint(1, 2), r.randint(1, 3), *spatial])], opset, attrs, outputs=outs)


@family("pool")
def global_pool(r):
    op = r.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    x = r.data("f32", r.shape(rank=r.randint(3, 5), zero=0))
    return node_case(r, op, [x], r.opset(op), r.attrs(p=r.randint(1, 3)) if op == "GlobalLpPool" else {})


@family("pad", 3)
def pad(r):
    opset = r.opset("Pad")
    shape = r.shape(low=1, high=4, zero=0)
    mode = r.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if opset >= 19 else []))
    rank = len(shape)
    axes = r.axes(rank, low=1) if opset >= 18 and r.maybe(0.4) else None
    on = [a % rank for a in axes] if axes else list(range(rank))
    low, high = [], []
    for a in on:
        most = {"constant": 4, "edge": 4, "reflect": shape[a] - 1, "wrap": shape[a]}[mode]
        pair = [r.randint(0, most), r.randint(0, most)]
        if r.maybe(0.3):
            i = r.randrange(2)
            pair[i] = -r.randint(0, shape[a] - 1)
            pair[1 - i] = min(pair[1 - i], shape[a] + pair[i] - (1 if mode == "reflect" else 0)) if mode != "constant" else pair[1 - i]
            pair[1 - i] = max(pair[1 - i], 0)
        low.append(pair[0])
        high.append(pair[1])
    attrs = r.attrs(mode=mode) if mode == "constant" else {"mode": mode}
    dtype = r.pick((FLOATS + INTS + (["bool"] if opset >= 13 else [])) if opset >= 11 else ["f32", "f64"])
    x = r.data(dtype, shape)
    value = r.data(dtype, ())
    if opset < 11:
        attrs.update(pads=low + high, **(r.attrs(value=1.5) if mode == "constant" else {}))
        return node_case(r, "Pad", [x], opset, attrs)
    t = r.pick([np.int64, np.int32])
    return node_case(r, "Pad", [x, i64(*low, *high), value if mode == "constant" and r.maybe() else None,
                                np.array(axes, t) if axes else None], opset, attrs)


@family("resize", 4)
def resize(r):
    opset = r.opset("Resize", low=10)
    n = r.randint(1, 3)
    shape = [r.randint(1, 2) for _ in range(r.randint(0, 2))] + [r.randint(1, 6) for _ in range(n)]
    rank = len(shape)
    dtype = r.pick(["f32", "f32", "f32", "f64", "u8", "i8", "i32"]) if opset > 10 else "f32"
    mode = r.pick(["nearest", "linear", "cubic"] if opset > 10 else ["nearest", "linear"])
    attrs = r.attrs(mode=mode) if mode == "nearest" else {"mode": mode}
    x = r.data(dtype, shape, low=-9, high=9) if dtype[0] == "f" else r.data(dtype, shape, low=0, high=100)
    out = [d if i < rank - n else r.randint(1, 9) for i, d in enumerate(shape)]
    if mode == "cubic" and n != 2:
        attrs["mode"] = "linear"
    if mode == "linear" and n == 3 and rank < 5:
        attrs["mode"] = "nearest"
    if opset == 10:
        scales = np.array([o / d for o, d in zip(out, shape)], np.float32)
        return node_case(r, "Resize", [x, scales], 10, attrs)
    how = r.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
                 + (["half_pixel_symmetric"] if opset >= 19 else []))
    attrs.update(r.attrs(coordinate_transformation_mode=how))
    how = attrs.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        attrs.update(r.attrs(nearest_mode=r.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if attrs.get("mode") == "cubic":
        attrs.update(r.attrs(cubic_coeff_a=r.pick([-0.5, -0.75]), exclude_outside=r.randint(0, 1)))
    roi = None
    axes = list(range(rank))
    if opset >= 18 and r.maybe(0.4):
        axes = list(range(rank - n, rank))
        attrs["axes"] = [a - rank if r.maybe(0.3) else a for a in axes]
    if how == "tf_crop_and_resize":
        a = [round(r.uniform(0, 0.4), 2) if i >= rank - n else 0 for i in axes]
        b = [round(r.uniform(0.5, 1.2), 2) if i >= rank - n else 1 for i in axes]
        roi = np.array(a + b, np.float32)
        attrs.update(r.attrs(extrapolation_value=1.5))
    if opset >= 18 and attrs.get("mode") in ("linear", "cubic") and r.maybe(0.25) and how != "tf_crop_and_resize":
        attrs["antialias"] = 1
    if r.maybe():
        if opset >= 18 and r.maybe(0.4):
            attrs["keep_aspect_ratio_policy"] = r.pick(["stretch", "not_larger", "not_smaller"])
        if opset < 13:
            roi = np.zeros(0, np.float32) if roi is None else roi
        return node_case(r, "Resize", [x, roi, np.zeros(0, np.float32) if opset < 13 else None, ints(out[a] for a in axes)], opset, attrs,
                         atol=1e-3 if dtype[0] == "f" else 1, rtol=1e-3)
    scales = np.array([r.pick([0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.3, 3.0]) if i >= rank - n else 1.0 for i in axes], np.float32)
    scales = np.array([max(s, 1 / shape[i]) for s, i in zip(scales, axes)], np.float32)
    if opset < 13:
        roi = np.zeros(0, np.float32) if roi is None else roi
    return node_case(r, "Resize", [x, roi, scales], opset, attrs, atol=1e-3 if dtype[0] == "f" else 1, rtol=1e-3)


@family("image", 2)
def grid_sample(r):
    opset = r.opset("GridSample")
    n = 2 if opset < 20 else r.randint(2, 3)
    shape = [r.randint(1, 2), r.randint(1, 2)] + [r.randint(1, 5) for _ in range(n)]
    grid = r.data("f32", [shape[0]] + [r.randint(1, 4) for _ in range(n)] + [n], low=-1.4, high=1.4)
    modes = ["bilinear", "nearest", "bicubic"] if opset < 20 else ["linear", "nearest"] + (["cubic"] if n == 2 else [])
    return node_case(r, "GridSample", [r.data("f32", shape), grid], opset, r.attrs(
        mode=r.pick(modes), padding_mode=r.pick(["zeros", "border", "reflection"]), align_corners=r.randint(0, 1)), rtol=1e-3, atol=1e-3)


@family("image", 2)
def depth(r):
    op = r.pick(["DepthToSpace", "SpaceToDepth"])
    opset = r.opset(op)
    b = r.randint(1, 3)
    n, c, h, w = (r.randint(1, 3) for _ in range(4))
    if op == "SpaceToDepth":
        return node_case(r, op, [r.data("f32", [n, c, h * b, w * b])], opset, {"blocksize": b})
    attrs = {"blocksize": b, **(r.attrs(mode=r.pick(["DCR", "CRD"])) if opset >= 11 else {})}
    return node_case(r, op, [r.data("f32", [n, c * b * b, h, w])], opset, attrs)


@family("image")
def roi_align(r):
    opset = r.opset("RoiAlign", low=16)
    n, c, h, w, k = r.randint(1, 2), r.randint(1, 2), r.randint(3, 8), r.randint(3, 8), r.randint(1, 3)
    rois = np.sort(r.data("f32", [k, 2, 2], low=-1, high=9), axis=1).reshape(k, 4)
    return node_case(r, "RoiAlign", [r.data("f32", [n, c, h, w]), rois, r.np.integers(0, n, k)], opset, r.attrs(
        mode=r.pick(["avg", "max"]), output_height=r.randint(1, 3), output_width=r.randint(1, 3), sampling_ratio=r.randint(0, 3),
        spatial_scale=r.pick([0.5, 1.0]), coordinate_transformation_mode=r.pick(["half_pixel", "output_half_pixel"])), rtol=1e-3, atol=1e-3)


@family("image")
def affine_grid(r):
    n = r.randint(2, 3)
    b = r.randint(1, 3)
    size = i64(b, r.randint(1, 3), *(r.randint(2, 4) for _ in range(n)))
    return node_case(r, "AffineGrid", [r.data(r.pick(["f32", "f64"]), [b, n, n + 1]), size], r.opset("AffineGrid"), r.attrs(align_corners=r.randint(0, 1)))


@family("image")
def col2im(r):
    n = r.randint(1, 2)
    image = [r.randint(3, 6) for _ in range(n)]
    block = [r.randint(1, 3) for _ in range(n)]
    pads = [r.randint(0, 1) for _ in range(2 * n)]
    strides, dilations = [r.randint(1, 2) for _ in range(n)], [r.randint(1, 2) for _ in range(n)]
    while any(image[i] + pads[i] + pads[n + i] < dilations[i] * (block[i] - 1) + 1 for i in range(n)):
        dilations, block = [1] * n, [2] * n
    steps = [(image[i] + pads[i] + pads[n + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    c = r.randint(1, 2)
    x = r.data("f32", [r.randint(1, 2), c * int(np.prod(block)), int(np.prod(steps))])
    return node_case(r, "Col2Im", [x, ints(image), ints(block)], r.opset("Col2Im"), dict(pads=pads, strides=strides, dilations=dilations))


@family("image")
def center_crop(r):
    shape = r.shape(low=1, high=4, zero=0)
    rank = len(shape)
    axes = r.axes(rank, low=1)
    if r.maybe(0.3):
        axes = None
    k = rank if axes is None else len(axes)
    return node_case(r, "CenterCropPad", [r.data(r.pick(["f32", "i32", "u8"]), shape), ints(r.randint(1, 8) for _ in range(k))],
                     r.opset("CenterCropPad"), {} if axes is None else {"axes": axes})


@family("image")
def upsample(r):
    opset = r.pick([7, 9])
    n = 2
    shape = [r.randint(1, 2), r.randint(1, 2), r.randint(1, 4), r.randint(1, 4)]
    scales = [1.0, 1.0, r.pick([1.0, 1.5, 2.0, 3.0]), r.pick([1.0, 2.0, 2.5])]
    x, mode = r.data("f32", shape), r.pick(["nearest", "linear"])
    if opset == 7:
        return node_case(r, "Upsample", [x], 7, {"mode": mode, "scales": scales})
    return node_case(r, "Upsample", [x, np.array(scales, np.float32)], 9, {"mode": mode})


@family("image")
def suppress(r):
    b, n, c = r.randint(1, 2), r.randint(1, 9), r.randint(1, 3)
    boxes = r.data("f32", [b, n, 4], low=0, high=1)
    scores = r.data("f32", [b, c, n], low=0, high=1)
    f = lambda v: np.array(v, np.float32)
    shape = r.pick([(), (1,)])
    return node_case(r, "NonMaxSuppression", [
        boxes, scores, np.array(r.randint(0, 4)).reshape(shape), f(r.uniform(0, 0.8)).reshape(shape) if r.maybe(0.7) else None,
        f(r.uniform(0, 0.6)).reshape(shape) if r.maybe(0.7) else None], r.opset("NonMaxSuppression"), r.attrs(center_point_box=r.randint(0, 1)))


@family("image")
def deform(r):
    group, offsets = r.pick([1, 2]), r.pick([1, 2])
    c, m = 2 * group, group * r.randint(1, 2)
    if c % offsets:
        offsets = 1
    spatial = [r.randint(3, 5), r.randint(3, 5)]
    found = None
    while found is None or "auto_pad" in found[1]:
        found = window(r, spatial)
    kernel, attrs = found
    s, d, p = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1]), attrs.get("pads", [0] * 4)
    out = [(spatial[i] + p[i] + p[2 + i] - d[i] * (kernel[i] - 1) - 1) // s[i] + 1 for i in range(2)]
    k = kernel[0] * kernel[1]
    n = r.randint(1, 2)
    attrs.update(group=group, offset_group=offsets)
    return node_case(r, "DeformConv", [
        r.data("f32", [n, c, *spatial]), r.data("f32", [m, c // group, *kernel]), r.data("f32", [n, offsets * k * 2, *out], low=-1.5, high=1.5),
        r.data("f32", [m]) if r.maybe() else None, r.data("f32", [n, offsets * k, *out]) if r.maybe() else None],
        r.opset("DeformConv"), attrs, rtol=1e-3, atol=1e-3)
