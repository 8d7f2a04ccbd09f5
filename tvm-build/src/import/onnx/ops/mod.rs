//! The operators: a file a family, each with its rows of the table.

pub(super) mod attention;
mod binary;
mod cast;
mod conv;
pub(super) mod create;
mod dropout;
mod einsum;
mod index;
mod ints;
mod linear_attention;
mod loss;
mod matmul;
mod microsoft;
mod norm;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod resize_given;
mod sampling;
mod select;
mod sequence;
mod shape;
mod signal;
mod slice;
mod spatial;
mod spatial_given;
mod state;
mod strings;
mod text;
mod text_cast;
mod training;
mod trees;
mod unary;
mod views;
mod vision;
mod window;

pub(super) use strings::tensor_value;

use super::cx::{OpCx, Outputs};
use super::graph::OpName;

/// Newest operator set whose definitions the converters follow.
pub(super) const NEWEST_OPSET: i64 = 28;

/// What converts a node.
pub(super) type Converter = fn(&mut OpCx<'_>) -> Outputs;

/// A row: operator, the version of the operator set from which the converter holds, converter. The next row of
/// the same operator takes over from its version on.
pub(super) type Row = (&'static str, i64, Converter);

/// The families of the standard's own operators.
static FILES: &[&[Row]] = &[
    attention::ROWS,
    binary::ROWS,
    cast::ROWS,
    conv::ROWS,
    create::ROWS,
    dropout::ROWS,
    einsum::ROWS,
    index::ROWS,
    linear_attention::ROWS,
    loss::ROWS,
    matmul::ROWS,
    norm::ROWS,
    pool::ROWS,
    quantize::ROWS,
    random::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    resize::ROWS,
    select::ROWS,
    sequence::ROWS,
    shape::ROWS,
    signal::ROWS,
    slice::ROWS,
    spatial::ROWS,
    state::ROWS,
    strings::ROWS,
    text::ROWS,
    unary::ROWS,
    vision::ROWS,
];

/// The operator sets: domain, families, newest version.
static SETS: &[(&str, &[&[Row]], i64)] = &[
    ("", FILES, NEWEST_OPSET),
    ("ai.onnx.ml", &[strings::ML_ROWS, trees::ROWS], 5),
    ("ai.onnx.preview.training", &[training::ROWS], 1),
    ("com.microsoft", microsoft::FILES, 1),
];

/// What the table has for a node.
pub(super) enum Found {
    /// A converter.
    Converter(Converter),
    /// Nothing, and why.
    Nothing(String),
}

/// The converter of an operator in a version of its operator set; `None` if the model imports no such set.
pub(super) fn find(op: &OpName, opset: Option<i64>) -> Found {
    let Some(opset) = opset else {
        let domain = if op.domain.is_empty() { "ai.onnx" } else { &op.domain };
        return Found::Nothing(format!("the model imports no operator set '{domain}'"));
    };
    let Some((domain, files, newest)) = SETS.iter().find(|set| set.0 == op.domain) else {
        return Found::Nothing(format!("no operators of the set '{}' are supported", op.domain));
    };
    if opset > *newest {
        let name = if domain.is_empty() { String::new() } else { format!(" of '{domain}'") };
        return Found::Nothing(format!("operator set {opset}{name} is newer than {newest}, the newest supported"));
    }
    let rows = files.iter().flat_map(|rows| rows.iter()).filter(|row| row.0 == op.op_type);
    match rows.clone().filter(|row| row.1 <= opset).max_by_key(|row| row.1) {
        Some(row) => Found::Converter(row.2),
        None => Found::Nothing(match rows.map(|row| row.1).min() {
            Some(since) => format!("in operator set {opset}; it is supported from {since} on"),
            None => format!("in operator set {opset}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_within_a_file_and_unique() {
        let mut all = Vec::new();
        for (domain, files, _) in SETS {
            for rows in *files {
                assert!(rows.windows(2).all(|w| (w[0].0, w[0].1) < (w[1].0, w[1].1)), "{:?}", rows[0].0);
                all.extend(rows.iter().map(|row| (domain, row.0, row.1)));
            }
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|w| w[0] != w[1]));
    }

    #[test]
    fn the_documentation_names_the_operators_of_microsoft() {
        let mut names: Vec<&str> = microsoft::FILES.iter().flat_map(|rows| rows.iter()).map(|row| row.0).collect();
        names.sort_unstable();
        let text = include_str!("../microsoft.md").replace('\n', " ");
        let (_, list) = text.trim().trim_end_matches('.').split_once(": ").unwrap();
        assert_eq!(list.split(", ").collect::<Vec<_>>(), names);
    }

    #[test]
    fn versions() {
        let op = |domain: &str, name: &str| OpName {
            domain: domain.to_owned(),
            op_type: name.to_owned(),
            overload: String::new(),
        };
        let reason = |op, opset| match find(&op, opset) {
            Found::Converter(_) => "found".to_owned(),
            Found::Nothing(reason) => reason,
        };
        assert_eq!(reason(op("", "Relu"), Some(18)), "found");
        assert!(reason(op("", "Relu"), None).contains("imports no operator set 'ai.onnx'"));
        assert!(reason(op("", "Relu"), Some(NEWEST_OPSET + 1)).contains("newer than"));
        assert!(reason(op("", "Gemm"), Some(6)).contains("supported from 7 on"));
        assert!(reason(op("", "Foo"), Some(18)).contains("in operator set 18"));
        assert!(reason(op("com.acme", "Foo"), Some(1)).contains("'com.acme'"));
    }
}
