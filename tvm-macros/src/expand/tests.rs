//! Expansion of whole modules.

use super::*;

const RELU: &str = "/// A model.\n pub mod m { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> { R::nn::relu(x) } }";

fn expanded(text: &str, out_dir: Option<&Path>) -> String {
    ir_module(text.parse().unwrap(), out_dir).to_string()
}

#[test]
fn a_module_without_a_build_script() {
    let text = expanded(RELU, None);
    for part in [
        "# [doc = \" A model.\"]",
        "pub mod m",
        "pub const TVMSCRIPT",
        "R.nn.relu(x)",
        "pub const FINGERPRINT",
        "pub fn main (& mut self , x : & [f32 ; 4]) -> [f32 ; 4]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("include") && !text.contains("compile_error"), "{text}");
    assert!(syn::parse_str::<syn::File>(&text).is_ok(), "{text}");
}

#[test]
fn a_module_that_was_not_compiled() {
    let text = expanded(RELU, Some(Path::new("/nonexistent")));
    assert!(text.contains("the build script did not compile the module `m`"), "{text}");
}

/// What `cargo expand` shows of a module, before and after the build script ran. `TVM_BLESS=1` accepts a new text.
#[test]
fn the_expansion_is_readable() {
    let dir = std::env::temp_dir().join(format!("tvm-macros-expand-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("mlp.rs"), "").unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/expand/tests");
    let source = std::fs::read_to_string(folder.join("mlp.in")).unwrap();
    for (file, out_dir) in [("mlp.out", Some(dir.as_path())), ("mlp.stub.out", None)] {
        let tokens = ir_module(source.parse().unwrap(), out_dir);
        let text = prettyplease::unparse(&syn::parse2(tokens).unwrap());
        let path = folder.join(file);
        if std::env::var("TVM_BLESS").is_ok() {
            std::fs::write(&path, &text).unwrap();
        }
        let blessed = std::fs::read_to_string(&path).unwrap_or_default();
        let first = text.lines().zip(blessed.lines()).find(|(new, old)| new != old);
        assert!(text == blessed, "{file} differs, first at {first:?}: TVM_BLESS=1 accepts the new text");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_error_is_reported() {
    let text = expanded(
        "mod m { #[R::function] pub fn main(x: R::Tensor<f32, 4>) -> R::Object { let a = R::rellu(x); let b = R::ad(x, y); a } }",
        None,
    );
    assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    assert!(text.contains("mod m { }"), "{text}");
}

#[test]
fn no_token_soup_panics() {
    let words = [
        "mod",
        "m",
        "{",
        "}",
        "fn",
        "f",
        "(",
        ")",
        "#[R::function]",
        "#[T::prim_func]",
        "pub",
        "x",
        ":",
        "R::Tensor",
        "<",
        ">",
        "f32",
        "1",
        ",",
        "let",
        "=",
        ";",
        "if",
        "else",
        "for",
        "in",
        "..",
        "T::block",
        "\"a\"",
        "+",
        "[",
        "]",
        "->",
        "R::add",
        "static",
        "&",
        "!",
        "1.5f32",
        "as",
        "T::Buffer",
        "_",
        "return",
        "'a",
        "=>",
        "I::dict",
        "{ N + 1 }",
    ];
    let mut state = 7u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let base: Vec<&str> = "mod m { #[R::function] pub fn f ( x : R::Tensor < f32 , N > ) -> R::Tensor < f32 , N > { let y = R::add ( x , x ) ; if y { x } else { y } } #[T::prim_func] fn g ( a : T::Buffer < f32 , N > ) { for i in 0 .. N { T::block ( \"b\" , { let v = T::axis::spatial ( N , i ) ; a [ v ] = a [ v ] + 1.0f32 ; } ) ; } } }"
        .split(' ')
        .collect();
    for _ in 0..3000 {
        let mut soup = base.clone();
        for _ in 0..1 + next(4) {
            let at = next(soup.len());
            match next(3) {
                0 => soup[at] = words[next(words.len())],
                1 => soup.insert(at, words[next(words.len())]),
                _ => {
                    soup.remove(at);
                }
            }
        }
        if let Ok(tokens) = soup.join(" ").parse() {
            let _ = ir_module(tokens, None);
        }
    }
}
