//! The loop of the VM.

use crate::abi::{ALIGN, Context, Kernel, Parallel};
use crate::bytecode::{Callee, Constant, Function, Instr, Operand, Program, Reg, TensorType, VOID};
use crate::error::Error;
use crate::tensor::{ShapeRef, TensorRef, Value, elements};
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
    /// First byte of the arena; a multiple of [`ALIGN`].
    pub(crate) arena: usize,
    /// Bytes in use behind it.
    pub(crate) used: usize,
}

/// A call in progress, as builtins see it.
pub struct Frame<'a> {
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
    pub(crate) parallel: Parallel,
    pub(crate) window: Window,
}

impl Frame<'_> {
    /// Runs the window's function, whose arguments are in its registers.
    pub(crate) fn run(&mut self) -> Result<Value, Error> {
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

    fn kernel(&mut self, index: u16, args: &[Operand]) -> Result<Value, Error> {
        let Some(kernel) = self.kernels.get(usize::from(index)) else {
            return Err(self.malformed("no such kernel"));
        };
        let scratch = self.window.heap + usize::from(self.window.function.heap);
        let (mut buffers, mut scalars) = (0, 0);
        for &operand in args {
            let scalar = match self.get(operand)? {
                Value::Tensor(tensor) => {
                    *self.pointers.get_mut(buffers).ok_or(Error::StorageTooSmall)? = tensor.data.cast();
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
            return Err(Error::ArenaTooSmall { needed, available: self.arena_len });
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
                Err(Error::Kernel {
                    kernel: name.copied().unwrap_or("?"),
                    message: message.copied().unwrap_or("unknown message"),
                })
            }
        }
    }

    fn function(&mut self, index: u16, args: &[Operand], dst: Reg) -> Result<Value, Error> {
        let (caller, index) = (self.window, usize::from(index));
        let function = match self.program.functions.get(index) {
            Some(function) if index < caller.index => function,
            _ => return Err(self.malformed("a callee must come before its caller")),
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
                let item = item.ok_or(Error::StorageTooSmall)?;
                self.keep(item, heap)?;
                self.set(dst.saturating_add(1 + i), item)?;
            }
            return Ok(Value::Tuple { first: self.absolute(dst.saturating_add(1))?, len });
        }
        self.keep(value, heap)?;
        Ok(value)
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
    ) -> Result<(), Error> {
        let window = self.registers.get_mut(base + args..base + usize::from(function.registers));
        window.ok_or(Error::StorageTooSmall)?.fill(Value::None);
        let needed = arena.saturating_add(function.arena_bytes);
        if needed > self.arena_len {
            return Err(Error::ArenaTooSmall { needed, available: self.arena_len });
        }
        if heap + usize::from(function.heap) > self.ints_len {
            return Err(Error::StorageTooSmall);
        }
        self.window = Window { index, function, base, heap, arena, used: function.arena_bytes };
        Ok(())
    }

    /// Refuses what points to integers from `heap` on: they are gone when the callee has returned.
    fn keep(&self, value: Value, heap: usize) -> Result<(), Error> {
        let shape = match value {
            Value::Tensor(tensor) => tensor.shape,
            Value::Shape(shape) => shape,
            Value::Tuple { .. } => return Err(self.malformed("a nested tuple is returned")),
            _ => return Ok(()),
        };
        let gone = self.ints.wrapping_add(heap).cast_const()..self.ints.wrapping_add(self.ints_len).cast_const();
        if gone.contains(&shape.dims) && shape.rank != 0 {
            return Err(self.malformed("a returned shape lies in the callee's frame"));
        }
        Ok(())
    }

    fn external(&mut self, index: u16, args: &[Operand]) -> Result<Value, Error> {
        let Some(function) = self.program.externs.get(usize::from(index)) else {
            return Err(self.malformed("no such external function"));
        };
        let base = self.spill(args)?;
        (function.call)(self.registers.get(base..base + args.len()).unwrap_or_default())
    }

    /// Copies operands to the registers behind the window and returns the first one's index.
    fn spill(&mut self, args: &[Operand]) -> Result<usize, Error> {
        let base = self.window.base + usize::from(self.window.function.registers);
        for (i, &operand) in args.iter().enumerate() {
            let value = self.get(operand)?;
            *self.registers.get_mut(base + i).ok_or(Error::StorageTooSmall)? = value;
        }
        Ok(base)
    }

    /// First aligned byte of the arena that is not in use.
    fn arena_top(&self) -> usize {
        (self.window.arena + self.window.used).next_multiple_of(ALIGN).min(self.arena_len)
    }

    /// The error of a broken table.
    pub(crate) fn malformed(&self, rule: &'static str) -> Error {
        Error::Malformed { function: self.window.function.name, rule }
    }

    /// Index of a register over all frames.
    pub(crate) fn absolute(&self, reg: Reg) -> Result<u16, Error> {
        u16::try_from(self.window.base + usize::from(reg)).map_err(|_| Error::StorageTooSmall)
    }

    /// What the register holds.
    pub(crate) fn reg(&self, reg: Reg) -> Result<Value, Error> {
        match self.registers.get(self.window.base + usize::from(reg)) {
            Some(&value) if reg < self.window.function.registers => Ok(value),
            _ => Err(self.malformed("no such register")),
        }
    }

    /// Writes the register.
    pub(crate) fn set(&mut self, reg: Reg, value: Value) -> Result<(), Error> {
        match self.registers.get_mut(self.window.base + usize::from(reg)) {
            Some(slot) if reg < self.window.function.registers => *slot = value,
            _ => return Err(self.malformed("no such register")),
        }
        Ok(())
    }

    /// The constant of an operand that must be one.
    pub(crate) fn constant(&self, operand: Operand) -> Result<&'static Constant, Error> {
        match operand {
            Operand::Const(i) => self.program.constants.get(usize::from(i)),
            _ => None,
        }
        .ok_or_else(|| self.malformed("no such constant"))
    }

    /// The value of an operand.
    pub(crate) fn get(&self, operand: Operand) -> Result<Value, Error> {
        Ok(match operand {
            Operand::Reg(reg) => self.reg(reg)?,
            Operand::Out(i) => self.reg((self.window.function.params.len() as Reg).saturating_add(i))?,
            Operand::Imm(value) => Value::Int(value),
            Operand::None => Value::None,
            Operand::Const(_) => match *self.constant(operand)? {
                Constant::Weight { offset, ty } => {
                    let data = self.weights.as_ptr().wrapping_add(offset).cast_mut();
                    tensor(data, ty)
                }
                Constant::Arena { offset, ty } => tensor(self.arena.wrapping_add(self.window.arena + offset), ty),
                Constant::Shape(dims) => Value::Shape(ShapeRef::new(dims)),
                Constant::Int(value) => Value::Int(value),
                Constant::Float(value) => Value::Float(value),
                Constant::Bool(value) => Value::Bool(value),
                Constant::DType(_) | Constant::Param(_) => return Err(self.malformed("a type is not a value")),
            },
        })
    }

    /// The extents of a shape that is held by the running program.
    pub(crate) fn dims(&self, shape: ShapeRef) -> &[i64] {
        // SAFETY: a shape in the program's hands lies in an argument, in a constant or in a window
        // of `ints` that is still open (`keep`); the loop writes only integers of shapes being made.
        unsafe { shape.dims() }
    }

    /// Number of elements of a tensor that is held by the running program.
    pub(crate) fn elements(&self, shape: ShapeRef) -> Result<usize, Error> {
        elements(self.dims(shape)).ok_or(Error::BadShape { argument: self.window.function.name })
    }

    /// Writes an integer, counted over all frames.
    fn write_int(&mut self, index: usize, value: i64) -> Result<(), Error> {
        if index >= self.ints_len {
            return Err(Error::StorageTooSmall);
        }
        // SAFETY: in bounds of the block that `ints` points to, which nothing else refers to by reference.
        unsafe { self.ints.add(index).write(value) };
        Ok(())
    }

    /// Makes a shape of the integers in the window's heap from `slot` on.
    pub(crate) fn make_shape(
        &mut self,
        slot: i64,
        rank: usize,
        mut extent: impl FnMut(&mut Self, usize) -> Result<i64, Error>,
    ) -> Result<Value, Error> {
        let heap = usize::from(self.window.function.heap);
        let slot = usize::try_from(slot).ok().filter(|&s| s.checked_add(rank).is_some_and(|end| end <= heap));
        let first = self.window.heap + slot.ok_or_else(|| self.malformed("a shape leaves the heap"))?;
        for i in 0..rank {
            let value = extent(self, i)?;
            self.write_int(first + i, value)?;
        }
        Ok(Value::Shape(ShapeRef { dims: self.ints.wrapping_add(first), rank: rank as u16 }))
    }

    /// Bytes `offset..offset + bytes` of the window's part of the arena.
    pub(crate) fn arena_bytes(&mut self, offset: i64, bytes: Option<usize>) -> Result<*mut u8, Error> {
        let start = usize::try_from(offset).ok().and_then(|o| self.window.arena.checked_add(o));
        let (start, end) = match (start, bytes) {
            (Some(start), Some(bytes)) => (start, start.saturating_add(bytes)),
            _ => (0, usize::MAX),
        };
        if end > self.arena_len {
            return Err(Error::ArenaTooSmall { needed: end, available: self.arena_len });
        }
        self.window.used = self.window.used.max(end - self.window.arena);
        Ok(self.arena.wrapping_add(start))
    }

    /// Element `index` of an integer or bool tensor, or of a float tensor as `Value::Float`.
    pub(crate) fn element(&self, tensor: TensorRef, index: usize) -> Result<Value, Error> {
        if index >= self.elements(tensor.shape)? {
            return Err(self.malformed("an element is read that the tensor does not have"));
        }
        macro_rules! read {
            ($($rust:ty => |$x:ident| $value:expr;)*) => {
                $(if tensor.dtype == <$rust as crate::Element>::DTYPE {
                    // SAFETY: in bounds, of this type, alive and initialised as the program says.
                    let $x = unsafe { tensor.data.cast::<$rust>().add(index).read_unaligned() };
                    return Ok($value);
                })*
            };
        }
        read! {
            bool => |x| Value::Bool(x);
            i64 => |x| Value::Int(x);
            i32 => |x| Value::Int(x.into());
            i16 => |x| Value::Int(x.into());
            i8 => |x| Value::Int(x.into());
            u8 => |x| Value::Int(x.into());
            u16 => |x| Value::Int(x.into());
            u32 => |x| Value::Int(x.into());
            f32 => |x| Value::Float(x.into());
            f64 => |x| Value::Float(x);
        }
        Err(self.malformed("a scalar of this dtype cannot be read"))
    }

    /// Copies the elements of `from` to `to`, which may overlap.
    pub(crate) fn copy_elements(&mut self, from: TensorRef, to: TensorRef) -> Result<(), Error> {
        let count = self.elements(from.shape)?;
        if from.dtype != to.dtype || count != self.elements(to.shape)? {
            return Err(self.malformed("tensors of different size or dtype are copied"));
        }
        // SAFETY: both hold `count` elements of this type; `copy` allows overlap.
        unsafe { to.data.copy_from(from.data, count * from.dtype.bytes()) };
        Ok(())
    }

    fn truth(&self, operand: Operand) -> Result<bool, Error> {
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

fn tensor(data: *mut u8, ty: TensorType) -> Value {
    Value::Tensor(TensorRef { data, shape: ShapeRef::new(ty.shape), dtype: ty.dtype })
}
