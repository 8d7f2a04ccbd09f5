//! Operators of the user's own: what a build script says of the nodes that no standard defines, or that it wants
//! otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::module::{Func, IRModule};
use tvm_ir::name::Name;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::{CallTir, Expr, Leaf, StructInfo, TensorInfo};

use super::cx::{OpCx, Outputs};
use super::emit::Fail;
use super::graph::OpName;
use super::value::Value;

type Convert = dyn Fn(&mut NodeCx<'_, '_>) -> Result<Vec<NodeValue>, Diag> + Send + Sync;

/// What the nodes of operators mean, by domain and name. It goes before functions of the model and before the
/// converters of this crate.
///
/// A conversion reads attributes and inputs of its node and gives the values of the outputs. It makes them of Relax ops
/// ([`NodeCx::call`]), of a function in TensorIR ([`NodeCx::call_tir`]), or of a function in C or Rust
/// ([`NodeCx::call_dps_packed`]); their types are the type rule of the operator. What it does not read is an error, as
/// for the operators of this crate.
///
/// ```
/// use tvm_build::import::onnx::CustomOps;
///
/// // com.acme:Swish(x, attribute beta) = x * sigmoid(beta * x)
/// let ops = CustomOps::new().op("com.acme", "Swish", |node| {
///     let x = node.input(0, "x")?;
///     let beta = node.scalar(node.float("beta")?.unwrap_or(1.0).into(), &x)?;
///     let scaled = node.call("multiply", &[&x, &beta], &[])?;
///     let gate = node.call("sigmoid", &[&scaled], &[])?;
///     Ok(vec![node.call("multiply", &[&x, &gate], &[])?])
/// });
/// ```
#[derive(Clone, Default)]
pub struct CustomOps(BTreeMap<(String, String), Arc<Convert>>);

impl CustomOps {
    /// None.
    pub fn new() -> CustomOps {
        CustomOps::default()
    }

    /// Adds an operator; the domain of the standard's own is `""` or `"ai.onnx"`.
    #[must_use]
    pub fn op(
        mut self,
        domain: &str,
        op_type: &str,
        convert: impl Fn(&mut NodeCx<'_, '_>) -> Result<Vec<NodeValue>, Diag> + Send + Sync + 'static,
    ) -> CustomOps {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        self.0.insert((domain.to_owned(), op_type.to_owned()), Arc::new(convert));
        self
    }

    pub(super) fn get(&self, op: &OpName) -> Option<Arc<Convert>> {
        self.0.get(&(op.domain.clone(), op.op_type.clone())).cloned()
    }
}

impl std::fmt::Debug for CustomOps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Runs a conversion of the user's.
pub(super) fn convert(convert: &Convert, cx: &mut OpCx<'_>) -> Outputs {
    let outputs = convert(&mut NodeCx { cx }).map_err(Fail::from)?;
    Ok(outputs.into_iter().map(|v| v.0).collect())
}

/// A value of the model: an input of a node, or what a conversion has made.
#[derive(Clone, Debug)]
pub struct NodeValue(Value);

impl NodeValue {
    /// What is known of it: a tensor with its element type and, as far as they are known, its dimensions.
    pub fn info(&self) -> Option<StructInfo> {
        self.0.info()
    }

    /// A shape, as the argument of an op such as `reshape`.
    pub fn shape(dims: Vec<PrimExpr>) -> NodeValue {
        NodeValue(Value::shape(dims))
    }

    /// An integer, as the argument of an op that takes one.
    pub fn prim(value: PrimExpr) -> NodeValue {
        NodeValue(Leaf::Prim(value).into())
    }

    /// Several values as one argument, as `concat` takes them.
    pub fn tuple(items: &[&NodeValue]) -> NodeValue {
        NodeValue(Value::Tuple(items.iter().map(|v| v.0.clone()).collect()))
    }
}

/// The node that is converted, and the means to convert it. Errors are about the node and need not name it.
pub struct NodeCx<'a, 'n> {
    cx: &'a mut OpCx<'n>,
}

impl NodeCx<'_, '_> {
    /// The version of the node's operator set that the model imports.
    pub fn opset(&self) -> i64 {
        self.cx.opset
    }

    /// The number of inputs, those left out at the end not counted.
    pub fn input_count(&self) -> usize {
        self.cx.node.input_count()
    }

    /// The number of outputs that the node names.
    pub fn output_count(&self) -> usize {
        self.cx.output_count()
    }

    /// Input `index`, which the operator calls `role` and cannot do without.
    pub fn input(&self, index: usize, role: &str) -> Result<NodeValue, Diag> {
        Ok(NodeValue(self.cx.input(index, role).map_err(diag)?))
    }

    /// Input `index`, or `None` if it is left out.
    pub fn optional(&self, index: usize) -> Option<NodeValue> {
        self.cx.optional(index).map(NodeValue)
    }

    /// Element type and dimensions of a value; `role` is what an error calls it. Errors: it is no tensor.
    pub fn tensor(&self, value: &NodeValue, role: &str) -> Result<TensorInfo, Diag> {
        self.cx.tensor(&value.0, role).map_err(diag)
    }

    /// The elements of an integer input of rank 0 or 1 that is a constant of the model.
    pub fn constant_ints(&self, value: &NodeValue, role: &str) -> Result<Vec<i64>, Diag> {
        self.cx.fixed_ints(&value.0, role).map_err(diag)
    }

    /// An integer attribute, `None` if it is left out. Errors: it is of another kind.
    pub fn int(&self, name: &str) -> Result<Option<i64>, Diag> {
        self.cx.node.int(name).map_err(sentence)
    }

    /// A float attribute, `None` if it is left out. Errors: it is of another kind.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Diag> {
        self.cx.node.float(name).map_err(sentence)
    }

    /// A string attribute, `None` if it is left out. Errors: it is of another kind.
    pub fn string(&self, name: &str) -> Result<Option<String>, Diag> {
        self.cx.node.string(name).map(|s| s.map(str::to_owned)).map_err(sentence)
    }

    /// A list of integers, `None` if it is left out. Errors: it is of another kind.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Diag> {
        self.cx.node.ints(name).map(|v| v.map(<[i64]>::to_vec)).map_err(sentence)
    }

    /// A list of floats, `None` if it is left out. Errors: it is of another kind.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>, Diag> {
        self.cx.node.floats(name).map(|v| v.map(<[f32]>::to_vec)).map_err(sentence)
    }

    /// A constant of rank 0 and of the element type of another value. Errors: that type is not known or has no such
    /// constant.
    pub fn scalar(&self, value: f64, like: &NodeValue) -> Result<NodeValue, Diag> {
        let dtype = self.cx.dtype(&like.0, "the value").map_err(diag)?;
        self.cx.scalar(value, dtype).map(NodeValue).map_err(diag)
    }

    /// A call of a Relax op by its name after `R.`; attributes left out have their defaults. Errors: no such op or
    /// attribute, arguments of the wrong kind, and what the op's inference says.
    pub fn call(
        &mut self,
        op: &str,
        args: &[&NodeValue],
        attrs: &[(&'static str, AttrValue)],
    ) -> Result<NodeValue, Diag> {
        let args = args.iter().map(|v| v.0.clone()).collect();
        self.cx.call(op, args, attrs.to_vec()).map(NodeValue).map_err(diag)
    }

    /// A call of a PrimFunc of another module, which is copied into this one: first the buffers of the arguments, then
    /// those of the outputs `outs`, then the scalar parameters `scalars`. Gives the outputs. Errors: the module has no
    /// such PrimFunc; the numbers of parameters differ. Types that do not fit are errors of the compiled module.
    pub fn call_tir(
        &mut self,
        module: &IRModule,
        function: &str,
        args: &[&NodeValue],
        outs: Vec<TensorInfo>,
        scalars: Vec<PrimExpr>,
    ) -> Result<Vec<NodeValue>, Diag> {
        let Some(Func::Prim(body)) = module.get(function) else {
            let names: Vec<&str> = module.prim_funcs().map(|(n, _)| n.as_str()).collect();
            return Err(
                sentence(format!("the module has no PrimFunc {function}")).help(format!("it has {}", names.join(", ")))
            );
        };
        let given = args.len() + outs.len() + scalars.len();
        if body.params.len() != given {
            return Err(sentence(format!(
                "{function} has {} parameters, and {} inputs, {} outputs and {} scalars are given",
                body.params.len(),
                args.len(),
                outs.len(),
                scalars.len()
            )));
        }
        let mut body = body.clone();
        body.attrs.remove("global_symbol");
        let func = self.cx.emitter.define(function, Func::Prim(body));
        let args = self.bound(args)?;
        let out = tuple_or_one(&outs);
        let call = CallTir { func, args, out: out.clone(), tir_vars: scalars, inplace: Vec::new() };
        self.outputs(Expr::CallTir(call), out)
    }

    /// A call of an external function in destination-passing style, by its C symbol. Gives the outputs.
    pub fn call_dps_packed(
        &mut self,
        symbol: &str,
        args: &[&NodeValue],
        outs: Vec<TensorInfo>,
    ) -> Result<Vec<NodeValue>, Diag> {
        let args = self.bound(args)?;
        let out = tuple_or_one(&outs);
        self.outputs(Expr::CallDps { symbol: Name::from(symbol), args, out: out.clone() }, out)
    }

    fn bound(&mut self, args: &[&NodeValue]) -> Result<Vec<Leaf>, Diag> {
        args.iter().map(|v| self.cx.emitter.bind(&v.0).map_err(diag)).collect()
    }

    fn outputs(&mut self, call: Expr, info: StructInfo) -> Result<Vec<NodeValue>, Diag> {
        self.cx.emitter.check_size(&info).map_err(sentence)?;
        let value = self.cx.emitter.emit(call, info.clone());
        match info {
            StructInfo::Tuple(_) => {
                let fields = self.cx.emitter.fields(&value).map_err(diag)?;
                Ok(fields.into_iter().map(NodeValue).collect())
            }
            _ => Ok(vec![NodeValue(value)]),
        }
    }
}

fn tuple_or_one(outs: &[TensorInfo]) -> StructInfo {
    match outs {
        [one] => StructInfo::Tensor(one.clone()),
        several => StructInfo::Tuple(several.iter().cloned().map(StructInfo::Tensor).collect()),
    }
}

fn diag(fail: Fail) -> Diag {
    *fail.diag
}

fn sentence(message: String) -> Diag {
    diag(Fail::from(message))
}
