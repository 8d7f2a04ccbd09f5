//! Calls against declarations.

use super::*;
use tvm_ir::render::render_all;
use tvm_ir::span::SourceMap;
use tvm_ir::syntax::{ParseOptions, parse_module};

const TYPES: CTypes = CTypes { long: 64, pointer: 64 };

/// What is said of `R.call_dps_packed("f", …)` when these functions are declared; empty when it fits.
fn said(call: &str, signatures: &[&str]) -> String {
    let text = format!(
        r#"@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), h: R.Tensor((8,), "float16"), b: R.Tensor((2,), "bool"), i: R.Tensor((2,), "int32"), s: R.Prim("float64")) -> R.Object:
        n = T.int64()
        y = {call}
        return y
"#
    );
    let mut sources = SourceMap::default();
    let module = parse_module(&mut sources, "m.py", &text, ParseOptions::default()).unwrap_or_else(|d| panic!("{d}"));
    let mut externals = Externals::default();
    for s in signatures {
        externals.add(Declaration::parse(s, "ops.rs:7", TYPES).unwrap());
    }
    externals.check(&module).map_or_else(|d| render_all(&d, &sources), |()| String::new())
}

const CALL: &str = r#"R.call_dps_packed("f", (x, R.shape([n, 4])), out_sinfo=R.Tensor((n, 4), "float32"))"#;

#[test]
fn calls_that_fit() {
    for signature in [
        "fn f(x: *const f32, n: i64, m: i64, y: *mut f32)",
        // Each kind in its own order.
        "extern \"C\" fn f(y: *mut f32, n: usize, x: *const f32, m: c_int) -> i32;",
        "unsafe extern \"C\" fn f(x: *const c_void, n: u8, m: c_long, y: *mut std::ffi::c_void) -> ()",
    ] {
        assert_eq!(said(CALL, &[signature]), "", "{signature}");
    }
    let halves = r#"R.call_dps_packed("f", (h, b, (i, s), True, 2.5), out_sinfo=[R.Tensor((2, 4), "float16"), R.Tensor((2,), "bool")])"#;
    assert_eq!(
        said(
            halves,
            &[
                "fn f(h: &[u16; 8], b: *const u8, i: &[i32; 2], s: f32, t: bool, d: f64, o: &mut [u16; 2 * 4], p: *mut bool)"
            ]
        ),
        ""
    );
}

#[test]
fn calls_that_do_not_fit() {
    let text = said(CALL, &["fn f(x: *const f64, n: i64, m: i64, y: *mut f32)"]);
    for part in [
        "error: external function `f`: parameter `x` is `*const f64`, argument x is a tensor (n, 4) float32",
        " --> m.py:6:13",
        "note: ops.rs:7: `extern \"C\" fn f(x: *const f64, n: i64, m: i64, y: *mut f32)`",
        "help: declare `x` as `*const f32`, or convert the argument to float64 with R.astype",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (signature, part, help) in [
        (
            "fn f(x: *mut f32, n: i64, m: i64, y: *mut f32)",
            "it has 0 read-only pointers and 2 writable pointers (`x`, `y`), the call gives 1 tensor and 1 output",
            "only reads as `const T *`",
        ),
        ("fn f(x: *const f32, n: i64, y: *mut f32)", "it has 1 number (`n`), the call gives 2 numbers", "R.shape"),
        (
            "fn f(x: *const f32, n: f32, m: i64, y: *mut f32)",
            "parameter `n` is `f32`, argument 2[0] is a scalar of int64",
            "as `i64`",
        ),
        (
            "fn f(x: *const f32, n: i64, m: i64, y: *mut i32)",
            "output 0 is a tensor (n, 4) float32",
            "let the output be a tensor of int32",
        ),
        (
            "fn f(x: *const f32, n: i64, m: Shape, y: *mut f32)",
            "parameter `m` is `Shape`, which a call cannot give",
            "around it",
        ),
        ("fn f(x: *const f32, n: i64, m: i64, y: *mut f32) -> f32", "it returns `f32`", "0 is success"),
        ("fn f(x: &[f32; 16], n: i64, m: i64, y: *mut f32)", "parameter `x` is `&[f32; 16]`", "known at run time"),
        ("fn f(x: *const *const f32, n: i64, m: i64, y: *mut f32)", "which a call cannot give", "around it"),
        ("fn f(x: *const f32, n: i64, m: i64, y: *mut f32, ...)", "parameter `...`", "around it"),
    ] {
        let text = said(CALL, &[signature]);
        assert!(text.contains(part) && text.contains(help), "{signature}\n{text}");
    }
    let literal = r#"R.call_dps_packed("f", (x, 300), out_sinfo=R.Tensor((n, 4), "float32"))"#;
    let text = said(literal, &["fn f(x: *const f32, n: u8, y: *mut f32)"]);
    assert!(text.contains("`u8`, which does not hold 300") && text.contains("0 to 255"), "{text}");
    // All that is wrong with a call, at once.
    let text = said(CALL, &["fn f(x: *const f64, n: f32, m: f32, y: *mut f64)"]);
    assert_eq!(text.matches("error:").count(), 4, "{text}");
}

#[test]
fn what_is_not_declared() {
    let text = said(CALL, &[]);
    for part in [
        "the external function `f` is not declared",
        "in C, the call fits `void f(const float *x, int64_t p1, int64_t p2, float *out);`",
        "in Rust, the call fits `extern \"C\" fn f(x: *const f32, p1: i64, p2: i64, out: *mut f32)`",
        "Build::c_header",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = said(CALL, &["fn g(x: *const f32)"]);
    assert!(text.contains("did you mean `g`, declared at ops.rs:7?"), "{text}");
    let text = said(CALL, &["fn f(x: *const f32)", "fn f(x: *const f64)", "fn f(y: *const f32)"]);
    assert!(text.contains("is declared twice, differently"), "{text}");
    assert!(Declaration::parse("f(x)", "build.rs", TYPES).unwrap_err().to_string().contains("is no signature"));
}

#[test]
fn functions_of_rust_files() {
    let file = syn::parse_file(
        r#"
        type Real = f32;
        #[no_mangle]
        pub extern "C" fn plain(x: *const Real, n: core::ffi::c_int) {}
        mod inner {
            #[unsafe(export_name = "other")]
            unsafe extern "C" fn renamed(x: *mut f64) -> i32 { 0 }
            #[no_mangle]
            fn rust_abi(x: i32) {}
            extern "C" fn mangled(x: i32) {}
        }
        "#,
    )
    .unwrap();
    let mut out = Vec::new();
    defined(&file.items, "src/ops.rs", TYPES, &|_| true, &mut out);
    let shown: Vec<String> = out.iter().map(|d| format!("{} {}", d.place, show::prototype(d))).collect();
    assert_eq!(shown[0], "src/ops.rs:4 extern \"C\" fn plain(x: *const Real, n: core::ffi::c_int)");
    assert_eq!(shown[1], "src/ops.rs:7 extern \"C\" fn other(x: *mut f64) -> i32");
    assert_eq!(shown.len(), 2);
    assert_eq!(out[0].params[0].ty, ParamType::Pointer { element: Some(DType::F32), len: None, writable: false });
}

#[cfg(feature = "bindgen")]
#[test]
fn functions_of_headers() {
    let dir = std::env::temp_dir().join(format!("tvm-header-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("types.h"),
        "#include <stddef.h>\ntypedef int blasint;\ntypedef enum LAYOUT { ROW = 101 } LAYOUT;\n",
    )
    .unwrap();
    let header = dir.join("blas.h");
    let text = "#include \"types.h\"\n/* y = ax */\nint scale(LAYOUT layout, blasint n, const float alpha,\n          const float *x, double y[4]);\nvoid odd(struct s *p, void (*cb)(int));\n";
    std::fs::write(&header, text).unwrap();
    let mut externals = Externals::default();
    let files = match externals.read_header(&header, &[], TYPES) {
        Err(d) if d.to_string().contains("libclang") => {
            eprintln!("skipped: {d}");
            return;
        }
        done => done.unwrap(),
    };
    assert!(files.iter().any(|f| f.ends_with("types.h")), "{files:?}");
    let d = &externals.functions["scale"][0];
    assert_eq!(d.place, format!("{}:3", header.display()));
    assert_eq!(show::prototype(d), "int32_t scale(LAYOUT layout, blasint n, float alpha, const float *x, double *y);");
    assert_eq!((&d.params[0].ty, &d.returns), (&ParamType::Number(DType::U32), &Returns::Status(DType::I32)));
    assert!(externals.functions["odd"][0].params.iter().all(|p| p.ty == ParamType::Other));
    let missing = externals.read_header(&dir.join("no.h"), &[], TYPES).unwrap_err();
    assert!(missing.to_string().contains("no.h"), "{missing}");
    std::fs::remove_dir_all(dir).unwrap();
}
