//! What a running function may reach: registers, constants, shapes, the arena.

use crate::abi::ALIGN;
use crate::bytecode::{Constant, Operand, Reg, TensorType};
use crate::dtype::DType;
use crate::error::Error;
use crate::tensor::{ShapeRef, TensorRef, Value, elements};
use crate::vm::{Fail, Frame};

impl Frame<'_> {
    /// First aligned byte of the arena that is not in use.
    pub(crate) fn arena_top(&self) -> usize {
        (self.window.arena + self.window.used).next_multiple_of(ALIGN).min(self.arena_len)
    }

    /// The error of a broken table.
    #[cold]
    #[inline(never)]
    pub(crate) fn malformed(&self, rule: &'static str) -> Fail {
        self.fail(Error::Malformed { function: self.window.function.name, rule })
    }

    /// Index of a register over all frames.
    pub(crate) fn absolute(&self, reg: Reg) -> Result<u16, Fail> {
        u16::try_from(self.window.base + usize::from(reg)).map_err(|_| self.fail(Error::StorageTooSmall))
    }

    /// What the register holds.
    pub(crate) fn reg(&self, reg: Reg) -> Result<Value, Fail> {
        match self.registers.get(self.window.base + usize::from(reg)) {
            Some(&value) if reg < self.window.function.registers => Ok(value),
            _ => Err(self.malformed("no such register")),
        }
    }

    /// Writes the register.
    pub(crate) fn set(&mut self, reg: Reg, value: Value) -> Result<(), Fail> {
        match self.registers.get_mut(self.window.base + usize::from(reg)) {
            Some(slot) if reg < self.window.function.registers => *slot = value,
            _ => return Err(self.malformed("no such register")),
        }
        Ok(())
    }

    /// The constant of an operand that must be one.
    pub(crate) fn constant(&self, operand: Operand) -> Result<&'static Constant, Fail> {
        match operand {
            Operand::Const(i) => self.program.constants.get(usize::from(i)),
            _ => None,
        }
        .ok_or_else(|| self.malformed("no such constant"))
    }

    /// The value of an operand.
    pub(crate) fn get(&self, operand: Operand) -> Result<Value, Fail> {
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
    pub(crate) fn elements(&self, shape: ShapeRef) -> Result<usize, Fail> {
        elements(self.dims(shape)).ok_or_else(|| self.fail(Error::BadShape { argument: self.window.function.name }))
    }

    /// Bytes of `count` elements.
    pub(crate) fn storage_bytes(&self, dtype: DType, count: usize) -> Result<usize, Fail> {
        dtype.storage_bytes(count).ok_or_else(|| self.fail(Error::BadShape { argument: self.window.function.name }))
    }

    /// Writes an integer, counted over all frames.
    pub(crate) fn write_int(&mut self, index: usize, value: i64) -> Result<(), Fail> {
        if index >= self.ints_len {
            return Err(self.fail(Error::StorageTooSmall));
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
        mut extent: impl FnMut(&mut Self, usize) -> Result<i64, Fail>,
    ) -> Result<Value, Fail> {
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
    pub(crate) fn arena_bytes(&mut self, offset: i64, bytes: Option<usize>) -> Result<*mut u8, Fail> {
        let start = usize::try_from(offset).ok().and_then(|o| self.window.arena.checked_add(o));
        let (start, end) = match (start, bytes) {
            (Some(start), Some(bytes)) => (start, start.saturating_add(bytes)),
            _ => (0, usize::MAX),
        };
        if end > self.arena_len {
            return Err(self.fail(Error::ArenaTooSmall { needed: end, available: self.arena_len }));
        }
        self.window.used = self.window.used.max(end - self.window.arena);
        Ok(self.arena.wrapping_add(start))
    }

    /// Element `index` of an integer or bool tensor, or of a float tensor as `Value::Float`.
    pub(crate) fn element(&self, tensor: TensorRef, index: usize) -> Result<Value, Fail> {
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
    pub(crate) fn copy_elements(&mut self, from: TensorRef, to: TensorRef) -> Result<(), Fail> {
        let count = self.elements(from.shape)?;
        if from.dtype != to.dtype || count != self.elements(to.shape)? {
            return Err(self.malformed("tensors of different size or dtype are copied"));
        }
        let bytes = self.storage_bytes(from.dtype, count)?;
        // SAFETY: both hold `count` elements of this type; `copy` allows overlap.
        unsafe { to.data.copy_from(from.data, bytes) };
        Ok(())
    }

    /// Writes the extents of a shape to the elements of an `int64` tensor.
    pub(crate) fn write_dims(&mut self, shape: ShapeRef, to: TensorRef) -> Result<(), Fail> {
        let count = usize::from(shape.rank);
        if to.dtype != DType::I64 || count != self.elements(to.shape)? {
            return Err(self.malformed("a shape is written to a tensor of another size or dtype"));
        }
        for (i, &extent) in self.dims(shape).iter().enumerate() {
            // SAFETY: the tensor holds `count` integers; it need not be aligned.
            unsafe { to.data.cast::<i64>().add(i).write_unaligned(extent) };
        }
        Ok(())
    }

    /// Sets the bytes of a tensor.
    pub(crate) fn fill_elements(&mut self, tensor: TensorRef, byte: u8) -> Result<(), Fail> {
        let count = self.elements(tensor.shape)?;
        let bytes = self.storage_bytes(tensor.dtype, count)?;
        // SAFETY: it holds `count` elements of this type, in memory that the program writes.
        unsafe { tensor.data.write_bytes(byte, bytes) };
        Ok(())
    }
}

fn tensor(data: *mut u8, ty: TensorType) -> Value {
    Value::Tensor(TensorRef { data, shape: ShapeRef::new(ty.shape), dtype: ty.dtype })
}
