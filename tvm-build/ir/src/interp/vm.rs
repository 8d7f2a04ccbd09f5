//! The register machine both interpreters compile to.
//!
//! A register holds 64 bits: an integer or bool (sign- or zero-extended), a `float64`, or a `float32` (which also
//! holds narrower floats, exactly). Jumps are relative. All memory accesses are checked.

use super::instr::{Code, Op};
use super::memory::{Memory, element, from_bits, load_any, put, store_any, to_bits};
use super::scalar;
use crate::dtype::DType;
use crate::float;
use crate::prim::Intrinsic;

/// Number of registers; every `u16` names one, so that no access needs a check.
const REGS: usize = 1 << 16;

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

pub(super) fn f32_of(r: u64) -> f32 {
    f32::from_bits(r as u32)
}

pub(super) fn of_f32(v: f32) -> u64 {
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
    pub(super) fn run(&self, memory: &mut Memory<'_>, limit: u64) -> Result<(), Stop> {
        let mut regs: Box<[u64; REGS]> = match vec![0u64; REGS].into_boxed_slice().try_into() {
            Ok(regs) => regs,
            Err(_) => return Err(Stop::Limit),
        };
        for (r, v) in &self.constants {
            regs[usize::from(*r)] = *v;
        }
        self.interpret(&mut regs, memory, limit)
    }

    fn interpret(&self, regs: &mut [u64; REGS], memory: &mut Memory<'_>, limit: u64) -> Result<(), Stop> {
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
