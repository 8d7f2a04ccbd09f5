//! What rustc says of mistakes in `ir_module!`: `tests/ui/*.rs`, each with its `.stderr`. `TRYBUILD=overwrite` rewrites
//! what is expected. A test of tvm-ir compares every case without rustc, in a second; here rustc prints a part of them, and all
//! with `TVM_UI=all`, which takes minutes.

#[test]
fn mistakes_are_reported_at_their_tokens() {
    let cases = trybuild::TestCases::new();
    if std::env::var("TVM_UI").is_ok_and(|v| v == "all") {
        cases.compile_fail("ui/*.rs");
    } else {
        cases.compile_fail("ui/mistake_*.rs");
        cases.compile_fail("ui/several_*.rs");
    }
}
