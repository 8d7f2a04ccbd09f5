//! Equality up to names, and where the first difference is.

use super::*;
use crate::dtype::DType;
use crate::syntax::{ParseOptions, parse_module};

fn parse(text: &str) -> IRModule {
    parse_module(&mut crate::span::SourceMap::default(), "t", text, ParseOptions::default()).unwrap()
}

const A: &str = r#"
@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2.0)
"#;

#[test]
fn names_do_not_count() {
    let renamed = A.replace("vi", "x").replace("vj", "y").replace("A", "P").replace("B[", "Q[").replace("B:", "Q:");
    let (a, b) = (parse(A), parse(&renamed));
    modules(&a, &b).unwrap();
}

#[test]
fn first_difference_is_located() {
    let (a, b) = (parse(A), parse(&A.replace("2.0", "3.0")));
    let d = modules(&a, &b).unwrap_err();
    assert_eq!(d.path, "f.body.block root.for i.for j.block b.store to B.value");
    assert_eq!((d.left.as_str(), d.right.as_str()), ("2", "3"));
    // Swapped indices are a difference, though both are spatial.
    let c = parse(&A.replace("A[vi, vj]", "A[vj, vi]"));
    assert!(modules(&a, &c).unwrap_err().path.contains("read"));
}

#[test]
fn free_variables() {
    let (x, y) = (Var::new("x", DType::I32), Var::new("y", DType::I32));
    let (a, b) = (x.expr() + x.expr(), y.expr() + y.expr());
    assert!(prims(&a, &b, FreeVars::Same).is_err());
    prims(&a, &b, FreeVars::Map).unwrap();
    let mixed = x.expr() + y.expr();
    assert!(prims(&a, &mixed, FreeVars::Map).is_err(), "one variable is paired with two");
    assert!(prims(&mixed, &a, FreeVars::Map).is_err(), "two variables are paired with one");
}
