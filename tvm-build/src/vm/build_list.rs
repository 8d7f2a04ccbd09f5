//! Ops of lists as steps.

use super::build::Builder;
use super::linear::{BuiltinArg, Origin, Step, TensorId, Val};
use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::relax::{Binding, Call, Leaf, StructInfo};
use tvm_ir::span::Span;
use tvm_runtime::builtin::{self, Builtin};

impl Builder<'_, '_> {
    /// A call of an op of lists, by the name of its builtin; `None` when it is of another op.
    pub(super) fn list_op(
        &mut self,
        name: &str,
        c: &Call,
        b: &Binding,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Val>, Diag> {
        let leaf = |i: usize| c.args.get(i).cloned().unwrap_or(Leaf::Absent);
        let int = |name: &str| BuiltinArg::Int(c.attr(name).as_int().unwrap_or(0));
        let flag = |name: &str| BuiltinArg::Int(i64::from(matches!(c.attr(name), AttrValue::Bool(true))));
        let (builtin, args): (&'static Builtin, Vec<BuiltinArg>) = match name {
            "list_make" => {
                let Leaf::Tuple(items) = leaf(0) else {
                    return Err(Diag::error(b.span, "R.list.make takes a tuple written in place"));
                };
                let items = items.iter().map(|l| self.leaf(l, b.span).map(BuiltinArg::Value));
                (&builtin::LIST_MAKE, items.collect::<Result<_, _>>()?)
            }
            "list_insert" => {
                let item = self.leaf(&leaf(1), b.span)?;
                let args =
                    vec![self.list(&leaf(0), b.span)?, BuiltinArg::Value(item), self.position(&leaf(2), b.span)?];
                (&builtin::LIST_INSERT, args)
            }
            "list_erase" => {
                let args = vec![self.list(&leaf(0), b.span)?, self.position(&leaf(1), b.span)?];
                (&builtin::LIST_ERASE, args)
            }
            "list_at" => {
                let args = vec![self.list(&leaf(0), b.span)?, self.position(&leaf(1), b.span)?];
                (&builtin::LIST_AT, args)
            }
            "list_concat" => {
                let to = self.value_of(b);
                let rank = b.var.info().as_tensor().and_then(|t| t.dims.rank());
                let rank = rank.ok_or_else(|| Diag::error(b.span, "R.list.concat: the rank is not known"))?;
                let list = self.list(&leaf(0), b.span)?;
                let args = vec![BuiltinArg::Slot(rank), list, int("axis"), flag("new_axis"), BuiltinArg::Names(to)];
                steps.push(Step::Builtin { builtin: &builtin::LIST_CONCAT, args, to });
                return Ok(Some(Val::Tensor(to)));
            }
            "list_split" => {
                let values = [0, 1].map(|i| self.tensor(&leaf(i), b.span));
                let [x, lengths] = values;
                let args = vec![
                    BuiltinArg::Value(Val::Tensor(x?)),
                    BuiltinArg::Value(Val::Tensor(lengths?)),
                    int("axis"),
                    flag("keepdims"),
                ];
                (&builtin::LIST_SPLIT, args)
            }
            "list_length" => {
                let list = match self.list(&leaf(0), b.span)? {
                    BuiltinArg::Value(Val::Tensor(list)) => list,
                    _ => return Err(Diag::error(b.span, "a list is needed here")),
                };
                let value = self.made(b.var.name(), b.var.info(), b.span)?;
                let lengths = value.tensors();
                steps.extend(lengths.into_iter().map(|tensor| Step::ListLength { list, tensor }));
                return Ok(Some(value));
            }
            _ => return Ok(None),
        };
        let to = self.value_of(b);
        steps.push(Step::Builtin { builtin, args, to });
        Ok(Some(Val::Tensor(to)))
    }

    /// What the variable stands for: a list, or a tensor that is found somewhere.
    fn value_of(&mut self, b: &Binding) -> TensorId {
        match b.var.info() {
            StructInfo::Tensor(t) => self.lin.add(b.var.name().clone(), None, t.dtype, Origin::Value),
            _ => self.lin.add_list(b.var.name().clone(), Origin::Value),
        }
    }

    fn list(&mut self, leaf: &Leaf, span: Span) -> Result<BuiltinArg, Diag> {
        let list = self.tensor(leaf, span)?;
        if self.lin.is_list(list) {
            return Ok(BuiltinArg::Value(Val::Tensor(list)));
        }
        Err(Diag::error(span, "a list is needed here").help("make one with R.list.make"))
    }

    fn position(&mut self, leaf: &Leaf, span: Span) -> Result<BuiltinArg, Diag> {
        match leaf {
            Leaf::Absent => Ok(BuiltinArg::Absent),
            leaf => self.leaf(leaf, span).map(BuiltinArg::Scalar),
        }
    }
}
