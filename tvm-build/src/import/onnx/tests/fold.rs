//! Folding over expressions gives what folding over their values does.

use std::collections::BTreeMap;

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::interp::{ExprTensor, TensorBuf};
use tvm_ir::prim::{BinOp, PrimExpr, Var, substitute};
use tvm_ir::relax::Leaf;

use super::super::emit::Emitter;
use super::super::fold::Known;
use super::super::value::Value;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn int(&mut self) -> i64 {
        [-7, -2, -1, 0, 1, 2, 3, 5, 64][self.below(9)]
    }

    fn expr(&mut self, symbols: &[Var]) -> PrimExpr {
        let symbol = symbols[self.below(symbols.len())].expr();
        let c = PrimExpr::i64(self.int());
        match self.below(6) {
            0 | 1 => c,
            2 | 3 => symbol,
            4 => symbol + c,
            _ => {
                let op = [BinOp::Mul, BinOp::Sub, BinOp::Min, BinOp::Max][self.below(4)];
                PrimExpr::binary(op, symbol, c)
            }
        }
    }
}

/// The elements of a value that is known.
fn known(value: &Value) -> Option<ExprTensor> {
    let of = |c: &tvm_ir::constant::Constant| {
        let shape: Vec<i64> = c.shape().iter().map(|d| *d as i64).collect();
        ExprTensor::from_buf(&TensorBuf::from_bytes(c.dtype(), &shape, c.data().to_vec()).unwrap())
    };
    match value {
        Value::Known(tensor) => Some((**tensor).clone()),
        Value::Call(call) => match call.known.as_ref()? {
            Known::Const(c) => of(c),
            Known::Exprs(tensor) => Some(tensor.clone()),
            Known::Tuple(_) => None,
        },
        other => of(other.as_const()?),
    }
}

fn tuple(value: i64) -> Value {
    Leaf::Tuple(vec![Leaf::Prim(PrimExpr::i64(value))]).into()
}

fn ints(elements: Vec<PrimExpr>) -> Value {
    Value::ints(elements)
}

const BINARY: [&str; 9] =
    ["add", "subtract", "multiply", "maximum", "minimum", "floor_divide", "divide", "mod", "floor_mod"];
const COMPARE: [&str; 6] = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"];
const REDUCE: [&str; 4] = ["sum", "prod", "max", "min"];

/// A random call on `a` and `b`, vectors of one length, and a condition.
fn step(e: &mut Emitter, r: &mut Random, a: &Value, b: &Value) -> Option<Value> {
    let length = a.tensor_info()?.dims.known()?.first()?.as_int()?;
    let v = |x: &Value| x.clone();
    let ints = |x: &[i64]| ints(x.iter().map(|i| PrimExpr::i64(*i)).collect());
    let axis = |x: i64| vec![("axis", AttrValue::from(vec![x]))];
    let out = match r.below(12) {
        0..=2 => e.call(BINARY[r.below(9)], vec![v(a), v(b)], vec![]),
        3 => {
            let c = e.call(COMPARE[r.below(6)], vec![v(a), v(b)], vec![]).ok()?;
            let d = e.call(COMPARE[r.below(6)], vec![v(b), v(a)], vec![]).ok()?;
            let both = e.call(["logical_and", "logical_or"][r.below(2)], vec![c, d], vec![]).ok()?;
            let both = if r.below(2) == 0 { both } else { e.call("logical_not", vec![both], vec![]).ok()? };
            e.call("where", vec![both, v(a), v(b)], vec![])
        }
        4 => e.call("concat", vec![Value::Tuple(vec![v(b), v(a)])], vec![("axis", 0.into())]),
        5 => {
            let at = ints(&[(length - 1).min(1), 0, length - 1]);
            e.call("take", vec![v(a), at], vec![("axis", 0.into())])
        }
        6 => {
            let dtype = AttrValue::DType([DType::I32, DType::I64, DType::F64][r.below(3)]);
            let x = e.call("astype", vec![v(a)], vec![("dtype", dtype)]).ok()?;
            e.call("astype", vec![x], vec![("dtype", AttrValue::DType(DType::I64))])
        }
        7 => {
            let x = e.call(REDUCE[r.below(4)], vec![v(a)], axis(0)).ok()?;
            let x = e.call("expand_dims", vec![x], axis(0)).ok()?;
            e.call("add", vec![x, v(b)], vec![])
        }
        8 => e.call(["negative", "abs", "sign"][r.below(3)], vec![v(a)], vec![]),
        9 => {
            let x = e.call("expand_dims", vec![v(a)], axis(1)).ok()?;
            let y = e.call("expand_dims", vec![v(b)], axis(0)).ok()?;
            let table = e.call("multiply", vec![x, y], vec![]).ok()?;
            e.call("max", vec![table], axis(1))
        }
        10 => {
            let bounds = [length - 1, -length - 1, -1].map(tuple);
            let [begin, end, by] = bounds;
            e.call("strided_slice", vec![v(a), tuple(0), begin, end, by], vec![])
        }
        _ => e.call("cumsum", vec![v(a)], vec![("axis", 0.into())]),
    };
    out.ok()
}

#[test]
fn folding_commutes_with_evaluation() {
    let symbols = [Var::new("n", DType::I64), Var::new("m", DType::I64)];
    let (mut compared, mut symbolic) = (0, 0);
    for seed in 1..120u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut emitter = Emitter::new(1 << 20);
        for symbol in &symbols {
            emitter.function.bindings().analyzer.assume_nonnegative(symbol);
        }
        let elements = |random: &mut Random| (0..3).map(|_| random.expr(&symbols)).collect::<Vec<_>>();
        let (first, second) = (elements(&mut random), elements(&mut random));
        let points: Vec<BTreeMap<Var, PrimExpr>> = [(0, 1), (1, 4), (3, 3), (7, 2)]
            .iter()
            .map(|(n, m)| symbols.iter().cloned().zip([PrimExpr::i64(*n), PrimExpr::i64(*m)]).collect())
            .collect();
        let at = |e: &[PrimExpr], p: &BTreeMap<Var, PrimExpr>| e.iter().map(|e| substitute(e, p)).collect::<Vec<_>>();
        // The value over expressions, then over numbers; each takes the same steps.
        let mut runs: Vec<(Value, Value)> = vec![(ints(first.clone()), ints(second.clone()))];
        runs.extend(points.iter().map(|p| (ints(at(&first, p)), ints(at(&second, p)))));
        for _ in 0..5 {
            let mut next = Vec::new();
            for (a, b) in &runs {
                let mut same = Random(random.0);
                next.push(step(&mut emitter, &mut same, a, b));
            }
            random.below(1);
            let Some(next) = next.into_iter().collect::<Option<Vec<_>>>() else { break };
            let Some(result) = known(&next[0]) else { break };
            symbolic += usize::from(result.to_buf().is_none());
            for (point, value) in points.iter().zip(&next[1..]) {
                // A division by 0 has no value.
                let Some(expected) = known(value) else { continue };
                assert_eq!(result.shape, expected.shape);
                assert_eq!(result.dtype, expected.dtype);
                for (e, want) in result.elements.iter().zip(&expected.elements) {
                    if let (Some(got), Some(want)) = (substitute(e, point).as_int(), want.as_int()) {
                        assert_eq!(got, want, "seed {seed}: {e:?} at {point:?}");
                        compared += 1;
                    }
                }
            }
            let lengths = |v: &Value| v.tensor_info().unwrap().dims;
            runs = next
                .into_iter()
                .zip(runs)
                .map(|(new, (a, b))| if lengths(&new) == lengths(&b) { (new, b) } else { (a, b) })
                .collect();
        }
    }
    assert!(compared > 1200 && symbolic > 120, "{compared} elements compared, {symbolic} tensors of expressions");
}
