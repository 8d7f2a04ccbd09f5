//! ONNX models.
//!
//! [`load`] reads a file in stages, each in a module of its own: `wire` walks the bytes within the [`Limits`],
//! `proto` decodes them without copying weights, `read` checks names, types and order and gives a `graph`, and
//! `convert` makes Relax of it with the converters of `ops`, a file a family. A converter reads its node through
//! `cx`; what it does not read is an error.
//!
//! # Supported operators
//!
#![doc = include_str!("support.md")]
#![doc = "\n"]
#![doc = include_str!("microsoft.md")]

use std::path::{Path, PathBuf};

use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::IRModule;
use tvm_ir::span::SourceMap;

mod agree;
mod arms;
mod control;
mod convert;
mod custom;
mod cx;
mod data_type;
mod datum;
mod declared;
mod dims;
mod elements;
mod emit;
mod extents;
mod external;
mod flex;
mod fold;
mod foreign;
mod graph;
mod iterate;
mod join;
mod limits;
mod list;
mod ops;
mod order;
mod overridable;
mod places;
mod proto;
mod read;
mod reader;
mod scan;
mod sequence_map;
mod sparse;
mod tensor;
mod tensor_proto;
#[cfg(test)]
mod tests;
mod value;
mod wire;

pub use custom::{CustomOps, NodeCx, NodeValue};
pub use datum::{Datum, DatumKind, Port, Ports, decode_datum, encode_datum, ports, read_datum};
pub use limits::Limits;

/// A model that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// One public Relax function, `main`, that takes the inputs of the model in order; its loops run private ones. Weights are constants over the
    /// bytes of the files. Named dimensions of the inputs are symbolic variables.
    pub module: IRModule,
    /// The files of external data, beside the model itself.
    pub files: Vec<PathBuf>,
    /// Initializers that became parameters of `main`, in their order; `main_defaults()` of the module gives their values.
    pub overridable: Vec<String>,
    /// What does not stop a build, and should be seen: branches of conditionals that are errors when they are taken.
    pub warnings: Diags,
}

/// How a model is read.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Bounds on what the file may ask for.
    pub limits: Limits,
    /// Values of inputs that are known when the model is compiled, by name: they become constants, and are no parameters
    /// of `main`. A value takes the place of an initializer of the same name.
    pub inputs: Vec<(String, Datum)>,
    /// Initializers that are inputs of the graph too, by name, and stay parameters of `main`: callers may have other values. Others
    /// of them are constants. The module gets a function `main_defaults` that gives the initializers' own values.
    pub overridable: Vec<String>,
    /// Operators of the user's own.
    pub ops: CustomOps,
}

/// Reads an ONNX file. External data is looked for in the folder of the file and nowhere else.
///
/// Errors are all that is wrong, with places in `sources`: damaged or malformed files, names without a definition,
/// operators and attributes that are not supported, and shapes that do not fit; no input of the name of a value, a value
/// that is no tensor or not of the input's type; an initializer to override that is no input. Names to override that the model does not have are ignored:
/// [`Loaded::overridable`] says which it has. The files must not change while the module is in use.
pub fn load(path: &Path, options: ImportOptions, sources: &mut SourceMap) -> Result<Loaded, Diags> {
    let mut model = read::read_file(path, &options.limits, sources)?;
    let span = model.span;
    for (name, value) in options.inputs {
        datum::bind(&mut model.graph, &name, value)
            .map_err(|message| Diag::error(span, format!("the value given for the input '{name}': {message}")))?;
    }
    let defaults = overridable::take(&mut model, &options.overridable)?;
    let (mut module, warnings) = convert::convert(&model, &options.limits, &options.ops)?;
    overridable::add(&mut module, &model, &options.limits, &defaults)?;
    let overridable = defaults.into_iter().map(|(name, _)| name).collect();
    Ok(Loaded { module, files: model.files, overridable, warnings })
}

/// Reads an ONNX model from memory; it can have no external data. `name` is what messages call it.
pub fn load_bytes(bytes: Vec<u8>, name: &str, limits: &Limits, sources: &mut SourceMap) -> Result<Loaded, Diags> {
    let model = read::read_bytes(bytes.into(), name, limits, sources)?;
    let (module, warnings) = convert::convert(&model, limits, &CustomOps::new())?;
    Ok(Loaded { module, files: model.files, overridable: Vec::new(), warnings })
}
