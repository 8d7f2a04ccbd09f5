//! Well-formedness of Relax. The rules:
//!
//! 1. Every variable is bound once: by a parameter or a binding.
//! 2. Every variable used is in scope: bound before, in this body or one around it.
//! 3. A variable bound in a dataflow block is used outside of it only when it is one of the block's outputs; outputs
//!    are bound in the block.
//! 4. A dataflow block holds no conditionals and nothing with effects.
//! 5. A function marked pure does nothing with effects.
//! 6. A call of an op has each argument and attribute of the op's row, of the declared kind, and inference accepts it.
//! 7. The struct info of a bound variable follows from its value: it does not contradict it, and knows no more than
//!    the value tells (`R.match_cast` is how to know more).
//! 8. A function of the module that is named exists. `R.call_tir` calls a PrimFunc; its arguments, then its outputs,
//!    then its scalars fit the parameters in number, kind, type, rank and dimensions. It writes no argument but
//!    those that `R.call_tir_inplace` names.
//! 9. A call of a Relax function has as many arguments as it has parameters, and they fit.
//! 10. Every symbolic variable in struct info, shapes and scalars is defined: it stands alone as a dimension or value of a
//!     parameter, or of an earlier `R.match_cast`. What a function returns is stated over its parameters' variables.
//! 11. The result of a body, and of each branch of a conditional, does not contradict what is declared for it. A
//!     condition is a bool scalar.
//! 12. A tuple's field is one it has.
//! 13. The `global_symbol` of a function is its name in the module.
//! 14. A loop's body is a Relax function of the module that takes a scalar, the captured and the carried values, and returns
//!     the condition if there is one, the carried values, and rows. A loop has a trip count or a condition. Its results
//!     are the carried values, which contradict neither what is given nor what the body returns and know no more than
//!     these tell, and the stacked rows. The first extent of a stack is the trip count, if that is a scalar
//!     and there is no condition, else a variable that the loop defines.

mod fit;
mod function;
mod loops;

pub(crate) use fit::{CallPart, Callee, call_tir_faults, conflict, misfit};

use crate::attrs::AttrValue;
use crate::diag::{Diag, Diags};
use crate::module::{Func, IRModule};

/// Checks every Relax function of a module. Errors are all that were found, in the order of the functions' names.
pub fn verify_module(module: &IRModule) -> Result<(), Diags> {
    let mut diags = Diags::new();
    for (name, func) in &module.funcs {
        let Func::Relax(f) = func else { continue };
        if let Some(symbol) = f.attrs.get("global_symbol") {
            if !matches!(symbol, AttrValue::Str(s) if s == name) {
                let message = format!("the function `{name}` has the global_symbol {symbol}");
                diags.push(
                    Diag::error(f.span, message)
                        .help(format!("it must be its name in the module: remove the attribute, or write \"{name}\"")),
                );
            }
        }
        function::verify(module, name, f, &mut diags);
    }
    diags.into_result(())
}

#[cfg(test)]
mod tests;
