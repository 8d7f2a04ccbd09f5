//! The table of a compiled module. The compiler writes it as `static` items in Rust text.

use crate::abi::Kernel;
use crate::builtin::Builtin;
use crate::dtype::DType;
use crate::error::Error;
use crate::isa::IsaLevel;
use crate::tensor::Value;

/// A register of a function's window.
pub type Reg = u16;

/// The register that drops what is written to it.
pub const VOID: Reg = Reg::MAX;

/// An operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An entry of [`Program::constants`].
    Const(u16),
    /// An integer.
    Imm(i64),
    /// The `i`-th output of the function: register `params + i`.
    Out(u16),
    /// No value.
    None,
}

/// What a call calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Callee {
    /// A kernel. Tensor operands are its buffers, in order; `Int`, `Bool` and `Float` operands its
    /// scalar parameters. Gives no value.
    Kernel(u16),
    /// A function of the runtime.
    Builtin(&'static Builtin),
    /// A function of the program with a smaller index than the calling one. Operands are its
    /// parameters, then its outputs. Where it returns shapes that it made itself, or tensors with such shapes,
    /// an `Imm` follows: the place in the caller's heap to which their extents are copied, one after the other.
    Function(u16),
    /// A function of the user's program.
    Extern(u16),
}

/// An instruction of the VM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Instr {
    /// `dst = callee(args)`.
    Call {
        /// Register that takes the value, or [`VOID`].
        dst: Reg,
        /// What is called.
        callee: Callee,
        /// Operands.
        args: &'static [Operand],
    },
    /// Returns from the function. A tuple of values that are not tuples may be returned to a
    /// caller in the program; it is put into the registers after the call's `dst`.
    Ret(Operand),
    /// Continues at this index of the function's code.
    Goto(u32),
    /// Continues with the next instruction if `cond` is true (a `Bool`, an `Int` that is not 0, or
    /// a tensor of one such element), else at index `otherwise`.
    If {
        /// The condition.
        cond: Operand,
        /// Target when it is false.
        otherwise: u32,
    },
}

/// Type of a tensor whose shape is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'static [i64],
}

/// A constant of the program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    /// Tensor at a byte offset in the weights; a multiple of [`crate::ALIGN`].
    Weight {
        /// Byte offset.
        offset: usize,
        /// Type.
        ty: TensorType,
    },
    /// Tensor that was placed by the memory planner, at a byte offset in the part of the arena that
    /// belongs to the function that names it; a multiple of [`crate::ALIGN`].
    Arena {
        /// Byte offset.
        offset: usize,
        /// Type.
        ty: TensorType,
    },
    /// A shape.
    Shape(&'static [i64]),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A data type, operand of builtins only.
    DType(DType),
    /// A type to check against, operand of builtins only.
    Param(Param),
}

/// An extent or integer in a signature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dim {
    /// Must be this.
    Imm(i64),
    /// Binds the symbol of this name: the register takes the value.
    Bind(Reg, &'static str),
    /// Must equal the integer in the register; the name (or expression) is for the error.
    Same(Reg, &'static str),
    /// Anything.
    Any,
}

/// A type in a signature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// Any value.
    Any,
    /// A tensor; `None` where dtype or rank are not known.
    Tensor {
        /// Element type.
        dtype: Option<DType>,
        /// Shape.
        shape: Option<&'static [Dim]>,
    },
    /// A shape, `None` if the rank is not known.
    Shape(Option<&'static [Dim]>),
    /// An integer.
    Int(Dim),
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// A list.
    List,
}

/// A parameter or output of a function, or a value that is checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    /// Name, for errors.
    pub name: &'static str,
    /// What the value must be.
    pub ty: Type,
}

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameSize {
    /// Registers of a [`crate::Storage`].
    pub registers: usize,
    /// Integers of a [`crate::Storage`].
    pub ints: usize,
    /// Pointers of a [`crate::Storage`].
    pub pointers: usize,
    /// Bytes of the arena.
    pub arena: usize,
}

/// A function of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Parameters: registers `0..params.len()`.
    pub params: &'static [Param],
    /// Output tensors that the caller provides: the next registers.
    pub outs: &'static [Param],
    /// Registers of the window, parameters and outputs included.
    pub registers: u16,
    /// Integers of the window, for the shapes that the function makes.
    pub heap: u16,
    /// Bytes of the arena that the function's own tensors occupy.
    pub arena_bytes: usize,
    /// Most bytes of workspace that a kernel called from here needs; it lies behind `arena_bytes`.
    pub workspace_bytes: usize,
    /// What a call needs, callees included: [`Function::required_frame`].
    pub frame: FrameSize,
    /// Instructions; the last one is `Ret` or `Goto`.
    pub code: &'static [Instr],
}

impl Function {
    /// The value due in `frame`, for the function at the index `callees.len()` of a program that
    /// begins with `callees`. Counts offsets of `alloc_tensor` only if they are constants below `arena_bytes`.
    pub fn required_frame(&self, callees: &[Function]) -> FrameSize {
        let mut deepest = FrameSize { arena: self.workspace_bytes, ..FrameSize::default() };
        for instr in self.code {
            let Instr::Call { callee, args, .. } = instr else { continue };
            let n = args.len();
            let need = match callee {
                Callee::Kernel(_) => FrameSize { ints: n, pointers: n, ..FrameSize::default() },
                Callee::Extern(_) => FrameSize { registers: n, ..FrameSize::default() },
                Callee::Function(i) => callees.get(usize::from(*i)).map(|f| f.frame).unwrap_or_default(),
                Callee::Builtin(_) => FrameSize::default(),
            };
            deepest = FrameSize {
                registers: deepest.registers.max(need.registers),
                ints: deepest.ints.max(need.ints),
                pointers: deepest.pointers.max(need.pointers),
                arena: deepest.arena.max(need.arena),
            };
        }
        FrameSize {
            registers: usize::from(self.registers) + deepest.registers,
            ints: usize::from(self.heap) + deepest.ints,
            pointers: deepest.pointers,
            arena: self.arena_bytes.next_multiple_of(crate::ALIGN) + deepest.arena,
        }
    }
}

/// The kernels of a program, compiled for one ISA level.
#[derive(Debug, Clone, Copy)]
pub struct KernelTable {
    /// Level that the machine must have.
    pub level: IsaLevel,
    /// Kernels by number.
    pub kernels: &'static [Kernel],
}

/// A function of the user's program, called with the values of its operands.
#[derive(Debug, Clone, Copy)]
pub struct Extern {
    /// Name, for errors and text.
    pub name: &'static str,
    /// The function. Tensors in `args` are alive during the call.
    pub call: fn(args: &[Value]) -> Result<Value, Error>,
}

/// A compiled module.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Functions; callees before their callers.
    pub functions: &'static [Function],
    /// Constants.
    pub constants: &'static [Constant],
    /// The same kernels for one or more levels, ascending. The first is used when no other fits.
    pub kernels: &'static [KernelTable],
    /// Names of kernels, for errors and text; may be shorter than the tables.
    pub kernel_names: &'static [&'static str],
    /// Functions of the user's program.
    pub externs: &'static [Extern],
    /// Messages of assertions in kernels.
    pub messages: &'static [&'static str],
    /// Bytes of weights.
    pub weight_bytes: usize,
}
