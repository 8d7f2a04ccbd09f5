//! Einsum: operand after operand, each pair as one matrix product.

use tvm_ir::prim::PrimExpr;

use super::{Row, ints};
use crate::import::onnx::cx::{OpCx, Outputs, axes_attr};
use crate::import::onnx::emit::Fail;
use crate::import::onnx::value::{Value, int_constant};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("Einsum", 12, einsum)];

/// An axis: a letter of the equation, or one of those that an ellipsis stands for, counted from the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// A tensor whose axes have labels, each once.
struct Term {
    value: Value,
    labels: Vec<Label>,
}

/// The labels of a term of the equation; `hidden` axes are under an ellipsis.
fn labels(text: &str, hidden: Option<usize>) -> Result<Vec<Label>, Fail> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            let hidden = hidden.ok_or("there are too few axes for the equation")?;
            out.extend((0..hidden).rev().map(Label::Ellipsis));
            rest = after;
        } else if c.is_ascii_alphabetic() {
            out.push(Label::Letter(c));
            rest = &rest[1..];
        } else {
            return Err(format!("attribute 'equation' cannot have '{c}'").into());
        }
    }
    Ok(out)
}

fn letters(text: &str) -> usize {
    text.chars().filter(char::is_ascii_alphabetic).count()
}

fn einsum(cx: &mut OpCx<'_>) -> Outputs {
    let equation = cx.node.string("equation")?.ok_or("attribute 'equation' is missing")?;
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let operands = cx.variadic("Inputs")?;
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let texts: Vec<&str> = left.split(',').collect();
    if texts.len() != operands.len() {
        return Err(format!("the equation is of {} operands, and there are {}", texts.len(), operands.len()).into());
    }
    let mut terms = Vec::new();
    for (text, value) in texts.iter().zip(operands) {
        let rank = cx.rank(&value, "an input")?;
        let labels = labels(text, rank.checked_sub(letters(text)))?;
        if labels.len() != rank {
            return Err(format!("'{text}' is not of the {rank} axes of its input").into());
        }
        terms.push(diagonal(cx, Term { value, labels })?);
    }
    let all: Vec<Label> = texts_labels(&terms);
    let hidden = all.iter().filter(|l| matches!(l, Label::Ellipsis(_))).count();
    let out = match right {
        Some(right) => labels(right, Some(hidden))?,
        None => implied(left, hidden),
    };
    if out.iter().enumerate().any(|(i, l)| out[..i].contains(l) || !all.contains(l)) {
        return Err(format!("the result of '{equation}' has an axis twice or one that no input has").into());
    }
    let mut terms = terms.into_iter();
    let mut done = terms.next().ok_or("there are no inputs")?;
    let mut rest: Vec<Term> = terms.collect();
    while !rest.is_empty() {
        let next = rest.remove(0);
        let needed = |l: &Label| out.contains(l) || rest.iter().any(|t| t.labels.contains(l));
        done = product(cx, done, next, &needed)?;
    }
    let done = summed(cx, done, &|l| out.contains(l))?;
    Ok(vec![arranged(cx, &done, &out)?])
}

fn texts_labels(terms: &[Term]) -> Vec<Label> {
    let mut all: Vec<Label> = terms.iter().flat_map(|t| t.labels.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Without an arrow the result has the axes under ellipses, and the letters that are there once in order.
fn implied(left: &str, hidden: usize) -> Vec<Label> {
    let mut once: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
    once.sort_unstable();
    let single = |c: &char| once.iter().filter(|o| *o == c).count() == 1;
    let kept = once.iter().filter(|c| single(c)).map(|c| Label::Letter(*c));
    (0..hidden).rev().map(Label::Ellipsis).chain(kept).collect()
}

/// A label that is there twice becomes the diagonal of its axes.
fn diagonal(cx: &mut OpCx<'_>, mut term: Term) -> Result<Term, Fail> {
    loop {
        let labels = &term.labels;
        let twice =
            (0..labels.len()).find_map(|i| Some((i, i + 1 + labels[i + 1..].iter().position(|l| *l == labels[i])?)));
        let Some((first, second)) = twice else { return Ok(term) };
        let dims = cx.dims(&term.value, "an input")?;
        let n = dims[first].as_int().filter(|n| dims[second].is_int(*n) && (0..1 << 20).contains(n));
        let n = n.ok_or_else(|| format!("the diagonal of {dims:?} must be of axes of one fixed extent"))?;
        // Both axes last, and then as one, of which every n + 1st element is taken.
        let mut order: Vec<Label> = Vec::new();
        let mut axes: Vec<usize> = Vec::new();
        for (axis, label) in labels.iter().enumerate().filter(|(axis, _)| *axis != first && *axis != second) {
            order.push(*label);
            axes.push(axis);
        }
        let mut shape: Vec<PrimExpr> = axes.iter().map(|a| dims[*a].clone()).collect();
        shape.push(PrimExpr::i64(n * n));
        axes.extend([first, second]);
        let moved = cx.call("permute_dims", vec![term.value], vec![("axes", axes_attr(&axes))])?;
        let flat = cx.reshape(&moved, shape)?;
        let index: Vec<i64> = (0..n).map(|i| i * (n + 1)).collect();
        let index = int_constant(&index, false).ok_or("there is no constant index")?;
        let axis = i64::try_from(order.len()).unwrap_or(i64::MAX);
        order.push(term.labels[first]);
        let value = cx.call("take", vec![flat, index.into()], vec![("axis", axis.into())])?;
        term = Term { value, labels: order };
    }
}

/// Sums over the axes that are not needed.
fn summed(cx: &mut OpCx<'_>, term: Term, needed: &dyn Fn(&Label) -> bool) -> Result<Term, Fail> {
    let gone: Vec<usize> = (0..term.labels.len()).filter(|i| !needed(&term.labels[*i])).collect();
    if gone.is_empty() {
        return Ok(term);
    }
    let value = cx.call("sum", vec![term.value], vec![("axis", axes_attr(&gone))])?;
    Ok(Term { value, labels: term.labels.into_iter().filter(|l| needed(l)).collect() })
}

/// The axes in the order of `labels`; those that are missing have extent 1.
fn arranged(cx: &mut OpCx<'_>, term: &Term, labels: &[Label]) -> Result<Value, Fail> {
    let axes: Vec<usize> = labels.iter().filter_map(|l| term.labels.iter().position(|t| t == l)).collect();
    let mut value = term.value.clone();
    if axes.iter().enumerate().any(|(i, a)| i != *a) {
        value = cx.call("permute_dims", vec![value], vec![("axes", axes_attr(&axes))])?;
    }
    let missing: Vec<usize> = (0..labels.len()).filter(|i| !term.labels.contains(&labels[*i])).collect();
    if missing.is_empty() {
        return Ok(value);
    }
    cx.call("expand_dims", vec![value], vec![("axis", axes_attr(&missing))])
}

/// The product of two terms, summed over the axes that are not needed any more.
fn product(cx: &mut OpCx<'_>, a: Term, b: Term, needed: &dyn Fn(&Label) -> bool) -> Result<Term, Fail> {
    let a = summed(cx, a, &|l| needed(l) || b.labels.contains(l))?;
    let b = summed(cx, b, &|l| needed(l) || a.labels.contains(l))?;
    let (mut batch, mut inner, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for label in &a.labels {
        match (b.labels.contains(label), needed(label)) {
            (true, true) => batch.push(*label),
            (true, false) => inner.push(*label),
            (false, _) => rows.push(*label),
        }
    }
    let columns: Vec<Label> = b.labels.iter().filter(|l| !a.labels.contains(l)).copied().collect();
    let result = [&batch[..], &rows[..], &columns[..]].concat();
    if inner.is_empty() {
        let (x, y) = (arranged(cx, &a, &result)?, arranged(cx, &b, &result)?);
        return Ok(Term { value: cx.apply("multiply", &[&x, &y])?, labels: result });
    }
    // Extents of 1 under an ellipsis broadcast; the others are equal.
    let x = arranged(cx, &a, &[&batch[..], &rows[..], &inner[..]].concat())?;
    let y = arranged(cx, &b, &[&batch[..], &inner[..], &columns[..]].concat())?;
    let (xd, yd) = (cx.dims(&x, "an input")?, cx.dims(&y, "an input")?);
    let (lead, m) = (batch.len(), batch.len() + rows.len());
    let k = lead + inner.len();
    let joined =
        |d: &[PrimExpr], at: usize| [&d[..lead], &[ints::product(&d[lead..at]), ints::product(&d[at..])]].concat();
    let x = cx.reshape(&x, joined(&xd, m))?;
    let y = cx.reshape(&y, joined(&yd, k))?;
    let value = cx.matmul(&x, &y)?;
    let batches = cx.dims(&value, "a product")?[..lead].to_vec();
    let value = cx.reshape(&value, [&batches[..], &xd[lead..m], &yd[k..]].concat())?;
    Ok(Term { value, labels: result })
}
