//! What entry points depend on, read off a function's table.

use crate::vm::program::{Entry, EntryKind, EntryOut};
use tvm_ir::prim::{Var, visit};
use tvm_runtime::{Callee, Function, Instr, Operand, builtin};

/// The symbolic variables of the shapes of a function, in order of appearance.
pub(super) fn symbols_of(entry: &Entry) -> Vec<Var> {
    let mut out: Vec<Var> = Vec::new();
    let params = entry.params.iter().filter_map(|p| match &p.kind {
        EntryKind::Tensor(_, dims) => dims.as_deref(),
        _ => None,
    });
    for e in params.chain(entry.outs.iter().filter_map(EntryOut::dims)).flatten() {
        visit(e, &mut |n| {
            if let Some(v) = n.as_var() {
                if !out.contains(v) {
                    out.push(v.clone());
                }
            }
        });
    }
    out
}

/// Whether `f` holds for an instruction of a function or of those it calls.
fn any_instr(functions: &[Function], function: &Function, f: &dyn Fn(&Function, &Instr) -> bool) -> bool {
    function.code.iter().any(|i| {
        let callee = match i {
            Instr::Call { callee: Callee::Function(k), .. } => functions.get(usize::from(*k)),
            _ => None,
        };
        f(function, i) || callee.is_some_and(|c| any_instr(functions, c, f))
    })
}

/// Whether a call with arguments of the right types can fail: it computes or checks something.
pub(super) fn can_fail(functions: &[Function], function: &Function) -> bool {
    any_instr(functions, function, &|_, i| match i {
        Instr::Call { callee: Callee::Builtin(b), .. } => **b != builtin::COPY_TENSOR && **b != builtin::FILL,
        Instr::Call { callee: Callee::Extern(_), .. } => true,
        _ => false,
    })
}

/// Whether memory is placed behind the part of the arena whose size is constant.
pub(super) fn places_at_run_time(functions: &[Function], function: &Function) -> bool {
    any_instr(functions, function, &|f, i| match i {
        Instr::Call { callee: Callee::Builtin(b), args, .. } if **b == builtin::ALLOC_TENSOR => match args.first() {
            Some(Operand::Imm(offset)) => usize::try_from(*offset).is_ok_and(|o| o >= f.arena_bytes),
            _ => true,
        },
        _ => false,
    })
}

pub(super) fn calls_functions(function: &Function) -> bool {
    function.code.iter().any(|i| matches!(i, Instr::Call { callee: Callee::Function(_), .. }))
}
