//! Drops computations that nothing reads.

use super::instr::Instr;

/// The code without instructions whose register is never read; distances are corrected.
pub(super) fn drop_unread(code: Vec<Instr>, registers: usize) -> Vec<Instr> {
    let mut reads = vec![0u32; registers.max(1)];
    let operands = |i: &Instr| {
        let c = i.op.reads_c().then_some(i.c);
        let d = i.op.reads_d().then_some(i.d);
        [Some(i.a), Some(i.b), c, d].into_iter().flatten().map(usize::from)
    };
    for i in &code {
        operands(i).for_each(|r| reads[r] += 1);
    }
    let mut kept = vec![true; code.len()];
    for (i, keep) in code.iter().zip(&mut kept).rev() {
        if i.op.only_sets() && reads[usize::from(i.d)] == 0 {
            *keep = false;
            operands(i).for_each(|r| reads[r] -= 1);
        }
    }
    // Where each instruction comes to stand; one past the end too.
    let mut places = Vec::with_capacity(code.len() + 1);
    let mut next = 0i32;
    for keep in &kept {
        places.push(next);
        next += i32::from(*keep);
    }
    places.push(next);
    let mut out = Vec::with_capacity(code.len());
    for (at, (mut i, keep)) in code.into_iter().zip(&kept).enumerate() {
        if !keep {
            continue;
        }
        if i.op.is_jump() {
            let target = (at + 1).saturating_add_signed(isize::try_from(i.t).unwrap_or(0)).min(places.len() - 1);
            i.t = places[target] - places[at] - 1;
        }
        out.push(i);
    }
    out
}
