//! The tables of a program and what typed entry points need to know of it.

use super::dtype::run_dtype;
use super::linear::{Linear, OutSlot, ReturnSlot};
use super::plan::Plan;
use super::table::{Constants, leak, leak_str};
use crate::external::Declaration;
use crate::lower::LoweredFunc;
use crate::weights::Weights;
use tvm_ir::diag::Diag;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{Dims, StructInfo};
use tvm_ir::span::Span;
use tvm_runtime::{DType, Extern, Function, KernelTable, Program};

/// The tables of a program, without kernels. They live as long as the process, as programs do.
#[derive(Clone, Debug)]
pub struct EmittedProgram {
    program: Program,
    /// The external functions that it calls, by number.
    pub externs: Vec<Declaration>,
    /// The public functions.
    pub entries: Vec<Entry>,
}

/// A public function.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the Relax function.
    pub name: String,
    /// Index in the program.
    pub function: usize,
    /// Parameters, tuples flattened (`x.0`, `x.1`).
    pub params: Vec<EntryParam>,
    /// Outputs, tuples flattened.
    pub outs: Vec<EntryOut>,
    /// Bytes of the arena that the function's own tensors need, over the symbols of its parameters: for a size that
    /// has no bound, what is needed beyond the constant arena; `None` when all of it is constant.
    pub dynamic_bytes: Option<PrimExpr>,
}

/// A parameter of an entry point.
#[derive(Clone, Debug)]
pub struct EntryParam {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What a parameter of an entry point is.
#[derive(Clone, Debug)]
pub enum EntryKind {
    /// A tensor; `None` where dtype or dimensions are known at run time only.
    Tensor(Option<DType>, Option<Vec<PrimExpr>>),
    /// A shape; `None` where its dimensions are known at run time only.
    Shape(Option<Vec<PrimExpr>>),
    /// An integer and its value.
    Int(Option<PrimExpr>),
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// A list.
    List,
}

/// An output of an entry point.
#[derive(Clone, Debug)]
pub struct EntryOut {
    /// Name: `out`, or `out0`, `out1`, …
    pub name: String,
    /// Element type; of a list, without meaning.
    pub dtype: DType,
    /// What is known of its shape, and who provides the memory.
    pub shape: OutShape,
}

/// The shape of an output of an entry point.
#[derive(Clone, Debug)]
pub enum OutShape {
    /// Over the symbols of the parameters: the caller provides the memory.
    Given(Vec<PrimExpr>),
    /// Known when the call has run, of this rank where that is known: the call returns the tensor, in the module's
    /// memory.
    Returned(Option<usize>),
    /// It is a list, which the call returns.
    List,
}

impl EntryOut {
    /// The dimensions of an output that the caller provides.
    pub fn dims(&self) -> Option<&[PrimExpr]> {
        match &self.shape {
            OutShape::Given(dims) => Some(dims),
            OutShape::Returned(_) | OutShape::List => None,
        }
    }
}

impl Entry {
    /// Errors: an output of a type that entry points cannot give.
    pub(super) fn of(lin: &Linear, plan: &Plan, function: usize) -> Result<Entry, Diag> {
        let dims = |d: &Dims| d.known().map(<[_]>::to_vec);
        let kind = |info: &StructInfo| match info {
            StructInfo::Tensor(t) => EntryKind::Tensor(t.dtype.and_then(run_dtype), dims(&t.dims)),
            StructInfo::Shape(d) => EntryKind::Shape(dims(d)),
            StructInfo::Prim(d, _) if d.is_float() => EntryKind::Float,
            StructInfo::Prim(d, _) if d.is_bool() => EntryKind::Bool,
            StructInfo::Prim(_, e) => EntryKind::Int(e.clone()),
            StructInfo::Object => EntryKind::List,
            _ => EntryKind::Int(None),
        };
        let out = |name: &str, dtype: tvm_ir::dtype::DType, shape: OutShape| match run_dtype(dtype) {
            Some(dtype) => Ok(EntryOut { name: name.to_string(), dtype, shape }),
            None => Err(Diag::error(lin.span, format!("{}: output {name} has elements of type {dtype}", lin.name))
                .help("convert it with R.astype: entry points have no such element type")),
        };
        let given = lin.outs.iter().map(|OutSlot { name, position, dims, dtype }| {
            Ok((*position, out(name, *dtype, OutShape::Given(dims.clone()))?))
        });
        let returned = lin.returned.iter().map(|ReturnSlot { name, position, rank, dtype }| {
            let Some(dtype) = dtype else {
                let out = EntryOut { name: name.clone(), dtype: DType::U8, shape: OutShape::List };
                return Ok((*position, out));
            };
            Ok((*position, out(name, *dtype, OutShape::Returned(*rank))?))
        });
        let mut outs = given.chain(returned).collect::<Result<Vec<_>, Diag>>()?;
        outs.sort_by_key(|(position, _)| *position);
        Ok(Entry {
            name: lin.name.to_string(),
            function,
            params: lin.params.iter().map(|p| EntryParam { name: p.name.clone(), kind: kind(&p.info) }).collect(),
            outs: outs.into_iter().map(|(_, out)| out).collect(),
            dynamic_bytes: (!plan.regions.is_empty()).then(|| plan.region_offset(plan.regions.len())),
        })
    }
}

impl EmittedProgram {
    pub(super) fn new(
        functions: Vec<Function>,
        constants: Constants,
        kernels: &[LoweredFunc],
        externs: Vec<Declaration>,
        weights: &Weights,
        entries: Vec<Entry>,
    ) -> Result<EmittedProgram, Diag> {
        let names = kernels.iter().map(|k| leak_str(&k.name)).collect();
        let messages = kernels.iter().flat_map(|k| &k.kernel.messages).map(|m| leak_str(m)).collect();
        let weight_bytes = usize::try_from(weights.len())
            .map_err(|_| Diag::error(Span::NONE, "the weights take more bytes than memory can address"))?;
        let unlinked = externs.iter().map(|d| Extern { name: leak_str(&d.name), call: unlinked }).collect();
        let program = Program {
            functions: leak(functions),
            constants: leak(constants.items),
            kernels: &[],
            kernel_names: leak(names),
            externs: leak(unlinked),
            messages: leak(messages),
            weight_bytes,
        };
        program.verify().map_err(|e| {
            Diag::error(Span::NONE, format!("the generated program breaks a rule of the VM: {e}"))
                .help("this is a fault of the compiler; please report it")
        })?;
        Ok(EmittedProgram { program, externs, entries })
    }

    /// The tables; they hold no kernels, and external functions that fail.
    pub fn tables(&self) -> &Program {
        &self.program
    }

    /// Bytes of the arena that any call needs, apart from sizes without bounds.
    pub fn arena_bytes(&self) -> usize {
        self.program.functions.iter().map(|f| f.frame.arena).max().unwrap_or(0)
    }

    /// The program with kernels, to run in this process.
    pub fn to_static(&self, kernels: &'static [KernelTable]) -> &'static Program {
        Box::leak(Box::new(Program { kernels, ..self.program }))
    }
}

/// Stands for external functions until the program is linked.
fn unlinked(_: &[tvm_runtime::Value]) -> Result<tvm_runtime::Value, tvm_runtime::Error> {
    Err(tvm_runtime::Error::Extern { name: "?", message: "not linked into this program" })
}
