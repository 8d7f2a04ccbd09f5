//! Running a compiled module in this process: for `tvmc run` and `tvmc bench`, and for tests.

#![allow(unsafe_code, reason = "loads code that this crate has just generated and compiled")]

use crate::compile::Artifacts;
use crate::toolchain::{Toolchain, io_error};
use crate::vm::{Entry, EntryKind, EntryOut, OutShape};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use tvm_ir::arith::Analyzer;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::prim::{PrimExpr, Var, substitute};
use tvm_ir::span::Span;
use tvm_runtime::host::{HostStorage, HostTensor, HostValue, Session, load_kernels};
use tvm_runtime::{Arg, Error, KernelTable, Text, Value};

/// The largest arena that a call may ask for.
const MAX_ARENA: usize = isize::MAX as usize / 4;

/// Makes a prepared call; see [`HostModule::repeat`].
pub type Call<'a> = dyn FnMut() -> Result<(), Diag> + 'a;

/// A module that runs in this process.
pub struct HostModule {
    session: Session,
    entries: Vec<Entry>,
    functions: &'static [tvm_runtime::Function],
}

impl HostModule {
    /// Compiles the kernels to a shared library in a folder and loads it. The library stays loaded. The weights are written
    /// to a file beside it and mapped.
    pub fn load(artifacts: &Artifacts, dir: &Path) -> Result<HostModule, Diags> {
        HostModule::load_with(artifacts, &Toolchain::for_host(dir))
    }

    /// As [`HostModule::load`], in the folder and at the level of a toolchain, which must be for this machine.
    pub fn load_with(artifacts: &Artifacts, toolchain: &Toolchain) -> Result<HostModule, Diags> {
        let units = artifacts.write_kernels(toolchain)?;
        let library = toolchain.shared_library(&artifacts.name, &units)?;
        let mut tables = Vec::new();
        for level in &artifacts.levels {
            let symbols: Vec<&str> = level.symbols.iter().map(String::as_str).collect();
            // SAFETY: the library holds the kernels of these symbols and nothing that runs when it is loaded.
            let kernels = unsafe { load_kernels(&library, &symbols) }
                .map_err(|e| error(format!("{} cannot be loaded: {e}", library.display())))?;
            tables.push(KernelTable { level: level.level, kernels });
        }
        let program = artifacts.program.to_static(tables.leak());
        let session = match map_weights(artifacts, toolchain)? {
            // SAFETY: program, kernels and weights come from one compilation; a mapping stays where it is.
            Some(weights) => unsafe { Session::new(program, weights) },
            // SAFETY: the program has no weights.
            None => unsafe { Session::new(program, []) },
        };
        let session = session.map_err(run_time)?;
        Ok(HostModule { session, entries: artifacts.program.entries.clone(), functions: program.functions })
    }

    /// The string of these characters, as an element of a tensor to pass.
    pub fn intern(&mut self, characters: &str) -> Text {
        self.session.state().intern(characters)
    }

    /// The strings of a result.
    pub fn texts(&mut self, tensor: &HostTensor) -> Option<Vec<String>> {
        let texts = tensor.elements::<Text>()?;
        texts.iter().map(|t| self.session.state().text(*t).map(String::from)).collect()
    }

    /// The public functions.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The public function of a name. The error lists those there are.
    pub fn entry(&self, name: &str) -> Result<&Entry, Diag> {
        self.entries.iter().find(|e| e.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|e| e.name.as_str()).collect();
            error(format!("the module has no public function {name}")).help(format!("it has {}", names.join(", ")))
        })
    }

    /// Calls a function once: its parameters in order, tuples flattened. Shapes are given as `int64` tensors of rank 1,
    /// scalars as tensors of one element.
    pub fn run(&mut self, name: &str, inputs: &mut [HostTensor]) -> Result<Vec<HostTensor>, Diag> {
        self.repeat(name, inputs, &mut |call| call())
    }

    /// As [`HostModule::run`], of tensors and lists.
    pub fn run_values(&mut self, name: &str, inputs: &mut [HostValue]) -> Result<Vec<HostValue>, Diag> {
        self.repeat_values(name, inputs, &mut |call| call())
    }

    /// As [`HostModule::repeat_values`], of tensors: a result that is a list is an error.
    pub fn repeat(
        &mut self,
        name: &str,
        inputs: &mut [HostTensor],
        body: &mut dyn FnMut(&mut Call<'_>) -> Result<(), Diag>,
    ) -> Result<Vec<HostTensor>, Diag> {
        let mut values: Vec<HostValue> = inputs.iter().cloned().map(HostValue::from).collect();
        let results = self.repeat_values(name, &mut values, body)?.into_iter().map(|v| match v {
            HostValue::Tensor(t) => Ok(t),
            HostValue::List(_) => Err(error(format!("{name} gives a list")).help("use run_values")),
        });
        results.collect()
    }

    /// Prepares a call, then hands `body` a closure that makes it, as often as wanted; each call writes the outputs anew
    /// and allocates nothing, but for tensors whose size depends on data and has no bound. What calls return is copied
    /// after the last one.
    pub fn repeat_values(
        &mut self,
        name: &str,
        inputs: &mut [HostValue],
        body: &mut dyn FnMut(&mut Call<'_>) -> Result<(), Diag>,
    ) -> Result<Vec<HostValue>, Diag> {
        let entry = self.entry(name)?.clone();
        if entry.params.len() != inputs.len() {
            let names: Vec<&str> = entry.params.iter().map(|p| p.name.as_str()).collect();
            let message = format!("{name} takes {} arguments, {} are given", entry.params.len(), inputs.len());
            return Err(error(message).help(format!("they are {}", names.join(", "))));
        }
        let symbols = bind(&entry, inputs);
        let mut outputs = output_tensors(&entry, &symbols)?;
        if let Some(bytes) = &entry.dynamic_bytes {
            let arena = self.functions.get(entry.function).map_or(0, |f| f.frame.arena);
            let more = usize::try_from(value(bytes, &symbols)?).map_err(|_| error("the arena is too large".into()))?;
            self.session.reserve(arena.saturating_add(more)).map_err(run_time)?;
        }
        let ints = |v: &HostValue| v.as_tensor().map(integers).unwrap_or_default();
        let integers: Vec<Vec<i64>> = inputs.iter().map(ints).collect();
        let mut args = Vec::new();
        for ((param, input), ints) in entry.params.iter().zip(inputs.iter_mut()).zip(&integers) {
            let first = ints.first().copied().unwrap_or(0);
            args.push(match param.kind {
                EntryKind::Tensor(..) | EntryKind::List => input.input(),
                EntryKind::Shape(_) => Arg::shape(ints),
                EntryKind::Int(_) => Arg::int(first),
                EntryKind::Bool => Arg::bool(first != 0),
                EntryKind::Float => Arg::float(input.as_tensor().map_or(0.0, number)),
            });
        }
        args.extend(outputs.iter_mut().map(HostTensor::output));
        let function = self.functions.get(entry.function).ok_or_else(|| error(format!("{name} is not compiled")))?;
        let mut storage = HostStorage::new(function);
        let session = &mut self.session;
        let mut last = Value::None;
        body(&mut || loop {
            match session.call(entry.function, &args, &mut storage) {
                Ok(value) => {
                    last = value;
                    return Ok(());
                }
                // A function that is called with shapes which nothing tells before.
                Err(Error::ArenaTooSmall { needed, available }) if needed > available && needed <= MAX_ARENA => {
                    session.reserve(needed).map_err(run_time)?;
                }
                Err(e) => return Err(error(format!("{name}: {e}"))),
            }
        })?;
        // SAFETY: the last call gave it with this storage; its arguments are still borrowed.
        let mut returned = unsafe { session.returned_values(last, &storage) }.into_iter();
        drop(args);
        let mut given = outputs.into_iter();
        let next = |out: &EntryOut| match out.shape {
            OutShape::Given(_) => given.next().map(HostValue::from),
            OutShape::Returned(_) | OutShape::List => returned.next(),
        };
        let all: Option<Vec<HostValue>> = entry.outs.iter().map(next).collect();
        all.ok_or_else(|| error(format!("{name} returned fewer tensors than it says")))
    }
}

/// The weights of a module as bytes that the system reads from their file when they are needed.
fn map_weights(artifacts: &Artifacts, toolchain: &Toolchain) -> Result<Option<memmap2::Mmap>, Diag> {
    // An empty file cannot be mapped.
    if artifacts.weights.is_empty() {
        return Ok(None);
    }
    let path = artifacts.write_weights(toolchain)?;
    let file = File::open(&path).map_err(|e| io_error("open", &path, &e))?;
    // SAFETY: the file was made for this module, in a folder of its own; nobody changes it.
    unsafe { memmap2::Mmap::map(&file) }.map(Some).map_err(|e| io_error("map", &path, &e))
}

fn run_time(e: Error) -> Diag {
    error(e.to_string())
}

fn error(message: String) -> Diag {
    Diag::error(Span::NONE, message)
}

/// Values of the symbols that stand alone in the signature. Whether all agree is checked by the call.
fn bind(entry: &Entry, inputs: &[HostValue]) -> BTreeMap<Var, PrimExpr> {
    let mut symbols = BTreeMap::new();
    for (param, input) in entry.params.iter().zip(inputs) {
        let Some(input) = input.as_tensor() else { continue };
        let ints = integers(input);
        let (dims, values) = match &param.kind {
            EntryKind::Tensor(_, Some(dims)) => (dims.as_slice(), input.shape()),
            EntryKind::Shape(Some(dims)) => (dims.as_slice(), &ints[..]),
            EntryKind::Int(Some(dim)) => (std::slice::from_ref(dim), &ints[..]),
            _ => continue,
        };
        for (dim, v) in dims.iter().zip(values) {
            if let Some(var) = dim.as_var() {
                symbols.entry(var.clone()).or_insert_with(|| PrimExpr::int(var.dtype(), *v));
            }
        }
    }
    symbols
}

fn output_tensors(entry: &Entry, symbols: &BTreeMap<Var, PrimExpr>) -> Result<Vec<HostTensor>, Diag> {
    entry
        .outs
        .iter()
        .filter_map(|out| Some((out, out.dims()?)))
        .map(|(out, dims)| {
            let shape = dims.iter().map(|d| value(d, symbols)).collect::<Result<Vec<_>, _>>()?;
            HostTensor::zeroed(out.dtype, &shape).ok_or_else(|| error(format!("{} has no shape {shape:?}", out.name)))
        })
        .collect()
}

fn value(e: &PrimExpr, symbols: &BTreeMap<Var, PrimExpr>) -> Result<i64, Diag> {
    let known = Analyzer::new().simplify(&substitute(e, symbols));
    known.as_int().ok_or_else(|| error(format!("the size {e:?} is not known from the arguments")))
}

/// The elements of an integer or bool tensor, of as many as matter for shapes and scalars.
fn integers(t: &HostTensor) -> Vec<i64> {
    let width = t.dtype().bytes().max(1);
    let signed = matches!(t.dtype().code, tvm_runtime::TypeCode::Int);
    t.bytes()
        .chunks_exact(width)
        .take(64)
        .filter(|c| c.len() <= 8)
        .map(|c| {
            let negative = signed && c.last().is_some_and(|b| *b >= 0x80);
            let mut bytes = if negative { [0xFF; 8] } else { [0; 8] };
            bytes.iter_mut().zip(c).for_each(|(to, from)| *to = *from);
            i64::from_le_bytes(bytes)
        })
        .collect()
}

fn number(t: &HostTensor) -> f64 {
    match *t.bytes() {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0.0,
    }
}
