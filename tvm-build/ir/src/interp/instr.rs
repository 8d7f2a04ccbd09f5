//! Instructions of the register machine.

use crate::dtype::DType;
use crate::prim::Intrinsic;

/// Operations. `d = dst`; `[m]` is memory `c`, at element `a + b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Op {
    // Control: `t` is the distance from the next instruction.
    Jump,
    JumpBack,
    JumpIfZero,
    JumpIfNonZero,
    /// Jumps when `a != b`.
    JumpIfNe,
    /// `d = a`, then jump when `d >= b`.
    LoopEnter,
    /// `d += 1`, then jump when `d < b`.
    LoopNext,
    Move,
    Fail,
    /// Fails at site `t` unless `0 <= a < b`.
    Check,
    /// Forgets what was stored in a memory.
    Alloc,
    CheckInit,
    MarkInit,
    // Integers.
    Add,
    Sub,
    Mul,
    /// `a * b + c`
    MulAdd,
    /// Signed division; `b` is not 0, or site `t`.
    Div,
    Mod,
    FloorDiv,
    FloorMod,
    DivU,
    ModU,
    Min,
    Max,
    MinU,
    MaxU,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    ShrU,
    /// Keeps the low `64 - c` bits, sign-extended.
    WrapS,
    /// Keeps the low `64 - c` bits.
    WrapU,
    Eq,
    Ne,
    Lt,
    Le,
    LtU,
    LeU,
    Select,
    /// Intrinsic `c` of integers of type `t`.
    IntCall,
    // Floats.
    AddF32,
    SubF32,
    MulF32,
    /// `a * b + c`, rounded twice.
    MulAddF32,
    DivF32,
    ModF32,
    FloorModF32,
    MinF32,
    MaxF32,
    EqF32,
    NeF32,
    LtF32,
    LeF32,
    FmaF32,
    CallF32,
    Call2F32,
    TestF32,
    AddF64,
    SubF64,
    MulF64,
    DivF64,
    ModF64,
    FloorModF64,
    MinF64,
    MaxF64,
    EqF64,
    NeF64,
    LtF64,
    LeF64,
    FmaF64,
    CallF64,
    Call2F64,
    TestF64,
    /// `a * 2^b` of type `t`, in doubles.
    Ldexp,
    /// Next value of type `t` after `a` toward `b`, in doubles.
    NextAfter,
    // Conversions; `t` is a type.
    F32ToF64,
    F64ToF32,
    IntToF32,
    IntToF64,
    U64ToF32,
    U64ToF64,
    F32ToInt,
    F64ToInt,
    /// A double rounded to narrow type `t`, as `float32`.
    Narrow,
    NarrowF32,
    /// The bits of a float of type `t`.
    ToBits,
    FromBits,
    // Memory.
    LoadF32,
    /// Element `a * b + c` of memory `t`.
    LoadScaledF32,
    LoadF64,
    LoadI8,
    LoadU8,
    LoadI32,
    LoadI64,
    LoadAny,
    StoreF32,
    StoreF64,
    Store8,
    Store32,
    Store64,
    StoreAny,
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Instr {
    pub(super) op: Op,
    pub(super) d: u16,
    pub(super) a: u16,
    pub(super) b: u16,
    pub(super) c: u16,
    pub(super) t: i32,
}

impl Op {
    /// Whether `t` is a distance.
    pub(super) fn is_jump(self) -> bool {
        matches!(
            self,
            Op::Jump | Op::JumpBack | Op::JumpIfZero | Op::JumpIfNonZero | Op::JumpIfNe | Op::LoopEnter | Op::LoopNext
        )
    }

    /// Whether all it does is to set `d` (a register that nothing else sets), and it cannot fail.
    pub(super) fn only_sets(self) -> bool {
        let effect = matches!(
            self,
            Op::Fail | Op::Check | Op::Alloc | Op::CheckInit | Op::MarkInit | Op::Move | Op::StoreF32 | Op::StoreF64
        ) || matches!(self, Op::Store8 | Op::Store32 | Op::Store64 | Op::StoreAny);
        let divides = matches!(self, Op::Div | Op::Mod | Op::FloorDiv | Op::FloorMod | Op::DivU | Op::ModU);
        !self.is_jump() && !effect && !divides
    }

    /// Whether `c` is a register that it reads.
    pub(super) fn reads_c(self) -> bool {
        matches!(self, Op::MulAdd | Op::Select | Op::MulAddF32 | Op::FmaF32 | Op::FmaF64 | Op::LoadScaledF32)
    }

    /// Whether `d` is a register that it reads.
    pub(super) fn reads_d(self) -> bool {
        let stores =
            matches!(self, Op::StoreF32 | Op::StoreF64 | Op::Store8 | Op::Store32 | Op::Store64 | Op::StoreAny);
        stores || self == Op::LoopNext
    }
}

/// Code and the tables it refers to.
#[derive(Default)]
pub(super) struct Code {
    pub(super) instrs: Vec<Instr>,
    pub(super) constants: Vec<(u16, u64)>,
    pub(super) dtypes: Vec<DType>,
    pub(super) intrinsics: Vec<Intrinsic>,
}
