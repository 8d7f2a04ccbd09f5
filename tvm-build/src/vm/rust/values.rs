//! Strings and lists in typed entry points: as Rust has them, where there is a heap.

use super::entry::{Out, Returned, Signature, values};
use crate::vm::program::{Entry, EntryKind, OutShape};
use std::fmt::Write;
use tvm_ir::diag::Diag;
use tvm_ir::ops::show_dims;
use tvm_ir::syntax::rust::names::Identifiers;
use tvm_runtime::DType;

/// The name of the elements of tensors of strings.
const TEXT: &str = "Text";

/// Whether a function takes or gives strings or lists.
pub(super) fn has(entry: &Entry) -> bool {
    let strings = |p: &EntryKind| matches!(p, EntryKind::Tensor(Some(DType::TEXT), _));
    has_lists(entry)
        || entry.params.iter().any(|p| strings(&p.kind))
        || entry.outs.iter().any(|o| o.dtype == DType::TEXT)
}

/// Whether a function takes or gives lists. Their items may be strings, which callers hold by number.
pub(super) fn has_lists(entry: &Entry) -> bool {
    let list = |p: &EntryKind| matches!(p, EntryKind::List);
    entry.params.iter().any(|p| list(&p.kind)) || entry.outs.iter().any(|o| matches!(o.shape, OutShape::List))
}

/// Adds a parameter, if it is a tensor of strings or a list.
pub(super) fn param(
    s: &mut Signature,
    label: &str,
    name: &str,
    kind: &EntryKind,
    ids: &mut Identifiers,
) -> Result<bool, Diag> {
    match kind {
        EntryKind::List => {
            s.params.push(format!("{name}: &AnyList"));
            s.args.push(format!("{name}.as_input()"));
            s.docs.push(format!("`{name}`: a list, or an optional as a list of no or one item"));
        }
        EntryKind::Tensor(Some(DType::TEXT), dims) => {
            let texts = ids.fresh(&format!("{}_texts", name.trim_start_matches("r#")));
            let _ = writeln!(s.prepare, "            let {texts} = self.state.intern_all({name});");
            let shape = match dims {
                Some(dims) => {
                    s.params.push(match values(DType::TEXT, dims) {
                        Some(len) => format!("{name}: &[&str; {len}]"),
                        None => format!("{name}: &[&str]"),
                    });
                    s.docs.push(format!("`{name}`: {} strings", show_dims(dims)));
                    s.shape(label, dims)?
                }
                None => {
                    let shape = ids.fresh(&format!("{name}_shape"));
                    s.params.push(format!("{name}: &[&str], {shape}: &[i64]"));
                    s.docs.push(format!("`{name}`: strings in the shape `{shape}`"));
                    shape
                }
            };
            s.args.push(format!("Arg::input(&{texts}, {shape})"));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Type and value of an output.
pub(super) fn given(o: &Out) -> (String, String) {
    match o.rust {
        TEXT => ("::std::vec::Vec<::std::string::String>".into(), format!("self.state.strings(&{})", o.name)),
        rust => (format!("::std::vec::Vec<{rust}>"), o.name.clone()),
    }
}

/// Type and value of what a call has returned; strings with their shape.
pub(super) fn returned(r: &Returned) -> (String, String) {
    match r.rust {
        _ if r.list => ("AnyList".into(), r.name.clone()),
        TEXT => (
            format!("(::std::vec::Vec<::std::string::String>, [usize; {}])", r.rank),
            format!("(self.state.strings({0}.data()), {0}.shape())", r.name),
        ),
        rust => (format!("TensorView<'_, {rust}, {}>", r.rank), r.name.clone()),
    }
}
