//! From steps and a memory plan to the VM's table.

use super::dtype::run_dtype;
use super::linear::{BuiltinArg, Linear, Origin, RunShape, Step, StorageId, TensorId, Val};
use super::plan::{Place, Placement};
use super::size::{bounds_of, size_of, unknown_symbol};
use super::table::{Constants, leak, leak_str, tensor_type};
use std::collections::{BTreeMap, BTreeSet};
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_runtime::builtin::{self, Builtin};
use tvm_runtime::{Callee, Constant, DType, FrameSize, Function, Instr, Operand, Param, Reg, Type, VOID};

/// Byte that freed memory is filled with on request.
pub(super) const POISON: i64 = 0xCB;

/// Emits one function; `done` are those before it in the program, `workspace` the most scratch memory of its kernels.
pub(super) fn emit(
    lin: &Linear,
    placement: &Placement,
    constants: &mut Constants,
    done: &[Function],
    workspace: usize,
    poison: bool,
) -> Result<Function, Diag> {
    let mut e = Emitter {
        lin,
        placement,
        constants,
        analyzer: bounds_of(lin),
        registers: 0,
        heap: 0,
        scope: Scope::default(),
        code: Vec::new(),
        at: 0,
        poison,
        unchecked: Vec::new(),
    };
    for _ in 0..lin.params.len() + lin.outs.len() {
        e.register()?;
    }
    let (params, outs) = e.signature()?;
    e.steps(&lin.steps)?;
    if lin.returned.is_empty() {
        e.code.push(Instr::Ret(Operand::None));
    }
    let arena_bytes = usize::try_from(placement.plan.arena_bytes)
        .map_err(|_| Diag::error(lin.span, format!("the arena of {} is too large", lin.name)))?;
    let mut function = Function {
        name: leak_str(&lin.name),
        params,
        outs,
        registers: e.registers,
        heap: e.heap,
        arena_bytes,
        workspace_bytes: workspace,
        frame: FrameSize::default(),
        code: leak(e.code),
    };
    function.frame = function.required_frame(done);
    Ok(function)
}

/// What is in registers at a point of the code.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) symbols: BTreeMap<Var, Reg>,
    pub(super) exprs: Vec<(PrimExpr, Operand)>,
    pub(super) tensors: BTreeMap<StorageId, Operand>,
    shapes: BTreeMap<usize, Operand>,
}

pub(super) struct Emitter<'a> {
    pub(super) lin: &'a Linear,
    pub(super) placement: &'a Placement,
    pub(super) constants: &'a mut Constants,
    pub(super) analyzer: Analyzer,
    registers: u16,
    heap: u16,
    pub(super) scope: Scope,
    pub(super) code: Vec<Instr>,
    at: usize,
    poison: bool,
    /// Bounds to check of symbolic variables that were just bound.
    pub(super) unchecked: Vec<(&'static str, Reg, &'static Builtin, Operand)>,
}

impl Emitter<'_> {
    /// A new register.
    pub(super) fn register(&mut self) -> Result<Reg, Diag> {
        let reg = self.registers;
        self.registers += 1;
        if self.registers == VOID {
            return Err(self.fail("needs more than 65534 registers".into()).help("split it into functions"));
        }
        Ok(reg)
    }

    pub(super) fn fail(&self, what: String) -> Diag {
        Diag::error(self.lin.span, format!("function {} {what}", self.lin.name))
    }

    pub(super) fn push(&mut self, dst: Reg, callee: Callee, args: Vec<Operand>) {
        self.code.push(Instr::Call { dst, callee, args: leak(args) });
    }

    /// Calls a builtin for its value.
    pub(super) fn builtin(&mut self, b: &'static Builtin, args: Vec<Operand>) -> Result<Operand, Diag> {
        let dst = self.register()?;
        self.push(dst, Callee::Builtin(b), args);
        Ok(Operand::Reg(dst))
    }

    /// Calls a builtin for its effect.
    pub(super) fn run(&mut self, b: &'static Builtin, args: Vec<Operand>) {
        self.push(VOID, Callee::Builtin(b), args);
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Diag> {
        for step in steps {
            let at = self.at;
            self.at += 1;
            self.step(step, at)?;
            if !matches!(step, Step::If { .. } | Step::Return { .. }) {
                self.free(at)?;
            }
        }
        Ok(())
    }

    /// Gives blocks of the overflow store back that are dead after the step; fills dead memory, when that is asked for.
    fn free(&mut self, at: usize) -> Result<(), Diag> {
        for s in self.placement.freed.get(&at).cloned().unwrap_or_default() {
            let value = self.lin.storages[s].origin == Origin::Value;
            let block = value || matches!(self.placement.places.get(&s), Some(Place::Overflow(_)));
            if block && !self.scope.tensors.contains_key(&s) {
                continue;
            }
            let tensor = if block || self.poison { self.memory(s)? } else { continue };
            if self.poison && !value {
                self.run(&builtin::FILL, vec![tensor, Operand::Imm(POISON)]);
            }
            if block {
                self.run(&builtin::FREE_OVERFLOW, vec![tensor]);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, at: usize) -> Result<(), Diag> {
        match step {
            Step::Kernel { kernel, args, outs, scalars, .. } => {
                let buffers = args.iter().chain(outs).map(|t| self.memory(self.lin.storage_of(*t)));
                let mut operands = buffers.collect::<Result<Vec<_>, _>>()?;
                for s in scalars {
                    operands.push(self.eval(s)?);
                }
                self.push(VOID, Callee::Kernel(*kernel), operands);
            }
            Step::Function { callee, args, outs, returned, rank } => {
                let mut operands = self.operands(args, outs)?;
                let dst = match returned.len() {
                    0 => VOID,
                    n => {
                        operands.push(self.slot(*rank)?);
                        self.returned(n)?
                    }
                };
                self.push(dst, Callee::Function(*callee), operands);
                // One value is in the register itself, several behind it.
                let first = if returned.len() == 1 { dst } else { dst.saturating_add(1) };
                for (t, reg) in returned.iter().zip(first..) {
                    self.scope.tensors.insert(self.lin.storage_of(*t), Operand::Reg(reg));
                }
            }
            Step::Move { from, to } => {
                let value = self.tensor(*from)?;
                let Some(Operand::Reg(reg)) = self.scope.tensors.get(&self.lin.storage_of(*to)).copied() else {
                    return Err(self.fail("gives a value that no register was made for".into()));
                };
                self.push(reg, Callee::Builtin(&builtin::COPY), vec![value]);
            }
            Step::Clone { from, to } => {
                let names = self.overflow_names(*from)?;
                let operands = [vec![self.tensor(*from)?], names].concat();
                let made = self.builtin(&builtin::CLONE_TENSOR, operands)?;
                self.scope.tensors.insert(self.lin.storage_of(*to), made);
            }
            Step::AtMost { dims, most, name } => {
                let symbol = self.constants.param(Param { name: leak_str(name), ty: Type::Any })?;
                for (d, most) in dims.iter().zip(most) {
                    let operands = vec![self.eval(d)?, self.eval(most)?, symbol];
                    self.run(&builtin::AT_MOST, operands);
                }
            }
            Step::Return { tensors } => {
                let values = tensors.iter().map(|t| self.tensor(*t)).collect::<Result<Vec<_>, _>>()?;
                let value = match values.as_slice() {
                    [one] => *one,
                    many => {
                        let first = self.returned(many.len())?;
                        let tuple = [&[Operand::Imm(i64::from(first) + 1)], many].concat();
                        self.push(first, Callee::Builtin(&builtin::MAKE_TUPLE), tuple);
                        Operand::Reg(first)
                    }
                };
                self.code.push(Instr::Ret(value));
            }
            Step::Extern { callee, args, outs } => {
                let operands = self.operands(args, outs)?;
                self.push(VOID, Callee::Extern(*callee), operands);
            }
            Step::Write { builtin, args, outs } => {
                let operands = self.operands(args, outs)?;
                self.run(builtin, operands);
            }
            Step::Copy { from, to } => {
                let (from, to) = (self.lin.storage_of(*from), self.lin.storage_of(*to));
                let operands = vec![self.memory(from)?, self.memory(to)?];
                self.run(&builtin::COPY_TENSOR, operands);
            }
            Step::MatchCast { value, info, name, span } => {
                self.match_cast(value, info, name).map_err(|d| d.at(*span))?;
            }
            Step::TensorToShape { tensor, rank, shape } => {
                let args = vec![self.slot(*rank)?, self.tensor(*tensor)?];
                let made = self.builtin(&builtin::TENSOR_TO_SHAPE, args)?;
                self.scope.shapes.insert(*shape, made);
            }
            Step::ShapeOf { tensor, shape } => {
                let args = vec![self.tensor(*tensor)?];
                let made = self.builtin(&builtin::SHAPE_OF, args)?;
                self.scope.shapes.insert(*shape, made);
            }
            Step::ShapeToTensor { shape, tensor } => {
                let args = vec![self.value(shape)?, self.tensor(*tensor)?];
                self.run(&builtin::SHAPE_TO_TENSOR, args);
            }
            Step::Builtin { builtin, args, to } => {
                let mut operands = Vec::new();
                for a in args {
                    match a {
                        BuiltinArg::Value(v) => operands.push(self.value(v)?),
                        BuiltinArg::Scalar(v) => operands.push(self.read(v)?),
                        BuiltinArg::Int(v) => operands.push(Operand::Imm(*v)),
                        BuiltinArg::Absent => operands.push(Operand::None),
                        BuiltinArg::Slot(rank) => operands.push(self.slot(*rank)?),
                        BuiltinArg::Names(t) => operands.extend(self.overflow_names(*t)?),
                    }
                }
                let made = self.builtin(builtin, operands)?;
                self.scope.tensors.insert(self.lin.storage_of(*to), made);
            }
            Step::ListLength { list, tensor } => {
                let args = vec![self.tensor(*list)?];
                let count = self.builtin(&builtin::LIST_LENGTH, args)?;
                let shape = vec![self.slot(1)?, count];
                let shape = self.builtin(&builtin::MAKE_SHAPE, shape)?;
                let to = self.tensor(*tensor)?;
                self.run(&builtin::SHAPE_TO_TENSOR, vec![shape, to]);
            }
            Step::Loop(l) => self.while_loop(l)?,
            Step::If { cond, then, otherwise } => {
                let cond = match cond {
                    Val::Tensor(t) => self.memory(self.lin.storage_of(*t))?,
                    Val::Prim(e) => self.eval(e)?,
                    _ => return Err(self.fail("has a condition that is no truth value".into())),
                };
                self.before_branches(at, then, otherwise)?;
                let outer = self.scope.clone();
                let test = self.code.len();
                self.code.push(Instr::Goto(0));
                self.free(at)?;
                self.steps(then)?;
                let jump = self.code.len();
                self.code.push(Instr::Goto(0));
                self.scope = outer.clone();
                let otherwise_at = self.target()?;
                self.free(at)?;
                self.steps(otherwise)?;
                self.scope = outer;
                let end = self.target()?;
                self.code[test] = Instr::If { cond, otherwise: otherwise_at };
                self.code[jump] = Instr::Goto(end);
            }
        }
        Ok(())
    }

    /// Registers for a call that gives `n` values: the first of them, or of one for a tuple and `n` for its items.
    pub(super) fn returned(&mut self, n: usize) -> Result<Reg, Diag> {
        let first = self.register()?;
        for _ in 0..if n == 1 { 0 } else { n } {
            self.register()?;
        }
        Ok(first)
    }

    /// Before a conditional: registers for the values that its branches give, and blocks that both use.
    fn before_branches(&mut self, at: usize, then: &[Step], otherwise: &[Step]) -> Result<(), Diag> {
        let (mut used, mut moves) = ([BTreeSet::new(), BTreeSet::new()], Vec::new());
        let count = [then, otherwise]
            .into_iter()
            .zip(&mut used)
            .map(|(steps, used)| touched(self.lin, steps, used))
            .sum::<usize>();
        super::results::moves_in(self.lin, then, &mut moves);
        super::results::moves_in(self.lin, otherwise, &mut moves);
        for (_, to) in moves {
            if !self.scope.tensors.contains_key(&to) {
                let reg = self.register()?;
                self.scope.tensors.insert(to, Operand::Reg(reg));
            }
        }
        let spans = &self.placement.spans;
        let outlives = |s: &StorageId| spans.get(s).is_some_and(|span| span.1 > at + count);
        let shared: Vec<StorageId> = used[0]
            .union(&used[1])
            .filter(|s| matches!(self.placement.places.get(s), Some(Place::Overflow(_))))
            .filter(|s| outlives(s) || used[0].contains(s) && used[1].contains(s))
            .copied()
            .collect();
        shared.into_iter().try_for_each(|s| self.memory(s).map(|_| ()))
    }

    pub(super) fn target(&self) -> Result<u32, Diag> {
        u32::try_from(self.code.len()).map_err(|_| self.fail("has too many instructions".into()))
    }

    fn operands(&mut self, args: &[Val], outs: &[TensorId]) -> Result<Vec<Operand>, Diag> {
        let values = args.iter().flat_map(Val::flat).chain(outs.iter().map(|t| Val::Tensor(*t)));
        values.map(|v| self.value(&v)).collect()
    }

    /// The operand of a value, a tensor with its own shape.
    pub(super) fn value(&mut self, value: &Val) -> Result<Operand, Diag> {
        match value {
            Val::Tensor(t) => self.tensor(*t),
            Val::Prim(e) => self.eval(e),
            Val::Shape(dims) => self.shape(dims),
            Val::Str(name) => self.constants.param(Param { name: leak_str(name), ty: Type::Any }),
            Val::RunShape(RunShape::Param(reg)) => Ok(Operand::Reg(*reg)),
            Val::RunShape(RunShape::Made(i)) => {
                self.scope.shapes.get(i).copied().ok_or_else(|| self.fail("uses a shape before it is made".into()))
            }
            Val::Tuple(_) => Err(self.fail("uses a tuple as one value".into())),
        }
    }

    /// A storage as the tensor it was made for.
    pub(super) fn memory(&mut self, s: StorageId) -> Result<Operand, Diag> {
        let storage = &self.lin.storages[s];
        let place = self.placement.places.get(&s);
        match (storage.origin, place) {
            (Origin::Param(reg), _) => Ok(Operand::Reg(reg)),
            (Origin::Out(i), _) => Ok(Operand::Out(i)),
            (Origin::Value, _) => {
                self.scope.tensors.get(&s).copied().ok_or_else(|| {
                    self.fail(format!("uses {} before it is made", self.lin.tensors[storage.tensor].name))
                })
            }
            (Origin::Weight(_), _) | (Origin::Made, None) => self.typed(s, storage.tensor),
            (Origin::Made, Some(place))
                if !matches!(place, Place::Overflow(_)) && self.fixed(storage.tensor).is_some() =>
            {
                self.typed(s, storage.tensor)
            }
            (Origin::Made, Some(place)) => {
                if let Some(known) = self.scope.tensors.get(&s) {
                    return Ok(*known);
                }
                let offset = match place {
                    Place::Arena(offset) => Operand::Imm(i64::try_from(*offset).unwrap_or(i64::MAX)),
                    Place::Dynamic(region) => {
                        let e = self.placement.plan.region_offset(*region);
                        self.eval(&e)?
                    }
                    Place::Out(i) => return Ok(Operand::Out(*i)),
                    Place::Overflow(block) => {
                        let tensor = self.block(s, *block)?;
                        self.scope.tensors.insert(s, tensor);
                        return Ok(tensor);
                    }
                };
                let (dtype, dims) = self.run_type(storage.tensor)?;
                let args = vec![offset, self.shape(&dims)?, self.constants.dtype(dtype)?];
                let tensor = self.builtin(&builtin::ALLOC_TENSOR, args)?;
                self.scope.tensors.insert(s, tensor);
                Ok(tensor)
            }
        }
    }

    /// Takes a block of the overflow store, or uses one that the storage overwrites.
    fn block(&mut self, s: StorageId, block: usize) -> Result<Operand, Diag> {
        let tensor = self.lin.storages[s].tensor;
        let (dtype, dims) = self.run_type(tensor)?;
        let shape = self.shape(&dims)?;
        let dtype = self.constants.dtype(dtype)?;
        match self.placement.blocks.get(block) {
            Some(base) if *base != s => {
                let base = self.memory(*base)?;
                self.builtin(&builtin::VIEW, vec![base, Operand::Imm(0), shape, dtype])
            }
            _ => {
                let args = [vec![shape, dtype], self.overflow_names(tensor)?].concat();
                self.builtin(&builtin::ALLOC_OVERFLOW, args)
            }
        }
    }

    /// What errors say of a tensor in the overflow store: its name and the symbol its size depends on.
    pub(super) fn overflow_names(&mut self, t: TensorId) -> Result<Vec<Operand>, Diag> {
        let tensor = &self.lin.tensors[t];
        let symbol = match &tensor.dims {
            Some(_) => unknown_symbol(self.lin, &size_of(self.lin, t, &self.analyzer)?.expr),
            None => "the data".to_string(),
        };
        [leak_str(&tensor.name), leak_str(&symbol)]
            .into_iter()
            .map(|name| self.constants.param(Param { name, ty: Type::Any }))
            .collect()
    }

    /// Dtype and dimensions as the run time sees them: bytes, where only kernels know the elements.
    pub(super) fn run_type(&self, t: TensorId) -> Result<(DType, Vec<PrimExpr>), Diag> {
        let tensor = &self.lin.tensors[t];
        let (Some(dims), Some(dtype)) = (&tensor.dims, tensor.dtype) else {
            return Err(self.fail(format!("makes {}, whose type is not known", tensor.name)));
        };
        Ok(match run_dtype(dtype) {
            Some(run) => (run, dims.clone()),
            None => (DType::U8, vec![size_of(self.lin, t, &self.analyzer)?.expr]),
        })
    }

    /// The dimensions of a tensor of fixed shape.
    fn fixed(&self, t: TensorId) -> Option<Vec<i64>> {
        self.lin.tensors[t].dims.as_ref()?.iter().map(PrimExpr::as_int).collect()
    }

    /// A constant operand: the bytes of a storage with the type of a tensor of fixed shape.
    fn typed(&mut self, s: StorageId, t: TensorId) -> Result<Operand, Diag> {
        let tensor = &self.lin.tensors[t];
        let ty = self.fixed(t).and_then(|dims| tensor_type(tensor.dtype?, &dims));
        let Some(ty) = ty else { return Err(self.fail(format!("uses {}, whose type is not known", tensor.name))) };
        let constant = match (self.lin.storages[s].origin, self.placement.places.get(&s)) {
            (Origin::Weight(offset), _) => Constant::Weight { offset, ty },
            (_, Some(Place::Arena(offset))) => {
                let offset = usize::try_from(*offset).map_err(|_| self.fail("needs too much memory".into()))?;
                Constant::Arena { offset, ty }
            }
            _ => return Err(self.fail(format!("uses {}, which has no place in memory", tensor.name))),
        };
        self.constants.add(constant)
    }

    /// A tensor with its own type.
    pub(super) fn tensor(&mut self, t: TensorId) -> Result<Operand, Diag> {
        let s = self.lin.storage_of(t);
        let own = &self.lin.tensors[t];
        // An output has the shape that it is returned in.
        let held = match self.lin.storages[s].origin {
            Origin::Out(i) => self.lin.outs.get(usize::from(i)).map(|out| &out.dims),
            _ => self.lin.tensors[self.lin.storages[s].tensor].dims.as_ref(),
        };
        if own.dims.is_none() || own.dims.as_ref() == held {
            return self.memory(s);
        }
        let placed = matches!(self.placement.places.get(&s), Some(Place::Arena(_)));
        let constant = matches!(self.lin.storages[s].origin, Origin::Weight(_)) || placed;
        if constant && self.fixed(t).is_some() {
            return self.typed(s, t);
        }
        let dims = own.dims.clone().unwrap_or_default();
        let args = vec![self.memory(s)?, self.shape(&dims)?];
        self.builtin(&builtin::RESHAPE, args)
    }

    /// Integers of the heap for a shape: the number of the first one.
    pub(super) fn slot(&mut self, rank: usize) -> Result<Operand, Diag> {
        let slot = self.heap;
        self.heap = u16::try_from(rank)
            .ok()
            .and_then(|rank| self.heap.checked_add(rank))
            .ok_or_else(|| self.fail("makes too many shapes".into()))?;
        Ok(Operand::Imm(i64::from(slot)))
    }

    pub(super) fn shape(&mut self, dims: &[PrimExpr]) -> Result<Operand, Diag> {
        if let Some(fixed) = dims.iter().map(PrimExpr::as_int).collect::<Option<Vec<i64>>>() {
            return self.constants.shape(&fixed);
        }
        let mut args = vec![self.slot(dims.len())?];
        for d in dims {
            args.push(self.eval(d)?);
        }
        self.builtin(&builtin::MAKE_SHAPE, args)
    }
}

/// The storages that steps name; gives the number of steps.
fn touched(lin: &Linear, steps: &[Step], out: &mut BTreeSet<StorageId>) -> usize {
    let mut count = steps.len();
    for step in steps {
        out.extend(step.reads().iter().chain(&step.writes()).map(|t| lin.storage_of(*t)));
        if let Step::If { then, otherwise, .. } = step {
            count += touched(lin, then, out) + touched(lin, otherwise, out);
        }
    }
    count
}
