//! Loops as steps.

use super::build::Builder;
use super::linear::{Loop, Origin, Step, TensorId, Val};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::ops::show_info;
use tvm_ir::relax::{self, Binding, Dims, Leaf, StructInfo};
use tvm_ir::span::Span;

impl Builder<'_, '_> {
    /// A loop: copies of what is carried into memory of its own, then the step.
    pub(super) fn while_loop(&mut self, l: &relax::Loop, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let body = match &l.body {
            Leaf::Global(gv) => self.program.functions.get(gv.0.as_str()),
            _ => None,
        };
        let body =
            body.ok_or_else(|| Diag::error(b.span, "the body of a loop must be a Relax function of the module"))?;
        if let Some(i) = body.returned.iter().position(Option::is_some) {
            let m = format!("result {i} of the body of the loop {} has a shape that depends on data", b.var.name());
            return Err(
                Diag::error(b.span, m).help("give it one shape in all iterations, with R.match_cast where needed")
            );
        }
        let body = body.index;
        let optional = |s: &mut Self, leaf: &Leaf| match leaf {
            Leaf::Absent => Ok(None),
            leaf => s.leaf(leaf, b.span).map(Some),
        };
        let (trip_count, cond) = (optional(self, &l.trip_count)?, optional(self, &l.cond)?);
        let captured = l.captured.iter().map(|c| self.leaf(c, b.span)).collect::<Result<_, _>>()?;
        let (mut state, mut next, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
        for (leaf, info) in l.carried.iter().zip(&l.out) {
            let from = self.tensor(leaf, b.span)?;
            let to = self.room("carried value", b, info)?;
            steps.push(Step::Copy { from, to });
            state.push(to);
            next.push(self.room("carried value", b, info)?);
        }
        for info in l.stacked() {
            stacks.push(self.room("stack", b, info)?);
        }
        let flag = match cond {
            Some(_) => Some(self.lin.add(b.var.name().clone(), Some(Vec::new()), Some(DType::BOOL), Origin::Made)),
            None => None,
        };
        let value = Val::Tuple(state.iter().chain(&stacks).map(|t| Val::Tensor(*t)).collect());
        steps.push(Step::Loop(Box::new(Loop { body, trip_count, cond, captured, state, next, flag, stacks })));
        Ok(value)
    }

    /// Memory for a tensor of a loop, whose size must be known before the loop.
    fn room(&mut self, what: &str, b: &Binding, info: &StructInfo) -> Result<TensorId, Diag> {
        let refuse = |why: &str, span: Span| {
            Diag::error(span, format!("the {what} {} of the loop {} {why}", show_info(info), b.var.name()))
        };
        match info {
            StructInfo::Tensor(t) => match (&t.dims, t.dtype) {
                (Dims::Known(dims), Some(dtype)) => {
                    Ok(self.lin.add(b.var.name().clone(), Some(dims.clone()), Some(dtype), Origin::Made))
                }
                _ => Err(refuse("has no size that is known before it", b.span)
                    .help("give it one shape in all iterations, with R.match_cast where needed")),
            },
            _ => Err(refuse("is no tensor", b.span).help("carry tensors only")),
        }
    }
}
