//! Calls of PrimFuncs and builtins as steps.

use super::build::Builder;
use super::linear::{Origin, RunShape, Step, Tensor, TensorId, Val};
use crate::lower::ScalarSource;
use tvm_ir::diag::Diag;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Binding, Call, CallTir, Leaf, Lower, StructInfo};
use tvm_ir::span::Span;

impl Builder<'_, '_> {
    /// A PrimFunc over its arguments; one that only gives elements another shape is no step.
    pub(super) fn call_tir(&mut self, c: &CallTir, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let mut args = c.args.iter().map(|l| self.tensor(l, b.span)).collect::<Result<Vec<_>, _>>()?;
        let Some(entry) = self.program.kernels.get(c.func.0.as_str()) else {
            return Err(Diag::error(b.span, format!("there is no kernel for PrimFunc {}", c.func.0)));
        };
        let (kernel, sources, facts) = (entry.index, entry.lowered.scalars.clone(), entry.facts.clone());
        let same_dtype =
            |x: TensorId, out: &StructInfo| out.as_tensor().is_some_and(|t| t.dtype == self.lin.tensors[x].dtype);
        if let (true, [x], Some(t)) = (facts.reshape, args.as_slice(), c.out.as_tensor()) {
            if c.tir_vars.is_empty() && same_dtype(*x, &c.out) {
                let dims = t.dims.known().map(<[_]>::to_vec);
                return Ok(Val::Tensor(self.lin.view(*x, b.var.name().clone(), dims, t.dtype)));
            }
        }
        let value = self.outputs(c, &mut args, b, steps)?;
        let outs: Vec<TensorId> = value.tensors();
        let fresh: Vec<TensorId> =
            outs.iter().enumerate().filter(|(k, _)| overwritten(c, *k).is_none()).map(|(_, t)| *t).collect();
        let buffers: Vec<TensorId> = args.iter().chain(&fresh).copied().collect();
        let scalars = sources.iter().map(|s| self.scalar(s, &buffers, c, b.span)).collect::<Result<_, _>>()?;
        let pairs = facts.inplace.iter().filter(|(o, i)| c.inplace.is_empty() && *o >= args.len() && *i < args.len());
        let inplace = pairs.map(|(o, i)| (o - args.len(), *i)).collect();
        steps.push(Step::Kernel { kernel, args, outs: fresh, scalars, inplace });
        Ok(value)
    }

    /// The outputs of a call; those of `R.call_tir_inplace` are the argument, copied first where it may not be written.
    fn outputs(&mut self, c: &CallTir, args: &mut [TensorId], b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let infos = match &c.out {
            StructInfo::Tuple(fields) => fields.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut values = Vec::new();
        for (k, info) in infos.iter().enumerate() {
            let Some(i) = overwritten(c, k) else {
                values.push(self.made(b.var.name(), info, b.span)?);
                continue;
            };
            let Some(arg) = args.get_mut(i) else {
                return Err(Diag::error(b.span, format!("output {k} overwrites argument {i}, which does not exist")));
            };
            if self.lin.origin_of(*arg) != Origin::Made {
                let Tensor { dims, dtype, .. } = self.lin.tensors[*arg].clone();
                let copy = self.lin.add(b.var.name().clone(), dims, dtype, Origin::Made);
                steps.push(Step::Copy { from: *arg, to: copy });
                *arg = copy;
            }
            values.push(Val::Tensor(*arg));
        }
        Ok(match (&c.out, values.pop()) {
            (StructInfo::Tuple(_), last) => Val::Tuple(values.into_iter().chain(last).collect()),
            (_, Some(one)) => one,
            (_, None) => Val::Tuple(Vec::new()),
        })
    }

    fn scalar(&self, s: &ScalarSource, buffers: &[TensorId], c: &CallTir, span: Span) -> Result<PrimExpr, Diag> {
        let found = match *s {
            ScalarSource::Param(i) => c.tir_vars.get(i).cloned(),
            ScalarSource::Dim { buffer, axis } => buffers
                .get(buffer)
                .and_then(|t| self.lin.tensors[*t].dims.as_ref())
                .and_then(|dims| dims.get(axis))
                .cloned(),
        };
        found.ok_or_else(|| {
            Diag::error(span, format!("the call of {} does not say the value of a scalar it needs: {s:?}", c.func.0))
                .help("give its arguments known shapes with R.match_cast, and all its tir_vars")
        })
    }

    /// A builtin of the VM.
    pub(super) fn op(&mut self, c: &Call, b: &Binding, steps: &mut Vec<Step>) -> Result<Val, Diag> {
        let name = match c.op.def().lower {
            Lower::Builtin(name) => name,
            _ => {
                let diag = Diag::error(b.span, format!("R.{} is not lowered", c.op.name()));
                return Err(diag.help("run LegalizeOps before"));
            }
        };
        let first = c.args.first().cloned().unwrap_or(Leaf::Absent);
        if let Some(value) = self.list_op(name.rsplit('.').next().unwrap_or(name), c, b, steps)? {
            return Ok(value);
        }
        match (name.rsplit('.').next().unwrap_or(name), b.var.info()) {
            ("reshape", StructInfo::Tensor(t)) => {
                let x = self.tensor(&first, b.span)?;
                let dims = t.dims.known().map(<[_]>::to_vec);
                Ok(Val::Tensor(self.lin.view(x, b.var.name().clone(), dims, t.dtype)))
            }
            ("alloc_tensor", info) => self.made(b.var.name(), info, b.span),
            ("shape_of", StructInfo::Shape(_)) => {
                let tensor = self.tensor(&first, b.span)?;
                if let Some(dims) = &self.lin.tensors[tensor].dims {
                    return Ok(Val::Shape(dims.clone()));
                }
                let (value, shape) = self.run_shape();
                steps.push(Step::ShapeOf { tensor, shape });
                Ok(value)
            }
            ("at_most", StructInfo::Shape(_)) => {
                let most = match c.args.get(1).map(|l| self.leaf(l, b.span)).transpose()? {
                    Some(Val::Shape(most)) => most,
                    _ => return Err(Diag::error(b.span, "R.at_most: the extents of the bound are not known")),
                };
                let value = self.leaf(&first, b.span)?;
                match &value {
                    Val::Shape(dims) => {
                        let (dims, name) = (dims.clone(), b.var.name().clone());
                        steps.push(Step::AtMost { dims, most, name });
                    }
                    // Compared when a cast binds it.
                    Val::RunShape(RunShape::Made(i)) => {
                        self.shape_bounds.insert(*i, most);
                    }
                    _ => return Err(Diag::error(b.span, "R.at_most: what is bounded must be computed here")),
                }
                Ok(value)
            }
            ("tensor_to_shape", StructInfo::Shape(dims)) => {
                let tensor = self.tensor(&first, b.span)?;
                let Some(rank) = dims.rank() else {
                    let m = "R.tensor_to_shape: the rank of the shape is not known";
                    return Err(Diag::error(b.span, m).help("give the tensor a known extent with R.match_cast"));
                };
                let (value, shape) = self.run_shape();
                steps.push(Step::TensorToShape { tensor, rank, shape });
                Ok(value)
            }
            ("shape_to_tensor", info) => {
                let shape = self.leaf(&first, b.span)?;
                let value = self.made(b.var.name(), info, b.span)?;
                value
                    .tensors()
                    .into_iter()
                    .for_each(|t| steps.push(Step::ShapeToTensor { shape: shape.clone(), tensor: t }));
                Ok(value)
            }
            _ => Err(Diag::error(b.span, format!("R.{}: the VM has no builtin {name}", c.op.name()))),
        }
    }

    /// A shape that the next step makes.
    fn run_shape(&mut self) -> (Val, usize) {
        let shape = self.lin.shapes;
        self.lin.shapes += 1;
        (Val::RunShape(RunShape::Made(shape)), shape)
    }
}

fn overwritten(c: &CallTir, output: usize) -> Option<usize> {
    c.inplace.get(output).and_then(|i| usize::try_from(*i).ok())
}
