//! Tensors that the interpreter reads and writes.

use crate::diag::Diag;
use crate::dtype::{DType, TypeCode};
use crate::float;
use crate::prim::wrap_int;
use crate::span::Span;

/// A tensor: compact row-major little-endian elements (types under 8 bits packed, low bits first).
#[derive(Clone, PartialEq, Debug)]
pub struct TensorBuf {
    /// Element type.
    pub dtype: DType,
    /// Extents; empty for one element.
    pub shape: Vec<i64>,
    /// The elements' bytes: `dtype.storage_bytes(product of shape)` of them.
    pub data: Vec<u8>,
}

/// The number of elements of a shape; `None` when an extent is negative or the number too large.
pub(crate) fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?))
}

fn storage_bytes(dtype: DType, shape: &[i64]) -> Result<usize, Diag> {
    let bytes = element_count(shape).and_then(|n| dtype.storage_bytes(u64::try_from(n).ok()?));
    bytes
        .and_then(|b| usize::try_from(b).ok())
        .filter(|b| *b <= isize::MAX.unsigned_abs())
        .ok_or_else(|| Diag::error(Span::NONE, format!("a tensor of {dtype} and shape {shape:?} cannot be held")))
}

impl TensorBuf {
    /// A tensor of zeros. Errors when an extent is negative or the size overflows.
    pub fn zeros(dtype: DType, shape: &[i64]) -> Result<TensorBuf, Diag> {
        let bytes = storage_bytes(dtype, shape)?;
        Ok(TensorBuf { dtype, shape: shape.to_vec(), data: vec![0; bytes] })
    }

    /// A tensor over given bytes. Errors when their number does not fit dtype and shape.
    pub fn from_bytes(dtype: DType, shape: &[i64], data: Vec<u8>) -> Result<TensorBuf, Diag> {
        let want = storage_bytes(dtype, shape)?;
        if data.len() != want {
            let message =
                format!("{} bytes for a tensor of {dtype} and shape {shape:?}, which takes {want}", data.len());
            return Err(Diag::error(Span::NONE, message));
        }
        Ok(TensorBuf { dtype, shape: shape.to_vec(), data })
    }

    /// A tensor of any scalar type from doubles, each converted as a cast is. Errors when their number does not fit.
    pub fn from_f64(dtype: DType, shape: &[i64], values: &[f64]) -> Result<TensorBuf, Diag> {
        let mut out = TensorBuf::zeros(dtype, shape)?;
        out.check_count(values.len())?;
        for (i, v) in values.iter().enumerate() {
            let bits =
                if dtype.is_float() { float::encode(dtype, *v) } else { super::scalar::float_to_int(*v, dtype) as u64 };
            out.set_bits(i, bits);
        }
        Ok(out)
    }

    /// A `float32` tensor. Errors when the number of values does not fit.
    pub fn from_f32(shape: &[i64], values: &[f32]) -> Result<TensorBuf, Diag> {
        TensorBuf::from_bytes(DType::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// A tensor of an integer or bool type; values wrap. Errors when their number does not fit.
    pub fn from_i64(dtype: DType, shape: &[i64], values: &[i64]) -> Result<TensorBuf, Diag> {
        let mut out = TensorBuf::zeros(dtype, shape)?;
        out.check_count(values.len())?;
        for (i, v) in values.iter().enumerate() {
            let bits = if dtype.is_float() { float::encode(dtype, *v as f64) } else { wrap_int(dtype, *v) as u64 };
            out.set_bits(i, bits);
        }
        Ok(out)
    }

    /// One integer or bool, as a scalar argument.
    pub fn scalar_i64(dtype: DType, v: i64) -> Result<TensorBuf, Diag> {
        TensorBuf::from_i64(dtype, &[], &[v])
    }

    /// One float, as a scalar argument.
    pub fn scalar_f64(dtype: DType, v: f64) -> Result<TensorBuf, Diag> {
        TensorBuf::from_f64(dtype, &[], &[v])
    }

    fn check_count(&self, n: usize) -> Result<(), Diag> {
        let lanes = usize::from(self.dtype.lanes);
        match element_count(&self.shape).and_then(|c| c.checked_mul(lanes)) {
            Some(want) if want == n => Ok(()),
            _ => Err(Diag::error(
                Span::NONE,
                format!("{n} values for a tensor of {} and shape {:?}", self.dtype, self.shape),
            )),
        }
    }

    /// The number of scalars: elements times lanes.
    pub fn len(&self) -> usize {
        element_count(&self.shape).unwrap_or(0).saturating_mul(usize::from(self.dtype.lanes))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bits of scalar `i`, not sign-extended; 0 out of range.
    pub fn bits(&self, i: usize) -> u64 {
        if self.dtype.is_packed() {
            return self.dtype.packed_bits(&self.data, i).unwrap_or(0);
        }
        let size = usize::from(self.dtype.bits.div_ceil(8));
        let bytes = self.data.get(i * size..(i + 1) * size).unwrap_or(&[]);
        bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
    }

    /// Stores the low bits of a scalar; does nothing out of range.
    pub fn set_bits(&mut self, i: usize, bits: u64) {
        if self.dtype.is_packed() {
            self.dtype.set_packed_bits(&mut self.data, i, bits);
            return;
        }
        let size = usize::from(self.dtype.bits.div_ceil(8));
        if let Some(bytes) = self.data.get_mut(i * size..(i + 1) * size) {
            for (to, from) in bytes.iter_mut().zip(bits.to_le_bytes()) {
                *to = from;
            }
        }
    }

    /// Scalar `i` as an integer; floats are truncated.
    pub fn get_i64(&self, i: usize) -> i64 {
        let bits = self.bits(i);
        match self.dtype.code {
            TypeCode::Bool => i64::from(bits != 0),
            _ if self.dtype.is_float() => float::decode(self.dtype, bits) as i64,
            _ => wrap_int(self.dtype, bits as i64),
        }
    }

    /// Scalar `i` as a double.
    pub fn get_f64(&self, i: usize) -> f64 {
        if self.dtype.is_float() {
            float::decode(self.dtype, self.bits(i))
        } else if self.dtype.is_uint() {
            self.get_i64(i) as u64 as f64
        } else {
            self.get_i64(i) as f64
        }
    }

    /// All scalars as doubles.
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get_f64(i)).collect()
    }

    /// All scalars as `float32`.
    pub fn to_f32(&self) -> Vec<f32> {
        if self.dtype == DType::F32 {
            return self.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        }
        (0..self.len()).map(|i| self.get_f64(i) as f32).collect()
    }

    /// All scalars as integers; floats are truncated.
    pub fn to_i64(&self) -> Vec<i64> {
        (0..self.len()).map(|i| self.get_i64(i)).collect()
    }
}
