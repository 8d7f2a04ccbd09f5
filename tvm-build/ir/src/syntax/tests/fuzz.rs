//! Mutated texts: any input gives a module or located errors, never a panic.

use super::*;

/// xorshift64
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
}

const SPICE: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "\n",
    "    ",
    "\t",
    "\"",
    "'",
    "#",
    "@",
    "-",
    "*",
    "//",
    "0",
    "9223372036854775808",
    "T.",
    "R.",
    "cls",
    "None",
    "True",
    "if ",
    "else:",
    "return",
    "T.int64(",
    "1e400",
    "ä",
    "\\",
    "not ",
    "->",
    "x[",
    "()",
    "T.Ramp(0, 1, 4)",
    "T.grid(",
    "\"n\"",
    "with ",
    "for ",
    "<",
    "\r\n",
    "R.const([[1], 2])",
    "0x",
    "1.2.3",
    "T.bool(",
    "lambda",
    "\u{0}",
    "-1",
];

fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(chars.len());
        let len = 1 + rng.below(12);
        let end = (at + len).min(chars.len());
        match rng.below(6) {
            0 => drop(chars.drain(at..end)),
            1 | 2 => {
                let s = SPICE[rng.below(SPICE.len())];
                chars.splice(at..at, s.chars());
            }
            3 => {
                let s = SPICE[rng.below(SPICE.len())];
                chars.splice(at..end, s.chars());
            }
            4 => {
                // A piece from elsewhere.
                let from = rng.below(chars.len());
                let piece: Vec<char> = chars[from..(from + 2 * len).min(chars.len())].to_vec();
                chars.splice(at..at, piece);
            }
            _ => {
                let n = chars.len();
                chars.truncate(n - rng.below(n / 4 + 1));
            }
        }
        if chars.is_empty() {
            chars.push('x');
        }
    }
    chars.into_iter().collect()
}

fn check(text: &str) {
    let mut sources = SourceMap::default();
    match parse_module(&mut sources, "fuzz", text, ParseOptions::default()) {
        // Whatever is accepted prints, in both dialects.
        Ok(m) => {
            print_module(&m, Dialect::Tutorial);
            print_module(&m, Dialect::V0_27);
        }
        Err(d) => {
            assert!(d.has_errors());
            crate::render::render_all(&d, &sources);
        }
    }
}

#[test]
fn mutations_never_panic() {
    let seed = 0x2545_f491_4f6c_dd1d;
    let mut rng = Rng(seed);
    let kitchen_sink = include_str!("kitchen_sink.py");
    for _ in 0..1500 {
        let pick = rng.below(5);
        let base = TUTORIAL.get(pick).copied().unwrap_or(kitchen_sink);
        let text = mutate(&mut rng, base);
        if std::panic::catch_unwind(|| check(&text)).is_err() {
            panic!("seed {seed:#x}, text:\n{text}");
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("T.exp(", ")"), ("x + ", ""), ("2 ** ", ""), ("f(x, ", ")")]
    {
        let n = 20_000;
        let text =
            format!("@T.prim_func\ndef f(x: T.int32):\n    T.evaluate({}x{})\n", open.repeat(n), close.repeat(n));
        let mut sources = SourceMap::default();
        assert!(parse_module(&mut sources, "deep", &text, ParseOptions::default()).is_err(), "{open}");
    }
    let mut text = String::from("@T.prim_func\ndef f(x: T.int32):\n");
    for i in 1..2000 {
        text.push_str(&format!("{}if x < 1:\n", " ".repeat(i)));
    }
    check(&text);
    // Long, not deep.
    let sum = format!("@T.prim_func\ndef f(x: T.int32):\n    T.evaluate({}x)\n", "x + ".repeat(20_000));
    check(&sum);
    let dots = format!("@T.prim_func\ndef f(x: T.int32):\n    T.evaluate(x{})\n", ".a".repeat(20_000));
    check(&dots);
    let statements = format!("@T.prim_func\ndef f(x: T.int32):\n{}", "    y = x\n".repeat(3_000));
    check(&statements);
}
