//! Finding and replacing statements of a function's tree.

use tvm_ir::diag::Diag;
use tvm_ir::prim::Var;
use tvm_ir::tir::{Block, For, Stmt, visit_stmt};

/// Replaces the first statement (parents first) that `is` holds for; the others stay. `None` from `edit`'s caller is
/// not possible: an error of `edit` is the error of the whole.
pub(super) fn replace(
    s: Stmt,
    is: &dyn Fn(&Stmt) -> bool,
    edit: &mut dyn FnMut(Stmt) -> Result<Stmt, Diag>,
) -> Result<Stmt, Diag> {
    let mut done = false;
    let mut error = None;
    let out = go(s, is, edit, &mut done, &mut error);
    error.map_or(Ok(out), Err)
}

fn go(
    s: Stmt,
    is: &dyn Fn(&Stmt) -> bool,
    edit: &mut dyn FnMut(Stmt) -> Result<Stmt, Diag>,
    done: &mut bool,
    error: &mut Option<Diag>,
) -> Stmt {
    if *done {
        return s;
    }
    if is(&s) {
        *done = true;
        return edit(s).unwrap_or_else(|d| {
            *error = Some(d);
            Stmt::Seq(Vec::new())
        });
    }
    s.map_children(&mut |c| go(c, is, edit, done, error))
}

/// Whether a statement is the loop of a variable.
pub(super) fn is_loop(s: &Stmt, var: &Var) -> bool {
    matches!(s, Stmt::For(f) if f.var == *var)
}

/// The loop of a variable.
pub(super) fn find_loop<'a>(s: &'a Stmt, var: &Var) -> Option<&'a For> {
    match s {
        Stmt::For(f) if f.var == *var => Some(f),
        _ => s.children().into_iter().find_map(|c| find_loop(c, var)),
    }
}

/// The block of a name, and the loops around it, outermost first.
pub(super) fn find_block<'a>(s: &'a Stmt, name: &str) -> Option<(&'a Block, Vec<&'a For>)> {
    fn go<'a>(s: &'a Stmt, name: &str, loops: &mut Vec<&'a For>) -> Option<&'a Block> {
        match s {
            Stmt::Block(b) if &*b.name == name => Some(b),
            Stmt::For(f) => {
                loops.push(f);
                let found = go(&f.body, name, loops);
                if found.is_none() {
                    loops.pop();
                }
                found
            }
            other => other.children().into_iter().find_map(|c| go(c, name, loops)),
        }
    }
    let mut loops = Vec::new();
    go(s, name, &mut loops).map(|b| (b, loops))
}

/// The blocks that compute (not the root, not those that only hold allocations), in program order.
pub(super) fn leaf_blocks(s: &Stmt) -> Vec<&Block> {
    fn go<'a>(s: &'a Stmt, out: &mut Vec<&'a Block>) {
        if let Stmt::Block(b) = s {
            if is_leaf(b) {
                out.push(b);
                return;
            }
        }
        s.children().into_iter().for_each(|c| go(c, out));
    }
    let mut out = Vec::new();
    go(s, &mut out);
    out
}

/// Whether a block computes: it holds no other block.
pub(super) fn is_leaf(b: &Block) -> bool {
    let mut nested = false;
    visit_stmt(&b.body, &mut |s| nested |= matches!(s, Stmt::Block(_)));
    !nested
}
