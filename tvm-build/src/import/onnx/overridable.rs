//! Initializers that callers may override: parameters of `main`, with their values given by another function.

use std::collections::BTreeSet;

use tvm_ir::diag::{Diag, Diags};
use tvm_ir::module::{Func, IRModule};
use tvm_ir::relax::Leaf;

use super::emit::Emitter;
use super::graph::Model;
use super::limits::Limits;
use super::ops::tensor_value;
use super::tensor::Tensor;

/// The function that gives the values.
const DEFAULTS: &str = "main_defaults";

/// Takes the initializers of these names out of a model, of which they become inputs; gives them in the order of the inputs. A
/// name that is none of the model's is left to the caller. Errors: the initializer is no input, so that its value is fixed.
pub(super) fn take(model: &mut Model, names: &[String]) -> Result<Vec<(String, Tensor)>, Diags> {
    let mut diags = Diags::new();
    let graph = &mut model.graph;
    let wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let inputs: Vec<&str> = graph.inputs.iter().map(|i| i.name.as_str()).collect();
    for (name, _) in graph.initializers.iter().filter(|(name, _)| wanted.contains(name.as_str())) {
        if inputs.contains(&name.as_str()) {
            continue;
        }
        let may: Vec<&str> =
            graph.initializers.iter().map(|(n, _)| n.as_str()).filter(|n| inputs.contains(n)).collect();
        let m = format!("initializer '{name}' cannot be overridden: it is no input of the graph");
        diags.push(Diag::error(model.span, m).help(match may.is_empty() {
            true => "no initializer of the model is an input".to_owned(),
            false => format!("those that are inputs are {}", may.join(", ")),
        }));
    }
    diags.into_result(())?;
    let (mut taken, kept) = std::mem::take(&mut graph.initializers)
        .into_iter()
        .partition::<Vec<_>, _>(|(n, _)| wanted.contains(n.as_str()));
    graph.initializers = kept;
    taken.sort_by_key(|(name, _)| graph.inputs.iter().position(|i| i.name == *name));
    Ok(taken)
}

/// Adds the function `main_defaults()`, which gives these tensors in order.
pub(super) fn add(
    module: &mut IRModule,
    model: &Model,
    limits: &Limits,
    defaults: &[(String, Tensor)],
) -> Result<(), Diags> {
    if defaults.is_empty() {
        return Ok(());
    }
    let mut emitter = Emitter::new(limits.tensor_elements);
    emitter.span = model.span;
    let made = |emitter: &mut Emitter| {
        let values = defaults.iter().map(|(_, t)| tensor_value(emitter, t)).collect::<Result<Vec<_>, _>>()?;
        emitter.output(&values)
    };
    let result = made(&mut emitter).map_err(|fail| fail.diag.at(model.span))?;
    let mut function = emitter.function;
    function.set_span(model.span);
    function.attr("global_symbol", DEFAULTS);
    function.attr("num_input", 0i64);
    module.funcs.insert(DEFAULTS.into(), Func::Relax(function.finish_bound(Leaf::Var(result))?));
    Ok(())
}
