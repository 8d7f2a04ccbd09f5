//! Bounds of PrimFuncs as users write them: what is proven, what is rejected, what is checked at run time.

use crate::dtype::DType;
use crate::interp::{TensorBuf, run};
use crate::span::SourceMap;
use crate::syntax::ParseOptions;
use crate::syntax::rust::parse_rust;
use crate::tir::PrimFunc;
use crate::tir::verify::{check_bounds, instrument_bound_checkers, verify};

/// A kernel over a table of `N` numbers, `M` indices and `M` results, with this body for `i` in `0..M`.
fn gather(attribute: &str, body: &str) -> PrimFunc {
    let text = format!(
        "mod m {{ #[T::prim_func] {attribute} fn f(table: T::Buffer<f32, N>, index: T::Buffer<i64, M>, out: T::Buffer<f32, M>) {{
            for i in 0..M {{ {body} }}
        }} }}"
    );
    let mut sources = SourceMap::default();
    let module = parse_rust(&mut sources, "main.rs", &text, &ParseOptions::default())
        .unwrap_or_else(|d| panic!("{}", crate::render::render_all(&d, &sources)));
    module.prim_funcs().next().unwrap().1.clone()
}

#[test]
fn what_is_guarded_is_proven() {
    for body in [
        "if index[i] >= 0 && index[i] < N { out[i] = table[index[i]]; }",
        "if !(index[i] < 0 || index[i] >= N) { out[i] = table[index[i]]; }",
        "let k = index[i]; if 0 <= k { if k < N { out[i] = table[k]; } }",
        "out[i] = T::if_then_else(index[i] >= 0 && index[i] < N, table[index[i]], 0.0f32);",
        "assert!(index[i] >= 0 && index[i] < N, \"an index\"); out[i] = table[index[i]];",
        "if N > 0 { out[i] = table[T::max(T::min(index[i], N - 1), 0i64)]; }",
        "if N > 0 { out[i] = table[T::floormod(index[i], N)]; }",
        "if index[i] >= 0 && index[i] < N && table[index[i]] > 0.0f32 { out[i] = 1.0f32; }",
    ] {
        assert!(check_bounds(&gather("", body)).is_ok(), "{body}: {}", check_bounds(&gather("", body)).unwrap_err());
    }
}

#[test]
fn what_is_not_is_rejected() {
    for (body, part) in [
        ("out[i] = table[index[i]];", "index `index[i]` of buffer `table` depends on data"),
        ("if index[i] < N { out[i] = table[index[i]]; }", "put it under `if index[i] >= 0`"),
        ("if index[i] >= 0 { out[i] = table[index[i]]; }", "put it under `if index[i] < N`"),
        ("out[i] = table[index[i]]; assert!(index[i] >= 0 && index[i] < N, \"late\");", "depends on data"),
        ("out[i] = T::Select(index[i] >= 0 && index[i] < N, table[index[i]], 0.0f32);", "depends on data"),
        ("out[i] = table[i];", "it is 1 where N = 1, M = 2, i = 1, and dimension 0 has extent N = 1"),
        ("out[M - i] = 1.0f32;", "it is 1 where M = 1, i = 0"),
        ("out[T::floordiv(i * 3, 2)] = 1.0f32;", "dimension 0 has extent M = "),
        ("if i % 5 == 3 { out[i + 1] = 1.0f32; }", "it is 4 where M = 4, i = 3"),
    ] {
        let found = check_bounds(&gather("", body)).expect_err(body).to_string();
        assert!(found.contains(part), "{body}: {found}");
    }
}

#[test]
fn what_is_checked_fails_when_it_runs() {
    let body = "T::block(\"g\", { let v = T::axis::spatial(M, i); out[v] = T::if_then_else(index[v] < 0, 0.0f32, table[index[v]]); });";
    let f = gather("#[T::check_bounds]", body);
    assert!(check_bounds(&f).is_ok());
    let checked = instrument_bound_checkers(&f).unwrap();
    verify(&checked).unwrap();
    // By its assertions alone.
    assert!(check_bounds(&checked).is_ok(), "{:?}", check_bounds(&checked));
    let call = |index: &[i64]| {
        let n = i64::try_from(index.len()).unwrap();
        let table = TensorBuf::from_f32(&[3], &[1.0, 2.0, 3.0]).unwrap();
        let index = TensorBuf::from_i64(DType::I64, &[n], index).unwrap();
        let mut args = [table, index, TensorBuf::zeros(DType::F32, &[n]).unwrap()];
        run(&checked, &mut args).map(|()| args[2].to_f32()).map_err(|d| d.message)
    };
    assert_eq!(call(&[2, -7, 0]).unwrap(), [3.0, 0.0, 1.0]);
    assert_eq!(
        call(&[0, 3]).unwrap_err(),
        "assertion failed: index `index[v]` of dimension 0 of buffer `table` is out of bounds: the extent is N"
    );
    // Proven accesses are left alone.
    let proven = gather("#[T::check_bounds]", "out[i] = 1.0f32;");
    let same = instrument_bound_checkers(&proven).unwrap();
    let mut asserts = 0;
    crate::tir::visit_stmt(&same.body, &mut |s| asserts += usize::from(matches!(s, crate::tir::Stmt::Assert(_))));
    assert_eq!(asserts, 0);
}
