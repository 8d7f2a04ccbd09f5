//! Calls of the op table, made from values and bound when they are used.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::float::encode;
use tvm_ir::module::Func;
use tvm_ir::name::{Name, NameSupply};
use tvm_ir::ops;
use tvm_ir::prim::PrimExpr;
use tvm_ir::relax::build::{BindingBuilder, FnBuilder};
use tvm_ir::relax::{ArgKind, Call, Expr, GlobalVar, Leaf, StructInfo, Var};
use tvm_ir::span::Span;
use tvm_ir::structural::func_equal;

use super::dims::identifier;
use super::elements::Elements;
use super::fold::{Known, fold};
use super::limits::check_rank;
use super::list::Content;
use super::value::{Pending, Value, ints_of};

/// Most calls that hang on one another without being bound.
const MAX_DEPTH: u32 = 64;

/// Why a node cannot be converted. The driver adds where.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) diag: Box<Diag>,
    /// The node may be right, and is beyond what can be imported: an error wherever it stands.
    pub(crate) limit: bool,
}

impl Fail {
    /// A reason that is not the model's fault.
    pub(crate) fn limit(message: impl Into<String>) -> Fail {
        Fail { limit: true, ..message.into().into() }
    }
}

impl From<Diag> for Fail {
    fn from(diag: Diag) -> Fail {
        Fail { diag: Box::new(diag), limit: false }
    }
}

impl From<String> for Fail {
    fn from(message: String) -> Fail {
        Diag::error(Span::NONE, message).into()
    }
}

impl From<&str> for Fail {
    fn from(message: &str) -> Fail {
        message.to_owned().into()
    }
}

/// Tensors of strings that are known: their characters, where each ends among them, their shape.
#[derive(Default)]
pub(crate) struct Texts(BTreeMap<Var, (Constant, Constant, Vec<u64>)>);

impl Texts {
    /// Adds a variable whose strings these are.
    pub(super) fn tell(&mut self, value: &Value, bytes: Constant, ends: Constant, shape: Vec<u64>) {
        if let Value::Leaf(Leaf::Var(var)) = value {
            self.0.insert(var.clone(), (bytes, ends, shape));
        }
    }

    /// The strings of a value and its shape, if they are known.
    pub(super) fn of(&self, value: &Value) -> Option<(Vec<String>, Vec<u64>)> {
        let Value::Leaf(Leaf::Var(var)) = value else { return None };
        let (bytes, ends, shape) = self.0.get(var)?;
        let mut start = 0;
        let mut one = |end: i64| {
            let end = usize::try_from(end).ok()?;
            let text = std::str::from_utf8(bytes.data().get(start..end)?).ok()?.to_owned();
            start = end;
            Some(text)
        };
        let all = ints_of(ends)?.into_iter().map(&mut one).collect::<Option<_>>()?;
        Some((all, shape.clone()))
    }
}

/// Makes calls and binds them.
pub(crate) struct Emitter {
    /// The function or branch that is built.
    pub(crate) function: FnBuilder,
    /// The node that is converted.
    pub(crate) span: Span,
    /// The functions of the module but the one that is built.
    pub(crate) functions: BTreeMap<Name, Func>,
    /// Names of functions.
    names: NameSupply,
    max_elements: u64,
    /// What is known of the elements of small tensors.
    pub(super) elements: Elements,
    /// Tensors of strings that are known.
    pub(super) texts: Texts,
}

impl Emitter {
    /// Builds a function in which no tensor of fixed shape has more than `max_elements` elements.
    pub(crate) fn new(max_elements: u64) -> Emitter {
        let mut names = NameSupply::new();
        names.reserve("main");
        Emitter {
            function: FnBuilder::new(),
            span: Span::NONE,
            functions: BTreeMap::new(),
            names,
            max_elements,
            elements: Elements::default(),
            texts: Texts::default(),
        }
    }

    /// Adds a function to the module, under the name `hint` or one like it; one that is equal and was added under such a
    /// name is used instead.
    pub(crate) fn define(&mut self, hint: &str, func: Func) -> GlobalVar {
        let hint = identifier(hint, "fn_");
        let like =
            |n: &Name| n.strip_prefix(hint.as_str()).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        if let Some((name, _)) = self.functions.iter().find(|(n, f)| like(n) && func_equal(f, &func)) {
            return GlobalVar(name.clone());
        }
        let name = self.names.fresh(&hint);
        self.functions.insert(name.clone(), func);
        GlobalVar(name)
    }

    /// Binds an expression whose struct info is known.
    pub(crate) fn emit(&mut self, value: Expr, info: StructInfo) -> Value {
        Leaf::Var(self.builder(self.span).emit_as("lv", value, info)).into()
    }

    /// An error if a tensor has more elements than allowed, as far as its extents are numbers.
    pub(crate) fn check_size(&self, info: &StructInfo) -> Result<(), String> {
        let dims = match info {
            StructInfo::Tensor(tensor) => tensor.dims.known().unwrap_or(&[]),
            StructInfo::Tuple(fields) => return fields.iter().try_for_each(|field| self.check_size(field)),
            _ => return Ok(()),
        };
        check_rank(dims.len())?;
        let extents = dims.iter().filter_map(PrimExpr::as_int).map(|n| u64::try_from(n).unwrap_or(0));
        let count = if dims.iter().any(|d| d.is_int(0)) { Some(0) } else { extents.fold(Some(1), checked_product) };
        match count {
            Some(count) if count <= self.max_elements => Ok(()),
            _ => Err(format!(
                "a tensor of shape {dims:?} has more elements than the limit of {} (Limits::tensor_elements)",
                self.max_elements
            )),
        }
    }

    /// Where bindings go, at the node that is converted.
    fn builder(&mut self, span: Span) -> &mut BindingBuilder {
        self.function.set_span(span);
        self.function.bindings()
    }

    /// A call of the op `name`, not bound yet. `args` are positional; arguments left out at the end are absent.
    /// `attrs` are by name; those left out have their defaults. Errors: no such op or attribute, an argument of
    /// the wrong kind, and what the op's inference says.
    pub(crate) fn call(
        &mut self,
        name: &str,
        args: Vec<Value>,
        attrs: Vec<(&'static str, AttrValue)>,
    ) -> Result<Value, Fail> {
        let op = ops::lookup(name).ok_or_else(|| format!("it needs R.{name}, which the op table does not have"))?;
        let declared = op.def().args;
        let mut values = Vec::with_capacity(declared.len());
        for (i, value) in args.into_iter().enumerate() {
            let kind = declared.get(i).map_or(ArgKind::Any, |arg| arg.kind);
            values.push(coerce(value, kind));
        }
        let mut known = BTreeMap::new();
        let mut leaves: Vec<Leaf> = values.iter().map(|value| self.stand_in(value, &mut known)).collect();
        let mut call = ops::make_call(op, leaves.clone(), &attrs, self.span)?;
        let mut info = ops::infer(&call, &self.function.bindings().analyzer)?;
        if super::agree::asks(op, &info) {
            if let Some(checked) = self.agree(op, &values, call.attr("axis").as_int())? {
                values = checked;
                known.clear();
                leaves = values.iter().map(|value| self.stand_in(value, &mut known)).collect();
                call = ops::make_call(op, leaves.clone(), &attrs, self.span)?;
                info = ops::infer(&call, &self.function.bindings().analyzer)?;
            }
        }
        self.check_size(&info)?;
        let analyzer = &self.function.bindings().analyzer;
        let known = fold(&call, &info, known, analyzer);
        if let Some(value) = known.as_ref().and_then(|known| known.value(analyzer, &self.elements)) {
            return Ok(value);
        }
        let known = known.or_else(|| self.elements.fresh(&info));
        // Completing a call may add arguments and rewrite them; the others are the values given.
        let mut given = leaves.into_iter().zip(values);
        let args = call.args.into_iter().map(|leaf| match given.next() {
            Some((stand_in, value)) if stand_in == leaf => self.tensor(value),
            _ => Ok(Value::Leaf(leaf)),
        });
        let args = args.collect::<Result<Vec<_>, Fail>>()?;
        let mut depth = args.iter().map(Value::depth).max().unwrap_or(0) + 1;
        if depth > MAX_DEPTH {
            args.iter().try_for_each(|arg| self.bind(arg).map(drop))?;
            depth = 1;
        }
        let bound = OnceCell::new();
        Ok(Value::Call(Rc::new(Pending { op, args, attrs: call.attrs, info, span: self.span, depth, bound, known })))
    }

    /// A value whose elements are known by now to be symbolic dimensions, as these; other values as they are.
    pub(super) fn told(&mut self, value: Value) -> Value {
        let Some(known) = self.elements.known(&value) else { return value };
        known.value(&self.function.bindings().analyzer, &self.elements).unwrap_or(value)
    }

    /// Known elements as a tensor that the program computes; other values as they are.
    pub(crate) fn tensor(&mut self, value: Value) -> Result<Value, Fail> {
        let known = match value {
            Value::Known(known) => known,
            Value::Tuple(items) => {
                return Ok(Value::Tuple(items.into_iter().map(|v| self.tensor(v)).collect::<Result<_, _>>()?));
            }
            _ => return Ok(value),
        };
        let elements = known.elements.iter().map(|e| e.cast(DType::I64)).collect();
        let mut tensor = self.call("shape_to_tensor", vec![Value::shape(elements)], vec![])?;
        if known.shape.len() != 1 {
            let dims = known.shape.iter().map(|d| PrimExpr::i64(*d)).collect();
            tensor = self.call("reshape", vec![tensor, Value::shape(dims)], vec![])?;
        }
        if known.dtype != DType::I64 {
            tensor = self.call("astype", vec![tensor], vec![("dtype", AttrValue::DType(known.dtype))])?;
        }
        Ok(tensor)
    }

    /// Known integers as a tensor of rank 1, or 0 if `scalar`.
    pub(crate) fn materialize(&mut self, values: &[PrimExpr], scalar: bool) -> Result<Value, Fail> {
        let value = match values {
            [value] if scalar => Value::int(value.clone()),
            _ => Value::ints(values.to_vec()),
        };
        self.tensor(value)
    }

    /// A leaf of the same struct info, for inference before the value is bound. What is known of it is added to `known`.
    fn stand_in(&mut self, value: &Value, known: &mut BTreeMap<Var, Known>) -> Leaf {
        let leaf = match value {
            Value::Leaf(leaf) => leaf.clone(),
            Value::Tuple(items) => return Leaf::Tuple(items.iter().map(|v| self.stand_in(v, known)).collect()),
            Value::Call(call) => {
                call.bound.get().cloned().unwrap_or_else(|| Var::new("unbound", call.info.clone()).into())
            }
            Value::Known(tensor) => Var::new("known", StructInfo::tensor_fixed(&tensor.shape, tensor.dtype)).into(),
            Value::List(_) => Var::new("unbound", StructInfo::Object).into(),
            Value::Poison(info) => Var::new("unbound", info.clone().unwrap_or(StructInfo::Object)).into(),
        };
        if let Leaf::Var(var) = &leaf {
            known.extend(self.elements.of(value).map(|value| (var.clone(), value)));
        }
        leaf
    }

    /// Binds a value, and before it what it depends on, from the left to the right.
    pub(crate) fn bind(&mut self, value: &Value) -> Result<Leaf, Fail> {
        match value {
            Value::Leaf(leaf) => Ok(leaf.clone()),
            Value::Tuple(items) => Ok(Leaf::Tuple(items.iter().map(|v| self.bind(v)).collect::<Result<_, _>>()?)),
            Value::Known(_) => {
                let tensor = self.tensor(value.clone())?;
                self.bind(&tensor)
            }
            Value::Poison(info) => Ok(Var::new("poison", info.clone().unwrap_or(StructInfo::Object)).into()),
            Value::List(list) => {
                let value = self.list_value(list)?;
                self.bind(&value)
            }
            Value::Call(call) => {
                if let Some(leaf) = call.bound.get() {
                    return Ok(leaf.clone());
                }
                let leaf = self.bind_call(call, "lv")?;
                if let Some(known) = &call.known {
                    self.elements.tell(&leaf, known);
                }
                Ok(call.bound.get_or_init(|| leaf).clone())
            }
        }
    }

    fn bind_call(&mut self, call: &Pending, hint: &str) -> Result<Leaf, Fail> {
        let args = call.args.iter().map(|a| self.bind(a)).collect::<Result<_, _>>()?;
        let expr = Expr::Call(Call { op: call.op, args, attrs: call.attrs.clone(), span: call.span });
        Ok(self.builder(call.span).emit_as(hint, expr, call.info.clone()).into())
    }

    /// Binds what a value depends on, and not the value itself.
    pub(crate) fn normalize(&mut self, value: &Value) -> Result<(), Fail> {
        match value {
            // What is known may never be needed as a tensor.
            Value::Call(call) if call.known.as_ref().is_some_and(|known| self.elements.all_told(known)) => Ok(()),
            Value::Call(call) if call.bound.get().is_none() => {
                for arg in &call.args {
                    self.bind(arg)?;
                }
                Ok(())
            }
            Value::Tuple(items) => {
                for item in items {
                    self.bind(item)?;
                }
                Ok(())
            }
            Value::List(list) => match &list.content {
                Content::Items(items) => items.iter().try_for_each(|item| self.normalize(item)),
                Content::Value(value) => self.normalize(value),
            },
            _ => Ok(()),
        }
    }

    /// The fields of a value that is a tuple; each is bound.
    pub(crate) fn fields(&mut self, value: &Value) -> Result<Vec<Value>, Fail> {
        if let Value::Tuple(items) = value {
            return Ok(items.clone());
        }
        let Some(StructInfo::Tuple(infos)) = value.info() else {
            return Err("a tuple is expected, and this is not one".into());
        };
        let tuple = self.bind(value)?;
        let each = infos.into_iter().enumerate();
        let fields: Vec<Leaf> = each.map(|(i, info)| self.field(&tuple, i, info)).collect();
        if let Some(Known::Tuple(items)) = self.elements.of(value) {
            fields.iter().zip(&items).for_each(|(field, known)| self.elements.tell(field, known));
        }
        Ok(fields.into_iter().map(Value::Leaf).collect())
    }

    fn field(&mut self, tuple: &Leaf, index: usize, info: StructInfo) -> Leaf {
        let value = Expr::TupleGetItem(tuple.clone(), index);
        Leaf::Var(self.builder(self.span).emit_as("lv", value, info))
    }

    /// Binds the results of a function to `gv`, which it returns.
    pub(crate) fn output(&mut self, outputs: &[Value]) -> Result<Var, Fail> {
        if let [Value::Call(call)] = outputs {
            if call.bound.get().is_none() {
                self.normalize(&outputs[0])?;
                return match self.bind_call(call, "gv")? {
                    Leaf::Var(var) => Ok(var),
                    _ => Err("a call was not bound to a variable".into()),
                };
            }
        }
        let leaves = outputs.iter().map(|v| self.bind(v)).collect::<Result<Vec<_>, _>>()?;
        let (value, info) = match leaves.as_slice() {
            [only] => (Expr::Leaf(only.clone()), only.info()),
            _ => (
                Expr::Tuple(leaves.clone()),
                leaves.iter().map(Leaf::info).collect::<Option<_>>().map(StructInfo::Tuple),
            ),
        };
        Ok(self.builder(self.span).emit_as("gv", value, info.unwrap_or(StructInfo::Object)))
    }
}

fn checked_product(product: Option<u64>, extent: u64) -> Option<u64> {
    product?.checked_mul(extent)
}

/// A value as what an argument must be.
fn coerce(value: Value, kind: ArgKind) -> Value {
    match (kind, value.tensor_info().and_then(|t| t.dims.rank()), value.known_ints()) {
        (ArgKind::Shape, Some(1), Some(values)) => Value::shape(values),
        (ArgKind::Prim, Some(0), Some(values)) if value.as_const().is_none() => {
            values.into_iter().next().map_or(value, |v| Leaf::Prim(v).into())
        }
        _ => value,
    }
}

/// A constant of rank 0 with the value nearest to `value`; `None` for types that have no such constant here.
pub(crate) fn scalar(value: f64, dtype: DType) -> Option<Constant> {
    constant_of(&[value], Vec::new(), dtype)
}

/// A constant with the values nearest to `values`; `None` for types that have no such constant here.
pub(crate) fn constant_of(values: &[f64], shape: Vec<u64>, dtype: DType) -> Option<Constant> {
    if dtype.lanes != 1 {
        return None;
    }
    if dtype.is_packed() {
        let mut bytes = vec![0; usize::try_from(dtype.storage_bytes(values.len() as u64)?).ok()?];
        for (i, &value) in values.iter().enumerate() {
            dtype.set_packed_bits(&mut bytes, i, nearest(value, dtype)?)?;
        }
        return Constant::new(dtype, shape, Bytes::new(bytes)).ok();
    }
    let width = usize::try_from(dtype.bytes()).ok()?;
    let mut bytes = Vec::with_capacity(values.len() * width);
    for &value in values {
        bytes.extend_from_slice(nearest(value, dtype)?.to_le_bytes().get(..width)?);
    }
    Constant::new(dtype, shape, Bytes::new(bytes)).ok()
}

/// The bits of the nearest value of a type; what it cannot hold becomes its least or greatest value.
fn nearest(value: f64, dtype: DType) -> Option<u64> {
    Some(match dtype.code {
        TypeCode::Bool => u64::from(value != 0.0),
        TypeCode::Int => (value as i64).clamp(dtype.min_int()?, dtype.max_int()?) as u64,
        TypeCode::UInt if dtype.bits < 64 => (value as u64).min(dtype.max_int()? as u64),
        TypeCode::UInt => value as u64,
        _ if dtype.is_float() => encode(dtype, value),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_every_type() {
        let bytes = |v, d| scalar(v, d).unwrap().data().to_vec();
        assert_eq!(bytes(1.5, DType::F32), 1.5f32.to_le_bytes());
        assert_eq!(bytes(-1.0, DType::I8), [255]);
        assert_eq!(bytes(300.0, DType::U8), [255]);
        assert_eq!(bytes(2.0, DType::BOOL), [1]);
        assert_eq!(bytes(-3.0, DType::U64), [0; 8]);
        assert_eq!(bytes(1e30, DType::I64), i64::MAX.to_le_bytes());
        assert_eq!(bytes(0.1, DType::F16), 0x2e66u16.to_le_bytes());
        let bf16 = |v| u16::from_le_bytes(bytes(v, DType::BF16).try_into().unwrap());
        assert_eq!((bf16(1.0), bf16(0.1), bf16(f64::INFINITY)), (0x3f80, 0x3dcd, 0x7f80));
        assert_eq!(constant_of(&[-1.0, 7.0, -8.5], vec![3], DType::I4).unwrap().data().to_vec(), [0x7f, 0x08]);
        assert!(scalar(1.0, DType::VOID).is_none());
    }
}
