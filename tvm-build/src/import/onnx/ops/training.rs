//! Steps of optimizers, of the operator set ai.onnx.preview.training.

use tvm_ir::dtype::DType;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::Value;

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Adagrad", 1, adagrad), ("Adam", 1, adam), ("Momentum", 1, momentum)];

/// The inputs: learning rate, count of updates, and `kinds` lists of tensors of one length, as many of each.
struct Step {
    rate: Value,
    count: Value,
    lists: Vec<Vec<Value>>,
}

fn read(cx: &mut OpCx<'_>, kinds: usize) -> Result<Step, Fail> {
    let rest = cx.node.input_count().saturating_sub(2);
    if rest == 0 || rest % kinds != 0 {
        return Err(format!("{rest} tensors are not the same number of {kinds} kinds").into());
    }
    let (rate, count) = (cx.input(0, "R")?, cx.input(1, "T")?);
    let (rate, count) = (cx.reshape(&rate, Vec::new())?, cx.reshape(&count, Vec::new())?);
    let each = rest / kinds;
    let list = |kind: usize| (0..each).map(|i| cx.input(2 + kind * each + i, "a tensor")).collect();
    let lists = (0..kinds).map(list).collect::<Result<_, _>>()?;
    Ok(Step { rate, count, lists })
}

/// Arithmetic on tensors and numbers of one type.
struct Sums {
    dtype: DType,
}

impl Sums {
    fn number(&self, cx: &OpCx<'_>, v: f32) -> Result<Value, Fail> {
        cx.scalar(f64::from(v), self.dtype)
    }

    /// `a + k b`
    fn add_scaled(&self, cx: &mut OpCx<'_>, a: &Value, k: f32, b: &Value) -> Result<Value, Fail> {
        if k == 0.0 {
            return Ok(a.clone());
        }
        let scaled = self.scaled(cx, k, b)?;
        cx.apply("add", &[a, &scaled])
    }

    fn scaled(&self, cx: &mut OpCx<'_>, k: f32, b: &Value) -> Result<Value, Fail> {
        let k = self.number(cx, k)?;
        cx.apply("multiply", &[&k, b])
    }

    /// A number of another type as one of this.
    fn cast(&self, cx: &mut OpCx<'_>, v: &Value) -> Result<Value, Fail> {
        if cx.dtype(v, "a number")? == self.dtype {
            return Ok(v.clone());
        }
        cx.call("astype", vec![v.clone()], vec![("dtype", self.dtype.into())])
    }

    /// Whether the count of updates is above zero.
    fn begun(cx: &mut OpCx<'_>, count: &Value) -> Result<Value, Fail> {
        let zero = cx.scalar(0.0, cx.dtype(count, "T")?)?;
        cx.apply("greater", &[count, &zero])
    }

    /// `k` to the power of the count.
    fn power(&self, cx: &mut OpCx<'_>, k: f32, count: &Value) -> Result<Value, Fail> {
        let (k, count) = (self.number(cx, k)?, self.cast(cx, count)?);
        cx.apply("power", &[&k, &count])
    }

    fn one_minus(&self, cx: &mut OpCx<'_>, v: &Value) -> Result<Value, Fail> {
        let one = self.number(cx, 1.0)?;
        cx.apply("subtract", &[&one, v])
    }
}

fn adagrad(cx: &mut OpCx<'_>) -> Outputs {
    let (decay, epsilon) = (cx.node.float_or("decay_factor", 0.0)?, cx.node.float_or("epsilon", 1e-6)?);
    let norm = cx.node.float_or("norm_coefficient", 0.0)?;
    let step = read(cx, 3)?;
    let mut outputs = [Vec::new(), Vec::new()];
    let [xs, gs, hs] = &step.lists[..] else { return Err("three kinds of tensors are needed".into()) };
    for ((x, g), h) in xs.iter().zip(gs).zip(hs) {
        let sums = Sums { dtype: cx.dtype(x, "X")? };
        let (rate, count) = (sums.cast(cx, &step.rate)?, sums.cast(cx, &step.count)?);
        let one = sums.number(cx, 1.0)?;
        let slower = sums.add_scaled(cx, &one, decay, &count)?;
        let rate = cx.apply("divide", &[&rate, &slower])?;
        let g = sums.add_scaled(cx, g, norm, x)?;
        let square = cx.apply("multiply", &[&g, &g])?;
        let h = cx.apply("add", &[h, &square])?;
        let root = cx.apply("sqrt", &[&h])?;
        let epsilon = sums.number(cx, epsilon)?;
        let root = cx.apply("add", &[&root, &epsilon])?;
        let way = cx.apply("multiply", &[&rate, &g])?;
        let way = cx.apply("divide", &[&way, &root])?;
        outputs[0].push(cx.apply("subtract", &[x, &way])?);
        outputs[1].push(h);
    }
    Ok(outputs.concat())
}

fn adam(cx: &mut OpCx<'_>) -> Outputs {
    let (alpha, beta) = (cx.node.float_or("alpha", 0.9)?, cx.node.float_or("beta", 0.999)?);
    let epsilon = cx.node.float_or("epsilon", 1e-6)?;
    let (norm, post) = (cx.node.float_or("norm_coefficient", 0.0)?, cx.node.float_or("norm_coefficient_post", 0.0)?);
    let step = read(cx, 4)?;
    let mut outputs = [Vec::new(), Vec::new(), Vec::new()];
    let [xs, gs, vs, hs] = &step.lists[..] else { return Err("four kinds of tensors are needed".into()) };
    for ((x, g), (v, h)) in xs.iter().zip(gs).zip(vs.iter().zip(hs)) {
        let sums = Sums { dtype: cx.dtype(x, "X")? };
        let g = sums.add_scaled(cx, g, norm, x)?;
        let square = cx.apply("multiply", &[&g, &g])?;
        let old = sums.scaled(cx, alpha, v)?;
        let v = sums.add_scaled(cx, &old, 1.0 - alpha, &g)?;
        let old = sums.scaled(cx, beta, h)?;
        let h = sums.add_scaled(cx, &old, 1.0 - beta, &square)?;
        let root = cx.apply("sqrt", &[&h])?;
        let small = sums.number(cx, epsilon)?;
        let root = cx.apply("add", &[&root, &small])?;
        // After the first update the averages are corrected for their start at zero.
        let rate = sums.cast(cx, &step.rate)?;
        let (a, b) = (sums.power(cx, alpha, &step.count)?, sums.power(cx, beta, &step.count)?);
        let (a, b) = (sums.one_minus(cx, &a)?, sums.one_minus(cx, &b)?);
        let b = cx.apply("sqrt", &[&b])?;
        let corrected = cx.apply("multiply", &[&rate, &b])?;
        let corrected = cx.apply("divide", &[&corrected, &a])?;
        let begun = Sums::begun(cx, &step.count)?;
        let rate = cx.apply("where", &[&begun, &corrected, &rate])?;
        let way = cx.apply("multiply", &[&rate, &v])?;
        let way = cx.apply("divide", &[&way, &root])?;
        let x = cx.apply("subtract", &[x, &way])?;
        outputs[0].push(if post == 0.0 { x } else { sums.scaled(cx, 1.0 - post, &x)? });
        outputs[1].push(v);
        outputs[2].push(h);
    }
    Ok(outputs.concat())
}

fn momentum(cx: &mut OpCx<'_>) -> Outputs {
    let need = |cx: &OpCx<'_>, name: &str| -> Result<f32, Fail> {
        cx.node.float(name)?.ok_or_else(|| format!("attribute '{name}' is missing").into())
    };
    let (alpha, beta, norm) = (need(cx, "alpha")?, need(cx, "beta")?, need(cx, "norm_coefficient")?);
    let nesterov = match cx.node.string("mode")? {
        Some("standard") => false,
        Some("nesterov") => true,
        other => return Err(format!("attribute 'mode' is 'standard' or 'nesterov', not {other:?}").into()),
    };
    let step = read(cx, 3)?;
    let mut outputs = [Vec::new(), Vec::new()];
    let [xs, gs, vs] = &step.lists[..] else { return Err("three kinds of tensors are needed".into()) };
    for ((x, g), v) in xs.iter().zip(gs).zip(vs) {
        let sums = Sums { dtype: cx.dtype(x, "X")? };
        let g = sums.add_scaled(cx, g, norm, x)?;
        let (begun, one, beta) = (Sums::begun(cx, &step.count)?, sums.number(cx, 1.0)?, sums.number(cx, beta)?);
        let share = cx.apply("where", &[&begun, &beta, &one])?;
        let own = cx.apply("multiply", &[&share, &g])?;
        let v = sums.add_scaled(cx, &own, alpha, v)?;
        let way = if nesterov { sums.add_scaled(cx, &g, alpha, &v)? } else { v.clone() };
        let rate = sums.cast(cx, &step.rate)?;
        let way = cx.apply("multiply", &[&rate, &way])?;
        outputs[0].push(cx.apply("subtract", &[x, &way])?);
        outputs[1].push(v);
    }
    Ok(outputs.concat())
}
