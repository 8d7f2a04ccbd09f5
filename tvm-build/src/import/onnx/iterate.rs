//! Loops: a private function for an iteration, and the call that runs it.

use std::collections::BTreeSet;
use std::rc::Rc;

use tvm_ir::attrs::AttrValue;
use tvm_ir::dtype::DType;
use tvm_ir::module::Func;
use tvm_ir::prim::{BinOp, PrimExpr, Var, free_vars};
use tvm_ir::relax::build::FnBuilder;
use tvm_ir::relax::{Dims, Expr, Function, Leaf, Loop, StructInfo, TensorInfo};

use super::convert::Converter;
use super::emit::{Emitter, Fail, scalar};
use super::graph::Type;
use super::list::{Content, List, join, type_of};
use super::value::Value;

/// Attempts to find shapes that hold in every iteration; each but the last gives up at least one extent.
const MAX_ATTEMPTS: usize = 16;

/// A loop to be built.
pub(super) struct Iterations {
    /// Name of the function of an iteration.
    pub(super) name: &'static str,
    /// Most iterations, an integer.
    pub(super) trip_count: Option<Value>,
    /// Whether there is a first iteration, a truth value.
    pub(super) cond: Option<Value>,
    /// Values from outside that the iterations use.
    pub(super) captured: Vec<Value>,
    /// Values of the first iteration for what iterations hand on.
    pub(super) carried: Vec<Value>,
    /// Extents that the file states for the carried values.
    pub(super) stated: Vec<Option<Vec<Option<i64>>>>,
}

/// The values that an iteration sees.
pub(super) struct Inside {
    /// Its number, an integer scalar.
    pub(super) index: Value,
    /// In the order of [`Iterations::captured`].
    pub(super) captured: Vec<Value>,
    /// In the order of [`Iterations::carried`].
    pub(super) carried: Vec<Value>,
}

/// What comes of an iteration.
pub(super) struct Outcome {
    /// Whether there is another one; `None`: the trip count alone decides.
    pub(super) cond: Option<Value>,
    /// What is handed on.
    pub(super) carried: Vec<Value>,
    /// What is stacked over all iterations.
    pub(super) rows: Vec<Value>,
}

/// Makes an iteration; `None` when a diagnostic says why it cannot. It may be asked more than once.
pub(super) type Body<'b, 'a> = dyn FnMut(&mut Converter<'a>, Inside) -> Result<Option<Outcome>, Fail> + 'b;

/// Whether there is a first iteration.
enum First {
    Always,
    Never,
    If(Leaf),
}

/// What is used of outside: the variables, and the symbols in their types and in known integers.
#[derive(Default)]
struct Passed {
    leaves: Vec<Leaf>,
    symbols: BTreeSet<Var>,
}

/// What is known of a value that iterations hand on.
#[derive(Clone, PartialEq, Default)]
struct Kept {
    /// Of a tensor: the axes along which its extent is not that of the first iteration.
    varying: BTreeSet<usize>,
    /// Of a list: its type.
    ty: Option<Type>,
    /// Whether the type is that of some items; it is not, if the list begins without.
    settled: bool,
    /// Whether the iterations hand on the item of an optional.
    wrapped: bool,
}

impl Kept {
    fn of(first: &Value) -> Kept {
        match first {
            Value::List(list) => Kept { ty: Some(list.ty.clone()), settled: !list.open, ..Kept::default() },
            _ => Kept::default(),
        }
    }
}

/// An iteration as a function, and the types of its results.
struct Made {
    function: Function,
    has_cond: bool,
    rows: Vec<TensorInfo>,
}

impl<'a> Converter<'a> {
    /// The carried values after the last iteration, then the stacks; `None` when a diagnostic says why not.
    ///
    /// Rows of elements that share their bytes are stacked in a type that does not, and the stack is brought back: a row
    /// need not end where a byte does.
    pub(super) fn iterate(&mut self, given: &Iterations, body: &mut Body<'_, 'a>) -> Result<Option<Vec<Value>>, Fail> {
        let mut packed: Vec<Option<DType>> = Vec::new();
        let outputs = self.iterate_rows(given, &mut |converter: &mut Converter<'a>, inside: Inside| {
            let Some(mut outcome) = body(converter, inside)? else { return Ok(None) };
            packed.clear();
            for row in &mut outcome.rows {
                let dtype = row.tensor_info().and_then(|t| t.dtype).filter(|d| d.is_packed());
                if let Some(dtype) = dtype {
                    let wide = match dtype {
                        _ if dtype.is_float() => DType::F16,
                        _ if dtype.is_int() => DType::I8,
                        _ => DType::U8,
                    };
                    *row =
                        converter.emitter.call("astype", vec![row.clone()], vec![("dtype", AttrValue::DType(wide))])?;
                }
                packed.push(dtype);
            }
            Ok(Some(outcome))
        })?;
        let Some(mut outputs) = outputs else { return Ok(None) };
        for (stack, dtype) in outputs.iter_mut().skip(given.carried.len()).zip(packed) {
            if let Some(dtype) = dtype {
                *stack = self.emitter.call("astype", vec![stack.clone()], vec![("dtype", AttrValue::DType(dtype))])?;
            }
        }
        Ok(Some(outputs))
    }

    fn iterate_rows(&mut self, given: &Iterations, body: &mut Body<'_, 'a>) -> Result<Option<Vec<Value>>, Fail> {
        let first = self.emitter.first(given.cond.as_ref())?;
        let trip_count = match first {
            First::Never => Leaf::Prim(PrimExpr::i64(0)),
            _ => self.emitter.trip_count(given.trip_count.as_ref())?,
        };
        let mut passed = Passed::default();
        for value in &given.captured {
            self.emitter.pass(value, &mut passed)?;
        }
        let carried = given.carried.iter().map(|v| self.emitter.bind(v)).collect::<Result<Vec<_>, _>>()?;
        for info in carried.iter().filter_map(Leaf::info) {
            info.visit_exprs(&mut |e| passed.symbols.extend(free_vars(e)));
        }
        let mut kept: Vec<Kept> = given.carried.iter().map(Kept::of).collect();
        for _ in 0..MAX_ATTEMPTS {
            let functions: BTreeSet<_> = self.emitter.functions.keys().cloned().collect();
            let mut inner = FnBuilder::new();
            inner.bindings().analyzer = self.emitter.function.bindings().analyzer.clone();
            let outer = std::mem::replace(&mut self.emitter.function, inner);
            let elements = self.emitter.elements.scope(false);
            let made = self.iteration(given, &passed, &carried, &mut kept, body);
            self.emitter.function = outer;
            self.emitter.elements = elements;
            match made? {
                Attempt::Failed => return Ok(None),
                Attempt::Again => self.emitter.functions.retain(|name, _| functions.contains(name)),
                Attempt::Made(made) => {
                    let poisoned = |v: &Value| matches!(v, Value::Poison(_));
                    if given.captured.iter().chain(&given.carried).any(poisoned) {
                        return Ok(None);
                    }
                    return self.run(given, *made, first, trip_count, (passed, carried, kept)).map(Some);
                }
            }
        }
        let unknown =
            "the shape of a carried value changes from iteration to iteration in a way that is not understood";
        Err(Fail::limit(unknown))
    }

    /// The function of an iteration, built in the emitter's own.
    fn iteration(
        &mut self,
        given: &Iterations,
        passed: &Passed,
        carried: &[Leaf],
        kept: &mut [Kept],
        body: &mut Body<'_, 'a>,
    ) -> Result<Attempt, Fail> {
        let at = Var::new("i", DType::I64);
        self.emitter.function.bindings().analyzer.assume_nonnegative(&at);
        self.emitter.function.param("at", StructInfo::Prim(DType::I64, Some(at.expr())));
        let mut leaves = passed.leaves.iter();
        let captured = given.captured.iter().map(|v| self.emitter.inward(v, &mut leaves)).collect();
        if !passed.symbols.is_empty() {
            let dims = passed.symbols.iter().map(Var::expr).collect();
            self.emitter.function.param("symbols", StructInfo::Shape(Dims::Known(dims)));
        }
        let mut params: Vec<TensorInfo> = Vec::new();
        let mut inside = Vec::new();
        for ((leaf, kept), value) in carried.iter().zip(kept.iter()).zip(&given.carried) {
            if let Value::Poison(_) = value {
                params.push(TensorInfo { dims: Dims::Unknown, dtype: None });
                inside.push(value.clone());
                continue;
            }
            if let Some(ty) = &kept.ty {
                let param = self.emitter.function.param("carried", StructInfo::Object);
                let content = Content::Value(param.into());
                inside.push(Value::List(Rc::new(List { ty: ty.clone(), content, open: !kept.settled })));
                params.push(TensorInfo { dims: Dims::Unknown, dtype: None });
                continue;
            }
            let info = match leaf.info() {
                Some(StructInfo::Tensor(info)) => self.emitter.anew(&info, &kept.varying),
                _ => return Err("a carried value is not a tensor".into()),
            };
            inside.push(self.emitter.function.param("carried", StructInfo::Tensor(info.clone())).into());
            params.push(info);
        }
        let index = Value::int(at.expr());
        let Some(outcome) = body(self, Inside { index, captured, carried: inside })? else {
            return Ok(Attempt::Failed);
        };
        let mut results = Vec::new();
        let cond = match (&given.cond, &outcome.cond) {
            (None, _) | (_, None) => None,
            (Some(first), Some(_)) if truth_of(first) == Some(false) => None,
            (Some(_), Some(cond)) if truth_of(cond) == Some(true) && always(given.cond.as_ref()) => None,
            (Some(_), Some(cond)) => Some(self.emitter.scalar_of(cond)?),
        };
        if let Some(cond) = &cond {
            results.push(self.emitter.bind(cond)?);
        }
        let before = kept.to_vec();
        for (k, (value, param)) in outcome.carried.iter().zip(&params).enumerate() {
            if kept[k].ty.is_some() {
                let value = kept[k].list_handed_on(value, &self.emitter)?;
                results.push(self.emitter.bind(&value)?);
                continue;
            }
            if param.dtype.is_none() {
                return Ok(Attempt::Failed);
            }
            let leaf = self.emitter.bind(value)?;
            let stated = given.stated.get(k).and_then(Option::as_deref);
            results.push(self.emitter.handed_on(leaf, param, stated, &mut kept[k].varying)?);
        }
        if *kept != before[..] {
            return Ok(Attempt::Again);
        }
        let mut rows = Vec::new();
        for row in &outcome.rows {
            let leaf = self.emitter.bind(row)?;
            match leaf.info().map(|info| info.over(&passed.symbols)) {
                Some(StructInfo::Tensor(info)) => rows.push(info),
                _ => return Err("what is stacked is not a tensor".into()),
            }
            results.push(leaf);
        }
        let mut function = std::mem::take(&mut self.emitter.function).finish(Leaf::Tuple(results))?;
        // What varies is returned by value.
        if let StructInfo::Tuple(fields) = &mut function.ret {
            let first = usize::from(cond.is_some());
            for (k, field) in fields.iter_mut().skip(first).enumerate() {
                let outside = match kept.get(k) {
                    Some(kept) => kept.varying.is_empty(),
                    None => rows.get(k - kept.len()).is_some_and(|r| r.dims.known().is_some()),
                };
                if let (StructInfo::Tensor(info), false) = (field, outside) {
                    info.dims = info.dims.rank().map_or(Dims::Unknown, Dims::Rank);
                }
            }
        }
        Ok(Attempt::Made(Box::new(Made { function, has_cond: cond.is_some(), rows })))
    }

    /// The call of the loop.
    fn run(
        &mut self,
        given: &Iterations,
        made: Made,
        first: First,
        trip_count: Leaf,
        (passed, carried, kept): (Passed, Vec<Leaf>, Vec<Kept>),
    ) -> Result<Vec<Value>, Fail> {
        let cond = match (first, made.has_cond) {
            (First::If(leaf), true) => leaf,
            (First::Always, true) => Leaf::Const(scalar(1.0, DType::BOOL).ok_or("there are no truth values")?),
            _ => Leaf::Absent,
        };
        if cond == Leaf::Absent && trip_count == Leaf::Absent {
            return Err(
                "the loop has neither a trip count nor a condition that can become false: it does not end".into()
            );
        }
        let body = self.emitter.define(given.name, Func::Relax(made.function));
        let mut captured = passed.leaves;
        if !passed.symbols.is_empty() {
            captured.push(Leaf::Shape(passed.symbols.iter().map(Var::expr).collect()));
        }
        let mut l = Loop { body: Leaf::Global(body), trip_count, cond, captured, carried, out: Vec::new() };
        for (leaf, kept) in l.carried.iter().zip(&kept) {
            l.out.push(match leaf.info() {
                Some(StructInfo::Tensor(info)) if !kept.varying.is_empty() => {
                    let dims = info.dims.rank().map_or(Dims::Unknown, Dims::Rank);
                    StructInfo::Tensor(TensorInfo { dims, ..info })
                }
                info => info.unwrap_or(StructInfo::Object),
            });
        }
        let count = l.iterations().unwrap_or_else(|| {
            let count = Var::new("iterations", DType::I64);
            self.emitter.function.bindings().analyzer.assume_nonnegative(&count);
            count.expr()
        });
        l.out.extend(made.rows.into_iter().map(|row| {
            let dims = match row.dims {
                Dims::Known(dims) => Dims::Known(std::iter::once(count.clone()).chain(dims).collect()),
                Dims::Rank(n) => Dims::Rank(n + 1),
                Dims::Unknown => Dims::Unknown,
            };
            StructInfo::Tensor(TensorInfo { dims, dtype: row.dtype })
        }));
        self.emitter.check_size(&StructInfo::Tuple(l.out.clone()))?;
        self.emitter.function.set_span(self.emitter.span);
        let info = StructInfo::Tuple(l.out.clone());
        let (starts, out) = (l.carried.clone(), l.out.clone());
        let tuple = self.emitter.function.bindings().emit_as("lv", Expr::Loop(Box::new(l)), info);
        let mut values = self.emitter.fields(&Leaf::Var(tuple).into())?;
        for (k, value) in values.iter_mut().enumerate() {
            let start = starts.get(k).and_then(Leaf::info);
            let start = start.as_ref().and_then(StructInfo::as_tensor);
            if let Some(Kept { ty: Some(ty), wrapped, .. }) = kept.get(k) {
                let list = List { ty: ty.clone(), content: Content::Value(value.clone()), open: false };
                *value = match wrapped {
                    true => self.emitter.item(&list, &Value::int(PrimExpr::i64(0)))?,
                    false => Value::List(Rc::new(list)),
                };
                continue;
            }
            let varying = kept.get(k).map(|kept| &kept.varying);
            if let Some(StructInfo::Tensor(TensorInfo { dims: Dims::Rank(_), .. })) = out.get(k) {
                *value = self.emitter.with_extents(value, start, varying)?;
            }
        }
        Ok(values)
    }
}

impl Kept {
    /// A list that an iteration hands on; what it tells of the type is noted.
    fn list_handed_on(&mut self, value: &Value, emitter: &Emitter) -> Result<Value, Fail> {
        let Some(ty) = &self.ty else { return Ok(value.clone()) };
        let (value, wrapped) = emitter.as_optional(value.clone(), ty);
        let found = type_of(&value).filter(|_| matches!(value, Value::List(_)));
        let found = found.ok_or("a carried value is a sequence or an optional, and then a tensor")?;
        let joined = join(ty, &found);
        // A list without items may have any type of items.
        let joined = if self.settled { joined? } else { found };
        *self = Kept { ty: Some(joined), settled: true, wrapped: self.wrapped || wrapped, varying: BTreeSet::new() };
        Ok(value)
    }
}

/// What comes of an attempt to build an iteration.
enum Attempt {
    Made(Box<Made>),
    /// More extents vary than was thought.
    Again,
    /// A diagnostic says why.
    Failed,
}

/// A truth value that is known now.
fn truth_of(value: &Value) -> Option<bool> {
    let constant = value.as_const().filter(|c| c.dtype().is_bool() && c.len() == 1)?;
    constant.data().first().map(|b| *b != 0)
}

fn always(cond: Option<&Value>) -> bool {
    cond.and_then(truth_of) == Some(true)
}

impl Emitter {
    fn first(&mut self, cond: Option<&Value>) -> Result<First, Fail> {
        match cond {
            None => Ok(First::Always),
            Some(value) => match truth_of(value) {
                Some(true) => Ok(First::Always),
                Some(false) => Ok(First::Never),
                None => {
                    let scalar = self.scalar_of(value)?;
                    Ok(First::If(self.bind(&scalar)?))
                }
            },
        }
    }

    /// The trip count as an integer that is not negative, or as a tensor.
    fn trip_count(&mut self, count: Option<&Value>) -> Result<Leaf, Fail> {
        let Some(count) = count else { return Ok(Leaf::Absent) };
        if let Some([n]) = count.known_ints().as_deref() {
            let analyzer = &self.function.bindings().analyzer;
            let most = PrimExpr::binary(BinOp::Max, n.clone(), PrimExpr::i64(0));
            return Ok(Leaf::Prim(if analyzer.bounds(n).min >= 0 { n.clone() } else { analyzer.simplify(&most) }));
        }
        let mut count = self.scalar_of(count)?;
        if count.tensor_info().and_then(|t| t.dtype) != Some(DType::I64) {
            count = self.call("astype", vec![count], vec![("dtype", AttrValue::DType(DType::I64))])?;
        }
        self.bind(&count)
    }

    /// A tensor of one element as one of rank 0.
    pub(super) fn scalar_of(&mut self, value: &Value) -> Result<Value, Fail> {
        match value.tensor_info().map(|t| t.dims) {
            Some(Dims::Known(dims)) if dims.iter().all(|d| d.is_int(1)) && !dims.is_empty() => {
                self.call("reshape", vec![value.clone(), Value::shape(Vec::new())], vec![])
            }
            _ => Ok(value.clone()),
        }
    }

    /// Binds what a value is outside of the loop, and notes what of it the function must be given.
    fn pass(&mut self, value: &Value, passed: &mut Passed) -> Result<(), Fail> {
        let note = |e: &PrimExpr, passed: &mut Passed| passed.symbols.extend(free_vars(e));
        match value {
            Value::Poison(_) => {}
            Value::List(list) => match &list.content {
                Content::Items(items) => items.iter().try_for_each(|item| self.pass(item, passed))?,
                Content::Value(value) => self.pass(value, passed)?,
            },
            Value::Known(tensor) => tensor.elements.iter().for_each(|e| note(e, passed)),
            Value::Tuple(items) => items.iter().try_for_each(|item| self.pass(item, passed))?,
            Value::Leaf(Leaf::Prim(e)) => note(e, passed),
            Value::Leaf(Leaf::Shape(dims)) => dims.iter().for_each(|e| note(e, passed)),
            Value::Leaf(Leaf::Var(_)) | Value::Call(_) => {
                let leaf = self.bind(value)?;
                if let Some(info) = leaf.info() {
                    info.visit_exprs(&mut |e| note(e, passed));
                }
                passed.leaves.push(leaf);
            }
            Value::Leaf(_) => {}
        }
        Ok(())
    }

    /// The value as the function sees it; `leaves` are those noted for it and the values after it.
    fn inward(&mut self, value: &Value, leaves: &mut dyn Iterator<Item = &Leaf>) -> Value {
        match value {
            Value::Tuple(items) => Value::Tuple(items.iter().map(|item| self.inward(item, leaves)).collect()),
            Value::List(list) => {
                let content = match &list.content {
                    Content::Items(items) => {
                        Content::Items(items.iter().map(|item| self.inward(item, leaves)).collect())
                    }
                    Content::Value(value) => Content::Value(self.inward(value, leaves)),
                };
                Value::List(Rc::new(List { ty: list.ty.clone(), content, open: list.open }))
            }
            Value::Leaf(Leaf::Var(_)) | Value::Call(_) => match leaves.next() {
                Some(Leaf::Var(var)) => self.function.param(var.name(), var.info().clone()).into(),
                other => other.cloned().unwrap_or(Leaf::Absent).into(),
            },
            other => other.clone(),
        }
    }

    /// The info with new variables for the extents that vary.
    fn anew(&mut self, info: &TensorInfo, varying: &BTreeSet<usize>) -> TensorInfo {
        let Dims::Known(dims) = &info.dims else { return info.clone() };
        let mut dim = |(axis, d): (usize, &PrimExpr)| {
            if !varying.contains(&axis) {
                return d.clone();
            }
            let var = Var::new(format!("d{axis}"), DType::I64);
            self.function.bindings().analyzer.assume_nonnegative(&var);
            var.expr()
        };
        TensorInfo { dims: Dims::Known(dims.iter().enumerate().map(&mut dim).collect()), dtype: info.dtype }
    }

    /// A value that an iteration hands on as `param`. Extents that are not those of the parameter are checked at run time
    /// where the file states them, and else noted as varying.
    fn handed_on(
        &mut self,
        leaf: Leaf,
        param: &TensorInfo,
        stated: Option<&[Option<i64>]>,
        varying: &mut BTreeSet<usize>,
    ) -> Result<Leaf, Fail> {
        let Some(StructInfo::Tensor(info)) = leaf.info() else {
            return Err("what is handed on is not a tensor".into());
        };
        if info.dtype != param.dtype {
            let name = |d: Option<DType>| d.map_or("?".to_owned(), |d| d.to_string());
            return Err(format!("a carried value is {} and then {}", name(param.dtype), name(info.dtype)).into());
        }
        let Dims::Known(wanted) = &param.dims else { return Ok(leaf) };
        if info.dims.rank().is_some_and(|r| r != wanted.len()) {
            return Err(Fail::limit("a carried value changes its rank from iteration to iteration"));
        }
        let mut checked = false;
        for (axis, want) in wanted.iter().enumerate() {
            let found = info.dims.known().and_then(|dims| dims.get(axis));
            if found.is_some_and(|d| self.function.bindings().analyzer.prove_equal(d, want)) {
                continue;
            }
            if varying.contains(&axis) {
                continue;
            }
            let stated = stated.and_then(|s| s.get(axis).copied().flatten());
            let contradicts = found.and_then(PrimExpr::as_int).is_some_and(|n| Some(n) != stated);
            if stated.is_some() && stated == want.as_int() && !contradicts {
                checked = true;
            } else {
                varying.insert(axis);
            }
        }
        if !checked {
            return Ok(leaf);
        }
        let info = StructInfo::Tensor(param.clone());
        Ok(self.function.bindings().match_cast(leaf, info))
    }

    /// The tensor with variables for the extents that are not known, and those of `start` that do not vary.
    fn with_extents(
        &mut self,
        value: &Value,
        start: Option<&TensorInfo>,
        varying: Option<&BTreeSet<usize>>,
    ) -> Result<Value, Fail> {
        let Some(info) = value.tensor_info() else { return Ok(value.clone()) };
        let Dims::Rank(rank) = info.dims else { return Ok(value.clone()) };
        let start = start.and_then(|s| s.dims.known());
        let dims = (0..rank).map(|axis| match (start.and_then(|d| d.get(axis)), varying) {
            (Some(d), Some(varying)) if !varying.contains(&axis) => d.clone(),
            _ => {
                let var = Var::new(format!("d{axis}"), DType::I64);
                self.function.bindings().analyzer.assume_nonnegative(&var);
                var.expr()
            }
        });
        let info = StructInfo::Tensor(TensorInfo { dims: Dims::Known(dims.collect()), dtype: info.dtype });
        let leaf = self.bind(value)?;
        Ok(self.function.bindings().match_cast(leaf, info).into())
    }
}
