//! Branches that come together: the conditional of the program.

use tvm_ir::attrs::AttrValue;
use tvm_ir::diag::Diag;
use tvm_ir::prim::{PrimExpr, free_vars};
use tvm_ir::relax::build::FnBuilder;
use tvm_ir::relax::{Body, Dims, Leaf, StructInfo, TensorInfo};
use tvm_ir::span::Span;

use super::arms::{Arm, End, Split};
use super::convert::{Converter, Scope};
use super::emit::{Emitter, Fail};
use super::graph::{Dim, Graph, Node, Type};
use super::list::{self, List, type_of};
use super::value::Value;

/// What the branches of a conditional give.
enum Outcome {
    Values(Vec<Value>),
    /// A node outside of them, or an operator in them, cannot be converted.
    Poison,
    /// None can be converted.
    Dead(Vec<Diag>),
}

/// A branch that gives values.
struct Side {
    function: FnBuilder,
    leaves: Vec<Leaf>,
    /// With whether they are those of lists that may hold anything.
    types: Vec<Option<(Type, bool)>>,
}

impl Side {
    fn infos(&self) -> Vec<StructInfo> {
        self.leaves.iter().map(|leaf| leaf.info().unwrap_or(StructInfo::Object)).collect()
    }
}

impl Converter<'_> {
    /// Ends the branches: the values that they have under these names become those of one conditional. A branch that
    /// cannot be converted is an error at run time, and a warning now; where no branch can, that is an error.
    pub(super) fn join(&mut self, split: Split, names: &[&str], scope: &mut Scope) {
        let span = split.span;
        let values = match self.joined(split, names) {
            Ok(Outcome::Values(values)) => values,
            Ok(Outcome::Poison) => Vec::new(),
            Ok(Outcome::Dead(found)) => {
                found.into_iter().for_each(|diag| self.faults.push_once(diag));
                Vec::new()
            }
            Err(mut fail) => {
                fail.diag.message = format!("If: {}", fail.diag.message);
                self.fault(fail, span);
                Vec::new()
            }
        };
        self.define(names.iter().copied(), values, span, scope);
    }

    fn joined(&mut self, split: Split, names: &[&str]) -> Result<Outcome, Fail> {
        self.emitter.span = split.span;
        let (mut sides, mut dead) = (Vec::new(), Vec::new());
        let mut poison = false;
        for (at, Arm { name, mut state, end }) in split.arms.into_iter().enumerate() {
            let outcome = match end {
                End::Dead(found) => Outcome::Dead(found),
                End::Open(reached) => {
                    let values = names.iter().map(|name| reached.scope.get(*name).cloned());
                    let values = values.filter(|v| !matches!(v, Some(Value::Poison(_)))).collect::<Option<Vec<_>>>();
                    match values.filter(|values| values.len() == names.len()) {
                        Some(values) => Outcome::Values(values),
                        None => Outcome::Poison,
                    }
                }
                End::Split(inner) => {
                    let (outcome, found) = self.inside(&mut state, |c| c.joined(*inner, names));
                    found.into_iter().for_each(|diag| self.faults.push(diag));
                    outcome?
                }
            };
            match outcome {
                Outcome::Values(values) => {
                    let open = |v: &Value| matches!(v, Value::List(list) if list.open);
                    let types = values.iter().map(|v| type_of(v).map(|ty| (ty, open(v)))).collect();
                    let (leaves, _) = self.inside(&mut state, |c| {
                        c.emitter.span = split.span;
                        values.iter().map(|value| c.emitter.bind(value)).collect::<Result<Vec<Leaf>, Fail>>()
                    });
                    sides.push(Side { function: state.function, leaves: leaves?, types });
                }
                Outcome::Poison => poison = true,
                Outcome::Dead(found) => dead.push((at, name, found)),
            }
        }
        if poison {
            return Ok(Outcome::Poison);
        }
        if sides.is_empty() {
            return Ok(Outcome::Dead(dead.into_iter().flat_map(|(.., found)| found).collect()));
        }
        for (at, name, found) in dead {
            let why = self.warn(&split.path, name, &found);
            let Some(live) = sides.first() else { continue };
            let (infos, types) = (live.infos(), live.types.clone());
            let fork = self.emitter.function.fork();
            let outer = std::mem::replace(&mut self.emitter.function, fork);
            let leaves: Result<Vec<Leaf>, Fail> = infos.iter().map(|info| self.emitter.never(info, &why)).collect();
            let function = std::mem::replace(&mut self.emitter.function, outer);
            sides.insert(at, Side { function, leaves: leaves?, types });
        }
        if names.is_empty() {
            return Ok(Outcome::Values(Vec::new()));
        }
        self.conditional(split.cond, split.span, sides).map(Outcome::Values)
    }

    /// The conditional itself.
    fn conditional(&mut self, cond: Leaf, span: Span, sides: Vec<Side>) -> Result<Vec<Value>, Fail> {
        let infos: Vec<Vec<StructInfo>> = sides.iter().map(Side::infos).collect();
        let mut types = Vec::new();
        let mut bodies: Vec<Body> = Vec::new();
        for Side { mut function, leaves, types: own } in sides {
            let result = match <[Leaf; 1]>::try_from(leaves) {
                Ok([only]) => only,
                Err(leaves) => Leaf::Tuple(leaves),
            };
            let outer = &mut self.emitter.function;
            function.bindings().names = std::mem::take(&mut outer.bindings().names);
            bodies.push(outer.join(function, result));
            types.push(own);
        }
        let ([a, b], [s, t]) = (&infos[..], &types[..]) else { return Err("it must have two branches".into()) };
        let (Some(otherwise), Some(then)) = (bodies.pop(), bodies.pop()) else {
            return Err("it must have two branches".into());
        };
        let joined = a.iter().zip(b).map(|(a, b)| join(a, b)).collect::<Result<Vec<_>, _>>()?;
        self.emitter.function.set_span(span);
        let values = if let [info] = &joined[..] {
            vec![self.emitter.function.if_else(cond, then, otherwise, info.clone()).into()]
        } else {
            let tuple = self.emitter.function.if_else(cond, then, otherwise, StructInfo::Tuple(joined));
            self.emitter.fields(&tuple.into())?
        };
        let mut known = Vec::with_capacity(values.len());
        for (value, (a, b)) in values.into_iter().zip(a.iter().zip(b)) {
            known.push(self.alike(value, a, b)?);
        }
        let list = |ty: &Type| matches!(ty, Type::Sequence(_) | Type::Optional(_));
        let typed = known.into_iter().zip(s.iter().zip(t)).map(|(value, types)| match types {
            (Some((a, true)), Some((b, _))) if list(a) => Ok(List::value(b.clone(), value)),
            (Some((a, _)), Some((_, true))) if list(a) => Ok(List::value(a.clone(), value)),
            (Some((a, _)), Some((b, _))) if list(a) => Ok(List::value(list::join(a, b)?, value)),
            _ => Ok(value),
        });
        Ok(typed.collect::<Result<_, String>>()?)
    }

    /// Says of a branch, the attribute `name` of the conditional at `path`, that it cannot be converted; gives the message
    /// for those who take it.
    fn warn(&mut self, path: &str, name: &str, found: &[Diag]) -> String {
        let why = |diag: &Diag| match self.path_of(diag.span()) {
            Some(path) => format!("{path}: {}", diag.message),
            None => diag.message.clone(),
        };
        let reasons: Vec<String> = found.iter().map(why).collect();
        let first = reasons.first().map_or("it cannot be converted", String::as_str);
        let message = format!("{path}: {name} cannot run: {first}");
        let span = found.first().map_or(Span::NONE, Diag::span);
        let mut diag =
            Diag::warning(span, format!("{name} of an If cannot run: {}", found.first().map_or("", |d| &d.message)));
        diag = diag.note(format!("the conditional is {path}"));
        for more in reasons.iter().skip(1) {
            diag = diag.note(format!("nor can {more}"));
        }
        let help = "taking this branch is an error when the model runs; if it is to be taken, the model does not fit the shapes of its inputs";
        let diag = diag.help(help);
        if !self.warnings.contains(&diag) {
            self.warnings.push(diag);
        }
        message
    }

    /// The path of a node.
    fn path_of(&self, span: Span) -> Option<&str> {
        fn find(nodes: &[Node], span: Span) -> Option<&str> {
            nodes.iter().find_map(|node| {
                if node.span == span {
                    return Some(node.path.as_str());
                }
                node.attributes.iter().flat_map(|a| a.value.graphs()).find_map(|g: &Graph| find(&g.nodes, span))
            })
        }
        let functions = self.model.functions.values().map(|f| &f.nodes);
        std::iter::once(&self.model.graph.nodes).chain(functions).find_map(|nodes| find(nodes, span))
    }

    /// A tensor that is one or the other, of the same rank: the extents that both have are known, the others get new
    /// symbolic variables.
    fn alike(&mut self, value: Value, a: &StructInfo, b: &StructInfo) -> Result<Value, Fail> {
        let dims = |info: &StructInfo| info.as_tensor().and_then(|t| Some(t.dims.known()?.to_vec()));
        let (Some(a), Some(b)) = (dims(a), dims(b)) else { return Ok(value) };
        if a == b || a.len() != b.len() || !a.iter().zip(&b).any(|(a, b)| a == b) {
            return Ok(value);
        }
        let mut joined = Vec::with_capacity(a.len());
        for (a, b) in a.into_iter().zip(b) {
            joined.push(if a == b { a } else { self.symbols.dim(&Dim::Unknown)? });
        }
        self.emitter.cast_dims(&value, joined, "lv")
    }
}

impl Emitter {
    /// What stands for a value of this kind where there is none: computing it is an error with this message. It has the
    /// extents that are known outside of branches.
    fn never(&mut self, info: &StructInfo, message: &str) -> Result<Leaf, Fail> {
        let StructInfo::Tensor(TensorInfo { dims, dtype: Some(dtype) }) = info else {
            let one = StructInfo::tensor(Vec::new(), tvm_ir::dtype::DType::BOOL);
            let one = self.never(&one, message)?;
            let list = self.call("list.make", vec![Value::Tuple(vec![one.into()])], vec![])?;
            return self.bind(&list);
        };
        let none = PrimExpr::i64(0);
        let dims = match dims {
            Dims::Known(dims) => {
                let analyzer = &self.function.bindings().analyzer;
                let told = |e: &PrimExpr| free_vars(e).iter().all(|v| analyzer.bounds(&v.expr()).min >= 0);
                dims.iter().map(|d| if told(d) { d.clone() } else { none.clone() }).collect()
            }
            Dims::Rank(rank) => vec![none; *rank],
            Dims::Unknown => Vec::new(),
        };
        let attrs = vec![("message", AttrValue::Str(message.into())), ("dtype", AttrValue::DType(*dtype))];
        let value = self.call("fail", vec![Value::shape(dims)], attrs)?;
        self.bind(&value)
    }
}

/// What is known of a value that is one or the other.
fn join(a: &StructInfo, b: &StructInfo) -> Result<StructInfo, String> {
    if a == b {
        return Ok(a.clone());
    }
    match (a, b) {
        (StructInfo::Tensor(a), StructInfo::Tensor(b)) if a.dtype == b.dtype => {
            let dims = match (a.dims.rank(), b.dims.rank()) {
                (Some(m), Some(n)) if m == n => Dims::Rank(m),
                _ => Dims::Unknown,
            };
            Ok(StructInfo::Tensor(TensorInfo { dims, dtype: a.dtype }))
        }
        _ => Err("the branches give values of different types".to_owned()),
    }
}
