//! The register machine both interpreters compile to.
//!
//! A register holds 64 bits: an integer or bool (sign- or zero-extended), a `float64`, or a `float32` (which also
//! holds narrower floats, exactly). Jumps are relative. All memory accesses are checked.

use super::scalar;
use crate::dtype::DType;
use crate::float;
use crate::prim::{Intrinsic, wrap_int};

/// Number of registers; every `u16` names one, so that no access needs a check.
const REGS: usize = 1 << 16;

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

/// Why a run stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// A check of a site failed; the value at fault.
    Site(u32, i64),
    /// Access outside a memory: which, and the element.
    Memory(u16, i64),
    /// The iteration limit was reached.
    Limit,
}

/// Memories by index, and which elements hold a value (only when that is watched).
#[derive(Default)]
pub(super) struct Memory {
    pub(super) data: Vec<Vec<u8>>,
    pub(super) written: Vec<Vec<bool>>,
}

fn f32_of(r: u64) -> f32 {
    f32::from_bits(r as u32)
}

fn of_f32(v: f32) -> u64 {
    u64::from(v.to_bits())
}

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if (a ^ b) < 0 && q.wrapping_mul(b) != a { q.wrapping_sub(1) } else { q }
}

fn floor_mod(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r ^ b) < 0 { r.wrapping_add(b) } else { r }
}

fn element<const N: usize>(data: &[Vec<u8>], mem: u16, at: i64) -> Result<[u8; N], Stop> {
    let outside = Stop::Memory(mem, at);
    let start = (at as usize).wrapping_mul(N);
    match data.get(usize::from(mem)).and_then(|d| d.get(start..start.wrapping_add(N))) {
        Some(bytes) => <[u8; N]>::try_from(bytes).map_err(|_| outside),
        None => Err(outside),
    }
}

fn put<const N: usize>(data: &mut [Vec<u8>], mem: u16, at: i64, bytes: [u8; N]) -> Result<(), Stop> {
    let start = (at as usize).wrapping_mul(N);
    match data.get_mut(usize::from(mem)).and_then(|d| d.get_mut(start..start.wrapping_add(N))) {
        Some(to) => {
            to.copy_from_slice(&bytes);
            Ok(())
        }
        None => Err(Stop::Memory(mem, at)),
    }
}

/// Register form of stored bits.
fn from_bits(dtype: DType, bits: u64) -> u64 {
    if dtype == DType::F64 || dtype == DType::F32 {
        bits
    } else if dtype.is_float() {
        of_f32(float::decode(dtype, bits) as f32)
    } else if dtype.is_bool() {
        u64::from(bits != 0)
    } else {
        wrap_int(dtype, bits as i64) as u64
    }
}

/// Stored bits of a register.
fn to_bits(dtype: DType, r: u64) -> u64 {
    if dtype.is_float() && dtype != DType::F64 && dtype != DType::F32 {
        float::encode(dtype, f64::from(f32_of(r)))
    } else {
        r
    }
}

fn load_any(data: &[Vec<u8>], mem: u16, at: i64, dtype: DType) -> Result<u64, Stop> {
    let outside = Stop::Memory(mem, at);
    let data = data.get(usize::from(mem)).ok_or(outside)?;
    let at = usize::try_from(at).map_err(|_| outside)?;
    if dtype.is_packed() {
        return dtype.packed_bits(data, at).map(|bits| from_bits(dtype, bits)).ok_or(outside);
    }
    let size = usize::from(dtype.bits.div_ceil(8));
    let start = at.checked_mul(size).ok_or(outside)?;
    let bytes = data.get(start..start.wrapping_add(size)).ok_or(outside)?;
    Ok(from_bits(dtype, bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))))
}

fn store_any(data: &mut [Vec<u8>], mem: u16, at: i64, dtype: DType, r: u64) -> Result<(), Stop> {
    let outside = Stop::Memory(mem, at);
    let data = data.get_mut(usize::from(mem)).ok_or(outside)?;
    let at = usize::try_from(at).map_err(|_| outside)?;
    let bits = to_bits(dtype, r);
    if dtype.is_packed() {
        return dtype.set_packed_bits(data, at, bits).ok_or(outside);
    }
    let size = usize::from(dtype.bits.div_ceil(8));
    let start = at.checked_mul(size).ok_or(outside)?;
    let to = data.get_mut(start..start.wrapping_add(size)).ok_or(outside)?;
    to.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from);
    Ok(())
}

impl Code {
    fn dtype(&self, t: i32) -> DType {
        usize::try_from(t).ok().and_then(|t| self.dtypes.get(t)).copied().unwrap_or(DType::VOID)
    }

    fn intrinsic(&self, c: u16) -> Option<Intrinsic> {
        self.intrinsics.get(usize::from(c)).copied()
    }

    fn unary(&self, c: u16, x: f64) -> f64 {
        self.intrinsic(c).and_then(scalar::float_unary).map_or(f64::NAN, |f| f(x))
    }

    fn binary(&self, c: u16, x: f64, y: f64) -> f64 {
        self.intrinsic(c).and_then(scalar::float_binary).map_or(f64::NAN, |f| f(x, y))
    }

    fn test(&self, c: u16, x: f64) -> bool {
        self.intrinsic(c).and_then(scalar::float_test).is_some_and(|f| f(x))
    }

    /// Runs to the end. `limit` is the number of loop iterations allowed.
    pub(super) fn run(&self, memory: &mut Memory, limit: u64) -> Result<(), Stop> {
        let mut regs: Box<[u64; REGS]> = match vec![0u64; REGS].into_boxed_slice().try_into() {
            Ok(regs) => regs,
            Err(_) => return Err(Stop::Limit),
        };
        for (r, v) in &self.constants {
            regs[usize::from(*r)] = *v;
        }
        self.interpret(&mut regs, memory, limit)
    }

    fn interpret(&self, regs: &mut [u64; REGS], memory: &mut Memory, limit: u64) -> Result<(), Stop> {
        let code = self.instrs.as_slice();
        let mut left = limit;
        let mut pc = 0usize;
        macro_rules! reg {
            ($r:expr) => {
                regs[usize::from($r)]
            };
        }
        macro_rules! int {
            ($r:expr) => {
                regs[usize::from($r)] as i64
            };
        }
        macro_rules! f32r {
            ($r:expr) => {
                f32_of(regs[usize::from($r)])
            };
        }
        macro_rules! f64r {
            ($r:expr) => {
                f64::from_bits(regs[usize::from($r)])
            };
        }
        while let Some(i) = code.get(pc) {
            pc += 1;
            macro_rules! jump {
                () => {
                    pc = pc.wrapping_add_signed(i.t as isize)
                };
            }
            macro_rules! set {
                (int $v:expr) => {
                    reg!(i.d) = $v as u64
                };
                (bool $v:expr) => {
                    reg!(i.d) = u64::from($v)
                };
                (f32 $v:expr) => {
                    reg!(i.d) = of_f32($v)
                };
                (f64 $v:expr) => {
                    reg!(i.d) = ($v).to_bits()
                };
            }
            macro_rules! divide {
                ($f:expr) => {{
                    let b = int!(i.b);
                    if b == 0 {
                        return Err(Stop::Site(i.t as u32, 0));
                    }
                    let f: fn(i64, i64) -> i64 = $f;
                    set!(int f(int!(i.a), b))
                }};
            }
            macro_rules! at {
                () => {
                    int!(i.a).wrapping_add(int!(i.b))
                };
            }
            match i.op {
                Op::Jump => jump!(),
                Op::JumpBack => {
                    jump!();
                    if left == 0 {
                        return Err(Stop::Limit);
                    }
                    left -= 1;
                }
                Op::JumpIfZero => {
                    if reg!(i.a) == 0 {
                        jump!();
                    }
                }
                Op::JumpIfNonZero => {
                    if reg!(i.a) != 0 {
                        jump!();
                    }
                }
                Op::JumpIfNe => {
                    if reg!(i.a) != reg!(i.b) {
                        jump!();
                    }
                }
                Op::LoopEnter => {
                    let v = reg!(i.a);
                    reg!(i.d) = v;
                    if v as i64 >= int!(i.b) {
                        jump!();
                    }
                }
                Op::LoopNext => {
                    let v = int!(i.d).wrapping_add(1);
                    set!(int v);
                    if v < int!(i.b) {
                        jump!();
                        if left == 0 {
                            return Err(Stop::Limit);
                        }
                        left -= 1;
                    }
                }
                Op::Move => reg!(i.d) = reg!(i.a),
                Op::Fail => return Err(Stop::Site(i.t as u32, 0)),
                Op::Check => {
                    if reg!(i.a) >= reg!(i.b) {
                        return Err(Stop::Site(i.t as u32, int!(i.a)));
                    }
                }
                Op::Alloc => {
                    if let Some(w) = memory.written.get_mut(usize::from(i.c)) {
                        w.fill(false);
                    }
                }
                Op::CheckInit => {
                    let at = at!();
                    let written = memory.written.get(usize::from(i.c)).and_then(|w| w.get(at as usize));
                    if written == Some(&false) {
                        return Err(Stop::Site(i.t as u32, at));
                    }
                }
                Op::MarkInit => {
                    let at = at!() as usize;
                    if let Some(w) = memory.written.get_mut(usize::from(i.c)).and_then(|w| w.get_mut(at)) {
                        *w = true;
                    }
                }
                Op::Add => reg!(i.d) = reg!(i.a).wrapping_add(reg!(i.b)),
                Op::Sub => reg!(i.d) = reg!(i.a).wrapping_sub(reg!(i.b)),
                Op::Mul => reg!(i.d) = reg!(i.a).wrapping_mul(reg!(i.b)),
                Op::MulAdd => reg!(i.d) = reg!(i.a).wrapping_mul(reg!(i.b)).wrapping_add(reg!(i.c)),
                Op::Div => divide!(i64::wrapping_div),
                Op::Mod => divide!(i64::wrapping_rem),
                Op::FloorDiv => divide!(floor_div),
                Op::FloorMod => divide!(floor_mod),
                Op::DivU => divide!(|a, b| (a as u64 / b as u64) as i64),
                Op::ModU => divide!(|a, b| (a as u64 % b as u64) as i64),
                Op::Min => set!(int int!(i.a).min(int!(i.b))),
                Op::Max => set!(int int!(i.a).max(int!(i.b))),
                Op::MinU => reg!(i.d) = reg!(i.a).min(reg!(i.b)),
                Op::MaxU => reg!(i.d) = reg!(i.a).max(reg!(i.b)),
                Op::And => reg!(i.d) = reg!(i.a) & reg!(i.b),
                Op::Or => reg!(i.d) = reg!(i.a) | reg!(i.b),
                Op::Xor => reg!(i.d) = reg!(i.a) ^ reg!(i.b),
                Op::Shl => reg!(i.d) = reg!(i.a).wrapping_shl(reg!(i.b) as u32),
                Op::Shr => set!(int int!(i.a).wrapping_shr(reg!(i.b) as u32)),
                Op::ShrU => reg!(i.d) = reg!(i.a).wrapping_shr(reg!(i.b) as u32),
                Op::WrapS => set!(int((reg!(i.a) << (i.c & 63)) as i64 >> (i.c & 63))),
                Op::WrapU => reg!(i.d) = reg!(i.a) << (i.c & 63) >> (i.c & 63),
                Op::Eq => set!(bool reg!(i.a) == reg!(i.b)),
                Op::Ne => set!(bool reg!(i.a) != reg!(i.b)),
                Op::Lt => set!(bool int!(i.a) < int!(i.b)),
                Op::Le => set!(bool int!(i.a) <= int!(i.b)),
                Op::LtU => set!(bool reg!(i.a) < reg!(i.b)),
                Op::LeU => set!(bool reg!(i.a) <= reg!(i.b)),
                Op::Select => reg!(i.d) = if reg!(i.a) != 0 { reg!(i.b) } else { reg!(i.c) },
                Op::IntCall => {
                    let args = [int!(i.a), int!(i.b)];
                    let v = self.intrinsic(i.c).and_then(|f| scalar::int_intrinsic(f, self.dtype(i.t), args));
                    set!(int v.unwrap_or(0))
                }
                Op::AddF32 => set!(f32 f32r!(i.a) + f32r!(i.b)),
                Op::SubF32 => set!(f32 f32r!(i.a) - f32r!(i.b)),
                Op::MulF32 => set!(f32 f32r!(i.a) * f32r!(i.b)),
                Op::MulAddF32 => set!(f32 f32r!(i.a) * f32r!(i.b) + f32r!(i.c)),
                Op::DivF32 => set!(f32 f32r!(i.a) / f32r!(i.b)),
                Op::ModF32 => set!(f32 f32r!(i.a) % f32r!(i.b)),
                Op::FloorModF32 => set!(f32 scalar::floormod_f64(f64::from(f32r!(i.a)), f64::from(f32r!(i.b))) as f32),
                Op::MinF32 => set!(f32 scalar::min_f32(f32r!(i.a), f32r!(i.b))),
                Op::MaxF32 => set!(f32 scalar::max_f32(f32r!(i.a), f32r!(i.b))),
                Op::EqF32 => set!(bool f32r!(i.a) == f32r!(i.b)),
                Op::NeF32 => set!(bool f32r!(i.a) != f32r!(i.b)),
                Op::LtF32 => set!(bool f32r!(i.a) < f32r!(i.b)),
                Op::LeF32 => set!(bool f32r!(i.a) <= f32r!(i.b)),
                Op::FmaF32 => set!(f32 f32r!(i.a).mul_add(f32r!(i.b), f32r!(i.c))),
                Op::CallF32 => set!(f32 self.unary(i.c, f64::from(f32r!(i.a))) as f32),
                Op::Call2F32 => set!(f32 self.binary(i.c, f64::from(f32r!(i.a)), f64::from(f32r!(i.b))) as f32),
                Op::TestF32 => set!(bool self.test(i.c, f64::from(f32r!(i.a)))),
                Op::AddF64 => set!(f64 f64r!(i.a) + f64r!(i.b)),
                Op::SubF64 => set!(f64 f64r!(i.a) - f64r!(i.b)),
                Op::MulF64 => set!(f64 f64r!(i.a) * f64r!(i.b)),
                Op::DivF64 => set!(f64 f64r!(i.a) / f64r!(i.b)),
                Op::ModF64 => set!(f64 f64r!(i.a) % f64r!(i.b)),
                Op::FloorModF64 => set!(f64 scalar::floormod_f64(f64r!(i.a), f64r!(i.b))),
                Op::MinF64 => set!(f64 scalar::min_f64(f64r!(i.a), f64r!(i.b))),
                Op::MaxF64 => set!(f64 scalar::max_f64(f64r!(i.a), f64r!(i.b))),
                Op::EqF64 => set!(bool f64r!(i.a) == f64r!(i.b)),
                Op::NeF64 => set!(bool f64r!(i.a) != f64r!(i.b)),
                Op::LtF64 => set!(bool f64r!(i.a) < f64r!(i.b)),
                Op::LeF64 => set!(bool f64r!(i.a) <= f64r!(i.b)),
                Op::FmaF64 => set!(f64 f64r!(i.a).mul_add(f64r!(i.b), f64r!(i.c))),
                Op::CallF64 => set!(f64 self.unary(i.c, f64r!(i.a))),
                Op::Call2F64 => set!(f64 self.binary(i.c, f64r!(i.a), f64r!(i.b))),
                Op::TestF64 => set!(bool self.test(i.c, f64r!(i.a))),
                Op::Ldexp => set!(f64 scalar::ldexp(f64r!(i.a), int!(i.b))),
                Op::NextAfter => set!(f64 scalar::nextafter(self.dtype(i.t), f64r!(i.a), f64r!(i.b))),
                Op::F32ToF64 => set!(f64 f64::from(f32r!(i.a))),
                Op::F64ToF32 => set!(f32 f64r!(i.a) as f32),
                Op::IntToF32 => set!(f32 int!(i.a) as f32),
                Op::IntToF64 => set!(f64 int!(i.a) as f64),
                Op::U64ToF32 => set!(f32 reg!(i.a) as f32),
                Op::U64ToF64 => set!(f64 reg!(i.a) as f64),
                Op::F32ToInt => set!(int scalar::float_to_int(f64::from(f32r!(i.a)), self.dtype(i.t))),
                Op::F64ToInt => set!(int scalar::float_to_int(f64r!(i.a), self.dtype(i.t))),
                Op::Narrow => set!(f32 float::round_to(self.dtype(i.t), f64r!(i.a)) as f32),
                Op::NarrowF32 => set!(f32 float::round_to(self.dtype(i.t), f64::from(f32r!(i.a))) as f32),
                Op::ToBits => reg!(i.d) = to_bits(self.dtype(i.t), reg!(i.a)),
                Op::FromBits => reg!(i.d) = from_bits(self.dtype(i.t), reg!(i.a)),
                Op::LoadF32 => reg!(i.d) = u64::from(u32::from_le_bytes(element(&memory.data, i.c, at!())?)),
                Op::LoadScaledF32 => {
                    let at = int!(i.a).wrapping_mul(int!(i.b)).wrapping_add(int!(i.c));
                    reg!(i.d) = u64::from(u32::from_le_bytes(element(&memory.data, i.t as u16, at)?));
                }
                Op::LoadF64 | Op::LoadI64 => reg!(i.d) = u64::from_le_bytes(element(&memory.data, i.c, at!())?),
                Op::LoadI8 => set!(int i64::from(i8::from_le_bytes(element(&memory.data, i.c, at!())?))),
                Op::LoadU8 => reg!(i.d) = u64::from(u8::from_le_bytes(element(&memory.data, i.c, at!())?)),
                Op::LoadI32 => set!(int i64::from(i32::from_le_bytes(element(&memory.data, i.c, at!())?))),
                Op::LoadAny => reg!(i.d) = load_any(&memory.data, i.c, at!(), self.dtype(i.t))?,
                Op::StoreF32 | Op::Store32 => {
                    put(&mut memory.data, i.c, at!(), (reg!(i.d) as u32).to_le_bytes())?;
                }
                Op::StoreF64 | Op::Store64 => put(&mut memory.data, i.c, at!(), reg!(i.d).to_le_bytes())?,
                Op::Store8 => put(&mut memory.data, i.c, at!(), [reg!(i.d) as u8])?,
                Op::StoreAny => store_any(&mut memory.data, i.c, at!(), self.dtype(i.t), reg!(i.d))?,
            }
        }
        Ok(())
    }
}
