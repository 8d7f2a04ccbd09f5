//! Loops.

use super::fit::{bind, conflict, knows_more, misfit};
use super::function::Verifier;
use crate::dtype::DType;
use crate::module::Func;
use crate::ops::{show_dims, show_info};
use crate::relax::{Dims, FuncInfo, Leaf, Loop, StructInfo, TensorInfo};
use std::collections::BTreeMap;

impl Verifier<'_> {
    /// The results of a loop; checks rule 14.
    pub(super) fn while_loop(&mut self, l: &Loop) -> Option<StructInfo> {
        let info = StructInfo::Tuple(l.out.clone());
        let func = match &l.body {
            Leaf::Global(g) => match self.module.get(&g.0) {
                Some(Func::Relax(f)) => f.info(),
                Some(_) => {
                    self.report(format!("R.while_loop runs `{}`, which is not a Relax function", g.0));
                    return Some(info);
                }
                None => return Some(info),
            },
            _ => {
                self.report("R.while_loop runs a function of the module, as cls.body");
                return Some(info);
            }
        };
        let StructInfo::Func(func) = func else { return Some(info) };
        if !func.pure {
            self.effect("a loop of an impure function");
        }
        if l.out.len() < l.carried.len() || l.out.is_empty() {
            let (n, m) = (l.carried.len(), l.out.len());
            self.report(format!("R.while_loop carries {n} values and says the types of {m} results"));
            return Some(info);
        }
        self.limits(l);
        self.carried(l);
        self.body_of(l, &func);
        Some(info)
    }

    /// Trip count and condition.
    fn limits(&mut self, l: &Loop) {
        if l.trip_count == Leaf::Absent && l.cond == Leaf::Absent {
            self.report("R.while_loop has neither a trip count nor a condition: it would not end");
        }
        for (what, leaf, dtype) in
            [("the trip count", &l.trip_count, DType::I64), ("the condition", &l.cond, DType::BOOL)]
        {
            let scalar = StructInfo::tensor(Vec::new(), dtype);
            if let Some(given) = self.leaf_info(leaf).filter(|i| conflict(i, &scalar, &self.analyzer)) {
                self.report(format!("{what} of R.while_loop must be a scalar of {dtype}, it is {}", show_info(&given)));
            }
        }
        let (count, defined) = (l.iterations(), l.defines().cloned());
        if let Some(v) = &defined {
            if !self.symbols.insert(v.clone()) {
                self.report(format!("R.while_loop defines `{}`, which is defined already", v.name()));
            }
        }
        let count = count.or(defined.map(|v| v.expr()));
        for stack in l.stacked() {
            let StructInfo::Tensor(TensorInfo { dims, .. }) = stack else {
                self.report(format!("R.while_loop stacks rows to a tensor, not to {}", show_info(stack)));
                continue;
            };
            let fits = match (dims, &count) {
                (Dims::Known(dims), Some(n)) => dims.first().is_some_and(|d| self.analyzer.prove_equal(d, n)),
                (Dims::Known(_), None) | (Dims::Rank(0), _) => false,
                _ => true,
            };
            if !fits {
                let is = "the first extent of a stack is the number of iterations";
                let known = match count.as_ref().map(|n| show_dims(std::slice::from_ref(n))) {
                    Some(n) => format!("{n} here"),
                    None => "a new variable here".into(),
                };
                self.report(format!("R.while_loop gives {}; {is}, {known}", show_info(stack)));
            }
        }
    }

    /// The values given for what is carried.
    fn carried(&mut self, l: &Loop) {
        for (i, (leaf, want)) in l.carried.iter().zip(&l.out).enumerate() {
            let Some(given) = self.leaf_info(leaf) else { continue };
            if conflict(want, &given, &self.analyzer) || knows_more(want, &given) {
                let (want, given) = (show_info(want), show_info(&given));
                self.report(format!(
                    "carried value {i} of R.while_loop is {want} in every iteration, {given} is given"
                ));
            }
        }
    }

    /// What goes into the body and what comes out of it.
    fn body_of(&mut self, l: &Loop, func: &FuncInfo) {
        let mut args: Vec<Option<StructInfo>> = vec![Some(StructInfo::Prim(DType::I64, None))];
        args.extend(l.captured.iter().map(|c| self.leaf_info(c)));
        args.extend(l.out.iter().take(l.carried.len()).cloned().map(Some));
        let params = func.params.as_deref().unwrap_or_default();
        if params.len() != args.len() {
            let (n, m) = (params.len(), args.len());
            self.report(format!("the body of R.while_loop takes {n} arguments, the loop gives {m}: the index first"));
            return;
        }
        if !matches!(params.first(), Some(StructInfo::Prim(d, _)) if *d == DType::I64) {
            self.report("the first parameter of the body of R.while_loop must be R.Prim(\"int64\"), the index");
        }
        let mut map = BTreeMap::new();
        for (p, a) in params.iter().zip(&args) {
            if let Some(a) = a {
                bind(p, a, &mut map);
            }
        }
        for (i, (p, a)) in params.iter().zip(&args).enumerate().skip(1) {
            if let Some(wrong) = a.as_ref().and_then(|a| misfit(p, a, &map, &self.analyzer)) {
                self.report(format!("argument {i} of the body of R.while_loop {wrong}"));
            }
        }
        let StructInfo::Tuple(results) = func.ret.substitute(&map) else {
            self.report(format!("the body of R.while_loop must give a tuple, it gives {}", show_info(&func.ret)));
            return;
        };
        let leading = usize::from(l.cond != Leaf::Absent);
        if results.len() != leading + l.out.len() {
            let (n, m) = (results.len(), leading + l.out.len());
            let what = if leading == 1 { "the condition, " } else { "" };
            self.report(format!("the body of R.while_loop gives {n} values; {what}carried values and rows are {m}"));
            return;
        }
        let mut wanted: Vec<(String, StructInfo)> = Vec::new();
        if leading == 1 {
            wanted.push(("the condition".into(), StructInfo::tensor(Vec::new(), DType::BOOL)));
        }
        for (i, info) in l.out.iter().enumerate() {
            let what = if i < l.carried.len() { "carried value" } else { "row" };
            let info = if i < l.carried.len() { info.clone() } else { row(info) };
            wanted.push((format!("{what} {i}"), info));
        }
        for ((what, want), given) in wanted.iter().zip(&results) {
            if conflict(want, given, &self.analyzer) || knows_more(want, given) {
                let (want, given) = (show_info(want), show_info(given));
                self.report(format!("{what} of R.while_loop must be {want}, its body gives {given}"));
            }
        }
    }
}

/// What is stacked to a tensor.
fn row(stack: &StructInfo) -> StructInfo {
    let StructInfo::Tensor(t) = stack else { return StructInfo::Object };
    let dims = match &t.dims {
        Dims::Known(dims) => Dims::Known(dims.get(1..).unwrap_or_default().to_vec()),
        Dims::Rank(n) => Dims::Rank(n.saturating_sub(1)),
        Dims::Unknown => Dims::Unknown,
    };
    StructInfo::Tensor(TensorInfo { dims, dtype: t.dtype })
}
