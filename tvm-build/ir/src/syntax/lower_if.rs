//! Conditionals of Relax functions.

use super::ast::{Expr, Ident, Stmt as Surface, StmtKind};
use super::lower_prim::Lowered;
use super::lower_relax::RelaxLower;
use super::lower_sinfo::contradiction;
use super::scope::{Entity, consequence};
use crate::diag::Diag;
use crate::dtype::DType;
use crate::ops::show_info;
use crate::relax::verify::conflict;
use crate::relax::{Body, Dims, Expr as Value, If, Leaf, StructInfo, TensorInfo};
use crate::span::Span;

impl RelaxLower<'_, '_> {
    /// `if cond: … else: …`: both branches bind one name last.
    pub(super) fn if_stmt(&mut self, cond: &Expr, then: &[Surface], otherwise: &[Surface], span: Span) -> Lowered<()> {
        if self.in_dataflow {
            return Err(Diag::error(span, "`if` inside a dataflow block").help("move it out of `with R.dataflow()`"));
        }
        if otherwise.is_empty() {
            return Err(Diag::error(span, "`if` without `else`: both branches must bind the result"));
        }
        let value = self.condition(cond);
        let value = self.cx.keep(value);
        // The errors of both branches are told.
        let then = self.branch(then, "then", span);
        let then = self.cx.keep(then);
        let (otherwise, other_name, other_info) = self.branch(otherwise, "else", span)?;
        let (Some(cond), Some((then, name, then_info))) = (value, then) else { return Err(consequence()) };
        if name.name != other_name.name {
            let d = format!("the branches bind different names, `{}` and `{}`", name.name, other_name.name);
            return Err(Diag::error(other_name.span, d).label(name.span, "bound by the other branch"));
        }
        if conflict(&then_info, &other_info, &self.cx.analyzer) {
            let (a, b) = (show_info(&then_info), show_info(&other_info));
            let d = format!("the branches give different types to `{}`: {a} and {b}", name.name);
            return Err(Diag::error(other_name.span, d).label(name.span, "the other branch"));
        }
        let info = join(&then_info, &other_info);
        let value = Value::If(Box::new(If { cond, then, otherwise }));
        let var = self.bind(name.name.clone(), value, info, name.span, span);
        self.cx.scope.define(&name.name, Entity::Relax(var), name.span);
        Ok(())
    }

    /// A condition: a bool scalar.
    fn condition(&mut self, cond: &Expr) -> Lowered<Leaf> {
        let leaf = self.leaf(cond)?;
        let scalar = StructInfo::tensor(Vec::new(), DType::BOOL);
        if let Some(info) = leaf.info().filter(|i| conflict(i, &scalar, &self.cx.analyzer)) {
            let d = Diag::error(cond.span, format!("a condition must be a bool scalar, it is {}", show_info(&info)));
            return Err(match &info {
                StructInfo::Tensor(t) if t.dtype == Some(DType::BOOL) => {
                    d.help("the branch is taken once: reduce the tensor to rank 0 first; R.where chooses by element")
                }
                _ => d.help("compare it: R.greater(x, R.const(0.0, \"float32\")), of rank 0"),
            });
        }
        Ok(leaf)
    }

    /// A branch: its last statement binds the result.
    fn branch(&mut self, list: &[Surface], suffix: &str, span: Span) -> Lowered<(Body, Ident, StructInfo)> {
        let Some((last, before)) = list.split_last() else { return Err(Diag::error(span, "an empty branch")) };
        let outer_blocks = std::mem::take(&mut self.blocks);
        let outer_current = std::mem::take(&mut self.current);
        self.cx.scope.push();
        let hidden = self.hidden.clone();
        self.stmts(before);
        let result = self.branch_result(last, suffix);
        self.flush();
        self.hidden = hidden;
        self.cx.scope.pop();
        let blocks = std::mem::replace(&mut self.blocks, outer_blocks);
        self.current = outer_current;
        let (ident, leaf, info) = result?;
        if let Some((_, at)) = self.result.take() {
            return Err(
                Diag::error(at, "`return` inside a branch").help("bind the result and return it after the `if`")
            );
        }
        Ok((Body { blocks, result: leaf }, ident, info))
    }

    fn branch_result(&mut self, last: &Surface, suffix: &str) -> Lowered<(Ident, Leaf, StructInfo)> {
        let StmtKind::Assign { target, annotation, value: Some(value) } = &last.kind else {
            if matches!(last.kind, StmtKind::If { .. }) {
                self.stmt(last)?;
                if let Some(b) = self.current.last() {
                    let ident = Ident { name: b.var.name().clone(), span: last.span };
                    return Ok((ident, Leaf::Var(b.var.clone()), b.var.info().clone()));
                }
            }
            return Err(Diag::error(last.span, "the last statement of a branch must bind its result"));
        };
        let Some(name) = target.name() else { return Err(Diag::error(target.span, "expected one name to assign to")) };
        let (v, mut info) = self.value(value)?;
        if let Some(a) = annotation {
            let declared = self.cx.sinfo(a)?;
            if let Some(why) = contradiction(&declared, &info) {
                return Err(Diag::error(
                    a.span,
                    format!("the annotation of `{name}` does not fit its value: it says {why}"),
                ));
            }
            info = declared;
        }
        let leaf = match v {
            Value::Leaf(l) => l,
            other => {
                let (at, place) = (target.span, value.callee_span());
                Leaf::Var(self.bind(format!("{name}_{suffix}"), other, info.clone(), at, place))
            }
        };
        Ok((Ident { name: name.clone(), span: value.span }, leaf, info))
    }
}

/// What is known of a value that comes from either of two.
fn join(a: &StructInfo, b: &StructInfo) -> StructInfo {
    match (a, b) {
        _ if a == b => a.clone(),
        (StructInfo::Tensor(x), StructInfo::Tensor(y)) => {
            let dims = match (x.dims.rank(), y.dims.rank()) {
                _ if x.dims == y.dims => x.dims.clone(),
                (Some(n), Some(m)) if n == m => Dims::Rank(n),
                _ => Dims::Unknown,
            };
            StructInfo::Tensor(TensorInfo { dims, dtype: x.dtype.filter(|d| y.dtype == Some(*d)) })
        }
        (StructInfo::Tuple(x), StructInfo::Tuple(y)) if x.len() == y.len() => {
            StructInfo::Tuple(x.iter().zip(y).map(|(x, y)| join(x, y)).collect())
        }
        _ => StructInfo::Object,
    }
}
