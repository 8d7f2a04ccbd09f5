//! Generated Rust.

use super::*;
use crate::vm::rust::{Level, RustOptions, WeightSource, print};

fn options(c: &Compiled) -> RustOptions {
    let symbols = |suffix: &str| c.program.tables().kernel_names.iter().map(|n| format!("tvmk_{n}{suffix}")).collect();
    RustOptions {
        name: "net".into(),
        levels: vec![
            Level { level: IsaLevel::Baseline, symbols: symbols("") },
            Level { level: IsaLevel::V3, symbols: symbols("_v3") },
        ],
        weights: WeightSource::Symbol("net_weights".into()),
        library: None,
        libraries: Vec::new(),
        heap: true,
        ndarray: true,
        docs: Default::default(),
    }
}

pub(super) const STATIC: &str = r#"
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), type: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        a = R.call_tir(cls.add, (type, R.const([1.0, 2.0, 3.0, 4.0], "float32")), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((4,), "float32"))
        c = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((4,), "float32"))
        return (c, b)

    @R.function
    def big(x: R.Tensor((20000,), "float32")) -> R.Tensor((20000,), "float32"):
        cls = Module
        a = R.call_tir(cls.reverse, (x,), out_sinfo=R.Tensor((20000,), "float32"))
        return a

    @R.function
    def rows(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        n = T.int64()
        a = R.call_tir(cls.reverse, (x,), out_sinfo=R.Tensor((n,), "float32"))
        b = R.call_tir(cls.reverse, (a,), out_sinfo=R.Tensor((n,), "float32"))
        return b

    @R.function
    def narrow(q: R.Tensor((5,), "int4"), s: R.Tensor(("n",), "float8_e5m2"), p: R.Tensor(("n",), "uint2")) -> R.Tuple(R.Tensor((5,), "int4"), R.Tensor(("n",), "float8_e5m2"), R.Tensor(("n",), "uint2")):
        return (q, s, p)
"#;

/// The text of the module below, as the compiler made it.
mod generated {
    #![allow(unreachable_pub, reason = "generated modules are public")]
    include!("net.rs");
}

/// What the object files of kernels and weights would define.
mod linked {
    use super::*;

    #[repr(align(64))]
    #[allow(dead_code, reason = "read by kernels")]
    struct Line([f32; 4]);

    #[unsafe(no_mangle)]
    static net_weights: [Line; 1] = [Line([1.0, 2.0, 3.0, 4.0])];

    macro_rules! kernels {
        ($($symbol:ident = $kernel:ident;)*) => {$(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $symbol(args: *const *mut c_void, dims: *const i64, ctx: *const Context) -> i32 {
                // SAFETY: as the kernel asks.
                unsafe { $kernel(args, dims, ctx) }
            }
        )*};
    }

    kernels! {
        tvmk_add = add;
        tvmk_add_v3 = add;
        tvmk_double = double;
        tvmk_double_v3 = double;
        tvmk_reverse = reverse;
        tvmk_reverse_v3 = reverse;
        tvmk_split = split;
        tvmk_split_v3 = split;
    }
}

#[test]
fn the_module_runs() {
    use generated::net;
    assert_eq!(net::PROGRAM.verify(), Ok(()));
    let mut arena = tvm_runtime::Arena::<{ net::ARENA_BYTES }>::new();
    let mut module = net::Module::with_arena(&mut arena);
    let twice = module.main(&[0.0; 4], &[10.0, 20.0, 30.0, 40.0]);
    assert_eq!(twice, ([88.0, 66.0, 44.0, 22.0], [44.0, 33.0, 22.0, 11.0]));
    let mut module = net::Module::default();
    assert_eq!(module.big(&[3.0; 20000]), [3.0; 20000]);
    // The first call makes the arena larger.
    let x: Vec<f32> = (0..100u8).map(f32::from).collect();
    for n in [100, 5, 0, 100] {
        assert_eq!(module.rows(&x[..n], n).unwrap(), x[..n]);
    }
    assert_eq!(net::Module::rows_arena_bytes(100), 448);
    let matrix = ndarray::arr2(&[[0.0f32; 2]; 2]);
    let (c, b) = module.main_nd(matrix.view(), ndarray::arr1(&[10.0, 20.0, 30.0, 40.0]).view()).unwrap();
    assert_eq!((c, b), (ndarray::arr1(&twice.0), ndarray::arr1(&twice.1)));
    assert_eq!(module.rows_nd(ndarray::ArrayView1::from(&x[..50])).unwrap().to_vec(), x[..50]);
    let q = [1, 2, 3].map(tvm_runtime::I4x2);
    let (s, p) = ([tvm_runtime::F8E5M2::MAX; 6], [tvm_runtime::U2x4::new([3, 2, 1, 0]); 2]);
    assert_eq!(module.narrow(&q, &s, &p, 6).unwrap(), (q.to_vec(), s.to_vec(), p.to_vec()));
    let short = module.narrow(&q, &s, &p[..1], 6);
    assert_eq!(short, Err(Error::WrongLength { argument: "p", expected: 2, found: 1 }));
    let wrong = module.rows(&x, 99);
    assert_eq!(wrong, Err(Error::WrongLength { argument: "x", expected: 99, found: 100 }));
    assert!(matches!(module.rows(&x, usize::MAX), Err(Error::BadShape { .. })));
}

#[test]
fn the_text_is_the_same_every_time_and_says_what_it_does() {
    let c = compiled(STATIC, &Options::default());
    let text = print(&c.program, &options(&c)).unwrap();
    if std::env::var("TVM_BLESS").is_ok() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/vm/tests/net.rs"), &text).unwrap();
    }
    let first = text.lines().zip(include_str!("net.rs").lines()).find(|(new, old)| new != old);
    assert_eq!(first, None, "run the test with TVM_BLESS=1 to accept the new text");
    let again = compiled(STATIC, &Options::default());
    assert_eq!(text, print(&again.program, &options(&again)).unwrap());
    for line in [
        "pub fn main(&mut self, x: &[f32; 4], r#type: &[f32; 4]) -> ([f32; 4], [f32; 4]) {",
        "pub fn big(&mut self, x: &[f32; 20000]) -> ::std::vec::Vec<f32> {",
        "pub fn rows_into(&mut self, x: &[f32], n: usize, out: &mut [f32]) -> Result<(), Error> {",
        "pub fn rows(&mut self, x: &[f32], n: usize) -> Result<::std::vec::Vec<f32>, Error> {",
        "pub fn rows_nd(&mut self, x: ::ndarray::ArrayView1<'_, f32>) -> Result<::ndarray::Array1<f32>, Error> {",
        "pub fn rows_arena_bytes(n: usize) -> usize {",
        "/// - `q`: (5,) int4, 2 elements a byte, the first in the lowest bits",
        "pub fn narrow_into(&mut self, q: &[I4x2; 3], s: &[F8E5M2], p: &[U2x4], n: usize, out0: &mut [I4x2; 3], \
         out1: &mut [F8E5M2], out2: &mut [U2x4]) -> Result<(), Error> {",
        "pub const WEIGHT_BYTES: usize = 16;",
        "fn tvmk_add_v3(",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn lists_need_a_heap() {
    let take = "    @R.function\n    def main(l: R.Object) -> R.Tensor((), \"int64\"):\n        n = R.list.length(l)\n        return n\n";
    let give = "    @R.function\n    def main(x: R.Tensor((2,), \"float32\")) -> R.Object:\n        l = R.list.make((x,))\n        return l\n";
    for (text, name, method) in [
        (take, "l", "pub fn main(&mut self, l: &AnyList) -> Result<::std::vec::Vec<i64>, Error> {"),
        (give, "out", "pub fn main(&mut self, x: &[f32; 2]) -> Result<AnyList, Error> {"),
    ] {
        let c = compiled(text, &Options::default());
        let made = print(&c.program, &options(&c)).unwrap();
        assert!(made.contains(method) && !made.contains("forget_texts") && !made.contains("main_nd"), "{made}");
        let e = print(&c.program, &RustOptions { heap: false, ..options(&c) }).unwrap_err().to_string();
        assert!(e.contains(&format!("{name} is a sequence or an optional, which needs a heap")), "{e}");
    }
}
