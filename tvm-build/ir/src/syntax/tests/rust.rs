//! The Rust spelling: text to Rust and back is the same module; what is written; errors.

use super::*;
use crate::structural::diff;
use crate::syntax::rust::parse_rust;

fn read(text: &str) -> Result<IRModule, String> {
    read_with(text, ParseOptions::default())
}

fn read_with(text: &str, options: ParseOptions) -> Result<IRModule, String> {
    let mut sources = SourceMap::default();
    parse_rust(&mut sources, "main.rs", text, &options).map_err(|d| crate::render::render_all(&d, &sources))
}

/// TVMScript to Rust to a module that equals the first one; gives the Rust text.
fn through(text: &str) -> String {
    let m = parse(text);
    let (rust, constants) = print_rust(&m, "m").unwrap();
    let again = read_with(&rust, ParseOptions { constants }).unwrap_or_else(|e| panic!("{e}\n{rust}"));
    if let Err(e) = diff::modules(&m, &again) {
        panic!("{e}\n{rust}\n{}", print_module(&again, Dialect::Tutorial));
    }
    rust
}

#[test]
fn tutorial_survives() {
    for text in TUTORIAL {
        through(text);
    }
}

#[test]
fn every_form_survives() {
    let rust = through(include_str!("kitchen_sink.py"));
    for part in [
        "#[I::module_attrs(a = 1, b = \"x\", c = [1, 2.5, None, true])]",
        "static ext: R::ExternFunc = \"ext\";",
        "while B[[0, 0]] < 10 &&",
        "assert!(B[[0, 0]] < 3, \"oops\\tA\");",
        "#[R::function(pure = false)]",
        "R::dataflow({",
    ] {
        assert!(rust.contains(part), "{part}\n{rust}");
    }
}

#[test]
fn loops_survive() {
    let rust = through(
        r#"
@I.ir_module
class Module:
    @R.function(private=True)
    def step(at: R.Prim(value="i"), x: R.Tensor(("m",), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="bool"), R.Tensor(("m",), dtype="float32"), R.Tensor(("m",), dtype="float32")):
        i = T.int64()
        m = T.int64()
        y = R.add(x, x)
        return (R.const(True, "bool"), y, x)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32"), k: R.Tensor((), dtype="int64"), c: R.Tensor((), dtype="bool")) -> R.Object:
        cls = Module
        n = T.int64()
        r = R.while_loop(cls.step, R.tuple(), (x,), trip_count=k, cond=c, out_sinfo=[R.Tensor((n,), dtype="float32"), R.Tensor(ndim=2, dtype="float32")])
        return r
"#,
    );
    assert!(rust.contains("R::while_loop::<R::Tensor<f32, n>, "), "{rust}");
    assert!(rust.contains("(step, R::tuple(), (x,), trip_count = k, cond = c)"), "{rust}");
}

/// Two texts say the same.
fn same(rust: &str, script: &str) {
    let (a, b) = (read(rust).unwrap_or_else(|e| panic!("{e}")), parse(script));
    if let Err(e) = diff::modules(&a, &b) {
        panic!("{e}\n{}\n{}", print_module(&a, Dialect::Tutorial), print_module(&b, Dialect::Tutorial));
    }
}

#[test]
fn functions_are_normalised() {
    same(
        r#"pub mod mlp {
            /// Documentation is not part of the module.
            #[R::function]
            #[R::func_attr(num_input = 1)]
            pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>, b: R::Tensor<f32, 256>) -> R::Tensor<f32, N, 256> {
                let h = R::matmul(x, R::permute_dims(w)) + b;
                helper(R::nn::relu(h), R::constant(0.5, f32))
            }
            #[R::function]
            fn helper(x: R::Tensor<f32, M, 256>, k: R::Tensor<f32, ()>) -> R::Tensor<f32, M, 256> {
                R::nn::softmax(x * k, axis = -1)
            }
        }"#,
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 784), "float32"), w: R.Tensor((256, 784), "float32"), b: R.Tensor((256,), "float32")) -> R.Tensor(("n", 256), "float32"):
        R.func_attr({"num_input": 1})
        cls = Module
        h = R.matmul(x, R.permute_dims(w)) + b
        return cls.helper(R.nn.relu(h), R.const(0.5, "float32"))

    @R.function(private=True)
    def helper(x: R.Tensor(("m", 256), "float32"), k: R.Tensor((), "float32")) -> R.Tensor(("m", 256), "float32"):
        return R.nn.softmax(x * k, axis=-1)
"#,
    );
}

#[test]
fn conditionals_tuples_and_calls() {
    same(
        r#"mod m {
            #[R::function]
            pub fn main(x: R::Tensor<f32, N>, c: R::Tensor<bool, ()>) -> (R::Tensor<f32, N>, R::Object) {
                let t = (x, R::nn::relu(x));
                let y = if c { t.0 } else { let z = t.1; R::add(z, z) };
                let s = R::call_tir::<R::Tensor<f32, N>>(scale, (y,));
                let d = R::match_cast::<R::Tensor<f32, K>>(s);
                let r = R::call_packed::<R::Object>("host.log", d, R::shape([K, K + 1]));
                (s, r)
            }
            #[T::prim_func]
            fn scale(a: T::Buffer<f32, N>, out: T::Buffer<f32, N>) {
                for i in 0..N {
                    T::block("scale", {
                        let v = T::axis::spatial(N, i);
                        out[v] = a[v] * 2.0f32;
                    });
                }
            }
        }"#,
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Object):
        n = T.int64()
        k = T.int64()
        cls = Module
        t = (x, R.nn.relu(x))
        if c:
            y = t[0]
        else:
            z = t[1]
            y = R.add(z, z)
        s = R.call_tir(cls.scale, (y,), out_sinfo=R.Tensor((n,), "float32"))
        d = R.match_cast(s, R.Tensor((k,), "float32"))
        r = R.call_packed("host.log", d, R.shape([k, k + 1]), sinfo_args=(R.Object,))
        return (s, r)

    @T.prim_func(private=True)
    def scale(a: T.handle, o: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        O = T.match_buffer(o, (n,))
        for i in range(n):
            with T.block("scale"):
                v = T.axis.spatial(n, i)
                O[v] = A[v] * T.float32(2)
"#,
    );
}

#[test]
fn names_of_rust_are_escaped() {
    let rust = through(
        r#"
@I.ir_module
class Module:
    @R.function
    def type(f32: R.Tensor((2,), "float32"), self: R.Tensor((2,), "float32"), match: R.Tensor((2,), "bool")):
        fn = R.where(match, f32, self)
        return fn
"#,
    );
    assert!(rust.contains("pub fn r#type("), "{rust}");
    assert!(rust.contains("f32_: R::Tensor<f32, 2>,"), "{rust}");
    assert!(rust.contains("R::r#where(r#match, f32_, self_)"), "{rust}");
}

#[test]
fn constants_are_written_out() {
    let m =
        read("mod m { #[R::function] pub fn f() -> R::Object { R::constant([[1.0, 2.0], [\"inf\", -0.5]], f32) } }")
            .unwrap();
    let (text, constants) = print_rust(&m, "m").unwrap();
    assert!(text.contains("R::constant([[1.0, 2.0], [\"inf\", -0.5]], f32)"), "{text}");
    assert!(constants.is_empty());
    assert!(diff::modules(&m, &read(&text).unwrap()).is_ok());
}

/// The errors of a function's body, each as the token it points at and its text.
fn errors(body: &str) -> Vec<(String, String)> {
    let text = format!(
        "mod m {{ #[R::function] pub fn main(x: R::Tensor<f32, 2, 3>, n: R::Tensor<i32, 2>) -> R::Object {{ {body} }} }}"
    );
    let mut sources = SourceMap::default();
    let Err(diags) = parse_rust(&mut sources, "main.rs", &text, &ParseOptions::default()) else {
        panic!("accepted: {body}");
    };
    let at = |d: &crate::diag::Diag| {
        let s = d.span();
        text[s.start as usize..s.end as usize].to_string()
    };
    diags.0.iter().map(|d| (at(d), d.to_string())).collect()
}

#[test]
fn errors_point_at_tokens() {
    for (body, token, message) in [
        ("R::nn::rellu(x)", "R::nn::rellu", "there is no op R::nn::rellu (did you mean R::nn::relu?)"),
        ("R::add(x, y)", "y", "undefined name `y`"),
        ("x.relu()", "relu", "values have no methods, as `relu` (write R::nn::relu(x))"),
        ("R::nn::relu(&x)", "&", "there are no references in the IR (remove the `&`: values are passed as they are)"),
        (
            "R::nn::softmax(x, axes = 1)",
            "axes",
            "R::nn::softmax has no argument or attribute `axes` (did you mean `axis`?)",
        ),
        ("R::matmul(axis = 1, x)", "x", "an argument without a name after one with a name"),
        (
            "let mut y = x; y",
            "mut",
            "`mut` says nothing here (remove it: variables are never assigned twice, buffers always can be)",
        ),
        ("x as f16", "f16", "`as` converts scalars, not tensors (write R::astype(…, dtype = f16))"),
        ("for i in 0..4 { } x", "for", "Relax functions have no loops (write a PrimFunc, or recursion)"),
        ("let y = x;", "main", "function `main` returns nothing (end it with the value to return)"),
        ("let f32 = x; x", "f32", "`f32` cannot name a variable (it has a meaning of its own: choose another name)"),
        ("println!(x); x", "println", "macros cannot be called in the IR, `assert!` aside"),
    ] {
        assert_eq!(errors(body), [(token.to_string(), message.to_string())], "{body}");
    }
}

#[test]
fn errors_are_reported_together() {
    let found = errors("let a = x.relu(); let b = R::add(&x, x); a");
    assert_eq!(found.len(), 2, "{found:?}");
    let found = errors("let a = R::rellu(x); let b = R::addd(a, x); let c = R::matmul(x, x); b");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn external_functions_are_called_by_symbol_or_name() {
    let function = |callee: &str| {
        let text = format!(
            "mod m {{ static halve: R::ExternFunc = \"c_halve\"; #[R::function] pub fn main(x: R::Tensor<f32, N>) -> R::Tensor<f32, N> {{ \
             R::call_dps_packed::<R::Tensor<f32, N>>({callee}, (x, N)) }} }}"
        );
        read(&text)
    };
    let symbol = function("\"c_halve\"").unwrap();
    diff::modules(&symbol, &function("halve").unwrap()).unwrap();
    for (callee, error) in [("N", "expected an external function"), ("main", "expected an external function")] {
        assert!(function(callee).unwrap_err().contains(error), "{callee}: {:?}", function(callee));
    }
}
