//! Recurrent layers: the steps over time as one function.
//!
//! What the input contributes to the gates of all steps is an argument, so that it can be one matrix product. Each
//! batch entry is a loop of steps of its own; a step reads the state that the step before has left in the results.

use super::gate::Activation;
use super::row::{attr, op, optional, tensor};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::relax::{
    ArgKind, AttrDef, AttrDefault, AttrKind, Dims, InferCx, Lower, LowerCx, OpDef, Pattern, StructInfo, TensorInfo,
};
use crate::te::{Axes, Te};
use crate::tir::{PrimFunc, Stmt};

const REVERSE: AttrDef = attr("reverse", AttrKind::Bool, AttrDefault::Bool(false));
const CLIP: AttrDef = attr("clip", AttrKind::Float, AttrDefault::Float(0.0));

pub(super) static OPS: &[OpDef] = &[
    op(
        "nn.gru",
        "gated recurrent unit: gates (length, batch, 3 * hidden) in the order update, reset, new, with all biases but \
         `recurrent_bias` (hidden,) of the new gate, which is for `linear_before_reset`; recurrence (hidden, 3 * hidden); \
         state (batch, hidden); entries stop after `lengths` (batch,) steps; `clip` above 0 limits what is activated. \
         Gives the states of all steps and the last one",
        &[
            tensor("gates"),
            tensor("recurrence"),
            tensor("state"),
            optional("recurrent_bias", ArgKind::Tensor),
            optional("lengths", ArgKind::Tensor),
        ],
        &[
            attr("activations", AttrKind::Str, AttrDefault::Str("sigmoid,tanh")),
            attr("linear_before_reset", AttrKind::Bool, AttrDefault::Bool(false)),
            CLIP,
            REVERSE,
        ],
        |cx| infer(cx, &GRU),
        Lower::Tir("gru", lower_gru),
        Pattern::Opaque,
    ),
    op(
        "nn.lstm",
        "long short-term memory: gates (length, batch, 4 * hidden) in the order input, output, forget, cell; \
         recurrence (hidden, 4 * hidden); state and cell (batch, hidden); peepholes (3 * hidden,) in the order input, \
         output, forget; otherwise as nn.gru. Gives the states of all steps, the last state and the last cell",
        &[
            tensor("gates"),
            tensor("recurrence"),
            tensor("state"),
            tensor("cell"),
            optional("peepholes", ArgKind::Tensor),
            optional("lengths", ArgKind::Tensor),
        ],
        &[
            attr("activations", AttrKind::Str, AttrDefault::Str("sigmoid,tanh,tanh")),
            attr("input_forget", AttrKind::Bool, AttrDefault::Bool(false)),
            CLIP,
            REVERSE,
        ],
        |cx| infer(cx, &LSTM),
        Lower::Tir("lstm", lower_lstm),
        Pattern::Opaque,
    ),
    op(
        "nn.rnn",
        "recurrent layer of one gate: gates (length, batch, hidden); otherwise as nn.gru",
        &[tensor("gates"), tensor("recurrence"), tensor("state"), optional("lengths", ArgKind::Tensor)],
        &[attr("activations", AttrKind::Str, AttrDefault::Str("tanh")), CLIP, REVERSE],
        |cx| infer(cx, &RNN),
        Lower::Tir("rnn", lower_rnn),
        Pattern::Opaque,
    ),
];

/// What the layers differ in for inference.
struct Kind {
    gates: i64,
    activations: usize,
    /// Number of arguments that are states.
    states: usize,
    lengths: usize,
}

const GRU: Kind = Kind { gates: 3, activations: 2, states: 1, lengths: 4 };
const LSTM: Kind = Kind { gates: 4, activations: 3, states: 2, lengths: 5 };
const RNN: Kind = Kind { gates: 1, activations: 1, states: 1, lengths: 3 };

fn infer(cx: &InferCx<'_>, kind: &Kind) -> Result<StructInfo, Diag> {
    cx.expect_dtype(0, "floating point", DType::is_float)?;
    for i in 1..kind.lengths {
        if cx.is_given(i) {
            cx.common_dtype(0, i)?;
        }
    }
    let names: Vec<&str> = cx.str("activations")?.split(',').collect();
    if names.len() != kind.activations || names.iter().any(|n| Activation::parse(n).is_none()) {
        let message = format!("attribute `activations` must name {} activations, it is {names:?}", kind.activations);
        return Err(cx
            .fail(message)
            .help(format!("they are {}, numbers behind them as affine:0.5:1", Activation::names())));
    }
    let gates = cx.tensor(0)?;
    cx.expect_rank(0, &gates, 3)?;
    let recurrence = cx.tensor(1)?;
    cx.expect_rank(1, &recurrence, 2)?;
    let (Some(g), Some(r)) = (gates.dims.known(), recurrence.dims.known()) else {
        return Ok(results(kind, &Dims::Rank(3), &Dims::Rank(2), gates.dtype));
    };
    let hidden = &r[0];
    let state = vec![g[1].clone(), hidden.clone()];
    let all = cx.analyzer.simplify(&(hidden * kind.gates));
    let vector = |n: i64| vec![cx.analyzer.simplify(&(hidden * n))];
    let mut wanted = vec![(0, vec![g[0].clone(), g[1].clone(), all.clone()]), (1, vec![hidden.clone(), all])];
    wanted.extend((0..kind.states).map(|s| (2 + s, state.clone())));
    if kind.lengths == 4 {
        wanted.push((3, vector(1)));
    }
    if kind.lengths == 5 {
        wanted.push((4, vector(3)));
    }
    wanted.push((kind.lengths, vec![g[1].clone()]));
    for (i, want) in wanted {
        if !cx.is_given(i) {
            continue;
        }
        let own = cx.tensor(i)?;
        cx.expect_rank(i, &own, want.len())?;
        let differs = |d: &[PrimExpr]| d.iter().zip(&want).any(|(a, b)| cx.differ(a, b));
        if own.dims.known().is_some_and(differs) {
            let (name, own) = (cx.arg_name(i), super::show::show_tensor(&own));
            return Err(cx.fail(format!("`{name}` is {own}, its shape must be {}", super::show::show_dims(&want))));
        }
    }
    let states = Dims::Known(vec![g[0].clone(), g[1].clone(), hidden.clone()]);
    Ok(results(kind, &states, &Dims::Known(state), gates.dtype))
}

fn results(kind: &Kind, all: &Dims, last: &Dims, dtype: Option<DType>) -> StructInfo {
    let of = |dims: &Dims| StructInfo::Tensor(TensorInfo { dims: dims.clone(), dtype });
    StructInfo::Tuple(std::iter::once(of(all)).chain((0..kind.states).map(|_| of(last))).collect())
}

/// What the lowerings share.
struct Layer<'a> {
    gates: &'a Buffer,
    recurrence: &'a Buffer,
    lengths: Option<&'a Buffer>,
    length: PrimExpr,
    hidden: PrimExpr,
    dtype: DType,
    activations: Vec<Activation>,
    clip: f64,
    reverse: bool,
}

impl<'a> Layer<'a> {
    fn of(cx: &'a LowerCx<'_>, kind: &Kind) -> Result<Layer<'a>, Diag> {
        let (gates, recurrence) = (cx.buffer(0)?, cx.buffer(1)?);
        Ok(Layer {
            gates,
            recurrence,
            lengths: cx.inputs.get(kind.lengths).and_then(|b| b.first()),
            length: gates.shape[0].clone(),
            hidden: recurrence.shape[0].clone(),
            dtype: gates.dtype,
            activations: cx
                .with_infer(|c| Ok(c.str("activations")?.split(',').filter_map(Activation::parse).collect()))?,
            clip: cx.call.attr("clip").as_float().unwrap_or(0.0),
            reverse: cx.call.attr("reverse").as_bool() == Some(true),
        })
    }

    fn number(&self, v: f64) -> PrimExpr {
        PrimExpr::float(self.dtype, v)
    }

    /// Activation `which` of a clipped value.
    fn activate(&self, which: usize, x: PrimExpr) -> PrimExpr {
        let x = if self.clip > 0.0 { x.min(self.number(self.clip)).max(self.number(-self.clip)) } else { x };
        match self.activations.get(which) {
            Some(activation) => activation.of(x, self.dtype),
            None => x,
        }
    }

    /// Whether entry `n` goes on at step `s`; `None` if all do.
    fn live(&self, n: &PrimExpr, s: &PrimExpr) -> Option<PrimExpr> {
        self.lengths.map(|_| s.clone().lt(self.own_length(n)))
    }

    fn own_length(&self, n: &PrimExpr) -> PrimExpr {
        match self.lengths {
            None => self.length.clone(),
            Some(b) => {
                let own = PrimExpr::load(b, vec![n.clone()]).cast(DType::I64);
                own.max(PrimExpr::i64(0)).min(self.length.clone())
            }
        }
    }

    /// The place in the sequence of step `s`.
    fn place(&self, n: &PrimExpr, s: &PrimExpr) -> PrimExpr {
        if !self.reverse {
            return s.clone();
        }
        let back = self.own_length(n) - 1 - s.clone();
        match self.live(n, s) {
            None => back,
            Some(live) => PrimExpr::if_then_else(live, back, s.clone()),
        }
    }

    /// A loop `0..extent`.
    fn each(&self, name: &str, extent: &PrimExpr, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
        let var = Var::new(name, DType::I64);
        let body = body(var.expr());
        Stmt::serial(var, extent.clone(), body)
    }

    /// `sums[n, j] += state[n, k] * recurrence[k, first + j]` for all k and for j below `width`.
    fn accumulate(&self, sums: &Buffer, state: &Buffer, n: &PrimExpr, first: &PrimExpr, width: &PrimExpr) -> Stmt {
        self.each("k", &self.hidden, |k| {
            self.each("j", width, |j| {
                let at = vec![n.clone(), j.clone()];
                let weight = PrimExpr::load(self.recurrence, vec![k.clone(), first + &j]);
                let product = PrimExpr::load(state, vec![n.clone(), k]) * weight;
                Stmt::store(sums, at.clone(), PrimExpr::load(sums, at) + product)
            })
        })
    }

    /// The function: `start` and then `step` of each place and step, for each entry.
    fn build(
        &self,
        cx: &LowerCx<'_>,
        name: &str,
        outputs: &[Buffer],
        scratch: &[Buffer],
        starts: &[&Buffer],
        step: impl Fn(&PrimExpr, &PrimExpr, &PrimExpr) -> Stmt,
    ) -> PrimFunc {
        let mut te = Te::new();
        let written = [outputs, scratch].concat();
        te.block(name, Axes::Ax, &self.gates.shape[1..2], &[], &written, |i, _| {
            let n = &i[0];
            let start = outputs[1..].iter().zip(starts).map(|(to, from)| {
                self.each("j", &self.hidden, |j| {
                    Stmt::store(to, vec![n.clone(), j.clone()], PrimExpr::load(from, vec![n.clone(), j]))
                })
            });
            let steps = self.each("s", &self.length, |s| step(n, &s, &self.place(n, &s)));
            (None, Stmt::seq(start.chain([steps])))
        });
        te.finish(cx.inputs, outputs, cx.call.span)
    }

    /// A value where an entry goes on at a step, else another.
    fn where_live(&self, n: &PrimExpr, s: &PrimExpr, value: PrimExpr, other: PrimExpr) -> PrimExpr {
        match self.live(n, s) {
            None => value,
            Some(live) => PrimExpr::if_then_else(live, value, other),
        }
    }

    /// Stores a new state, and the same in the states of all steps, or zero where an entry has ended.
    fn keep(
        &self,
        outputs: &[Buffer],
        (n, s, t, j): (&PrimExpr, &PrimExpr, &PrimExpr, &PrimExpr),
        new: PrimExpr,
    ) -> Stmt {
        let at = vec![n.clone(), j.clone()];
        let old = PrimExpr::load(&outputs[1], at.clone());
        let state = Stmt::store(&outputs[1], at.clone(), self.where_live(n, s, new, old.clone()));
        let shown = self.where_live(n, s, old, self.number(0.0));
        Stmt::seq([state, Stmt::store(&outputs[0], vec![t.clone(), n.clone(), j.clone()], shown)])
    }
}

fn outputs(cx: &LowerCx<'_>) -> Result<Vec<Buffer>, Diag> {
    let infos = cx.out.tensors().unwrap_or_default();
    let names = ["states", "last_state", "last_cell"];
    let of = |(name, t): (&str, &TensorInfo)| match (t.dims.known(), t.dtype) {
        (Some(d), Some(dtype)) => Ok(Buffer::new(name, d.to_vec(), dtype)),
        _ => Err(cx.fail("the shape and type of the result must be known")),
    };
    names.into_iter().zip(infos.iter()).map(|(n, t)| of((n, t))).collect()
}

/// A buffer of numbers for each entry.
fn scratch(layer: &Layer<'_>, name: &str, width: &PrimExpr) -> Buffer {
    Buffer::new(name, vec![layer.gates.shape[1].clone(), width.clone()], layer.dtype)
}

fn lower_rnn(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (layer, outputs, start) = (Layer::of(cx, &RNN)?, outputs(cx)?, cx.buffer(2)?);
    let width = layer.gates.shape[2].clone();
    let sums = scratch(&layer, "sums", &width);
    let zero = PrimExpr::i64(0);
    let func = layer.build(cx, "rnn", &outputs, std::slice::from_ref(&sums), &[start], |n, s, t| {
        let load = layer.each("j", &width, |j| {
            let gate = PrimExpr::load(layer.gates, vec![t.clone(), n.clone(), j.clone()]);
            Stmt::store(&sums, vec![n.clone(), j], gate)
        });
        let add = layer.accumulate(&sums, &outputs[1], n, &zero, &width);
        let update = layer.each("j", &layer.hidden, |j| {
            let new = layer.activate(0, PrimExpr::load(&sums, vec![n.clone(), j.clone()]));
            layer.keep(&outputs, (n, s, t, &j), new)
        });
        Stmt::seq([load, add, update])
    });
    Ok(func)
}

fn lower_lstm(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (layer, outputs) = (Layer::of(cx, &LSTM)?, outputs(cx)?);
    let (state, cell) = (cx.buffer(2)?, cx.buffer(3)?);
    let peepholes = cx.inputs.get(4).and_then(|b| b.first());
    let coupled = cx.call.attr("input_forget").as_bool() == Some(true);
    let width = layer.gates.shape[2].clone();
    let sums = scratch(&layer, "sums", &width);
    let zero = PrimExpr::i64(0);
    let func = layer.build(cx, "lstm", &outputs, std::slice::from_ref(&sums), &[state, cell], |n, s, t| {
        let load = layer.each("j", &width, |j| {
            let gate = PrimExpr::load(layer.gates, vec![t.clone(), n.clone(), j.clone()]);
            Stmt::store(&sums, vec![n.clone(), j], gate)
        });
        let add = layer.accumulate(&sums, &outputs[1], n, &zero, &width);
        let update = layer.each("j", &layer.hidden, |j| {
            let at = vec![n.clone(), j.clone()];
            let cell = PrimExpr::load(&outputs[2], at.clone());
            // Gate `g` of the sums; the cell is added through peephole `p`.
            let gate = |g: i64, p: Option<i64>, which: usize| {
                let sum = PrimExpr::load(&sums, vec![n.clone(), &layer.hidden * g + &j]);
                let through = peepholes.zip(p);
                layer.activate(
                    which,
                    match through {
                        None => sum,
                        Some((b, p)) => sum + PrimExpr::load(b, vec![&layer.hidden * p + &j]) * cell.clone(),
                    },
                )
            };
            let input = gate(0, Some(0), 0);
            let forget = if coupled { layer.number(1.0) - input.clone() } else { gate(2, Some(2), 0) };
            let new = forget * cell.clone() + input * gate(3, None, 1);
            let remember = Stmt::store(&outputs[2], at, layer.where_live(n, s, new, cell.clone()));
            // From here on the cell is the new one.
            let new = gate(1, Some(1), 0) * layer.activate_plain(2, cell.clone());
            Stmt::seq([remember, layer.keep(&outputs, (n, s, t, &j), new)])
        });
        Stmt::seq([load, add, update])
    });
    Ok(func)
}

impl Layer<'_> {
    /// Activation `which` of a value that is not clipped.
    fn activate_plain(&self, which: usize, x: PrimExpr) -> PrimExpr {
        let plain = Layer {
            clip: 0.0,
            activations: self.activations.clone(),
            length: self.length.clone(),
            hidden: self.hidden.clone(),
            ..*self
        };
        plain.activate(which, x)
    }
}

fn lower_gru(cx: &LowerCx<'_>) -> Result<PrimFunc, Diag> {
    let (layer, outputs, start) = (Layer::of(cx, &GRU)?, outputs(cx)?, cx.buffer(2)?);
    let bias = cx.inputs.get(3).and_then(|b| b.first());
    let linear = cx.call.attr("linear_before_reset").as_bool() == Some(true);
    let both = &layer.hidden * 2;
    let sums = scratch(&layer, "sums", &both);
    let inner = scratch(&layer, "inner", &layer.hidden);
    let reset = scratch(&layer, "reset_state", &layer.hidden);
    let zero = PrimExpr::i64(0);
    let buffers =
        if linear { vec![sums.clone(), inner.clone()] } else { vec![sums.clone(), inner.clone(), reset.clone()] };
    let func = layer.build(cx, "gru", &outputs, &buffers, &[start], |n, s, t| {
        let load = layer.each("j", &both, |j| {
            let gate = PrimExpr::load(layer.gates, vec![t.clone(), n.clone(), j.clone()]);
            Stmt::store(&sums, vec![n.clone(), j], gate)
        });
        let add = layer.accumulate(&sums, &outputs[1], n, &zero, &both);
        let begin = layer.each("j", &layer.hidden, |j| {
            let value = match bias {
                Some(b) => PrimExpr::load(b, vec![j.clone()]),
                None => layer.number(0.0),
            };
            Stmt::store(&inner, vec![n.clone(), j], value)
        });
        let gate =
            |g: i64, j: &PrimExpr| layer.activate(0, PrimExpr::load(&sums, vec![n.clone(), &layer.hidden * g + j]));
        let mut all = vec![load, add, begin];
        if !linear {
            all.push(layer.each("j", &layer.hidden, |j| {
                let at = vec![n.clone(), j.clone()];
                Stmt::store(&reset, at.clone(), gate(1, &j) * PrimExpr::load(&outputs[1], at))
            }));
        }
        let from = if linear { &outputs[1] } else { &reset };
        all.push(layer.accumulate(&inner, from, n, &both, &layer.hidden));
        all.push(layer.each("j", &layer.hidden, |j| {
            let at = vec![n.clone(), j.clone()];
            let inner = PrimExpr::load(&inner, at.clone());
            let inner = if linear { gate(1, &j) * inner } else { inner };
            let input = PrimExpr::load(layer.gates, vec![t.clone(), n.clone(), &both + &j]);
            let new = layer.activate(1, input + inner);
            let old = PrimExpr::load(&outputs[1], at);
            let update = gate(0, &j);
            layer.keep(&outputs, (n, s, t, &j), (layer.number(1.0) - update.clone()) * new + update * old)
        }));
        Stmt::seq(all)
    });
    Ok(func)
}
