//! Entry points for arrays of ndarray.

use super::entry::{call, element, no_list};
use super::expr::extent;
use crate::vm::program::{Entry, EntryKind, OutShape};
use std::collections::BTreeMap;
use std::fmt::Write;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, Var};
use tvm_ir::span::Span;
use tvm_ir::syntax::rust::names::{Identifiers, comment, documentation};
use tvm_runtime::Function;

/// A method that takes views and gives arrays; symbols are read off the views.
pub(super) fn print(
    out: &mut String,
    name: &str,
    entry: &Entry,
    function: &Function,
    grows: bool,
    about: &[String],
) -> Result<(), Diag> {
    let mut ids = Identifiers::new(&["args", "result", "needed", "storage", "value"]);
    let (mut params, mut shapes, mut args, mut vars) = (Vec::new(), String::new(), Vec::new(), BTreeMap::new());
    for p in &entry.params {
        let name = ids.fresh(&p.name);
        match &p.kind {
            EntryKind::Tensor(Some(d), Some(dims)) => {
                let (rust, _) = element(*d, &p.name)?;
                let shape = ids.fresh(&format!("{}_shape", name.trim_start_matches("r#")));
                params.push(format!("{name}: {}", array("ArrayView", "'_, ", rust, dims.len())));
                let rank = dims.len();
                let _ =
                    writeln!(shapes, "            let {shape} = nd::shape::<{rank}, _, _>({:?}, &{name})?;", p.name);
                args.push(format!("nd::input({:?}, &{name}, &{shape})?", p.name));
                for (axis, d) in dims.iter().enumerate() {
                    if let Some(v) = d.as_var() {
                        vars.entry(v.clone()).or_insert_with(|| format!("{shape}[{axis}]"));
                    }
                }
            }
            EntryKind::Tensor(..) => {
                let m = format!("the rank or dtype of parameter {} is not known", p.name);
                return Err(Diag::error(Span::NONE, m).help("declare it, or turn the ndarray entry points off"));
            }
            EntryKind::List => return Err(no_list(&p.name)),
            EntryKind::Shape(_) => {
                params.push(format!("{name}: &[i64]"));
                args.push(format!("Arg::shape({name})"));
            }
            EntryKind::Int(e) => {
                if let Some(v) = e.as_ref().and_then(PrimExpr::as_var) {
                    vars.insert(v.clone(), name.clone());
                }
                params.push(format!("{name}: i64"));
                args.push(format!("Arg::int({name})"));
            }
            EntryKind::Float => {
                params.push(format!("{name}: f64"));
                args.push(format!("Arg::float({name})"));
            }
            EntryKind::Bool => {
                params.push(format!("{name}: bool"));
                args.push(format!("Arg::bool({name})"));
            }
        }
    }
    let (mut types, mut values, mut made, mut returned) = (Vec::new(), Vec::new(), String::new(), 0);
    for o in &entry.outs {
        let (rust, zero) = element(o.dtype, &o.name)?;
        let name = ids.fresh(&o.name);
        let dims = match &o.shape {
            OutShape::Given(dims) => dims,
            OutShape::List => return Err(no_list(&o.name)),
            OutShape::Returned(rank) => {
                let rank = rank.ok_or_else(|| {
                    let m = format!("the rank of {} is not known", o.name);
                    Diag::error(Span::NONE, m).help("give it a rank with R.match_cast")
                })?;
                types.push(array("ArrayView", "'_, ", rust, rank));
                // SAFETY, in the text: as for the entry points without ndarray.
                values.push(format!(
                    "nd::view({0:?}, {{\n                // SAFETY: the call gave it, in memory that the module owns and \
                     that `self` borrows.\n                unsafe {{ storage.view::<{rust}, {rank}>(value, {returned}, {0:?}) \
                     }}?\n            }})",
                    o.name
                ));
                returned += 1;
                continue;
            }
        };
        let rank = dims.len();
        let shape = ids.fresh(&format!("{}_shape", o.name));
        let dims = extents(&o.name, dims, &vars)?;
        let _ = writeln!(made, "            let {shape}: [i64; {rank}] = [{dims}];");
        let _ = writeln!(made, "            let mut {name} = zeros({:?}, {zero}, &{shape})?;", o.name);
        args.push(format!("Arg::output(&mut {name}, &{shape})"));
        types.push(array("Array", "", rust, rank));
        let slice = if rank > 6 { ".as_slice()" } else { "" };
        values.push(format!(
            "nd::array({:?}, {shape}.map(|d| usize::try_from(d).unwrap_or(usize::MAX)){slice}, {name})",
            o.name
        ));
    }
    let tuple = |items: &[String]| match items {
        [one] => one.clone(),
        items => format!("({})", items.join(", ")),
    };
    params.insert(0, "&mut self".into());
    out.push('\n');
    documentation(out, "        ", about);
    let _ = write!(
        out,
        "        /// Runs `{}` on arrays.\n        ///\n        /// # Errors\n        ///\n        \
         /// Views that are not contiguous in row-major order, extents that do not fit each other, and what the \
         model itself checks.\n        \
         pub fn {name}({}) -> Result<{}, Error> {{\n{shapes}{made}",
        comment(&entry.name),
        params.join(", "),
        tuple(&types),
    );
    call(out, entry, function, &args, grows.then_some(&vars), returned > 0);
    let value = match values.as_slice() {
        [one] => one.clone(),
        all => format!("Ok(({}))", all.iter().map(|v| format!("{v}?")).collect::<Vec<_>>().join(", ")),
    };
    let bound = if returned > 0 { "let value = result?" } else { "result?" };
    let _ = write!(out, "            {bound};\n            {value}\n        }}\n");
    Ok(())
}

fn array(kind: &str, lifetime: &str, element: &str, rank: usize) -> String {
    let rank = if rank > 6 { "D".to_string() } else { rank.to_string() };
    format!("::ndarray::{kind}{rank}<{lifetime}{element}>")
}

fn extents(label: &str, dims: &[PrimExpr], vars: &BTreeMap<Var, String>) -> Result<String, Diag> {
    let dims = dims.iter().map(|d| {
        extent(d, vars).ok_or_else(|| {
            let m = format!("the shape of {label} cannot be read off the parameters' shapes");
            Diag::error(Span::NONE, m).help("let each symbol stand alone as an extent of a parameter")
        })
    });
    Ok(dims.collect::<Result<Vec<_>, _>>()?.join(", "))
}
