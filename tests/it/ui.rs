//! What rustc says of mistakes in `ir_module!`: `tests/ui/*.rs`, each with its `.stderr`. `TRYBUILD=overwrite` rewrites
//! what is expected.

#[test]
fn mistakes_are_reported_at_their_tokens() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}
