//! A program joined with its weights and its arena.

use crate::abi::{ALIGN, Kernel, Parallel, ParallelFor};
use crate::bytecode::Program;
use crate::error::Error;
use crate::isa::isa_level;
use crate::lists::Lists;
use crate::memory::ArenaRef;
use crate::overflow::Overflow;
use crate::tensor::{Arg, Value, elements};
use crate::texts::Texts;
use crate::vm::{Frame, Storage, Window};
use core::cell::Cell;
use core::ffi::c_void;

/// Everything that lives between calls. Generated modules wrap it.
pub struct State<'a> {
    program: &'static Program,
    kernels: &'static [Kernel],
    weights: &'a [u8],
    arena: ArenaRef<'a>,
    overflow: Overflow,
    lists: Lists,
    texts: Texts,
    parallel: Parallel,
}

impl<'a> State<'a> {
    /// Joins a program with its weights and an arena, and chooses the kernels for this machine.
    ///
    /// Sizes are checked by every call: an arena or weights that are too small give an error there.
    ///
    /// # Safety
    ///
    /// `program` was produced by the compiler, or obeys its rules: offsets in constants lie in the
    /// function's arena and the weights; kernels access the elements of their operands and the
    /// workspace and nothing else, and never write to a parameter; what a kernel takes for granted
    /// about extents is in the signature or checked by `match_cast` before.
    /// `weights` are those the program was compiled with.
    pub unsafe fn new(program: &'static Program, weights: &'a [u8], arena: impl Into<ArenaRef<'a>>) -> Self {
        let level = isa_level();
        let fits = program.kernels.iter().rev().find(|table| table.level <= level);
        let kernels = fits.or(program.kernels.first()).map_or(&[][..], |table| table.kernels);
        let parallel = Parallel { run: None, opaque: core::ptr::null_mut() };
        State {
            program,
            kernels,
            weights,
            arena: arena.into(),
            overflow: Overflow::default(),
            lists: Lists::default(),
            texts: Texts::default(),
            parallel,
        }
    }

    /// Has kernels run the tasks of their parallel loops by `run(opaque, …)`.
    ///
    /// # Safety
    ///
    /// `run` keeps the contract of [`ParallelFor`], and `opaque` is valid for it from any thread as long
    /// as this state lives.
    pub unsafe fn set_parallel(&mut self, run: ParallelFor, opaque: *mut c_void) {
        self.parallel = Parallel { run: Some(run), opaque };
    }

    /// The program.
    pub fn program(&self) -> &'static Program {
        self.program
    }

    /// Bytes on the heap that calls took for tensors whose size depends on data and has no upper bound, and for lists. They stay
    /// for later calls.
    pub fn overflow_bytes(&self) -> usize {
        self.overflow.len().saturating_add(self.lists.len())
    }

    /// The string of these characters, to pass to a call. The state keeps it.
    #[cfg(feature = "alloc")]
    pub fn intern(&mut self, characters: &str) -> crate::Text {
        self.texts.intern(characters)
    }

    /// The characters of a string that this state made; `None` of another.
    #[cfg(feature = "alloc")]
    pub fn text(&self, text: crate::Text) -> Option<&str> {
        self.texts.get(text)
    }

    /// As [`State::intern`], of several.
    #[cfg(feature = "alloc")]
    pub fn intern_all(&mut self, all: &[&str]) -> alloc::vec::Vec<crate::Text> {
        all.iter().map(|s| self.texts.intern(s)).collect()
    }

    /// The characters of strings that this state made; nothing in place of others.
    #[cfg(feature = "alloc")]
    pub fn strings(&self, texts: &[crate::Text]) -> alloc::vec::Vec<alloc::string::String> {
        texts.iter().map(|t| self.texts.get(*t).unwrap_or_default().into()).collect()
    }

    /// Forgets all strings, those in results too.
    #[cfg(feature = "alloc")]
    pub fn forget_texts(&mut self) {
        self.texts.clear();
    }

    /// Replaces the arena by one on the heap if it has fewer than `bytes` bytes. Errors: [`Error::ArenaMemory`]; the
    /// arena is then as it was.
    #[cfg(feature = "alloc")]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        if self.arena.len() < bytes {
            self.arena = ArenaRef::try_heap(bytes)?;
        }
        Ok(())
    }

    /// Calls the function at this index of the program with its parameters, then its outputs.
    ///
    /// Arguments are compared with the signature first: kinds, dtypes, ranks, extents, the numbers of
    /// elements, and one value for each symbol. What is returned points into the
    /// arguments, the memory of this state and `storage`, and is usable while these are alive and unchanged, and
    /// until the next call.
    pub fn call<const R: usize, const I: usize, const P: usize>(
        &mut self,
        function: usize,
        args: &[Arg<'_>],
        storage: &mut Storage<R, I, P>,
    ) -> Result<Value, Error> {
        self.enter(function, args, &mut storage.registers, &mut storage.ints, &mut storage.pointers)
    }

    pub(crate) fn enter(
        &mut self,
        index: usize,
        args: &[Arg<'_>],
        registers: &mut [Value],
        ints: &mut [i64],
        pointers: &mut [*mut c_void],
    ) -> Result<Value, Error> {
        let Some(function) = self.program.functions.get(index) else {
            return Err(Error::Malformed { function: "?", rule: "no such function" });
        };
        let expected = function.params.len() + function.outs.len();
        if args.len() != expected {
            return Err(Error::ArgumentCount { expected, found: args.len() });
        }
        let need = function.frame;
        if registers.len() < need.registers || ints.len() < need.ints || pointers.len() < need.pointers {
            return Err(Error::StorageTooSmall);
        }
        let (needed, available) = (self.program.weight_bytes, self.weights.len());
        if available < needed || needed != 0 && self.weights.as_ptr().addr() % ALIGN != 0 {
            return Err(Error::BadWeights { needed, available });
        }
        let available = self.arena.len();
        if available < need.arena {
            return Err(Error::ArenaTooSmall { needed: need.arena, available });
        }
        let params = function.params.iter().chain(function.outs);
        for (i, ((arg, param), register)) in args.iter().zip(params).zip(registers.iter_mut()).enumerate() {
            let argument = param.name;
            if let Value::Tensor(tensor) = arg.value {
                // SAFETY: the argument borrows its shape.
                let count = elements(unsafe { tensor.shape.dims() }).ok_or(Error::BadShape { argument })?;
                let expected = tensor.dtype.units(count);
                if expected != arg.len {
                    return Err(Error::WrongLength { argument, expected, found: arg.len });
                }
            }
            if i >= function.params.len() && !arg.writable {
                return Err(Error::ReadOnly { argument });
            }
            *register = arg.value;
        }
        self.overflow.begin();
        self.lists.begin();
        let mut frame = Frame {
            program: self.program,
            kernels: self.kernels,
            weights: self.weights,
            registers,
            ints: ints.as_mut_ptr(),
            ints_len: ints.len(),
            pointers,
            arena: self.arena.as_mut_ptr(),
            arena_len: available,
            overflow: &mut self.overflow,
            lists: &mut self.lists,
            texts: &mut self.texts,
            parallel: self.parallel,
            window: Window { index, function, base: 0, heap: 0, arena: 0, used: 0 },
            error: Cell::new(Error::StorageTooSmall),
        };
        match frame.open(index, function, 0, expected, 0, 0).and_then(|()| frame.run()) {
            Ok(value) => Ok(value),
            Err(_) => Err(frame.error.get()),
        }
    }
}
