//! Memories of the register machine: every access is checked, and each element has the form of its type.

use super::vm::{Stop, f32_of, of_f32};
use crate::dtype::DType;
use crate::float;
use crate::prim::wrap_int;
use std::borrow::Cow;

/// Bytes of a memory; borrowed ones, of constants, are copied when something is stored there.
pub(super) type Data<'a> = Cow<'a, [u8]>;

/// Memories by index, and which elements hold a value (only when that is watched).
#[derive(Default)]
pub(super) struct Memory<'a> {
    pub(super) data: Vec<Data<'a>>,
    pub(super) written: Vec<Vec<bool>>,
}

pub(super) fn element<const N: usize>(data: &[Data<'_>], mem: u16, at: i64) -> Result<[u8; N], Stop> {
    let outside = Stop::Memory(mem, at);
    let start = (at as usize).wrapping_mul(N);
    match data.get(usize::from(mem)).and_then(|d| d.get(start..start.wrapping_add(N))) {
        Some(bytes) => <[u8; N]>::try_from(bytes).map_err(|_| outside),
        None => Err(outside),
    }
}

pub(super) fn put<const N: usize>(data: &mut [Data<'_>], mem: u16, at: i64, bytes: [u8; N]) -> Result<(), Stop> {
    let start = (at as usize).wrapping_mul(N);
    match data.get_mut(usize::from(mem)).and_then(|d| d.to_mut().get_mut(start..start.wrapping_add(N))) {
        Some(to) => {
            to.copy_from_slice(&bytes);
            Ok(())
        }
        None => Err(Stop::Memory(mem, at)),
    }
}

/// Register form of stored bits.
pub(super) fn from_bits(dtype: DType, bits: u64) -> u64 {
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
pub(super) fn to_bits(dtype: DType, r: u64) -> u64 {
    if dtype.is_float() && dtype != DType::F64 && dtype != DType::F32 {
        float::encode(dtype, f64::from(f32_of(r)))
    } else {
        r
    }
}

pub(super) fn load_any(data: &[Data<'_>], mem: u16, at: i64, dtype: DType) -> Result<u64, Stop> {
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

pub(super) fn store_any(data: &mut [Data<'_>], mem: u16, at: i64, dtype: DType, r: u64) -> Result<(), Stop> {
    let outside = Stop::Memory(mem, at);
    let data = data.get_mut(usize::from(mem)).ok_or(outside)?.to_mut();
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
