//! Recurrent layers.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::Leaf;

use super::Row;
use super::slice::along;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] =
    &[("GRU", 7, |cx| layer(cx, &GRU)), ("LSTM", 7, |cx| layer(cx, &LSTM)), ("RNN", 7, |cx| layer(cx, &RNN))];

/// What the operators differ in.
struct Kind {
    op: &'static str,
    gates: i64,
    /// The activations of one direction, if none are named.
    activations: &'static [&'static str],
}

const GRU: Kind = Kind { op: "nn.gru", gates: 3, activations: &["Sigmoid", "Tanh"] };
const LSTM: Kind = Kind { op: "nn.lstm", gates: 4, activations: &["Sigmoid", "Tanh", "Tanh"] };
const RNN: Kind = Kind { op: "nn.rnn", gates: 1, activations: &["Tanh"] };

/// The inputs, in the type that is computed in.
struct Inputs {
    /// Length, batch, input.
    x: Value,
    weight: Value,
    recurrence: Value,
    bias: Option<Value>,
    lengths: Option<Value>,
    /// State, and cell of an LSTM: each direction, batch, hidden.
    states: Vec<Option<Value>>,
    peepholes: Option<Value>,
}

fn permuted(cx: &mut OpCx<'_>, x: &Value, axes: &[i64]) -> Result<Value, Fail> {
    cx.call("permute_dims", vec![x.clone()], vec![("axes", axes.to_vec().into())])
}

fn inputs(cx: &mut OpCx<'_>, kind: &Kind, compute: DType, batch_first: bool) -> Result<Inputs, Fail> {
    let lstm = kind.op == "nn.lstm";
    let given = [0, 1, 2].map(|i| cx.input(i, ["X", "W", "R"][i]));
    let lengths = cx.optional(4);
    let mut all = Vec::new();
    for value in given {
        all.push(Some(value?));
    }
    all.extend([cx.optional(3), cx.optional(5)]);
    if lstm {
        all.extend([cx.optional(6), cx.optional(7)]);
    }
    let mut cast = |value: Option<Value>| match value {
        Some(v) if cx.dtype(&v, "an input")? != compute => {
            cx.call("astype", vec![v], vec![("dtype", AttrValue::DType(compute))]).map(Some)
        }
        other => Ok(other),
    };
    let mut all = all.into_iter().map(&mut cast).collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut next = || all.next().flatten();
    let (x, weight, recurrence, bias) = (next(), next(), next(), next());
    let mut states = vec![next()];
    if lstm {
        states.push(next());
    }
    let peepholes = next();
    let mut x = x.ok_or("X is missing")?;
    if batch_first {
        x = permuted(cx, &x, &[1, 0, 2])?;
        for state in states.iter_mut().flatten() {
            *state = permuted(cx, state, &[1, 0, 2])?;
        }
    }
    let (weight, recurrence) = (weight.ok_or("W is missing")?, recurrence.ok_or("R is missing")?);
    Ok(Inputs { x, weight, recurrence, bias, lengths, states, peepholes })
}

/// The part of a tensor that belongs to direction `d`.
fn of_direction(cx: &mut OpCx<'_>, x: &Value, d: i64) -> Result<Value, Fail> {
    let part = along(cx, x, 0, d, d + 1)?;
    cx.call("squeeze", vec![part], vec![("axis", vec![0].into())])
}

/// Activations: ONNX's name, the op's, how many of alpha and beta it takes.
const ACTIVATIONS: &[(&str, &str, usize)] = &[
    ("affine", "affine", 2),
    ("elu", "elu", 1),
    ("hardsigmoid", "hard_sigmoid", 2),
    ("leakyrelu", "leaky_relu", 1),
    ("relu", "relu", 0),
    ("scaledtanh", "scaled_tanh", 2),
    ("sigmoid", "sigmoid", 0),
    ("softplus", "softplus", 0),
    ("softsign", "softsign", 0),
    ("tanh", "tanh", 0),
    ("thresholdedrelu", "thresholded_relu", 1),
];

/// The activations of each direction, as the op names them. Those that take numbers take the next of each list; where a
/// list has ended they are the activation's own.
fn activations(cx: &OpCx<'_>, kind: &Kind, directions: usize) -> Result<Vec<String>, Fail> {
    let given = cx.node.strings("activations")?;
    let (alpha, beta) = (cx.node.floats("activation_alpha")?, cx.node.floats("activation_beta")?);
    let (mut alpha, mut beta) = (alpha.unwrap_or(&[]).iter(), beta.unwrap_or(&[]).iter());
    let names = given.unwrap_or_else(|| kind.activations.repeat(directions));
    if names.len() != kind.activations.len() * directions {
        return Err(format!("attribute 'activations' must name {}", kind.activations.len() * directions).into());
    }
    let mut out = Vec::new();
    for name in names {
        let lower = name.to_ascii_lowercase();
        let Some((_, own, count)) = ACTIVATIONS.iter().find(|row| row.0 == lower) else {
            return Err(format!("attribute 'activations': there is no {name}").into());
        };
        let mut text = (*own).to_owned();
        let alpha = if *count > 0 { alpha.next() } else { None };
        let beta = if *count > 1 { beta.next() } else { None };
        match (alpha, beta) {
            (None, Some(_)) => return Err(format!("'activation_alpha' has no number for {name}").into()),
            (None, None) if lower == "affine" || lower == "scaledtanh" => {
                return Err(format!("'activation_alpha' and 'activation_beta' have no numbers for {name}").into());
            }
            _ => {}
        }
        for number in alpha.into_iter().chain(beta) {
            text.push_str(&format!(":{number}"));
        }
        out.push(text);
    }
    Ok(out.chunks(kind.activations.len()).map(|c| c.join(",")).collect())
}

fn layer(cx: &mut OpCx<'_>, kind: &Kind) -> Outputs {
    let batch_first = cx.node.flag_or("layout", false)?;
    let directions: &[bool] = match cx.node.string_or("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(format!("attribute 'direction' cannot be '{other}'").into()),
    };
    let x = cx.input(0, "X")?;
    let dtype = cx.dtype(&x, "X")?;
    let compute = if dtype.bits < 32 { DType::F32 } else { dtype };
    let inputs = inputs(cx, kind, compute, batch_first)?;
    let activations = activations(cx, kind, directions.len())?;
    let clip = f64::from(cx.node.float_or("clip", 0.0)?);
    let given_hidden = cx.node.int("hidden_size")?;
    let hidden = match cx.dims(&inputs.recurrence, "R")?.last().and_then(PrimExpr::as_int) {
        Some(hidden) if hidden > 0 => hidden,
        _ => return Err("the number of hidden elements must be fixed".into()),
    };
    if given_hidden.is_some_and(|given| given != hidden) {
        return Err(format!("attribute 'hidden_size' is not the {hidden} of R").into());
    }
    let mut attrs = vec![("clip", AttrValue::Float(clip))];
    let mut linear = false;
    match kind.op {
        "nn.lstm" => attrs.push(("input_forget", cx.node.flag_or("input_forget", false)?.into())),
        "nn.gru" => {
            linear = cx.node.flag_or("linear_before_reset", false)?;
            attrs.push(("linear_before_reset", linear.into()));
        }
        _ => {}
    }
    let dims = cx.dims(&inputs.x, "X")?;
    let [_, batch, _] = &dims[..] else { return Err(format!("X must have 3 axes, not {dims:?}").into()) };
    let mut results: Vec<Vec<Value>> = Vec::new();
    for (d, (&reverse, activations)) in (0i64..).zip(directions.iter().zip(activations)) {
        let weight = of_direction(cx, &inputs.weight, d)?;
        let weight = permuted(cx, &weight, &[1, 0])?;
        let recurrence = of_direction(cx, &inputs.recurrence, d)?;
        let recurrence = permuted(cx, &recurrence, &[1, 0])?;
        let mut gates = cx.matmul(&inputs.x, &weight)?;
        let mut extra = None;
        if let Some(bias) = &inputs.bias {
            let bias = of_direction(cx, bias, d)?;
            let width = kind.gates * hidden;
            let (own, mut other) = (along(cx, &bias, 0, 0, width)?, along(cx, &bias, 0, width, 2 * width)?);
            if linear {
                // The bias of the new gate is not added before the reset.
                extra = Some(along(cx, &other, 0, 2 * hidden, width)?);
                let first = along(cx, &other, 0, 0, 2 * hidden)?;
                other = cx.call("nn.pad", vec![first], vec![("pad_width", vec![0, hidden].into())])?;
            }
            let sum = cx.apply("add", &[&own, &other])?;
            gates = cx.apply("add", &[&gates, &sum])?;
        }
        let mut args = vec![gates, recurrence];
        for state in &inputs.states {
            args.push(match state {
                Some(state) => of_direction(cx, state, d)?,
                None => {
                    let shape = Value::shape(vec![batch.clone(), PrimExpr::i64(hidden)]);
                    cx.call("zeros", vec![shape], vec![("dtype", AttrValue::DType(compute))])?
                }
            });
        }
        let absent = || Value::Leaf(Leaf::Absent);
        match kind.op {
            "nn.lstm" => args.push(match &inputs.peepholes {
                Some(p) => of_direction(cx, p, d)?,
                None => absent(),
            }),
            "nn.gru" => args.push(extra.unwrap_or_else(absent)),
            _ => {}
        }
        args.push(inputs.lengths.clone().unwrap_or_else(absent));
        let mut attrs = attrs.clone();
        attrs.extend([("reverse", reverse.into()), ("activations", activations.as_str().into())]);
        let all = cx.call(kind.op, args, attrs)?;
        results.push(cx.emitter.fields(&all)?);
    }
    // The states of all steps are length, batch, hidden; the last states are batch, hidden.
    let mut outputs = Vec::new();
    for i in 0..results.first().map_or(0, Vec::len) {
        let of_each = results.iter().filter_map(|r| r.get(i).cloned()).collect();
        let axis = match (i, batch_first) {
            (0, false) => 1,
            (0, true) => 2,
            (_, false) => 0,
            (_, true) => 1,
        };
        let mut out = cx.call("stack", vec![Value::Tuple(of_each)], vec![("axis", axis.into())])?;
        if i == 0 && batch_first {
            out = permuted(cx, &out, &[1, 0, 2, 3])?;
        }
        if dtype != compute {
            out = cx.call("astype", vec![out], vec![("dtype", AttrValue::DType(dtype))])?;
        }
        outputs.push(out);
    }
    Ok(outputs)
}
