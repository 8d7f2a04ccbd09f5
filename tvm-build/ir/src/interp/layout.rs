//! Binding of parameters to arguments, and where buffers lie.

use super::buf::{TensorBuf, element_count};
use super::build::Lin;
use super::emit::{MemRef, class};
use super::instr::Op;
use super::tir::Compiler;
use crate::diag::Diag;
use crate::prim::{Buffer, PrimExpr, Var};
use crate::tir::{Param, PrimFunc};
use std::borrow::Cow;

/// A buffer with everything known.
#[derive(Clone)]
pub(super) struct Layout {
    /// Kept so that the address that names it stays taken.
    _buffer: Buffer,
    pub(super) mem: MemRef,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: i64,
}

/// What names a buffer in maps.
pub(super) fn key(b: &Buffer) -> usize {
    std::ptr::from_ref(b.node()) as usize
}

/// Errors when an argument does not hold as many bytes as its shape says. `args` are those of the last parameters.
pub(super) fn check_sizes(func: &PrimFunc, args: &[TensorBuf]) -> Result<(), Diag> {
    for (param, arg) in func.params.iter().rev().zip(args.iter().rev()) {
        let Param::Buffer(buffer) = param else { continue };
        let bytes = element_count(&arg.shape).and_then(|n| arg.dtype.storage_bytes(u64::try_from(n).ok()?));
        if bytes != u64::try_from(arg.data.len()).ok() {
            let message = format!(
                "argument `{}` holds {} bytes, which does not fit its shape {:?}",
                buffer.name,
                arg.data.len(),
                arg.shape
            );
            return Err(Diag::error(buffer.span.or(func.span), message));
        }
    }
    Ok(())
}

impl Compiler<'_> {
    pub(super) fn bind_params(&mut self, func: &PrimFunc, args: &[TensorBuf]) -> Result<(), Diag> {
        for (p, arg) in func.params.iter().zip(args) {
            match p {
                Param::Scalar(v) => self.bind_scalar(v, arg)?,
                Param::Buffer(buffer) => self.bind_dims(buffer, arg)?,
            }
        }
        for (i, (p, arg)) in func.params.iter().zip(args).enumerate() {
            // Scalars take a place too, so that memory `i` is argument `i`.
            self.memory.data.push(Cow::default());
            let fresh = self.options.poison && self.options.uninitialised.contains(&i);
            self.memory.written.push(if fresh { vec![false; arg.len()] } else { Vec::new() });
            let Param::Buffer(buffer) = p else { continue };
            let shape = self.shape(buffer)?;
            if shape != arg.shape {
                let message = format!("argument `{}` has shape {:?}, expected {shape:?}", buffer.name, arg.shape);
                return Err(Diag::error(buffer.span.or(func.span), message));
            }
            let (strides, offset) = self.strides(buffer, &shape)?;
            if strides != compact(&shape, buffer.dtype.lanes) || offset != 0 {
                let message =
                    format!("parameter `{}` is not compact: strides {strides:?}, offset {offset}", buffer.name);
                return Err(Diag::error(buffer.span.or(func.span), message).help("pass a compact copy"));
            }
            self.add_buffer(buffer, i, shape, strides, offset, fresh)?;
        }
        Ok(())
    }

    fn bind_scalar(&mut self, v: &Var, arg: &TensorBuf) -> Result<(), Diag> {
        if arg.dtype != v.dtype() || arg.len() != 1 {
            let message = format!(
                "argument `{}` is a {} of shape {:?}, expected one {}",
                v.name(),
                arg.dtype,
                arg.shape,
                v.dtype()
            );
            return Err(Diag::error(v.span().or(self.span), message));
        }
        let value = if v.dtype().is_float() {
            self.b.float_literal(v.dtype(), arg.get_f64(0), v.span())?
        } else {
            self.b.int_literal(v.dtype(), arg.get_i64(0))
        };
        self.vars.insert(v.clone(), vec![value]);
        Ok(())
    }

    fn bind_dims(&mut self, buffer: &Buffer, arg: &TensorBuf) -> Result<(), Diag> {
        let span = buffer.span.or(self.span);
        if arg.dtype != buffer.dtype {
            let message = format!("argument `{}` is of type {}, expected {}", buffer.name, arg.dtype, buffer.dtype);
            return Err(Diag::error(span, message));
        }
        if arg.shape.len() != buffer.shape.len() {
            let message =
                format!("argument `{}` has rank {}, expected {}", buffer.name, arg.shape.len(), buffer.shape.len());
            return Err(Diag::error(span, message));
        }
        for (e, n) in buffer.shape.iter().zip(&arg.shape) {
            if let Some(v) = e.as_var() {
                self.vars.entry(v.clone()).or_insert_with(|| vec![Lin::constant(*n)]);
            }
        }
        Ok(())
    }

    /// An expression that must be constant once the parameters are bound.
    fn constant(&mut self, e: &PrimExpr, what: &str) -> Result<i64, Diag> {
        let span = self.enter_span(e.span());
        let lin = self.scalar(e);
        self.span = span;
        match lin?.as_const() {
            Some(v) => Ok(v),
            None => self.error(format!("{what} `{e:?}` does not follow from the parameters")),
        }
    }

    fn shape(&mut self, buffer: &Buffer) -> Result<Vec<i64>, Diag> {
        let what = format!("extent of buffer `{}`", buffer.name);
        buffer.shape.iter().map(|e| self.constant(e, &what)).collect()
    }

    fn strides(&mut self, buffer: &Buffer, shape: &[i64]) -> Result<(Vec<i64>, i64), Diag> {
        let natural = compact(shape, buffer.dtype.lanes);
        let mut strides = Vec::new();
        for (e, n) in buffer.strides.iter().zip(&natural) {
            strides.push(match e.as_var() {
                Some(v) if !self.vars.contains_key(v) => {
                    self.vars.insert(v.clone(), vec![Lin::constant(*n)]);
                    *n
                }
                _ => self.constant(e, "stride")?,
            });
        }
        if strides.is_empty() {
            strides = natural;
        } else if strides.len() != shape.len() {
            return self.error(format!(
                "buffer `{}` has {} strides for rank {}",
                buffer.name,
                strides.len(),
                shape.len()
            ));
        }
        let offset = match &buffer.elem_offset {
            None => 0,
            Some(e) => match e.as_var() {
                Some(v) if !self.vars.contains_key(v) => {
                    self.vars.insert(v.clone(), vec![Lin::constant(0)]);
                    0
                }
                _ => self.constant(e, "offset")?,
            },
        };
        Ok((strides, offset))
    }

    fn add_buffer(
        &mut self,
        buffer: &Buffer,
        mem: usize,
        shape: Vec<i64>,
        strides: Vec<i64>,
        offset: i64,
        watched: bool,
    ) -> Result<(), Diag> {
        class(buffer.dtype, buffer.span.or(self.span))?;
        let Ok(mem) = u16::try_from(mem) else { return self.error("too many buffers".to_string()) };
        let mem = MemRef { mem, dtype: buffer.dtype.scalar(), watched };
        let layout = Layout { _buffer: buffer.clone(), mem, shape, strides, offset };
        self.buffers.insert(key(buffer), layout);
        Ok(())
    }

    pub(super) fn alloc(&mut self, buffer: &Buffer) -> Result<(), Diag> {
        let shape = self.shape(buffer)?;
        let (strides, offset) = self.strides(buffer, &shape)?;
        let too_large =
            || Diag::error(buffer.span, format!("buffer `{}` of shape {shape:?} cannot be held", buffer.name));
        if shape.iter().any(|d| *d < 0) || strides.iter().any(|s| *s < 0) || offset < 0 {
            return Err(too_large());
        }
        let mut last = offset;
        for (d, s) in shape.iter().zip(&strides) {
            last = (d - 1).max(0).checked_mul(*s).and_then(|n| last.checked_add(n)).ok_or_else(too_large)?;
        }
        let lanes = i64::from(buffer.dtype.lanes);
        let count = if shape.contains(&0) { 0 } else { last.checked_add(lanes).ok_or_else(too_large)? };
        let limit = self.options.max_bytes.min(isize::MAX.unsigned_abs() as u64);
        let count = u64::try_from(count).map_err(|_| too_large())?;
        let bytes = buffer.dtype.scalar().storage_bytes(count).filter(|b| *b <= limit).ok_or_else(too_large)?;
        let bytes = usize::try_from(bytes).map_err(|_| too_large())?;
        let index = self.memory.data.len();
        self.memory.data.push(vec![0; bytes].into());
        let watched = self.options.poison;
        self.memory.written.push(if watched {
            vec![false; usize::try_from(count).map_err(|_| too_large())?]
        } else {
            Vec::new()
        });
        self.add_buffer(buffer, index, shape, strides, offset, watched)?;
        let c = u16::try_from(index).unwrap_or(0);
        self.b.effect(Op::Alloc, 0, [0, 0, c], 0);
        Ok(())
    }
}

/// Row-major strides.
fn compact(shape: &[i64], lanes: u16) -> Vec<i64> {
    let mut stride = i64::from(lanes);
    let mut out: Vec<i64> = shape
        .iter()
        .rev()
        .map(|d| {
            let s = stride;
            stride = stride.saturating_mul((*d).max(1));
            s
        })
        .collect();
    out.reverse();
    out
}
