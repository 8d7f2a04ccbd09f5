//! Loops as instructions.

use super::emit::Emitter;
use super::linear::{Carried, Loop, Stack, TensorId, Val};
use tvm_ir::diag::Diag;
use tvm_ir::prim::PrimExpr;
use tvm_runtime::builtin;
use tvm_runtime::{Callee, Instr, Operand, Reg, VOID};

/// A carried value in registers.
enum Now {
    /// An iteration reads `now` and writes `other`; then they change places. In the end it lies in `state`.
    Fixed { now: Reg, other: Reg, state: Operand },
    /// An iteration gives another tensor, whose shape goes to the heap at `slot`.
    Value { now: Reg, state: TensorId, slot: Operand, rank: usize },
    /// An iteration gives another list.
    List { now: Reg, state: TensorId },
}

/// Where the rows of a stack go.
enum Rows {
    /// Into the stack, at a multiple of `bytes`.
    Whole { stack: Operand, bytes: Operand, shape: Operand, dtype: Operand },
    /// Behind those in `stack`, of which nothing is left over: its shape goes to the heap at `slot`.
    Grown { grown: Reg, stack: TensorId, row: Option<Operand>, slot: Operand, names: Vec<Operand> },
}

impl Emitter<'_> {
    /// ```text
    ///         i = 0, now = state, other = next
    /// again:  if i < trip_count else end
    ///         if cond else end
    ///         body(i, captured…, now…, flag, other…, rows…)
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
        let carried = l.carried.iter().map(|c| self.carried(c)).collect::<Result<Vec<_>, _>>()?;
        let flag = match l.flag {
            Some(flag) => Some(self.tensor(flag)?),
            None => None,
        };
        let stacks = l.stacks.iter().map(|s| self.rows(s)).collect::<Result<Vec<_>, _>>()?;
        let rank: usize = l.carried.iter().map(Carried::returned).chain(l.stacks.iter().map(Stack::returned)).sum();
        let (spare, i) = (self.register()?, self.variable(Operand::Imm(0))?);

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
        args.extend(carried.iter().map(|c| match c {
            Now::Fixed { now, .. } | Now::Value { now, .. } | Now::List { now, .. } => Operand::Reg(*now),
        }));
        args.extend(flag);
        args.extend(carried.iter().filter_map(|c| match c {
            Now::Fixed { other, .. } => Some(Operand::Reg(*other)),
            Now::Value { .. } | Now::List { .. } => None,
        }));
        for rows in &stacks {
            match rows {
                Rows::Whole { stack, bytes, shape, dtype } => {
                    let offset = self.builtin(&builtin::MUL, vec![Operand::Reg(i), *bytes])?;
                    args.push(self.builtin(&builtin::VIEW, vec![*stack, offset, *shape, *dtype])?);
                }
                Rows::Grown { row, .. } => args.extend(*row),
            }
        }
        let values = carried.iter().filter(|c| !matches!(c, Now::Fixed { .. })).count();
        let returned = values + stacks.iter().filter(|r| matches!(r, Rows::Grown { row: None, .. })).count();
        let first = match returned {
            0 => VOID,
            n => {
                args.push(self.slot(rank)?);
                self.returned(n)?
            }
        };
        self.push(first, Callee::Function(l.body), args);
        let mut given = (if returned == 1 { first } else { first.saturating_add(1) })..;
        if let (Some(cond), Some(flag)) = (cond, flag) {
            self.push(cond, Callee::Builtin(&builtin::READ_SCALAR), vec![flag]);
        }
        self.hand_on(&carried, spare, &mut given)?;
        for rows in &stacks {
            let Rows::Grown { grown, row, slot, names, .. } = rows else { continue };
            let value = row.or_else(|| given.next().map(Operand::Reg)).unwrap_or(Operand::None);
            let args = [&[*slot, Operand::Reg(*grown), value], names.as_slice()].concat();
            self.push(*grown, Callee::Builtin(&builtin::APPEND), args);
            if row.is_none() {
                self.run(&builtin::FREE_OVERFLOW, vec![value]);
            }
        }
        self.push(i, Callee::Builtin(&builtin::ADD), vec![Operand::Reg(i), Operand::Imm(1)]);
        self.code.push(Instr::Goto(again));

        let end = self.target()?;
        for (at, cond) in tests {
            self.code[at] = Instr::If { cond, otherwise: end };
        }
        for c in carried {
            match c {
                Now::Fixed { now, state, .. } => self.run(&builtin::COPY_TENSOR, vec![Operand::Reg(now), state]),
                Now::Value { now, state, .. } | Now::List { now, state } => self.keep(state, now),
            }
        }
        for rows in stacks {
            if let Rows::Grown { grown, stack, .. } = rows {
                self.keep(stack, grown);
            }
        }
        if let Some(count) = &l.iterations {
            self.scope.symbols.insert(count.clone(), i);
        }
        Ok(())
    }

    /// The carried values of the next iteration; `given` are the registers of what the body returned.
    fn hand_on(&mut self, carried: &[Now], spare: Reg, given: &mut impl Iterator<Item = Reg>) -> Result<(), Diag> {
        let mut values = Vec::new();
        for c in carried {
            match c {
                Now::Fixed { now, other, .. } => {
                    for (to, from) in [(spare, *now), (*now, *other), (*other, spare)] {
                        self.push(to, Callee::Builtin(&builtin::COPY), vec![Operand::Reg(from)]);
                    }
                }
                Now::List { now, .. } => {
                    let value = given.next().map_or(Operand::None, Operand::Reg);
                    self.push(*now, Callee::Builtin(&builtin::COPY), vec![value]);
                }
                Now::Value { now, slot, rank, .. } => {
                    let value = given.next().map_or(Operand::None, Operand::Reg);
                    let mut shape = vec![*slot];
                    for axis in 0..*rank {
                        let axis = Operand::Imm(i64::try_from(axis).unwrap_or(i64::MAX));
                        shape.push(self.builtin(&builtin::DIM, vec![value, axis])?);
                    }
                    values.push((*now, value, shape));
                }
            }
        }
        // All extents have been read: the shape of a value may lie where that of another goes. Until all values have left
        // these places, their shapes are elsewhere.
        if values.len() > 1 {
            for (_, value, shape) in &mut values {
                let mut aside = shape.clone();
                aside[0] = self.slot(aside.len() - 1)?;
                let aside = self.builtin(&builtin::MAKE_SHAPE, aside)?;
                *value = self.builtin(&builtin::RESHAPE, vec![*value, aside])?;
            }
        }
        for (now, value, shape) in values {
            let shape = self.builtin(&builtin::MAKE_SHAPE, shape)?;
            self.run(&builtin::FREE_OVERFLOW, vec![Operand::Reg(now)]);
            self.push(now, Callee::Builtin(&builtin::RESHAPE), vec![value, shape]);
        }
        Ok(())
    }

    fn keep(&mut self, value: TensorId, reg: Reg) {
        self.scope.tensors.insert(self.lin.storage_of(value), Operand::Reg(reg));
    }

    fn carried(&mut self, c: &Carried) -> Result<Now, Diag> {
        match *c {
            Carried::Fixed { state, next } => {
                let (state, next) = (self.tensor(state)?, self.tensor(next)?);
                Ok(Now::Fixed { now: self.variable(state)?, other: self.variable(next)?, state })
            }
            Carried::List { first, state } => {
                let first = self.tensor(first)?;
                Ok(Now::List { now: self.variable(first)?, state })
            }
            Carried::Value { first, state, rank } => {
                let args = [vec![self.tensor(first)?], self.overflow_names(first)?].concat();
                let copy = self.builtin(&builtin::CLONE_TENSOR, args)?;
                Ok(Now::Value { now: self.variable(copy)?, state, slot: self.slot(rank)?, rank })
            }
        }
    }

    /// A register of its own for a value that changes.
    fn variable(&mut self, first: Operand) -> Result<Reg, Diag> {
        let reg = self.register()?;
        self.push(reg, Callee::Builtin(&builtin::COPY), vec![first]);
        Ok(reg)
    }

    /// A scalar, which may lie in a tensor.
    pub(super) fn read(&mut self, value: &Val) -> Result<Operand, Diag> {
        match value {
            Val::Tensor(t) => {
                let tensor = self.tensor(*t)?;
                self.builtin(&builtin::READ_SCALAR, vec![tensor])
            }
            value => self.value(value),
        }
    }

    fn rows(&mut self, stack: &Stack) -> Result<Rows, Diag> {
        let (Stack::Whole(id) | Stack::Grown { stack: id, .. }) = *stack;
        let tensor = &self.lin.tensors[id];
        let (dims, Some(dtype)) = (tensor.dims.clone(), tensor.dtype) else {
            return Err(self.fail(format!("makes {}, whose type is not known", tensor.name)));
        };
        let Some(run) = super::dtype::run_dtype(dtype).filter(|d| d.per_byte() == 1) else {
            let m = format!("stacks rows of {dtype}, which have no size of their own at run time");
            return Err(self.fail(m).help("convert them in the loop, and the stack back after it"));
        };
        let run = self.constants.dtype(run)?;
        match *stack {
            Stack::Whole(_) => {
                let row = dims.and_then(|d| d.get(1..).map(<[_]>::to_vec)).unwrap_or_default();
                let width = i64::try_from(dtype.bytes()).unwrap_or(i64::MAX);
                let bytes = self.analyzer.simplify(&(super::linear::elements(&row) * PrimExpr::i64(width)));
                let (stack, bytes) = (self.tensor(id)?, self.eval(&bytes)?);
                Ok(Rows::Whole { stack, bytes, shape: self.shape(&row)?, dtype: run })
            }
            Stack::Grown { row, rank, .. } => {
                let mut empty = vec![PrimExpr::i64(0); rank];
                for (to, from) in empty.iter_mut().zip(dims.iter().flatten()).skip(1) {
                    *to = from.clone();
                }
                let names = self.overflow_names(row.unwrap_or(id))?;
                let args = [vec![self.shape(&empty)?, run], names.clone()].concat();
                let grown = self.builtin(&builtin::ALLOC_OVERFLOW, args)?;
                let row = match row {
                    Some(row) => Some(self.tensor(row)?),
                    None => None,
                };
                Ok(Rows::Grown { grown: self.variable(grown)?, stack: id, row, slot: self.slot(rank)?, names })
            }
        }
    }
}

impl Carried {
    /// How many extents of shapes the body returns for it.
    fn returned(&self) -> usize {
        match self {
            Carried::Fixed { .. } | Carried::List { .. } => 0,
            Carried::Value { rank, .. } => *rank,
        }
    }
}

impl Stack {
    fn returned(&self) -> usize {
        match self {
            Stack::Grown { row: None, rank, .. } => rank.saturating_sub(1),
            _ => 0,
        }
    }
}
