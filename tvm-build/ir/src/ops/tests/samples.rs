//! One call or more of every row, with the shape it gives.

use crate::attrs::AttrValue;
use crate::dtype::DType;
use crate::ops::{all, lookup, make_call};
use crate::prim::PrimExpr;
use crate::relax::{Call, Leaf, Pattern, StructInfo, Var};
use crate::span::Span;

pub(super) fn of(name: &str, dims: &[i64], dtype: DType) -> Leaf {
    Leaf::Var(Var::new(name, StructInfo::tensor_fixed(dims, dtype)))
}

fn x(dims: &[i64]) -> Leaf {
    of("x", dims, DType::F32)
}

fn w(dims: &[i64]) -> Leaf {
    of("w", dims, DType::F32)
}

pub(super) fn shape(dims: &[i64]) -> Leaf {
    Leaf::Shape(dims.iter().map(|d| PrimExpr::i64(*d)).collect())
}

pub(super) fn call(name: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)]) -> Call {
    make_call(lookup(name).unwrap(), args, attrs, Span::NONE).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// No attributes.
pub(super) fn nothing() -> &'static [(&'static str, AttrValue)] {
    &[]
}

pub(super) fn ints(v: &[i64]) -> AttrValue {
    v.to_vec().into()
}

const F: DType = DType::F32;

/// Call, shape and type of the (first) result.
pub(super) fn samples() -> Vec<(Call, Vec<i64>, DType)> {
    let mut out: Vec<(Call, Vec<i64>, DType)> = Vec::new();
    let mut add = |name: &str, args: Vec<Leaf>, attrs: &[(&str, AttrValue)], dims: &[i64], dtype: DType| {
        out.push((call(name, args, attrs), dims.to_vec(), dtype));
    };
    elementwise(&mut add);
    shapes(&mut add);
    nn(&mut add);
    manipulate(&mut add);
    order(&mut add);
    attention(&mut add);
    norms(&mut add);
    recurrent(&mut add);
    transposed(&mut add);
    super::data::samples(&mut add);
    super::dynamic::samples(&mut add);
    super::signal::samples(&mut add);
    let shape = Leaf::Shape(vec![crate::prim::PrimExpr::i64(2)]);
    let args = vec![shape, Leaf::DType(F), Leaf::Prim(crate::prim::PrimExpr::i64(0)), Leaf::Str("global".into())];
    add("builtin.alloc_tensor", args, &[], &[2], F);
    out
}

pub(super) type Add<'a> = dyn FnMut(&str, Vec<Leaf>, &[(&str, AttrValue)], &[i64], DType) + 'a;

fn recurrent(add: &mut Add<'_>) {
    for (op, gates) in [("nn.rnn", 1), ("nn.gru", 3), ("nn.lstm", 4)] {
        let mut args = vec![x(&[7, 2, gates * 5]), w(&[5, gates * 5]), of("h", &[2, 5], F)];
        let lengths = of("lengths", &[2], DType::I32);
        match gates {
            4 => args.extend([of("c", &[2, 5], F), of("p", &[15], F), lengths]),
            3 => args.extend([of("b", &[5], F), lengths]),
            _ => {}
        }
        add(op, args, &[("reverse", true.into()), ("clip", 3.0.into())], &[7, 2, 5], F);
    }
    let pool: Vec<(&str, AttrValue)> =
        [("pool_size", [3, 3]), ("strides", [2, 1]), ("dilation", [1, 2]), ("padding", [1, 2]), ("windows", [3, 6])]
            .map(|(name, list)| (name, ints(&list)))
            .to_vec();
    add("nn.max_pool_with_indices", vec![x(&[2, 3, 5, 6])], &pool, &[2, 3, 3, 6], F);
    add("image.grid_sample", vec![x(&[2, 3, 4, 5]), w(&[2, 2, 6, 7])], &[], &[2, 3, 6, 7], F);
    let attrs = [("layout", "NCDHW".into()), ("padding_mode", "reflection".into()), ("method", "nearest".into())];
    add("image.grid_sample", vec![x(&[1, 3, 4, 5, 6]), w(&[1, 3, 2, 2, 2])], &attrs, &[1, 3, 2, 2, 2], F);
}

fn elementwise(add: &mut Add<'_>) {
    add("bitcast", vec![x(&[2, 3])], &[("dtype", AttrValue::DType(DType::I32))], &[2, 3], DType::I32);
    add("bitcast", vec![of("x", &[4], DType::BOOL)], &[("dtype", AttrValue::DType(DType::I8))], &[4], DType::I8);
    let float =
        ["add", "divide", "floor_divide", "floor_mod", "maximum", "minimum", "mod", "multiply", "power", "subtract"];
    for op in float {
        add(op, vec![x(&[2, 3]), w(&[3])], &[], &[2, 3], F);
        add(op, vec![of("x", &[2, 1], DType::I32), of("w", &[3], DType::I32)], &[], &[2, 3], DType::I32);
    }
    for op in ["atan2", "log_add_exp"] {
        add(op, vec![x(&[]), w(&[3])], &[], &[3], F);
    }
    for op in ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"] {
        add(op, vec![x(&[2, 1, 4]), w(&[3, 1])], &[], &[2, 3, 4], DType::BOOL);
    }
    for op in ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"] {
        add(op, vec![of("x", &[0, 3], DType::U8), of("w", &[1], DType::U8)], &[], &[0, 3], DType::U8);
    }
    for op in ["logical_and", "logical_or", "logical_xor"] {
        add(op, vec![of("x", &[5], DType::BOOL), of("w", &[5], DType::BOOL)], &[], &[5], DType::BOOL);
    }
    for d in all().filter(|d| d.pattern == Pattern::ElemWise && d.args.len() == 1 && d.attrs.is_empty()) {
        let (input, output) = match d.name {
            "bitwise_not" => (DType::I32, DType::I32),
            "logical_not" => (DType::BOOL, DType::BOOL),
            "isfinite" | "isinf" | "isnan" => (F, DType::BOOL),
            _ => (F, F),
        };
        add(d.name, vec![of("x", &[2, 3], input)], &[], &[2, 3], output);
    }
    for name in ["abs", "ceil", "negative", "nn.relu", "round", "sign", "square"] {
        add(name, vec![of("x", &[], DType::I8)], &[], &[], DType::I8);
    }
    add("isnan", vec![of("x", &[2], DType::F16)], &[], &[2], DType::BOOL);
    add("nn.gelu", vec![of("x", &[2], DType::F16)], &[], &[2], DType::F16);
    for to in [DType::I8, DType::BOOL, DType::F16, F] {
        add("astype", vec![x(&[2, 3])], &[("dtype", to.into())], &[2, 3], to);
    }
    let limits = || vec![x(&[2, 3]), Leaf::Prim(PrimExpr::i64(0)), Leaf::Prim(PrimExpr::float(F, 6.0))];
    add("clip", limits(), &[], &[2, 3], F);
    for name in ["nn.leakyrelu", "nn.softplus", "nn.softmax", "nn.log_softmax"] {
        add(name, vec![x(&[2, 3, 4])], &[], &[2, 3, 4], F);
    }
    add("nn.softmax", vec![x(&[2, 3, 4])], &[("axis", 1.into())], &[2, 3, 4], F);
    add("nn.dropout", vec![x(&[2, 3])], &[], &[2, 3], F);
    add("nn.prelu", vec![x(&[2, 3, 4]), w(&[3])], &[], &[2, 3, 4], F);
    let cond = || of("c", &[2, 1], DType::BOOL);
    add("where", vec![cond(), x(&[3]), w(&[])], &[], &[2, 3], F);
    for name in ["sum", "mean", "max", "min", "prod", "std", "variance"] {
        add(name, vec![x(&[2, 3, 4])], &[], &[], F);
        add(name, vec![x(&[2, 3, 4])], &[("axis", ints(&[-1, 0])), ("keepdims", true.into())], &[1, 3, 1], F);
        add(name, vec![x(&[2, 0, 4])], &[("axis", ints(&[1]))], &[2, 4], F);
        add(name, vec![x(&[2, 3])], &[("axis", ints(&[]))], &[2, 3], F);
    }
    for name in ["argmax", "argmin"] {
        add(name, vec![x(&[2, 3])], &[("axis", 1.into())], &[2], DType::I64);
        add(name, vec![x(&[2, 3])], &[("keepdims", true.into())], &[1, 1], DType::I64);
    }
}

fn shapes(add: &mut Add<'_>) {
    add("permute_dims", vec![x(&[2, 3, 4])], &[], &[4, 3, 2], F);
    add("permute_dims", vec![x(&[2, 3, 4])], &[("axes", ints(&[0, -1, 1]))], &[2, 4, 3], F);
    add("reshape", vec![x(&[2, 3, 4]), shape(&[0, -1])], &[], &[2, 12], F);
    add("reshape", vec![x(&[2, 0]), shape(&[0, 7])], &[], &[0, 7], F);
    add("flatten", vec![x(&[2, 3])], &[], &[6], F);
    add("flatten", vec![x(&[])], &[], &[1], F);
    add("nn.batch_flatten", vec![x(&[2, 3, 4])], &[], &[2, 12], F);
    add("expand_dims", vec![x(&[2, 3])], &[("axis", ints(&[0, -1]))], &[1, 2, 3, 1], F);
    add("squeeze", vec![x(&[1, 2, 1])], &[], &[2], F);
    add("squeeze", vec![x(&[1, 2, 1])], &[("axis", ints(&[-1]))], &[1, 2], F);
    add("matmul", vec![x(&[5, 1, 2, 3]), w(&[4, 3, 7])], &[], &[5, 4, 2, 7], F);
    add("matmul", vec![x(&[3]), w(&[4, 3, 7])], &[], &[4, 7], F);
    add("matmul", vec![x(&[4, 2, 3]), w(&[3])], &[("out_dtype", DType::F64.into())], &[4, 2], DType::F64);
    add("outer", vec![x(&[3]), w(&[5])], nothing(), &[3, 5], F);
    add("matmul", vec![x(&[3]), w(&[3])], &[], &[], F);
}

fn index(name: &str, dims: &[i64]) -> Leaf {
    of(name, dims, DType::I64)
}

pub(super) fn prims(v: &[i64]) -> Leaf {
    Leaf::Tuple(v.iter().map(|i| Leaf::Prim(PrimExpr::i64(*i))).collect())
}

pub(super) fn prim(v: i64) -> Leaf {
    Leaf::Prim(PrimExpr::i64(v))
}

fn manipulate(add: &mut Add<'_>) {
    add("concat", vec![Leaf::Tuple(vec![x(&[2, 3]), w(&[2, 0]), w(&[2, 4])])], &[("axis", 1.into())], &[2, 7], F);
    add("stack", vec![Leaf::Tuple(vec![x(&[2, 3]), w(&[2, 3])])], &[("axis", (-1).into())], &[2, 3, 2], F);
    add("split", vec![x(&[2, 6])], &[("indices_or_sections", 3.into()), ("axis", 1.into())], &[2, 2], F);
    add("split", vec![x(&[6])], &[("indices_or_sections", ints(&[4, 9]))], &[4], F);
    add("broadcast_to", vec![x(&[3, 1]), shape(&[2, 3, 4])], &[], &[2, 3, 4], F);
    add("flip", vec![x(&[2, 3])], &[("axis", (-1).into())], &[2, 3], F);
    add("repeat", vec![x(&[2, 3])], &[("repeats", 2.into())], &[12], F);
    add("repeat", vec![x(&[2, 3])], &[("repeats", 0.into()), ("axis", 1.into())], &[2, 0], F);
    add("tile", vec![x(&[2, 3])], &[("repeats", ints(&[2, 1, 2]))], &[2, 2, 6], F);
    add("take", vec![x(&[2, 3, 4]), index("i", &[5, 6])], &[("axis", 1.into())], &[2, 5, 6, 4], F);
    for mode in ["fast", "wrap", "clip"] {
        add("take", vec![x(&[7]), prim(3)], &[("mode", mode.into())], &[], F);
    }
    add("gather_elements", vec![x(&[3, 4]), index("i", &[2, 4])], &[], &[2, 4], F);
    add("gather_nd", vec![x(&[2, 3, 4]), index("i", &[5, 2])], &[], &[5, 4], F);
    add("gather_nd", vec![x(&[2, 3, 4]), index("i", &[2, 1])], &[("batch_dims", 1.into())], &[2, 4], F);
    add(
        "one_hot",
        vec![index("i", &[2, 3]), Leaf::Prim(PrimExpr::float(F, 1.0)), Leaf::Prim(PrimExpr::float(F, 0.0))],
        &[("depth", 4.into()), ("axis", 0.into())],
        &[4, 2, 3],
        F,
    );
    for mode in ["update", "add", "mul", "min", "max", "mean"] {
        let args = vec![x(&[3, 4]), index("i", &[2, 4]), w(&[2, 4])];
        add("scatter_elements", args, &[("reduction", mode.into())], &[3, 4], F);
    }
    add("scatter_nd", vec![x(&[3, 4]), index("i", &[5, 1]), w(&[5, 4])], &[], &[3, 4], F);
    for name in ["cumsum", "cumprod"] {
        add(name, vec![x(&[2, 3])], &[("axis", 1.into()), ("exclusive", true.into())], &[2, 3], F);
        add(name, vec![x(&[2, 3])], &[("dtype", DType::F64.into())], &[6], DType::F64);
    }
    add("strided_slice", vec![x(&[2, 9]), prims(&[1]), prims(&[-8]), prims(&[i64::MAX]), prims(&[3])], &[], &[2, 3], F);
    add("strided_slice", vec![x(&[9]), prims(&[0]), prims(&[-1]), prims(&[i64::MIN]), prims(&[-2])], &[], &[5], F);
    add("strided_slice", vec![x(&[9]), prims(&[0]), prims(&[5]), prims(&[5])], &[], &[0], F);
    for mode in ["constant", "reflect", "replicate", "circular"] {
        add("nn.pad", vec![x(&[3, 4])], &[("pad_width", ints(&[0, 0, 2, 1])), ("pad_mode", mode.into())], &[3, 7], F);
    }
    add("full", vec![shape(&[2, 3]), Leaf::Prim(PrimExpr::float(F, 2.0))], &[], &[2, 3], F);
    add("full_like", vec![x(&[2, 3]), prim(2)], &[("dtype", DType::I8.into())], &[2, 3], DType::I8);
    for name in ["zeros", "ones"] {
        add(name, vec![shape(&[])], &[("dtype", DType::BOOL.into())], &[], DType::BOOL);
        add(&format!("{name}_like"), vec![x(&[2])], &[], &[2], F);
    }
    add("arange", vec![prim(5)], &[], &[5], DType::I64);
    add("arange", vec![prim(5), prim(0), prim(-2)], &[("dtype", F.into())], &[3], F);
    add("eye", vec![prim(3), prim(4), prim(-1)], &[], &[3, 4], F);
    add("tril", vec![x(&[2, 3, 4])], &[], &[2, 3, 4], F);
    add("triu", vec![x(&[3, 4]), prim(1)], &[], &[3, 4], F);
    add("linear", vec![x(&[2, 3]), w(&[4, 3]), of("b", &[4], F)], &[], &[2, 4], F);
    add("linear", vec![x(&[5, 2, 3]), w(&[4, 3])], &[], &[5, 2, 4], F);
    add("shape_to_tensor", vec![shape(&[2, 3])], &[], &[2], DType::I64);
}

fn order(add: &mut Add<'_>) {
    add("sort", vec![x(&[3, 5])], &[("descending", true.into())], &[3, 5], F);
    add("argsort", vec![x(&[3, 5])], &[("axis", 0.into())], &[3, 5], DType::I32);
    add("topk", vec![x(&[3, 5])], &[("k", 2.into())], &[3, 2], F);
    add("topk", vec![x(&[3, 5])], &[("ret_type", "indices".into()), ("dtype", DType::I64.into())], &[3, 1], DType::I64);
}

fn attention(add: &mut Add<'_>) {
    let qkv = || vec![of("q", &[2, 3, 4, 5], F), of("k", &[2, 6, 2, 5], F), of("v", &[2, 6, 2, 7], F)];
    add("nn.attention", qkv(), &[("causal_mask", "TopLeft".into())], &[2, 3, 4, 7], F);
    let biased = || qkv().into_iter().chain([of("b", &[4, 1, 6], F)]).collect();
    add("nn.attention_bias", biased(), &[("scale", 0.5.into())], &[2, 3, 4, 7], F);
    let last = [("causal_mask", "BottomRight".into()), ("window_size", 2.into())];
    add("nn.attention_bias", biased(), &last, &[2, 3, 4, 7], F);
}

fn norms(add: &mut Add<'_>) {
    let c = |n: &str, d: i64| of(n, &[d], F);
    add("nn.layer_norm", vec![x(&[2, 3, 4]), c("g", 4), c("b", 4)], &[("axes", ints(&[-1]))], &[2, 3, 4], F);
    let two = vec![x(&[2, 3, 4]), of("g", &[3, 4], F), of("b", &[3, 4], F)];
    add("nn.layer_norm", two, &[("axes", ints(&[1, 2])), ("center", false.into())], &[2, 3, 4], F);
    let half = |n: &str, d: &[i64]| of(n, d, DType::F16);
    add(
        "nn.layer_norm",
        vec![half("x", &[2, 6]), half("g", &[6]), half("b", &[6])],
        &[("axes", ints(&[1]))],
        &[2, 6],
        DType::F16,
    );
    add("nn.rms_norm", vec![half("x", &[2, 6]), half("g", &[6])], &[("axes", ints(&[1]))], &[2, 6], DType::F16);
    let channel = [("channel_axis", AttrValue::from(1)), ("axes", ints(&[2, 3]))];
    add("nn.instance_norm", vec![x(&[2, 4, 5, 6]), c("g", 4), c("b", 4)], &channel, &[2, 4, 5, 6], F);
    let group = [("num_groups", AttrValue::from(2)), channel[0].clone(), channel[1].clone()];
    add("nn.group_norm", vec![x(&[2, 4, 5, 6]), c("g", 4), c("b", 4)], &group, &[2, 4, 5, 6], F);
}

fn transposed(add: &mut Add<'_>) {
    add(
        "nn.conv1d_transpose",
        vec![x(&[2, 4, 5]), w(&[4, 2, 3])],
        &[("strides", 2.into()), ("padding", 1.into())],
        &[2, 2, 9],
        F,
    );
    let attrs = [
        ("strides", ints(&[2, 1])),
        ("padding", ints(&[1, 0, 1, 2])),
        ("output_padding", ints(&[1, 0])),
        ("groups", 2.into()),
    ];
    add("nn.conv2d_transpose", vec![x(&[2, 4, 5, 6]), w(&[4, 2, 3, 3])], &attrs, &[2, 4, 10, 6], F);
    add(
        "nn.conv3d_transpose",
        vec![x(&[1, 1, 2, 2, 2]), w(&[1, 1, 2, 2, 2])],
        &[("dilation", 2.into())],
        &[1, 1, 4, 4, 4],
        F,
    );
    for (op, dims) in [
        ("nn.adaptive_avg_pool1d", vec![2, 3, 7]),
        ("nn.adaptive_avg_pool2d", vec![2, 3, 6, 7]),
        ("nn.adaptive_avg_pool3d", vec![2, 3, 6, 7, 8]),
    ] {
        let out: Vec<i64> = dims.iter().enumerate().map(|(i, d)| if i < 2 { *d } else { 3 }).collect();
        add(op, vec![x(&dims)], &[("output_size", 3.into())], &out, F);
        add(op, vec![x(&dims)], &[], &dims, F);
    }
}

fn nn(add: &mut Add<'_>) {
    add("nn.conv1d", vec![x(&[2, 3, 9]), w(&[4, 3, 3])], &[("padding", ints(&[1]))], &[2, 4, 9], F);
    add(
        "nn.conv2d",
        vec![x(&[1, 4, 7, 9]), w(&[6, 2, 3, 2])],
        &[("groups", 2.into()), ("strides", ints(&[2, 1]))],
        &[1, 6, 3, 8],
        F,
    );
    let nhwc = [("data_layout", "NHWC".into()), ("kernel_layout", "HWIO".into()), ("padding", ints(&[1, 0, 2, 1]))];
    add("nn.conv2d", vec![x(&[1, 7, 9, 4]), w(&[3, 3, 4, 5])], &nhwc, &[1, 8, 8, 5], F);
    add("nn.conv3d", vec![x(&[1, 2, 4, 5, 6]), w(&[3, 2, 2, 2, 2])], &[("dilation", ints(&[2]))], &[1, 3, 2, 3, 4], F);
    for op in ["nn.max_pool1d", "nn.avg_pool1d"] {
        add(op, vec![x(&[2, 3, 9])], &[("pool_size", ints(&[3]))], &[2, 3, 7], F);
    }
    for op in ["nn.max_pool2d", "nn.avg_pool2d"] {
        let attrs =
            [("pool_size", ints(&[3])), ("strides", ints(&[2])), ("padding", ints(&[1])), ("ceil_mode", true.into())];
        add(op, vec![x(&[1, 2, 8, 5])], &attrs, &[1, 2, 5, 3], F);
        add(op, vec![x(&[1, 8, 5, 2])], &[("layout", "NHWC".into())], &[1, 8, 5, 2], F);
    }
    for op in ["nn.max_pool3d", "nn.avg_pool3d"] {
        add(op, vec![x(&[1, 2, 4, 5, 6])], &[("pool_size", ints(&[2]))], &[1, 2, 3, 4, 5], F);
    }
    let c = |n: &str| of(n, &[3], F);
    let stats = || vec![x(&[2, 3, 4]), c("gamma"), c("beta"), c("mean"), c("var")];
    add("nn.batch_norm", stats(), &[("axis", 1.into()), ("training", false.into())], &[2, 3, 4], F);
    add("nn.batch_norm", stats(), &[("axis", 1.into())], &[2, 3, 4], F);
}
