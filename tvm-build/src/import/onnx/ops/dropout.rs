//! Dropout, for inference and in training.

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;

use super::Row;
use super::random::own_seed;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::value::{Value, numbers_of};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Dropout", 7, dropout_attribute), ("Dropout", 12, dropout)];

/// Most random numbers that are drawn for one node: each is stored with the weights.
const MAX_ELEMENTS: u64 = 1 << 24;

fn dropout_attribute(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    cx.node.float("ratio")?;
    nothing_dropped(cx, x)
}

/// The data, and if it is asked for a mask that is true everywhere.
fn nothing_dropped(cx: &mut OpCx<'_>, x: Value) -> Outputs {
    if cx.output_count() < 2 {
        return Ok(vec![x]);
    }
    let dims = cx.dims(&x, "data")?;
    // Masks were of the type of the data before they were bools.
    let dtype = if cx.opset < 10 { cx.dtype(&x, "data")? } else { DType::BOOL };
    let yes = cx.scalar(1.0, dtype)?;
    let mask = cx.call("broadcast_to", vec![yes, Value::shape(dims)], vec![])?;
    Ok(vec![x, mask])
}

/// In training the elements that stay are those whose random number is not below the ratio. The random numbers are those of
/// the Mersenne Twister with the node's seed, drawn when the model is imported: every run drops the same.
fn dropout(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "data")?;
    let (ratio, training) = (cx.optional(1), cx.optional(2));
    let seed = cx.node.int("seed")?;
    let constant = |v: &Option<Value>| v.as_ref().and_then(Value::as_const).and_then(numbers_of);
    let Some(training) = training.as_ref().filter(|_| constant(&training) != Some(vec![0.0])) else {
        return nothing_dropped(cx, x);
    };
    if constant(&ratio) == Some(vec![0.0]) {
        return nothing_dropped(cx, x);
    }
    let (dims, dtype) = (cx.dims(&x, "data")?, cx.dtype(&x, "data")?);
    let fixed: Option<Vec<u64>> = dims.iter().map(|d| d.as_int().and_then(|n| u64::try_from(n).ok())).collect();
    let count = fixed.as_ref().and_then(|dims| dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d)));
    let (Some(fixed), Some(count)) = (fixed, count.filter(|n| *n <= MAX_ELEMENTS)) else {
        return Err(format!(
            "data of shape {dims:?} in training: only fixed shapes up to {MAX_ELEMENTS} elements are supported; \
                            export the model for inference"
        )
        .into());
    };
    let seed = seed.unwrap_or_else(|| own_seed(cx.node.node().outputs.first().map_or("", String::as_str)));
    let mut twister = MersenneTwister::new((seed & 0xffff_ffff).unsigned_abs() as u32);
    let drawn: Vec<f64> = (0..count).map(|_| twister.uniform()).collect();
    let drawn: Value = constant_of(&drawn, fixed, DType::F32).ok_or("the random numbers have no constant")?.into();
    let to = |cx: &mut OpCx<'_>, v: &Value, dtype: DType| -> Result<Value, Fail> {
        cx.call("astype", vec![v.clone()], vec![("dtype", AttrValue::DType(dtype))])
    };
    let ratio = match ratio {
        Some(ratio) => {
            let ratio = cx.reshape(&ratio, Vec::<PrimExpr>::new())?;
            to(cx, &ratio, DType::F32)?
        }
        None => cx.scalar(0.5, DType::F32)?,
    };
    let training = cx.reshape(training, Vec::new())?;
    let stays = cx.apply("greater_equal", &[&drawn, &ratio])?;
    let inference = cx.apply("logical_not", &[&training])?;
    let mask = cx.apply("logical_or", &[&stays, &inference])?;
    let one = cx.scalar(1.0, DType::F32)?;
    let rest = cx.apply("subtract", &[&one, &ratio])?;
    let scale = cx.apply("divide", &[&one, &rest])?;
    let scale = cx.apply("where", &[&training, &scale, &one])?;
    let scale = to(cx, &scale, dtype)?;
    let scaled = cx.apply("multiply", &[&x, &scale])?;
    let zero = cx.scalar(0.0, dtype)?;
    Ok(vec![cx.apply("where", &[&mask, &scaled, &zero])?, mask])
}

/// The generator MT19937 with 53 random bits a number, as numpy's `RandomState` draws them.
struct MersenneTwister {
    state: [u32; 624],
    next: usize,
}

impl MersenneTwister {
    fn new(seed: u32) -> MersenneTwister {
        let mut state = [0u32; 624];
        let mut word = seed;
        for (i, slot) in (1u32..).zip(&mut state) {
            *slot = word;
            word = 1_812_433_253u32.wrapping_mul(word ^ (word >> 30)).wrapping_add(i);
        }
        MersenneTwister { state, next: 624 }
    }

    fn word(&mut self) -> u32 {
        if self.next == 624 {
            for i in 0..624 {
                let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
                let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ (joined >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// From 0 up to 1.
    fn uniform(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_numpy() {
        let mut twister = MersenneTwister::new(0);
        let drawn: Vec<f64> = (0..3).map(|_| twister.uniform()).collect();
        assert_eq!(drawn, [0.548_813_503_927_324_8, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9]);
        let mut twister = MersenneTwister::new(4_294_967_295);
        assert!((0..2000).all(|_| (0.0..1.0).contains(&twister.uniform())));
        assert_ne!(own_seed("y"), own_seed("z"));
    }
}
