//! Loops of Relax functions.

use super::TensorBuf;
use super::relax::{Evaluator, Frame, Value};
use crate::diag::Diag;
use crate::module::Func;
use crate::prim::PrimExpr;
use crate::relax::{Leaf, Loop, StructInfo};
use crate::span::Span;

/// Iterations after which a loop is given up.
const MAX_ITERATIONS: i64 = 1 << 32;

impl Evaluator<'_> {
    /// A loop, iteration by iteration. Errors: those of the body, rows of different shapes, and a stack of no rows
    /// whose row shape is not known.
    pub(super) fn while_loop(&mut self, l: &Loop, frame: &Frame, span: Span) -> Result<Value, Diag> {
        let fail = |message: String| Diag::error(span, format!("R.while_loop: {message}"));
        let body = match &l.body {
            Leaf::Global(g) => match self.module.get(&g.0) {
                Some(Func::Relax(f)) => f,
                _ => return Err(fail(format!("{} is no Relax function", g.0))),
            },
            _ => return Err(fail("the body is no function of the module".into())),
        };
        let most = match &l.trip_count {
            Leaf::Absent => i64::MAX,
            leaf => integer(&frame.leaf(leaf)?).ok_or_else(|| fail("the trip count is no integer".into()))?,
        };
        let mut going = match &l.cond {
            Leaf::Absent => true,
            leaf => integer(&frame.leaf(leaf)?).ok_or_else(|| fail("the condition is no truth value".into()))? != 0,
        };
        let captured = frame.leaves(&l.captured)?;
        let mut carried = frame.leaves(&l.carried)?;
        let mut rows: Vec<Vec<TensorBuf>> = vec![Vec::new(); l.stacked().len()];
        let mut i = 0;
        while i < most && going {
            if i >= MAX_ITERATIONS {
                return Err(fail(format!("gave up after {i} iterations")));
            }
            let args: Vec<Value> = std::iter::once(Value::Prim(PrimExpr::i64(i)))
                .chain(captured.iter().cloned())
                .chain(carried.iter().cloned())
                .collect();
            let Value::Tuple(results) = self.function(body, &args, Frame::default())? else {
                return Err(fail("the body gives no tuple".into()));
            };
            let mut results = results.into_iter();
            if l.cond != Leaf::Absent {
                let cond = results.next().as_ref().and_then(integer);
                going = cond.ok_or_else(|| fail("the body gives no condition".into()))? != 0;
            }
            carried = results.by_ref().take(l.carried.len()).collect();
            for stack in &mut rows {
                let row = results.next().and_then(|v| v.as_tensor());
                stack.push(row.ok_or_else(|| fail("a row is no tensor".into()))?);
            }
            i += 1;
        }
        for (info, rows) in l.stacked().iter().zip(rows) {
            carried.push(Value::tensor(stack(info, &rows, frame).map_err(|d| fail(d.message))?));
        }
        Ok(Value::Tuple(carried))
    }
}

fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Tensor(t) if t.borrow().len() == 1 => Some(t.borrow().get_i64(0)),
        Value::Prim(e) => e.as_int(),
        _ => None,
    }
}

/// Tensors of one shape along a new first axis.
fn stack(info: &StructInfo, rows: &[TensorBuf], frame: &Frame) -> Result<TensorBuf, Diag> {
    let error = |message: String| Diag::error(Span::NONE, message);
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let Some(first) = rows.first() else {
        let known = info.as_tensor().and_then(|t| Some((t.dims.known()?, t.dtype?)));
        let (dims, dtype) = known.ok_or_else(|| error("a stack of no rows has no shape".into()))?;
        let mut shape = frame.dims(dims.get(1..).unwrap_or_default(), Span::NONE)?;
        shape.insert(0, 0);
        return TensorBuf::zeros(dtype, &shape);
    };
    if let Some(other) = rows.iter().find(|r| r.shape != first.shape || r.dtype != first.dtype) {
        return Err(error(format!("a row of shape {:?} comes after one of {:?}", other.shape, first.shape)));
    }
    if first.dtype.bits < 8 && !first.dtype.is_bool() {
        return Err(error(format!("rows of {} cannot be stacked", first.dtype)));
    }
    let mut shape = first.shape.clone();
    shape.insert(0, count);
    TensorBuf::from_bytes(first.dtype, &shape, rows.iter().flat_map(|r| r.data.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::relax::run_function;
    use super::*;
    use crate::dtype::DType;
    use crate::module::IRModule;
    use crate::span::SourceMap;
    use crate::syntax::{ParseOptions, parse_module};

    const SUMS: &str = r#"
@I.ir_module
class Module:
    @R.function(private=True)
    def step(i: R.Prim(value="i"), w: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((), "bool"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        i = T.int64()
        y = R.add(x, w)
        s = R.sum(y)
        c = R.less(s, R.const(9.0, "float32"))
        return (c, y, R.negative(y))

    @R.function
    def main(n: R.Tensor((), "int64"), c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor(ndim=2, dtype="float32")):
        cls = Module
        r = R.while_loop(cls.step, (R.const([1.0, 2.0], "float32"),), (x,), trip_count=n, cond=c, out_sinfo=[R.Tensor((2,), "float32"), R.Tensor(ndim=2, dtype="float32")])
        return r
"#;

    fn module(text: &str) -> IRModule {
        parse_module(&mut SourceMap::default(), "test.py", text, ParseOptions::default())
            .unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_loop_ends_by_its_count_or_its_condition() {
        let m = module(SUMS);
        let run = |n: i64, cond: i64| {
            let n = Value::tensor(TensorBuf::scalar_i64(DType::I64, n).unwrap());
            let cond = Value::tensor(TensorBuf::scalar_i64(DType::BOOL, cond).unwrap());
            let x = Value::tensor(TensorBuf::from_f32(&[2], &[0.0, 0.0]).unwrap());
            run_function(&m, "main", &[n, cond, x]).map(|v| v.tensors())
        };
        let two = run(2, 1).unwrap();
        assert_eq!((two[0].to_f32(), two[1].to_f32()), (vec![2.0, 4.0], vec![-1.0, -2.0, -2.0, -4.0]));
        assert_eq!(two[1].shape, [2, 2]);
        // The sums are 3, 6 and 9: the third iteration is the last one.
        assert_eq!(run(100, 1).unwrap()[1].shape, [3, 2]);
        // Nothing tells the shape of a row.
        assert!(run(0, 1).unwrap_err().to_string().contains("no rows"));
        assert!(run(5, 0).is_err());
    }
}
