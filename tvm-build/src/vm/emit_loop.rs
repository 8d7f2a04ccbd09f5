//! Loops as instructions.

use super::emit::Emitter;
use super::linear::{Loop, TensorId, Val};
use tvm_ir::diag::Diag;
use tvm_ir::prim::PrimExpr;
use tvm_runtime::builtin;
use tvm_runtime::{Callee, Instr, Operand, Reg, VOID};

/// Where the rows of a stack go.
struct Rows {
    stack: Operand,
    bytes: Operand,
    shape: Operand,
    dtype: Operand,
}

impl Emitter<'_> {
    /// ```text
    ///         i = 0, now = state, other = next
    /// again:  if i < trip_count else end
    ///         if cond else end
    ///         body(i, captured…, now…, flag, other…, rows at i…)
    ///         cond = flag, now and other change places, i = i + 1
    ///         goto again
    /// end:    copy now to state
    /// ```
    pub(super) fn while_loop(&mut self, l: &Loop) -> Result<(), Diag> {
        let trip_count = match &l.trip_count {
            Some(value) => Some(self.read(value)?),
            None => None,
        };
        let cond = match &l.cond {
            Some(value) => {
                let first = self.read(value)?;
                Some(self.variable(first)?)
            }
            None => None,
        };
        let mut captured = Vec::new();
        for value in l.captured.iter().flat_map(Val::flat) {
            captured.push(self.value(&value)?);
        }
        let (mut state, mut now, mut other) = (Vec::new(), Vec::new(), Vec::new());
        for (a, b) in l.state.iter().zip(&l.next) {
            let (a, b) = (self.tensor(*a)?, self.tensor(*b)?);
            state.push(a);
            now.push(self.variable(a)?);
            other.push(self.variable(b)?);
        }
        let flag = match l.flag {
            Some(flag) => Some(self.tensor(flag)?),
            None => None,
        };
        let stacks = l.stacks.iter().map(|t| self.rows(*t)).collect::<Result<Vec<_>, _>>()?;
        let spare = self.register()?;
        let i = self.variable(Operand::Imm(0))?;

        let again = self.target()?;
        let mut tests = Vec::new();
        if let Some(count) = trip_count {
            let more = self.builtin(&builtin::LT, vec![Operand::Reg(i), count])?;
            tests.push((self.code.len(), more));
            self.code.push(Instr::Goto(0));
        }
        if let Some(cond) = cond {
            tests.push((self.code.len(), Operand::Reg(cond)));
            self.code.push(Instr::Goto(0));
        }
        let mut args = vec![Operand::Reg(i)];
        args.extend(captured);
        args.extend(now.iter().map(|r| Operand::Reg(*r)));
        args.extend(flag);
        args.extend(other.iter().map(|r| Operand::Reg(*r)));
        for rows in &stacks {
            let offset = self.builtin(&builtin::MUL, vec![Operand::Reg(i), rows.bytes])?;
            args.push(self.builtin(&builtin::VIEW, vec![rows.stack, offset, rows.shape, rows.dtype])?);
        }
        self.push(VOID, Callee::Function(l.body), args);
        if let (Some(cond), Some(flag)) = (cond, flag) {
            self.push(cond, Callee::Builtin(&builtin::READ_SCALAR), vec![flag]);
        }
        for (a, b) in now.iter().zip(&other) {
            for (to, from) in [(spare, *a), (*a, *b), (*b, spare)] {
                self.push(to, Callee::Builtin(&builtin::COPY), vec![Operand::Reg(from)]);
            }
        }
        self.push(i, Callee::Builtin(&builtin::ADD), vec![Operand::Reg(i), Operand::Imm(1)]);
        self.code.push(Instr::Goto(again));

        let end = self.target()?;
        for (at, cond) in tests {
            self.code[at] = Instr::If { cond, otherwise: end };
        }
        for (now, state) in now.into_iter().zip(state) {
            self.run(&builtin::COPY_TENSOR, vec![Operand::Reg(now), state]);
        }
        Ok(())
    }

    /// A register of its own for a value that changes.
    fn variable(&mut self, first: Operand) -> Result<Reg, Diag> {
        let reg = self.register()?;
        self.push(reg, Callee::Builtin(&builtin::COPY), vec![first]);
        Ok(reg)
    }

    /// A scalar, which may lie in a tensor.
    fn read(&mut self, value: &Val) -> Result<Operand, Diag> {
        match value {
            Val::Tensor(t) => {
                let tensor = self.tensor(*t)?;
                self.builtin(&builtin::READ_SCALAR, vec![tensor])
            }
            value => self.value(value),
        }
    }

    fn rows(&mut self, stack: TensorId) -> Result<Rows, Diag> {
        let tensor = &self.lin.tensors[stack];
        let (Some(dims), Some(dtype)) = (tensor.dims.clone(), tensor.dtype) else {
            return Err(self.fail(format!("makes {}, whose type is not known", tensor.name)));
        };
        if dtype.bits < 8 && !dtype.is_bool() {
            let m = format!("stacks rows of {dtype}, which do not begin at bytes");
            return Err(self.fail(m).help("cast them to int8 in the loop, and the stack back after it"));
        }
        let (run, _) = self.run_type(stack)?;
        let row: Vec<PrimExpr> = dims.get(1..).unwrap_or_default().to_vec();
        let elements = super::linear::elements(&row);
        let width = i64::try_from(dtype.bytes()).unwrap_or(i64::MAX);
        let bytes = self.analyzer.simplify(&(elements.clone() * PrimExpr::i64(width)));
        let bytes = self.eval(&bytes)?;
        // What only kernels know is seen as bytes.
        let row = if super::dtype::run_dtype(dtype).is_some() { row } else { vec![elements * PrimExpr::i64(width)] };
        Ok(Rows { stack: self.tensor(stack)?, bytes, shape: self.shape(&row)?, dtype: self.constants.dtype(run)? })
    }
}
