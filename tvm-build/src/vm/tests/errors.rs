//! What has no compiled form is said at its place.

use super::*;

fn error(relax: &str) -> Diag {
    let Err(mut e) = try_compile(&module(relax), &Options::default()) else { panic!("it compiles") };
    assert_eq!(e.0.len(), 1, "{e}");
    let e = e.0.remove(0);
    assert!(!e.span().is_none(), "{e}");
    e
}

#[test]
fn recursion() {
    let e = error(
        r#"
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y: R.Tensor((4,), "float32") = cls.main(x)
        return y
"#,
    );
    assert!(e.message.contains("main calls itself: main -> main"), "{e}");
}

#[test]
fn an_op_that_is_not_lowered() {
    let e = error(
        r#"
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.nn.relu(x)
        return y
"#,
    );
    assert_eq!(e.to_string(), "R.nn.relu is not lowered (run LegalizeOps before)");
}

#[test]
fn a_type_that_is_not_known() {
    let e = error(
        r#"
    @R.function
    def main(x: R.Tensor(ndim=1)):
        return x
"#,
    );
    assert!(e.message.contains("element type"), "{e}");
}

#[test]
fn a_result_that_is_no_tensor() {
    let e = error(
        r#"
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return R.shape([4])
"#,
    );
    assert!(e.help.is_some_and(|h| h.contains("returns tensors")));
}
