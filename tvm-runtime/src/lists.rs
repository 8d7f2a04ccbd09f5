//! Lists: values whose number is known at run time only. They lie on the heap (feature `alloc`).
//!
//! A list never changes: what inserts and removes gives another list. Its items are tensors and lists; tensors are
//! copied into memory of the lists, which stays in use until the next call.

use crate::error::Error;
use crate::overflow::Overflow;
use crate::tensor::{ListRef, ShapeRef, TensorRef, Value, elements};
use crate::vm::{Fail, Frame};

/// Memory of lists and of their items.
#[derive(Default)]
pub(crate) struct Lists(Overflow);

/// Stands before the items of a list made here.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Head {
    /// Items that some list of this memory has.
    used: usize,
    room: usize,
}

impl Lists {
    /// A new call: lists made before are gone.
    pub(crate) fn begin(&mut self) {
        self.0.begin();
    }

    /// Bytes allocated, in use or not.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Frame<'_> {
    fn list_memory(&mut self, bytes: usize) -> Result<*mut u8, Fail> {
        match self.lists.0.take(bytes) {
            Some(start) => Ok(start),
            None if cfg!(feature = "alloc") => Err(self.fail(Error::ListMemory { bytes })),
            None => Err(self.fail(Error::ListsNeedAlloc)),
        }
    }

    /// The items of a list that is held by the running program.
    pub(crate) fn items(&self, list: ListRef) -> &[Value] {
        // SAFETY: a list in the program's hands lies in an argument, or in memory of the lists, which stays until the next
        // call; items that a list has are not written again.
        unsafe { list.items() }
    }

    /// The item of a position, which counts from the end if it is negative.
    pub(crate) fn position(&self, position: i64, len: usize, end: bool) -> Result<usize, Fail> {
        let count = i64::try_from(len).unwrap_or(i64::MAX);
        let at = if position < 0 { position.saturating_add(count) } else { position };
        let last = if end { len } else { len.wrapping_sub(1) };
        let found = usize::try_from(at).ok().filter(|&at| at <= last && (end || len != 0));
        found.ok_or_else(|| self.fail(Error::BadPosition { position, len }))
    }

    /// A value as an item: a tensor as a copy with its shape behind it.
    fn item(&mut self, value: Value) -> Result<Value, Fail> {
        let tensor = match value {
            Value::Tensor(tensor) => tensor,
            Value::List(_) => return Ok(value),
            _ => return Err(self.malformed("a list holds tensors and lists")),
        };
        let rank = usize::from(tensor.shape.rank);
        let bytes = tensor.dtype.storage_bytes(self.elements(tensor.shape)?);
        let data = bytes.and_then(|b| b.checked_next_multiple_of(8)).unwrap_or(usize::MAX);
        let start = self.list_memory(data.saturating_add(rank * 8).max(8))?;
        let dims = start.wrapping_add(data).cast::<i64>();
        for (i, &extent) in self.dims(tensor.shape).iter().enumerate() {
            // SAFETY: the memory holds the data and as many extents; both begin at multiples of 8.
            unsafe { dims.add(i).write(extent) };
        }
        let copy = TensorRef { data: start, shape: ShapeRef { dims, rank: tensor.shape.rank }, dtype: tensor.dtype };
        self.copy_elements(tensor, copy)?;
        Ok(Value::Tensor(copy))
    }

    /// A list of `first` items of `from`, then `value` as an item if there is one, then those of `from` from `rest` on.
    fn list_of(&mut self, from: ListRef, first: usize, value: Option<Value>, rest: usize) -> Result<ListRef, Fail> {
        let value = match value {
            Some(value) => Some(self.item(value)?),
            None => None,
        };
        let len = from.len as usize;
        if let (Some(value), true) = (value, from.owned && first == len) {
            let head = from.items.cast_mut().cast::<u8>().wrapping_sub(size_of::<Head>()).cast::<Head>();
            // SAFETY: a head stands before the items of a list made here.
            let Head { used, room } = unsafe { head.read() };
            if used == len && used < room {
                // SAFETY: there is room for one more item, which no list has.
                unsafe {
                    from.items.cast_mut().add(used).write(value);
                    head.write(Head { used: used + 1, room });
                }
                return Ok(ListRef { len: from.len + 1, ..from });
            }
        }
        let count = first + usize::from(value.is_some()) + len.saturating_sub(rest);
        let Ok(short) = u32::try_from(count) else { return Err(self.fail(Error::ListMemory { bytes: usize::MAX })) };
        let room = (2 * count).max(4);
        let start = self.list_memory(size_of::<Head>() + room * size_of::<Value>())?;
        let items = start.wrapping_add(size_of::<Head>()).cast::<Value>();
        let source = self.items(from);
        let kept = source.iter().take(first).copied().chain(value).chain(source.iter().skip(rest).copied());
        for (i, item) in kept.enumerate() {
            // SAFETY: there is room for `count` items.
            unsafe { items.add(i).write(item) };
        }
        // SAFETY: the memory begins with room for the head, aligned.
        unsafe { start.cast::<Head>().write(Head { used: count, room }) };
        Ok(ListRef { items, len: short, owned: true })
    }

    /// A list without items.
    pub(crate) fn empty_list(&mut self) -> Result<ListRef, Fail> {
        self.list_of(ListRef::new(&[]), 0, None, 0)
    }

    /// The list with a value more, before the item `at`.
    pub(crate) fn insert(&mut self, list: ListRef, at: usize, value: Value) -> Result<ListRef, Fail> {
        self.list_of(list, at, Some(value), at)
    }

    /// The list without the item `at`.
    pub(crate) fn erase(&mut self, list: ListRef, at: usize) -> Result<ListRef, Fail> {
        self.list_of(list, at, None, at + 1)
    }

    /// Copies blocks of rows between tensors seen as `[outer, extent, inner bytes]`: `count` rows from `from`'s row
    /// `first_from` on to `to`'s row `first_to` on.
    fn copy_rows(
        &mut self,
        (outer, inner): (usize, usize),
        (from, from_extent, first_from): (*const u8, usize, usize),
        (to, to_extent, first_to): (*mut u8, usize, usize),
        count: usize,
    ) {
        for o in 0..outer {
            let source = from.wrapping_add((o * from_extent + first_from) * inner);
            let target = to.wrapping_add((o * to_extent + first_to) * inner);
            // SAFETY: both tensors hold `outer * extent` rows of `inner` bytes, as the callers have checked; the target is new
            // memory.
            unsafe { target.copy_from_nonoverlapping(source, count * inner) };
        }
    }

    /// The tensors of a list along an axis; along a new one, if `new`. `memory` finds memory for so many bytes.
    pub(crate) fn concat(
        &mut self,
        list: ListRef,
        axis: i64,
        new: bool,
        slot: i64,
        memory: impl FnOnce(&mut Self, usize) -> Result<*mut u8, Fail>,
    ) -> Result<TensorRef, Fail> {
        let Some(Value::Tensor(first)) = self.items(list).first().copied() else {
            return Err(self.fail(Error::EmptyList));
        };
        if first.dtype.per_byte() > 1 {
            return Err(self.fail(Error::PackedRows));
        }
        let rank = usize::from(first.shape.rank) + usize::from(new);
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let at = usize::try_from(if axis < 0 { axis.saturating_add(signed) } else { axis }).unwrap_or(rank);
        if at >= rank {
            return Err(self.malformed("no such axis"));
        }
        let mut total = 0usize;
        for i in 0..list.len as usize {
            let Some(Value::Tensor(t)) = self.items(list).get(i).copied() else {
                return Err(self.malformed("a list of tensors is joined"));
            };
            let (a, b) = (self.dims(first.shape), self.dims(t.shape));
            let fits = a.len() == b.len() && (0..a.len()).all(|d| !new && d == at || a[d] == b[d]);
            if !fits || t.dtype != first.dtype {
                return Err(self.fail(Error::UnequalItems { position: i }));
            }
            let extent = if new { 1 } else { b.get(at).copied().unwrap_or(0) };
            total = total.saturating_add(usize::try_from(extent).unwrap_or(usize::MAX));
        }
        let outer = elements(self.dims(first.shape).get(..at).unwrap_or_default());
        let inner = elements(self.dims(first.shape).get(if new { at } else { at + 1 }..).unwrap_or_default());
        let inner = inner.and_then(|n| n.checked_mul(first.dtype.bytes()));
        let (Some(outer), Some(inner)) = (outer, inner) else {
            return Err(self.fail(Error::BadShape { argument: self.window.function.name }));
        };
        let bytes = outer.checked_mul(total).and_then(|n| n.checked_mul(inner)).unwrap_or(usize::MAX);
        let data = memory(self, bytes)?;
        let made = self.make_shape(slot, rank, |f, i| {
            let own = f.dims(first.shape);
            let extent =
                if i == at { i64::try_from(total).ok() } else { own.get(i - usize::from(new && i > at)).copied() };
            extent.ok_or_else(|| f.malformed("no such axis"))
        })?;
        let mut done = 0;
        for i in 0..list.len as usize {
            let Some(Value::Tensor(t)) = self.items(list).get(i).copied() else { continue };
            let extent = if new { 1 } else { self.dims(t.shape).get(at).copied().unwrap_or(0) };
            let extent = usize::try_from(extent).unwrap_or(0);
            self.copy_rows((outer, inner), (t.data, extent, 0), (data, total, done), extent);
            done += extent;
        }
        let Value::Shape(shape) = made else { return Err(self.malformed("a shape is made")) };
        Ok(TensorRef { data, shape, dtype: first.dtype })
    }

    /// Parts of a tensor along an axis as a list. `lengths` is a tensor of their lengths, or of one number of rank 0: all
    /// parts but the last one have that length. Without `keep`, parts lose the axis, along which they have one element.
    pub(crate) fn split(&mut self, x: TensorRef, lengths: TensorRef, axis: i64, keep: bool) -> Result<ListRef, Fail> {
        if x.dtype.per_byte() > 1 {
            return Err(self.fail(Error::PackedRows));
        }
        let rank = usize::from(x.shape.rank);
        let signed = i64::try_from(rank).unwrap_or(i64::MAX);
        let at = usize::try_from(if axis < 0 { axis.saturating_add(signed) } else { axis }).unwrap_or(rank);
        let Some(&extent) = self.dims(x.shape).get(at) else { return Err(self.malformed("no such axis")) };
        let outer = elements(self.dims(x.shape).get(..at).unwrap_or_default());
        let inner = elements(self.dims(x.shape).get(at + 1..).unwrap_or_default());
        let inner = inner.and_then(|n| n.checked_mul(x.dtype.bytes()));
        let (Some(outer), Some(inner), Ok(whole)) = (outer, inner, usize::try_from(extent)) else {
            return Err(self.fail(Error::BadShape { argument: self.window.function.name }));
        };
        let count = self.elements(lengths.shape)?;
        let length = |f: &Self, i: usize| match f.element(lengths, i)? {
            Value::Int(n) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
            _ => Err(f.malformed("lengths are integers")),
        };
        let each = if lengths.shape.rank == 0 { Some(length(self, 0)?) } else { None };
        let (mut list, mut done, mut i) = (self.empty_list()?, 0usize, 0usize);
        while if each.is_some() { done < whole } else { i < count } {
            let part = match each {
                Some(n) => n.min(whole - done),
                None => length(self, i)?,
            };
            if part > whole - done || each == Some(0) || !keep && part != 1 {
                return Err(self.fail(Error::BadSplit { extent, length: i64::try_from(part).unwrap_or(i64::MAX) }));
            }
            let own = rank - usize::from(!keep);
            let bytes = outer.checked_mul(part).and_then(|n| n.checked_mul(inner));
            let data = bytes.and_then(|b| b.checked_next_multiple_of(8)).unwrap_or(usize::MAX);
            let start = self.list_memory(data.saturating_add(own * 8).max(8))?;
            let dims = start.wrapping_add(data).cast::<i64>();
            for (to, d) in (0..rank).filter(|d| keep || *d != at).enumerate() {
                let extent = if d == at { i64::try_from(part).unwrap_or(0) } else { self.dims(x.shape)[d] };
                // SAFETY: the memory holds the data and `own` extents.
                unsafe { dims.add(to).write(extent) };
            }
            self.copy_rows((outer, inner), (x.data, whole, done), (start, part, 0), part);
            let shape = ShapeRef { dims, rank: own as u16 };
            list = self.append_item(list, Value::Tensor(TensorRef { data: start, shape, dtype: x.dtype }))?;
            (done, i) = (done + part, i + 1);
        }
        if done != whole {
            return Err(self.fail(Error::BadSplit { extent, length: i64::try_from(done).unwrap_or(i64::MAX) }));
        }
        Ok(list)
    }

    /// The list with an item more that lies in memory of the lists already.
    fn append_item(&mut self, list: ListRef, item: Value) -> Result<ListRef, Fail> {
        let place = Value::List(list);
        // A list as an item is not copied.
        let longer = self.insert(list, list.len as usize, place)?;
        let last = longer.items.cast_mut().wrapping_add(list.len as usize);
        // SAFETY: the item was just added; no other list has it.
        unsafe { last.write(item) };
        Ok(longer)
    }
}
