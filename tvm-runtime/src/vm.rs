//! The loop of the VM.

use crate::abi::{Context, Kernel, Parallel};
use crate::bytecode::{Callee, Function, Instr, Operand, Program, Reg, VOID};
use crate::error::Error;
use crate::lists::Lists;
use crate::overflow::Overflow;
use crate::tensor::{Element, TensorView, Value};
use crate::texts::Texts;
use core::cell::Cell;
use core::ffi::c_void;

/// Registers, integers and pointers of one call, on the caller's stack: the sizes of
/// [`crate::FrameSize`].
pub struct Storage<const REGISTERS: usize, const INTS: usize, const POINTERS: usize> {
    pub(crate) registers: [Value; REGISTERS],
    pub(crate) ints: [i64; INTS],
    pub(crate) pointers: [*mut c_void; POINTERS],
}

impl<const REGISTERS: usize, const INTS: usize, const POINTERS: usize> Storage<REGISTERS, INTS, POINTERS> {
    /// Empty storage.
    pub const fn new() -> Self {
        Storage { registers: [Value::None; REGISTERS], ints: [0; INTS], pointers: [core::ptr::null_mut(); POINTERS] }
    }

    /// The values of a tuple that the last call with this storage returned; empty for another value.
    pub fn items(&self, tuple: Value) -> &[Value] {
        let Value::Tuple { first, len } = tuple else { return &[] };
        let first = usize::from(first);
        self.registers.get(first..first + usize::from(len)).unwrap_or_default()
    }

    /// The tensor of number `index` among those that the last call with this storage returned, called `argument` in
    /// errors: another rank or element type.
    ///
    /// # Safety
    ///
    /// `value` is what that call returned, and the memory of its state is neither written nor freed during `'v`.
    pub unsafe fn view<'v, T: Element, const RANK: usize>(
        &self,
        value: Value,
        index: usize,
        argument: &'static str,
    ) -> Result<TensorView<'v, T, RANK>, Error> {
        let value = match value {
            Value::Tuple { .. } => self.items(value).get(index).copied().unwrap_or(Value::None),
            one => one,
        };
        let Value::Tensor(tensor) = value else {
            return Err(Error::WrongKind { argument, expected: crate::Kind::Tensor, found: value.kind() });
        };
        // SAFETY: data and shape are alive, as the caller promises.
        unsafe { TensorView::of(tensor, argument) }
    }
}

#[cfg(feature = "alloc")]
impl<const R: usize, const I: usize, const P: usize> Storage<R, I, P> {
    /// A copy of the list of number `index` among what the last call with this storage returned, called `argument` in errors:
    /// it is no list.
    ///
    /// # Safety
    ///
    /// `value` is what that call returned; its arguments and the memory of its state are as it left them.
    pub unsafe fn list(&self, value: Value, index: usize, argument: &'static str) -> Result<crate::AnyList, Error> {
        let value = match value {
            Value::Tuple { .. } => self.items(value).get(index).copied().unwrap_or(Value::None),
            one => one,
        };
        // SAFETY: as the caller promises.
        match unsafe { crate::AnyValue::copy(&value) } {
            Some(crate::AnyValue::List(list)) => Ok(list),
            _ => Err(Error::WrongKind { argument, expected: crate::Kind::List, found: value.kind() }),
        }
    }
}

impl<const R: usize, const I: usize, const P: usize> Default for Storage<R, I, P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The running function's part of everything.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) index: usize,
    pub(crate) function: &'static Function,
    /// First register.
    pub(crate) base: usize,
    /// First integer.
    pub(crate) heap: usize,
    /// First byte of the arena; a multiple of [`crate::ALIGN`].
    pub(crate) arena: usize,
    /// Bytes in use behind it.
    pub(crate) used: usize,
}

/// A call failed; the frame's `error` says why.
///
/// Nothing but a tag, so that passing it on costs one test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fail(());

/// A call in progress, as builtins see it.
pub(crate) struct Frame<'a> {
    pub(crate) program: &'static Program,
    pub(crate) kernels: &'static [Kernel],
    pub(crate) weights: &'a [u8],
    pub(crate) registers: &'a mut [Value],
    /// A pointer, not a slice: shapes in registers point into it.
    pub(crate) ints: *mut i64,
    pub(crate) ints_len: usize,
    pub(crate) pointers: &'a mut [*mut c_void],
    pub(crate) arena: *mut u8,
    pub(crate) arena_len: usize,
    pub(crate) overflow: &'a mut Overflow,
    pub(crate) lists: &'a mut Lists,
    /// Strings.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "strings need a heap"))]
    pub(crate) texts: &'a mut Texts,
    pub(crate) parallel: Parallel,
    pub(crate) window: Window,
    pub(crate) error: Cell<Error>,
}

impl Frame<'_> {
    /// Notes why the call fails.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(&self, error: Error) -> Fail {
        self.error.set(error);
        Fail(())
    }

    /// Runs the window's function, whose arguments are in its registers.
    pub(crate) fn run(&mut self) -> Result<Value, Fail> {
        let function = self.window.function;
        for (i, param) in function.params.iter().chain(function.outs).enumerate() {
            let value = self.reg(i as Reg)?;
            self.check(value, param)?;
        }
        let mut pc = 0;
        loop {
            let Some(instr) = function.code.get(pc) else {
                return Err(self.malformed("execution leaves the code"));
            };
            pc += 1;
            match *instr {
                Instr::Call { dst, callee, args } => {
                    let value = match callee {
                        Callee::Kernel(kernel) => self.kernel(kernel, args)?,
                        Callee::Builtin(builtin) => (builtin.run)(self, args)?,
                        Callee::Function(index) => self.function(index, args, dst)?,
                        Callee::Extern(index) => self.external(index, args)?,
                    };
                    if dst != VOID {
                        self.set(dst, value)?;
                    }
                }
                Instr::Ret(operand) => return self.get(operand),
                Instr::Goto(target) => pc = target as usize,
                Instr::If { cond, otherwise } => {
                    if !self.truth(cond)? {
                        pc = otherwise as usize;
                    }
                }
            }
        }
    }

    fn kernel(&mut self, index: u16, args: &[Operand]) -> Result<Value, Fail> {
        let Some(kernel) = self.kernels.get(usize::from(index)) else {
            return Err(self.malformed("no such kernel"));
        };
        let scratch = self.window.heap + usize::from(self.window.function.heap);
        let (mut buffers, mut scalars) = (0, 0);
        for &operand in args {
            let scalar = match self.get(operand)? {
                Value::Tensor(tensor) => {
                    let Some(slot) = self.pointers.get_mut(buffers) else {
                        return Err(self.fail(Error::StorageTooSmall));
                    };
                    *slot = tensor.data.cast();
                    buffers += 1;
                    continue;
                }
                Value::Int(value) => value,
                Value::Bool(value) => i64::from(value),
                Value::Float(value) => value.to_bits() as i64,
                _ => return Err(self.malformed("a kernel takes tensors and scalars only")),
            };
            self.write_int(scratch + scalars, scalar)?;
            scalars += 1;
        }
        let used = self.arena_top();
        let needed = used + self.window.function.workspace_bytes;
        if needed > self.arena_len {
            return Err(self.fail(Error::ArenaTooSmall { needed, available: self.arena_len }));
        }
        // SAFETY: `scratch` and `used` were compared with the lengths of storage and arena on entry
        // and on every write; an offset of at most the length stays within (or one past) the block.
        let (dims, workspace) = unsafe { (self.ints.add(scratch.min(self.ints_len)), self.arena.add(used)) };
        let context = Context {
            parallel_for: self.parallel.run,
            opaque: self.parallel.opaque,
            workspace: workspace.cast(),
            workspace_bytes: self.arena_len - used,
        };
        // SAFETY: the table is the compiler's (`State::new`): a kernel touches the elements of its
        // tensors, its scalars and the workspace, all alive, and nothing else.
        match unsafe { kernel(self.pointers.as_ptr(), dims, &context) } {
            0 => Ok(Value::None),
            code => {
                let name = self.program.kernel_names.get(usize::from(index));
                let message = usize::try_from(code).ok().and_then(|n| self.program.messages.get(n.checked_sub(1)?));
                Err(self.fail(Error::Kernel {
                    kernel: name.copied().unwrap_or("?"),
                    message: message.copied().unwrap_or("unknown message"),
                }))
            }
        }
    }

    fn function(&mut self, index: u16, args: &[Operand], dst: Reg) -> Result<Value, Fail> {
        let (caller, index) = (self.window, usize::from(index));
        let function = match self.program.functions.get(index) {
            Some(function) if index < caller.index => function,
            _ => return Err(self.malformed("a callee must come before its caller")),
        };
        // A further operand: where in the caller's heap the shapes of what is returned go.
        let (args, mut slot) = match (args, args.len() - args.len().min(function.params.len() + function.outs.len())) {
            (_, 0) => (args, None),
            ([args @ .., Operand::Imm(slot)], 1) => (args, Some(*slot)),
            _ => return Err(self.malformed("a call has the wrong number of operands")),
        };
        if args.len() != function.params.len() + function.outs.len() {
            return Err(self.malformed("a call has the wrong number of operands"));
        }
        let base = self.spill(args)?;
        let heap = caller.heap + usize::from(caller.function.heap);
        self.open(index, function, base, args.len(), heap, self.arena_top())?;
        let result = self.run();
        self.window = caller;
        let value = result?;
        if let (Value::Tuple { first, len }, false) = (value, dst == VOID) {
            for i in 0..len {
                let item = self.registers.get(usize::from(first) + usize::from(i)).copied();
                let item = item.ok_or_else(|| self.fail(Error::StorageTooSmall))?;
                let item = self.keep(item, heap, &mut slot)?;
                self.set(dst.saturating_add(1 + i), item)?;
            }
            return Ok(Value::Tuple { first: self.absolute(dst.saturating_add(1))?, len });
        }
        self.keep(value, heap, &mut slot)
    }

    /// Opens a function's window; `args` registers from `base` on are set already.
    pub(crate) fn open(
        &mut self,
        index: usize,
        function: &'static Function,
        base: usize,
        args: usize,
        heap: usize,
        arena: usize,
    ) -> Result<(), Fail> {
        let window = self.registers.get_mut(base + args..base + usize::from(function.registers));
        match window {
            Some(window) => window.fill(Value::None),
            None => return Err(self.fail(Error::StorageTooSmall)),
        }
        let needed = arena.saturating_add(function.arena_bytes);
        if needed > self.arena_len {
            return Err(self.fail(Error::ArenaTooSmall { needed, available: self.arena_len }));
        }
        if heap + usize::from(function.heap) > self.ints_len {
            return Err(self.fail(Error::StorageTooSmall));
        }
        self.window = Window { index, function, base, heap, arena, used: function.arena_bytes };
        Ok(())
    }

    /// Copies a shape that lies in the integers from `heap` on, which are gone when the callee has returned, to the
    /// window's heap from `slot` on, which is moved; refuses it without one.
    fn keep(&mut self, value: Value, heap: usize, slot: &mut Option<i64>) -> Result<Value, Fail> {
        let shape = match value {
            Value::Tensor(tensor) => tensor.shape,
            Value::Shape(shape) => shape,
            Value::Tuple { .. } => return Err(self.malformed("a nested tuple is returned")),
            _ => return Ok(value),
        };
        let gone = self.ints.wrapping_add(heap).cast_const()..self.ints.wrapping_add(self.ints_len).cast_const();
        if !gone.contains(&shape.dims) || shape.rank == 0 {
            return Ok(value);
        }
        let Some(first) = slot else { return Err(self.malformed("a returned shape lies in the callee's frame")) };
        let rank = usize::from(shape.rank);
        // Nothing has been written there since the callee returned.
        let made = self.make_shape(*first, rank, |f, i| {
            f.dims(shape).get(i).copied().ok_or_else(|| f.malformed("no such axis"))
        })?;
        *first = first.saturating_add(i64::from(shape.rank));
        Ok(match (value, made) {
            (Value::Tensor(tensor), Value::Shape(shape)) => Value::Tensor(crate::TensorRef { shape, ..tensor }),
            _ => made,
        })
    }

    fn external(&mut self, index: u16, args: &[Operand]) -> Result<Value, Fail> {
        let Some(function) = self.program.externs.get(usize::from(index)) else {
            return Err(self.malformed("no such external function"));
        };
        let base = self.spill(args)?;
        let args = self.registers.get(base..base + args.len()).unwrap_or_default();
        (function.call)(args).map_err(|error| self.fail(error))
    }

    /// Copies operands to the registers behind the window and returns the first one's index.
    fn spill(&mut self, args: &[Operand]) -> Result<usize, Fail> {
        let base = self.window.base + usize::from(self.window.function.registers);
        for (i, &operand) in args.iter().enumerate() {
            let value = self.get(operand)?;
            let Some(slot) = self.registers.get_mut(base + i) else {
                return Err(self.fail(Error::StorageTooSmall));
            };
            *slot = value;
        }
        Ok(base)
    }

    fn truth(&self, operand: Operand) -> Result<bool, Fail> {
        let value = match self.get(operand)? {
            Value::Tensor(tensor) => self.element(tensor, 0)?,
            value => value,
        };
        match value {
            Value::Bool(value) => Ok(value),
            Value::Int(value) => Ok(value != 0),
            _ => Err(self.malformed("a condition must be a truth value")),
        }
    }
}
