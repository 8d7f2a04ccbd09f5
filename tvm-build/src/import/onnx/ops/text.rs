//! Operators on sequences of words, as numbers.

use tvm_ir::attrs::AttrValue;
use tvm_ir::constant::{Bytes, Constant};
use tvm_ir::dtype::DType;
use tvm_ir::prim::PrimExpr;

use super::Row;
use crate::import::onnx::cx::{OpCx, Outputs};
use crate::import::onnx::emit::{Fail, constant_of};
use crate::import::onnx::value::{Value, int_constant};

/// By operator and version.
pub(super) static ROWS: &[Row] = &[("TfIdfVectorizer", 9, tf_idf_vectorizer)];

/// Most elements of the result along its last axis.
const MAX_COLUMNS: usize = 1 << 24;

/// Counts of the sequences of the pool, a column each; then weights.
fn tf_idf_vectorizer(cx: &mut OpCx<'_>) -> Outputs {
    let x = cx.input(0, "X")?;
    let need = |name: &str| -> Result<i64, Fail> {
        cx.node.int(name)?.ok_or_else(|| format!("attribute '{name}' is missing").into())
    };
    let (least, most, skip) = (need("min_gram_length")?, need("max_gram_length")?, need("max_skip_count")?);
    let mode = cx.node.string("mode")?.ok_or("attribute 'mode' is missing")?;
    let starts = cx.node.ints("ngram_counts")?.ok_or("attribute 'ngram_counts' is missing")?.to_vec();
    let columns = cx.node.ints("ngram_indexes")?.ok_or("attribute 'ngram_indexes' is missing")?.to_vec();
    if cx.node.strings("pool_strings")?.is_some() {
        return Err(Fail::limit("sequences of strings are not supported"));
    }
    let pool = cx.node.ints("pool_int64s")?.ok_or("attribute 'pool_int64s' is missing")?.to_vec();
    let weights = cx.node.floats("weights")?.map(<[f32]>::to_vec);
    if least < 1 || most < least || skip < 0 {
        return Err(format!("sequences of {least} to {most} elements with {skip} between are not possible").into());
    }
    let width = columns.iter().max().map_or(0, |last| last.saturating_add(1));
    let width = usize::try_from(width).ok().filter(|n| *n <= MAX_COLUMNS && columns.iter().all(|c| *c >= 0));
    let width = width.ok_or("attribute 'ngram_indexes' must be places from 0 on")?;
    let dims = cx.dims(&x, "X")?;
    let rows = match &dims[..] {
        [n] => cx.reshape(&x, vec![PrimExpr::i64(1), n.clone()])?,
        [_, _] => x,
        _ => return Err(format!("X must have one or two axes, not shape {dims:?}").into()),
    };
    let dtype = cx.dtype(&rows, "X")?;
    if !matches!(dtype, DType::I32 | DType::I64) {
        return Err(format!("X must be integers, not {dtype}").into());
    }
    // Where each column of the result stands among the counts; past the last count stands a zero.
    let mut places: Vec<Option<usize>> = vec![None; width];
    let (mut counts, mut counted, mut first) = (Vec::new(), 0usize, 0usize);
    for (i, start) in starts.iter().enumerate() {
        let length = i + 1;
        let end = starts.get(i + 1).map_or(Ok(pool.len()), |end| usize::try_from(*end));
        let range = usize::try_from(*start).ok().zip(end.ok()).filter(|(a, b)| a <= b && *b <= pool.len());
        let (start, end) = range.ok_or("attribute 'ngram_counts' must be ascending places of the pool")?;
        let grams = &pool[start..end];
        if grams.len() % length != 0 {
            return Err(format!("{} elements do not make sequences of {length}", grams.len()).into());
        }
        let own = columns.get(first..first + grams.len() / length);
        let own = own.ok_or("attribute 'ngram_indexes' must have a place for each sequence")?;
        first += own.len();
        let wanted = i64::try_from(length).is_ok_and(|n| (least..=most).contains(&n));
        if !wanted || grams.is_empty() {
            continue;
        }
        for column in own {
            let place = usize::try_from(*column).ok().and_then(|c| places.get_mut(c));
            *place.ok_or("attribute 'ngram_indexes' must be places from 0 on")? = Some(counted);
            counted += 1;
        }
        let table = table(grams, [grams.len() / length, length], dtype)?;
        counts.push(cx.call("ngram_count", vec![rows.clone(), table], vec![("max_skip", skip.into())])?);
    }
    if first != columns.len() {
        return Err("attribute 'ngram_indexes' must have a place for each sequence".into());
    }
    let row_dims = cx.dims(&rows, "X")?;
    let zero = cx.scalar(0.0, DType::F32)?;
    counts.push(cx.call(
        "broadcast_to",
        vec![zero.clone(), Value::shape(vec![row_dims[0].clone(), PrimExpr::i64(1)])],
        vec![],
    )?);
    let all = cx.call("concat", vec![Value::Tuple(counts)], vec![("axis", 1.into())])?;
    let places: Vec<i64> =
        places.into_iter().map(|p| i64::try_from(p.unwrap_or(counted)).unwrap_or(i64::MAX)).collect();
    let places = int_constant(&places, false).ok_or("attribute 'ngram_indexes' is too long")?;
    let mut out = cx.call("take", vec![all, places.into()], vec![("axis", 1.into())])?;
    if mode == "IDF" {
        let some = cx.apply("greater", &[&out, &zero])?;
        out = cx.call("astype", vec![some], vec![("dtype", AttrValue::DType(DType::F32))])?;
    } else if !matches!(mode, "TF" | "TFIDF") {
        return Err(format!("attribute 'mode' is 'TF', 'IDF' or 'TFIDF', not '{mode}'").into());
    }
    if let Some(weights) = weights.filter(|_| mode != "TF") {
        if weights.len() != columns.len() {
            return Err("attribute 'weights' must have a number for each sequence".into());
        }
        let mut by_column = vec![1.0; width];
        for (column, weight) in columns.iter().zip(&weights) {
            if let Some(own) = usize::try_from(*column).ok().and_then(|c| by_column.get_mut(c)) {
                *own = f64::from(*weight);
            }
        }
        let by_column =
            constant_of(&by_column, vec![width as u64], DType::F32).ok_or("attribute 'weights' is too long")?;
        out = cx.apply("multiply", &[&out, &by_column.into()])?;
    }
    let one_row = dims.len() == 1;
    Ok(vec![if one_row { cx.call("squeeze", vec![out], vec![("axis", vec![0].into())])? } else { out }])
}

/// A constant of integers of rank 2; an error if one does not fit the type.
fn table(values: &[i64], shape: [usize; 2], dtype: DType) -> Result<Value, Fail> {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for value in values {
        if dtype == DType::I32 {
            let narrow = i32::try_from(*value).map_err(|_| format!("{value} of the pool is no int32, and X is"))?;
            bytes.extend_from_slice(&narrow.to_le_bytes());
        } else {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    let shape = shape.iter().map(|n| *n as u64).collect();
    Ok(Constant::new(dtype, shape, Bytes::new(bytes)).map_err(|_| "the pool is malformed")?.into())
}
