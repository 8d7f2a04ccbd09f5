//! Which Relax functions the program holds, callees before their callers.

use std::collections::BTreeSet;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::relax::{Body, Expr, Function, Leaf};
use tvm_ir::span::Span;

/// The public Relax functions and what they call, callees first, otherwise in the module's order, each with whether
/// another one calls it. Errors on recursion
/// and on calls of what the module does not have, at the calls.
pub(super) fn callees_first(module: &IRModule) -> Result<Vec<(&Name, &Function, bool)>, Diags> {
    let mut walk = Walk {
        module,
        open: Vec::new(),
        done: BTreeSet::new(),
        called: BTreeSet::new(),
        order: Vec::new(),
        diags: Diags::new(),
    };
    for (name, f) in module.relax_funcs() {
        if !f.is_private() {
            walk.function(name, f, f.span);
        }
    }
    let Walk { order, called, diags, .. } = walk;
    diags.into_result(order.into_iter().map(|(n, f)| (n, f, called.contains(n))).collect())
}

struct Walk<'a> {
    module: &'a IRModule,
    open: Vec<&'a Name>,
    done: BTreeSet<&'a Name>,
    called: BTreeSet<&'a Name>,
    order: Vec<(&'a Name, &'a Function)>,
    diags: Diags,
}

impl<'a> Walk<'a> {
    fn function(&mut self, name: &'a Name, f: &'a Function, call: Span) {
        if self.done.contains(name) {
            return;
        }
        if let Some(start) = self.open.iter().position(|n| *n == name) {
            let cycle: Vec<&str> = self.open[start..].iter().map(|n| n.as_str()).chain([name.as_str()]).collect();
            self.diags.push(
                Diag::error(call, format!("function {name} calls itself: {}", cycle.join(" -> ")))
                    .help("memory is planned at build time, so calls cannot be recursive; unroll the recursion"),
            );
            return;
        }
        self.open.push(name);
        self.body(&f.body);
        self.open.pop();
        self.done.insert(name);
        self.order.push((name, f));
    }

    fn body(&mut self, body: &'a Body) {
        for binding in body.bindings() {
            match &binding.value {
                Expr::CallFunc { callee: Leaf::Global(gv), .. } => match self.module.funcs.get_key_value(&gv.0) {
                    Some((name, Func::Relax(f))) => {
                        self.called.insert(name);
                        self.function(name, f, binding.span);
                    }
                    Some(_) => self.diags.push(
                        Diag::error(binding.span, format!("{} is called directly but is no Relax function", gv.0))
                            .help("call a PrimFunc with R.call_tir, an external function with R.call_dps_packed"),
                    ),
                    None => self.diags.push(Diag::error(binding.span, format!("there is no function {}", gv.0))),
                },
                Expr::Loop(l) => {
                    if let Leaf::Global(gv) = &l.body {
                        if let Some((name, Func::Relax(f))) = self.module.funcs.get_key_value(&gv.0) {
                            self.called.insert(name);
                            self.function(name, f, binding.span);
                        }
                    }
                }
                Expr::If(i) => {
                    self.body(&i.then);
                    self.body(&i.otherwise);
                }
                _ => {}
            }
        }
    }
}
