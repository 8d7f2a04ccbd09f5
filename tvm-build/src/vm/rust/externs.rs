//! What calls external functions: each is declared, and called with what its VM operands hold.

use super::RustOptions;
use crate::external::{Declaration, Param, ParamType, Returns, rust_number};
use std::fmt::Write;
use tvm_ir::dtype::DType;
use tvm_ir::syntax::rust::names::{Identifiers, comment};

/// The function that makes the calls of the `i`-th external function.
pub(super) fn caller(i: usize) -> String {
    format!("externs::call_{i}")
}

/// The module `externs`; nothing when there are none.
pub(super) fn print(out: &mut String, externs: &[Declaration], options: &RustOptions) {
    if externs.is_empty() {
        return;
    }
    out.push_str(
        "\n    /// External functions, called directly.\n    mod externs {\n        use ::tvm_runtime::{Error, Value};\n\n",
    );
    for (name, is_static) in &options.libraries {
        let kind = if *is_static { ", kind = \"static\"" } else { "" };
        let _ = writeln!(out, "        #[link(name = {name:?}{kind})]");
    }
    out.push_str("        unsafe extern \"C\" {\n");
    for (i, d) in externs.iter().enumerate() {
        let mut ids = Identifiers::new(&[]);
        let params: Vec<String> =
            d.params.iter().map(|p| format!("{}: {}", ids.fresh(&p.name), rust_type(&p.ty))).collect();
        let returns = match d.returns {
            Returns::Status(t) => format!(" -> {}", rust_number(t)),
            _ => String::new(),
        };
        let _ = writeln!(out, "            // {}", comment(&d.place));
        let _ = writeln!(out, "            #[link_name = {:?}]", d.name.as_str());
        let _ = writeln!(out, "            fn extern_{i}({}){returns};", params.join(", "));
    }
    out.push_str("        }\n");
    for (i, d) in externs.iter().enumerate() {
        call(out, i, d);
    }
    out.push_str("    }\n");
}

fn rust_type(ty: &ParamType) -> String {
    match ty {
        ParamType::Pointer { element, writable, .. } => {
            let element = element.map_or("::core::ffi::c_void", rust_number);
            format!("*{} {element}", if *writable { "mut" } else { "const" })
        }
        ParamType::Number(d) => rust_number(*d).to_string(),
        // No call fits such a parameter.
        ParamType::Other => "()".to_string(),
    }
}

/// Operands: what the function is given, in the order of its parameters, then its outputs.
fn call(out: &mut String, i: usize, d: &Declaration) {
    let name = d.name.as_str();
    let is_output = |p: &&Param| matches!(p.ty, ParamType::Pointer { writable: true, .. });
    let mut ids = Identifiers::new(&["args", "status"]);
    let names: Vec<(&Param, String)> = d.params.iter().map(|p| (p, ids.fresh(&p.name))).collect();
    let inputs = names.iter().filter(|(p, _)| !is_output(p));
    let operands = inputs.chain(names.iter().filter(|(p, _)| is_output(p)));
    let patterns: Vec<String> = operands
        .map(|(p, name)| match p.ty {
            ParamType::Number(t) if t.is_float() => format!("Value::Float({name})"),
            ParamType::Number(_) => name.clone(),
            _ => format!("Value::Tensor({name})"),
        })
        .collect();
    let _ = write!(
        out,
        "\n        /// `{}`.\n        pub(super) fn call_{i}(args: &[Value]) -> Result<Value, Error> {{\n            \
         let &[{}] = args else {{\n                \
         return Err(Error::Extern {{ name: {name:?}, message: \"the operands are not those of its declaration\" }});\n            \
         }};\n",
        comment(name),
        patterns.join(", "),
    );
    for (p, id) in &names {
        if let ParamType::Number(t) = p.ty {
            integer(out, name, p, id, t);
        }
    }
    let arguments: Vec<String> = names
        .iter()
        .map(|(p, id)| match p.ty {
            ParamType::Number(t) if t.is_float() => format!("{id} as {}", rust_number(t)),
            ParamType::Number(_) => id.clone(),
            _ => format!("{id}.as_ptr().cast()"),
        })
        .collect();
    let call = format!("unsafe {{ extern_{i}({}) }}", arguments.join(", "));
    out.push_str(
        "            // SAFETY: the tensors are alive and of the types that the build compared with the declaration; what\n            \
         // lies behind it is the user's word.\n",
    );
    match d.returns {
        Returns::Status(_) => {
            let _ = write!(
                out,
                "            let status = {call};\n            if status != 0 {{\n                \
                 return Err(Error::Extern {{ name: {name:?}, message: \"it returned a status that is not 0\" }});\n            }}\n"
            );
        }
        _ => {
            let _ = writeln!(out, "            {call};");
        }
    }
    out.push_str("            Ok(Value::None)\n        }\n");
}

/// An integer or truth value, converted to the parameter's type.
fn integer(out: &mut String, function: &str, p: &Param, id: &str, t: DType) {
    if t.is_float() {
        return;
    }
    let ty = rust_number(t);
    let message = format!("the value of `{}` does not fit in `{}`", comment(&p.name), comment(&p.text));
    let error = format!("Err(Error::Extern {{ name: {function:?}, message: {message:?} }})");
    let arms = if t.is_bool() {
        format!(
            "Value::Bool(value) => value,\n                Value::Int(value) => value != 0,\n                \
             _ => return {error},"
        )
    } else {
        format!(
            "Value::Bool(value) => {ty}::from(value),\n                \
             Value::Int(value) => match {ty}::try_from(value) {{\n                    Ok(value) => value,\n                    \
             Err(_) => return {error},\n                }},\n                _ => return {error},"
        )
    };
    let _ = writeln!(out, "            let {id}: {ty} = match {id} {{\n                {arms}\n            }};");
}
