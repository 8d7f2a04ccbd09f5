//! Loops as steps.

use super::build::Builder;
use super::linear::{Carried, Loop, Origin, Stack, Step, TensorId, Val};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::ops::show_info;
use tvm_ir::relax::{self, Binding, Dims, Leaf, StructInfo, TensorInfo};

impl Builder<'_, '_> {
    /// A loop: copies of what is carried into memory of its own, then the step.
    pub(super) fn while_loop(&mut self, l: &relax::Loop, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let body = match &l.body {
            Leaf::Global(gv) => self.program.functions.get(gv.0.as_str()),
            _ => None,
        };
        let fail = |m: &str| Diag::error(b.span, format!("the loop {}: {m}", b.var.name()));
        let (body, mut returned) = match body {
            Some(f) => (f.index, f.returned.clone().into_iter()),
            None => return Err(fail("its body must be a Relax function of the module")),
        };
        let optional = |s: &mut Self, leaf: &Leaf| match leaf {
            Leaf::Absent => Ok(None),
            leaf => s.leaf(leaf, b.span).map(Some),
        };
        let (trip_count, cond) = (optional(self, &l.trip_count)?, optional(self, &l.cond)?);
        let captured = l.captured.iter().map(|c| self.leaf(c, b.span)).collect::<Result<_, _>>()?;
        let flag = match cond {
            Some(_) if returned.next().flatten().is_some() => {
                return Err(fail("the condition that its body gives must have the type R.Tensor((), \"bool\")"));
            }
            Some(_) => Some(self.lin.add(b.var.name().clone(), Some(Vec::new()), Some(DType::BOOL), Origin::Made)),
            None => None,
        };
        let (mut carried, mut values) = (Vec::new(), Vec::new());
        for (leaf, info) in l.carried.iter().zip(&l.out) {
            let first = self.tensor(leaf, b.span)?;
            let one = match (returned.next().flatten(), known(info)) {
                _ if *info == StructInfo::Object && self.lin.is_list(first) => {
                    let state = self.lin.add_list(b.var.name().clone(), Origin::Value);
                    Carried::List { first, state }
                }
                (None, true) => {
                    let state = self.room(b, info)?;
                    steps.push(Step::Copy { from: first, to: state });
                    Carried::Fixed { state, next: self.room(b, info)? }
                }
                (Some(_), false) => {
                    let rank = rank(info).ok_or_else(|| fail("the rank of a carried value is not known"))?;
                    Carried::Value { first, state: self.unsized_value(b, info), rank }
                }
                (given, _) => {
                    let (is, gives) = if given.is_some() { ("is", "") } else { ("is not", "no ") };
                    let m = format!("a carried value {is} of one shape, its body gives {gives}other shapes");
                    return Err(fail(&m).help(format!("declare both alike; the loop says {}", show_info(info))));
                }
            };
            values.push(match one {
                Carried::Fixed { state, .. } | Carried::Value { state, .. } | Carried::List { state, .. } => state,
            });
            carried.push(one);
        }
        let iterations = l.defines().cloned();
        self.bound.extend(iterations.clone());
        let mut stacks = Vec::new();
        for info in l.stacked() {
            let given = returned.next().flatten();
            let stack = match (l.iterations().is_some() && known(info), given) {
                (true, None) => Stack::Whole(self.room(b, info)?),
                (_, given) => {
                    let row = match (given, row_of(info)) {
                        (None, Some(row)) => Some(self.room(b, &row)?),
                        (Some(_), _) => None,
                        (None, None) => return Err(fail("it does not say the shape of a row, which its body does")),
                    };
                    let rank = rank(info).ok_or_else(|| fail("the rank of a stack is not known"))?;
                    Stack::Grown { stack: self.unsized_value(b, info), row, rank }
                }
            };
            values.push(match stack {
                Stack::Whole(stack) | Stack::Grown { stack, .. } => stack,
            });
            stacks.push(stack);
        }
        let value = Val::Tuple(values.into_iter().map(Val::Tensor).collect());
        steps.push(Step::Loop(Box::new(Loop { body, trip_count, cond, captured, carried, flag, stacks, iterations })));
        Ok(value)
    }

    /// Memory for a tensor of known shape.
    fn room(&mut self, b: &Binding, info: &StructInfo) -> Result<TensorId, Diag> {
        match self.made(b.var.name(), info, b.span)? {
            Val::Tensor(t) => Ok(t),
            _ => Err(Diag::error(b.span, format!("the loop {} carries {}", b.var.name(), show_info(info)))
                .help("carry tensors only")),
        }
    }

    /// A tensor whose memory the loop finds.
    fn unsized_value(&mut self, b: &Binding, info: &StructInfo) -> TensorId {
        let tensor = info.as_tensor();
        let dims = tensor.and_then(|t| t.dims.known()).map(<[_]>::to_vec);
        self.lin.add(b.var.name().clone(), dims, tensor.and_then(|t| t.dtype), Origin::Value)
    }
}

fn known(info: &StructInfo) -> bool {
    info.as_tensor().is_some_and(|t| t.dims.known().is_some())
}

fn rank(info: &StructInfo) -> Option<usize> {
    info.as_tensor()?.dims.rank()
}

/// The row of a stack of known shape.
fn row_of(stack: &StructInfo) -> Option<StructInfo> {
    let tensor = stack.as_tensor()?;
    let dims = Dims::Known(tensor.dims.known()?.get(1..)?.to_vec());
    Some(StructInfo::Tensor(TensorInfo { dims, dtype: tensor.dtype }))
}
