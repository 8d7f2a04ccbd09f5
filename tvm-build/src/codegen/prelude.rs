//! The helpers of generated C: found by the names that a kernel's text uses, so that a file holds no other.
//!
//! A helper's name says all: `tvm_floordiv_i32`, `tvm_exp_f32x8`, `tvm_cast_f32_i8`, `tvm_f32x8` (a vector type). Bodies
//! are templates in `prelude/*.h`, a section per operation and family of types; what has no section of its own is
//! made from others: vectors lane by lane, narrow floats through `float`.

use super::ctype::{ctype, is_narrow_float, mask_type, parse_suffix, suffix, unsigned};
use std::collections::BTreeSet;
use tvm_ir::diag::Diag;
use tvm_ir::dtype::DType;
use tvm_ir::span::Span;

const FILES: &[&str] = &[
    include_str!("prelude/approx.h"),
    include_str!("prelude/arith.h"),
    include_str!("prelude/math.h"),
    include_str!("prelude/narrow.h"),
    include_str!("prelude/vector.h"),
];

/// Functions of the C library with one argument of their type; `f` is appended for `float`.
const LIBM_1: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "nearbyint",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
];

/// The same with two arguments.
const LIBM_2: &[&str] = &["atan2", "copysign", "fmod", "hypot", "nextafter", "pow"];

/// The same with three.
const LIBM_3: &[&str] = &["fma"];

/// Every function of the C library that generated kernels may call (with and without the suffix `f`).
pub(crate) fn libm() -> impl Iterator<Item = &'static str> {
    LIBM_1.iter().chain(LIBM_2).chain(LIBM_3).copied().chain(["ldexp"])
}

/// A section of a template file.
struct Section {
    arity: usize,
    /// Suffix of the result's element type when it is not that of the arguments.
    result: Option<&'static str>,
    text: &'static str,
}

fn section(op: &str, family: &str) -> Option<Section> {
    FILES.iter().flat_map(|f| f.split("//@ ").skip(1)).find_map(|s| {
        let (header, text) = s.split_once('\n')?;
        let mut words = header.split(' ');
        if words.next() != Some(op) || words.next().unwrap_or("") != family {
            return None;
        }
        let arity = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Some(Section { arity, result: words.next(), text: text.trim_end() })
    })
}

/// Definitions, dependencies first, of every helper that a text names. Errors: a helper that cannot be made for its type.
pub(crate) fn helpers(text: &str) -> Result<String, Diag> {
    let mut done = BTreeSet::new();
    let mut out = String::new();
    add(text, &mut done, &mut out)?;
    Ok(out)
}

fn add(text: &str, done: &mut BTreeSet<String>, out: &mut String) -> Result<(), Diag> {
    let wanted: BTreeSet<&str> = identifiers(text).filter_map(|i| i.strip_prefix("tvm_")).collect();
    for name in wanted {
        if !done.insert(name.to_owned()) {
            continue;
        }
        let Some(definition) = define(name)? else { continue };
        add(&definition, done, out)?;
        out.push_str(&definition);
        out.push('\n');
    }
    Ok(())
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

/// The names of the runtime's header.
const HEADER: &[&str] = &["runtime", "context", "task", "parallel_for", "kernel"];

fn define(name: &str) -> Result<Option<String>, Diag> {
    if HEADER.contains(&name) {
        return Ok(None);
    }
    if let Some(dtype) = parse_suffix(name) {
        return vector_type(dtype).map(Some);
    }
    if let Some(dtype) = name.strip_suffix('u').or(name.strip_suffix('a')).and_then(parse_suffix) {
        return memory_type(dtype, name.ends_with('u')).map(Some);
    }
    if let Some(s) = section(name, "") {
        return Ok(Some(s.text.to_owned()));
    }
    let words: Vec<&str> = name.split('_').collect();
    let made = match words.as_slice() {
        ["cast", from, to] => match (parse_suffix(from), parse_suffix(to)) {
            (Some(from), Some(to)) => Some(cast(from, to)?),
            _ => None,
        },
        ["bits", from, to] => match (parse_suffix(from), parse_suffix(to)) {
            (Some(from), Some(to)) => Some(bits(from, to)?),
            _ => None,
        },
        ["gather", of, by] => match (parse_suffix(of), parse_suffix(by)) {
            (Some(of), Some(by)) => Some(gather(of, by)?),
            _ => None,
        },
        ["every2", of] => match parse_suffix(of) {
            Some(of) => Some(every_second(of)?),
            None => None,
        },
        [op, of] => match parse_suffix(of) {
            Some(dtype) => Some(function(op, dtype)?),
            None => None,
        },
        _ => None,
    };
    Ok(made)
}

fn vector_type(dtype: DType) -> Result<String, Diag> {
    let (name, element) = (ctype(dtype)?, ctype(dtype.scalar())?);
    Ok(format!("typedef {element} {name} __attribute__((vector_size({})));", dtype.bytes()))
}

fn memory_type(dtype: DType, unaligned: bool) -> Result<String, Diag> {
    let name = ctype(dtype)?;
    let element = dtype.scalar().bytes();
    Ok(if unaligned {
        format!("typedef {name} {name}u __attribute__((aligned({element}), may_alias));")
    } else {
        format!("typedef {name} {name}a __attribute__((may_alias));")
    })
}

/// The sections that may serve a type, most special first.
fn families(dtype: DType) -> &'static [&'static str] {
    if dtype.scalar() == DType::F32 {
        return if dtype.lanes > 1 { &["vf32", "anyf32", "vfloat", "vector"] } else { &["f32", "anyf32", "float"] };
    }
    match (dtype.lanes > 1, dtype.is_float(), dtype.is_int()) {
        (false, true, _) => &["float"],
        (false, _, true) => &["int"],
        (false, _, false) => &["uint"],
        (true, true, _) => &["vfloat", "vector"],
        (true, _, true) => &["vint", "vector"],
        (true, _, false) => &["vuint", "vector"],
    }
}

/// How an operation is called: number of arguments and type of the result.
struct Signature {
    arity: usize,
    result: DType,
}

fn signature(op: &str, dtype: DType) -> Option<Signature> {
    let scalar = dtype.scalar();
    let base = if is_narrow_float(scalar) { DType::F32 } else { scalar };
    if base.is_float() {
        let libm = [(1, LIBM_1), (2, LIBM_2), (3, LIBM_3)];
        if let Some((arity, _)) = libm.iter().find(|(_, names)| names.contains(&op)) {
            return Some(Signature { arity: *arity, result: dtype });
        }
    }
    let s = families(base).iter().find_map(|f| section(op, f))?;
    let result = s.result.and_then(parse_suffix).map_or(dtype, |r| r.with_lanes(dtype.lanes));
    (s.arity > 0).then_some(Signature { arity: s.arity, result })
}

const ARGUMENTS: &[&str] = &["x", "y", "z"];

fn function(op: &str, dtype: DType) -> Result<String, Diag> {
    if !is_narrow_float(dtype) {
        if let Some(s) = families(dtype).iter().find_map(|f| section(op, f)) {
            return fill(s.text, dtype);
        }
    }
    let missing = || {
        Diag::error(Span::NONE, format!("the C back end has no `{op}` of `{dtype}`"))
            .help("cast to float32 around the operation")
    };
    let Signature { arity, result } = signature(op, dtype).ok_or_else(missing)?;
    let arguments = ARGUMENTS.get(..arity).ok_or_else(missing)?;
    let name = suffix(dtype)?;
    let (t, r) = (ctype(dtype)?, ctype(result)?);
    let parameters: Vec<String> = arguments.iter().map(|a| format!("{t} {a}")).collect();
    let head = format!("{} {r} tvm_{op}_{name}({}) {{", linkage(dtype), parameters.join(", "));
    let list = |f: &dyn Fn(&str) -> String| arguments.iter().map(|a| f(a)).collect::<Vec<_>>().join(", ");
    if dtype.lanes > 1 {
        let call = format!("tvm_{op}_{}({})", suffix(dtype.scalar())?, list(&|a| format!("{a}[i]")));
        return Ok(lane_by_lane(&head, &r, dtype.lanes, &call));
    }
    if is_narrow_float(dtype) {
        let call = format!("tvm_{op}_f32({})", list(&|a| format!("tvm_cast_{name}_f32({a})")));
        let value = if result == dtype { format!("tvm_cast_f32_{name}({call})") } else { call };
        return Ok(format!("{head} return {value}; }}"));
    }
    let f = if dtype == DType::F32 { "f" } else { "" };
    Ok(format!("{t} {op}{f}({});\n{head} return {op}{f}({}); }}", parameters.join(", "), list(&|a| a.to_owned())))
}

/// What stands before a helper: those over vectors are always inlined, so that no vector is passed in memory.
fn linkage(dtype: DType) -> &'static str {
    if dtype.lanes > 1 { "TVM_INLINE" } else { "static inline" }
}

fn lane_by_lane(head: &str, result: &str, lanes: u16, call: &str) -> String {
    format!("{head}\n    {result} r;\n    for (int i = 0; i < {lanes}; ++i) r[i] = {call};\n    return r;\n}}")
}

fn gather(of: DType, by: DType) -> Result<String, Diag> {
    let (t, e, i) = (ctype(of)?, ctype(of.scalar())?, ctype(by)?);
    let head = format!("TVM_INLINE {t} tvm_gather_{}_{}(const {e} *p, {i} at) {{", suffix(of)?, suffix(by)?);
    Ok(lane_by_lane(&head, &t, of.lanes, "p[at[i]]"))
}

/// The elements at `p[0], p[2], …`: from two vectors, the second of which ends at the last of them.
fn every_second(of: DType) -> Result<String, Diag> {
    let (t, e, lanes) = (ctype(of)?, ctype(of.scalar())?, usize::from(of.lanes));
    let mask_type = ctype(DType::new(tvm_ir::dtype::TypeCode::Int, of.bits).with_lanes(of.lanes))?;
    let picks = (0..lanes).map(|i| if 2 * i < lanes { 2 * i } else { 2 * i + 1 }.to_string());
    let picks = picks.collect::<Vec<_>>().join(", ");
    Ok(format!(
        "/* The elements p[0], p[2], ... from two vectors, the second of which ends at the last of them. */\n\
         TVM_INLINE {t} tvm_every2_{}(const {e} *p) {{\n    const {t} low = *(const {t}u *)p;\n    \
         const {t} high = *(const {t}u *)(p + {});\n#ifdef __clang__\n    \
         return __builtin_shufflevector(low, high, {picks});\n#else\n    \
         const {mask_type} picks = {{ {picks} }};\n    return __builtin_shuffle(low, high, picks);\n#endif\n}}",
        suffix(of)?,
        lanes - 1
    ))
}

fn bits(from: DType, to: DType) -> Result<String, Diag> {
    let (a, b) = (ctype(from)?, ctype(to)?);
    Ok(format!(
        "{} {b} tvm_bits_{}_{}({a} x) {{\n    union {{ {a} from; {b} to; }} v;\n    v.from = x;\n    return v.to;\n}}",
        linkage(if from.lanes > 1 { from } else { to }),
        suffix(from)?,
        suffix(to)?
    ))
}

/// A conversion that C's own does not do as specified: to integers saturating, to and from narrow floats.
fn cast(from: DType, to: DType) -> Result<String, Diag> {
    let (a, b) = (suffix(from)?, suffix(to)?);
    let (t, r) = (ctype(from)?, ctype(to)?);
    let head = format!("{} {r} tvm_cast_{a}_{b}({t} x) {{", linkage(from));
    if from.lanes > 1 {
        let call = scalar_cast("x[i]", from.scalar(), to.scalar())?;
        return Ok(lane_by_lane(&head, &r, from.lanes, &call));
    }
    let through = |middle: DType| -> Result<String, Diag> {
        let inner = scalar_cast("x", from, middle)?;
        Ok(format!("{head} return {}; }}", scalar_cast(&inner, middle, to)?))
    };
    if is_narrow_float(from) {
        return through(DType::F32);
    }
    if is_narrow_float(to) {
        return if from == DType::F64 {
            Ok(format!("{head} return {}; }}", scalar_cast("tvm_odd_f64_f32(x)", DType::F32, to)?))
        } else {
            through(DType::F64)
        };
    }
    let bits = u32::from(to.bits);
    let f = if from == DType::F32 { "f" } else { "" };
    let (low, high, top) = if to.is_int() {
        let low = format!("-0x1p{}{f}", bits - 1);
        (low, format!("0x1p{}{f}", bits - 1), bits - 1)
    } else {
        ("0".to_owned(), format!("0x1p{bits}{f}"), bits)
    };
    let greatest = if top == 64 { "UINT64_MAX".to_owned() } else { format!("INT64_C({})", (1u128 << top) - 1) };
    let least = if to.is_int() { format!("(-INT64_C({}) - 1)", (1u128 << (bits - 1)) - 1) } else { "0".to_owned() };
    Ok(format!(
        "/* Truncates; what is out of range saturates, NaN gives 0. */\n{head}\n    if (x != x) return 0;\n    \
         if (x <= {low}) return ({r}){least};\n    if (x >= {high}) return ({r}){greatest};\n    return ({r})x;\n}}"
    ))
}

/// Text of a conversion of a scalar text (an atom or call) between scalar types.
pub(crate) fn scalar_cast(x: &str, from: DType, to: DType) -> Result<String, Diag> {
    if from == to {
        return Ok(x.to_owned());
    }
    if to.is_bool() {
        return Ok(if is_narrow_float(from) {
            format!("({} != 0)", scalar_cast(x, from, DType::F32)?)
        } else {
            format!("({x} != 0)")
        });
    }
    let narrow = is_narrow_float(from) || is_narrow_float(to);
    let saturating = from.is_float() && !to.is_float();
    if narrow || saturating {
        return Ok(format!("tvm_cast_{}_{}({x})", suffix(from)?, suffix(to)?));
    }
    Ok(format!("({}){x}", ctype(to)?))
}

fn fill(text: &str, dtype: DType) -> Result<String, Diag> {
    let scalar = dtype.scalar();
    let mut out = text.to_owned();
    for (key, lane) in [("@LANES:x@", "x"), ("@LANES:i@", "i")] {
        if out.contains(key) {
            let lanes: Vec<String> =
                (0..dtype.lanes).map(|i| if lane == "x" { lane.to_owned() } else { i.to_string() }).collect();
            out = out.replace(key, &lanes.join(", "));
        }
    }
    let convert = if dtype.lanes > 1 { "__builtin_convertvector(e, @T@)" } else { "(float)e" };
    out = out.replace("@CVT:e@", convert);
    for (key, value) in [
        ("@T@", ctype(dtype)?),
        ("@S@", suffix(dtype)?),
        ("@U@", ctype(unsigned(dtype))?),
        ("@US@", suffix(unsigned(dtype))?),
        ("@M@", ctype(mask_type(dtype))?),
        ("@ET@", ctype(scalar)?),
        ("@EU@", ctype(unsigned(scalar))?),
        ("@BITS@", scalar.bits.max(8).to_string()),
        ("@F@", if scalar == DType::F32 { "f".to_owned() } else { String::new() }),
    ] {
        out = out.replace(key, &value);
    }
    Ok(out)
}
