//! Changes to models: of the structure, of numbers that sizes are made of, of bytes.

use super::message::{Field, Kind, Role, Value, decode, encode, field, pack, unpack};

/// A generator of numbers; the same for the same seed on every machine.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Numbers at which arithmetic of sizes goes wrong.
const WILD: &[i64] = &[
    0,
    1,
    2,
    3,
    7,
    16,
    64,
    65,
    1000,
    65536,
    -1,
    -2,
    -3,
    -7,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 61,
    1 << 62,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    -(1 << 40),
];

const NAMES: &[&str] = &[
    "",
    "x",
    "y",
    "float",
    "main",
    "\0",
    "a\0b",
    "../secret.bin",
    "/etc/passwd",
    "a\u{202e}b",
    "ünïcode",
    "0",
    " ",
    "\n",
    "self",
    "R",
    "%s%n",
    "\"); system(\"",
    "*/",
    "tvm_context",
];

const DOMAINS: &[&str] =
    &["", "ai.onnx", "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training", "local", "nowhere"];

const EQUATIONS: &[&str] = &[
    "",
    "->",
    ",",
    "...->",
    "ij,jk->ik",
    "ii->i",
    "ii",
    "i,i->",
    "...i,i...->...",
    "ij->ji",
    "ijklmnopqrstuvwxyz->",
    "i j , j k -> i k",
    "ij,jk->ikz",
    "a->aa",
    "é->é",
    "....->",
    "ij->->i",
    "b...,b...->b...",
    "NOTSET",
    "VALID",
    "wrap",
    "cubic",
    "linear",
    "reflect",
    "SAME_LOWER",
];

/// A model with a few changes; `others` are whole models that parts are taken from.
pub(crate) fn mutated(model: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let Some(mut fields) = decode(model, Kind::Model) else { return damaged(model.to_vec(), rng) };
    for _ in 0..rng.of(&[1, 1, 1, 1, 2, 2, 3, 5]) {
        match rng.below(20) {
            0 => inputs_of_initializers(&mut fields, rng),
            1 => symbolic_dims(&mut fields, rng),
            2 => spliced(&mut fields, others, rng),
            3 => {
                // An operator in place of another.
                let donor = &others[rng.below(others.len())];
                if let Some(op) =
                    decode(donor, Kind::Model).and_then(|d| pick(&d, rng, |f, k| k == Kind::Node && f.number == 4))
                {
                    change(
                        &mut fields,
                        rng,
                        |f, k| k == Kind::Node && f.number == 4,
                        |f, _| f.value = op.value.clone(),
                    );
                }
            }
            4 => names_swapped(&mut fields, rng),
            5 | 6 => change(&mut fields, rng, |f, _| f.number == 2 && f.role == Role::Name, rename),
            7 => change(&mut fields, rng, |f, _| matches!(f.value, Value::Message(_)), siblings),
            // Attributes and data, of which shapes are made.
            8..=11 => change(&mut fields, rng, |f, k| k == Kind::Attribute && matches!(f.number, 2..=9), number),
            12 | 13 => change(&mut fields, rng, |f, k| k == Kind::Tensor && matches!(f.number, 4..=11), number),
            14..=16 => change(&mut fields, rng, |f, k| k == Kind::Dim && f.role == Role::Int, number),
            17 => change(&mut fields, rng, |f, k| k == Kind::TensorType && f.role == Role::Int, element),
            18 => change(&mut fields, rng, |f, k| k == Kind::Tensor || k == Kind::Opset || f.number == 20, number),
            _ => change(&mut fields, rng, |_, _| true, number),
        }
    }
    let bytes = encode(&fields);
    if rng.below(25) == 0 { damaged(bytes, rng) } else { bytes }
}

/// Bytes changed, whatever they mean.
fn damaged(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(bytes.len());
        match rng.below(5) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
            2 if !bytes.is_empty() => bytes[at] = rng.of(&[0, 0x7f, 0x80, 0xff]),
            3 => {
                bytes.splice(at..at, [0xff; 9]);
            }
            _ => {
                let end = (at + rng.below(9)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

/// The number of fields below, of those that are wanted.
fn count(fields: &[Field], kind: Kind, wanted: &impl Fn(&Field, Kind) -> bool) -> usize {
    fields.iter().map(|f| usize::from(wanted(f, kind)) + below(f).map_or(0, |(k, inner)| count(inner, k, wanted))).sum()
}

fn below(f: &Field) -> Option<(Kind, &Vec<Field>)> {
    match (&f.value, f.role) {
        (Value::Message(inner), Role::Message(kind)) => Some((kind, inner)),
        _ => None,
    }
}

/// Calls `visit` on the wanted field of a number, with the list it is in and its place there.
fn at<T>(
    fields: &mut Vec<Field>,
    kind: Kind,
    left: &mut usize,
    wanted: &impl Fn(&Field, Kind) -> bool,
    visit: &mut impl FnMut(&mut Vec<Field>, usize) -> T,
) -> Option<T> {
    for i in 0..fields.len() {
        if wanted(&fields[i], kind) {
            if *left == 0 {
                return Some(visit(fields, i));
            }
            *left -= 1;
        }
        let role = fields[i].role;
        if let (Value::Message(inner), Role::Message(kind)) = (&mut fields[i].value, role) {
            if let Some(found) = at(inner, kind, left, wanted, visit) {
                return Some(found);
            }
        }
    }
    None
}

/// A copy of a field of those that are wanted.
fn pick(fields: &[Field], rng: &mut Rng, wanted: impl Fn(&Field, Kind) -> bool) -> Option<Field> {
    let mut left = rng.below(count(fields, Kind::Model, &wanted));
    at(&mut fields.to_vec(), Kind::Model, &mut left, &wanted, &mut |list, i| list[i].clone())
}

/// Changes a field of those that are wanted, or the list it is in.
fn change(
    fields: &mut Vec<Field>,
    rng: &mut Rng,
    wanted: impl Fn(&Field, Kind) -> bool,
    by: impl Fn(&mut Field, &mut Rng),
) {
    let mut left = rng.below(count(fields, Kind::Model, &wanted));
    let action = rng.below(12);
    at(fields, Kind::Model, &mut left, &wanted, &mut |list, i| match action {
        0 => {
            list.remove(i);
        }
        1 => list.insert(i, list[i].clone()),
        2 => {
            let other = rng.below(list.len());
            list.swap(i, other);
        }
        _ => by(&mut list[i], rng),
    });
}

/// A field of the kind it is, with another value.
fn number(f: &mut Field, rng: &mut Rng) {
    let role = f.role;
    match (&mut f.value, role) {
        (Value::Varint(v), _) => *v = wild(*v, rng),
        (Value::Bytes(bytes), Role::Ints) => {
            let Some(mut values) = unpack(bytes) else { return };
            list(&mut values, rng);
            *bytes = pack(&values);
        }
        (Value::Bytes(_), Role::Name | Role::Text) => rename(f, rng),
        (Value::Bytes(bytes), _) => raw(bytes, rng),
        (Value::Fixed(bytes), _) => {
            let value = rng.of(&[0.0, -1.0, 1e30, f64::NAN, f64::INFINITY, 1e-30, 0.5, 3.0]);
            *bytes =
                if bytes.len() == 4 { (value as f32).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() };
        }
        (Value::Message(_), _) => siblings(f, rng),
    }
}

/// Another element type.
fn element(f: &mut Field, rng: &mut Rng) {
    f.value = Value::Varint(1 + rng.below(26) as u64);
}

fn wild(now: u64, rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => now.wrapping_add(1),
        1 => now.wrapping_sub(1),
        2 => rng.below(32) as u64,
        _ => rng.of(WILD) as u64,
    }
}

fn list(values: &mut Vec<u64>, rng: &mut Rng) {
    let i = rng.below(values.len());
    match rng.below(8) {
        0 => values.clear(),
        1 if !values.is_empty() => {
            values.remove(i);
        }
        2 => values.insert(i, rng.of(WILD) as u64),
        3 => values.iter_mut().for_each(|v| *v = wild(*v, rng)),
        4 => *values = vec![rng.of(WILD) as u64; rng.of(&[1, 2, 65, 300])],
        _ => {
            if let Some(v) = values.get_mut(i) {
                *v = wild(*v, rng);
            }
        }
    }
}

/// Texts of attributes and elements of tensors.
fn raw(bytes: &mut Vec<u8>, rng: &mut Rng) {
    match rng.below(10) {
        0 => bytes.clear(),
        1 => {
            bytes.pop();
        }
        2 => bytes.extend([0xff; 8]),
        3 => *bytes = rng.of(EQUATIONS).as_bytes().to_vec(),
        4 => *bytes = vec![rng.of(&[0, 0xff, b'a']); rng.of(&[1, 8, 100, 70_000])],
        width => {
            let width = if width < 7 && bytes.len() % 4 == 0 { 4 } else { 8 };
            let slots = bytes.len() / width;
            let slot = rng.below(slots);
            let value = rng.of(WILD).to_le_bytes();
            if let Some(to) = bytes.get_mut(slot * width..slot * width + width) {
                to.copy_from_slice(&value[..width]);
            }
        }
    }
}

fn rename(f: &mut Field, rng: &mut Rng) {
    let Value::Bytes(bytes) = &mut f.value else { return };
    match rng.below(8) {
        0 => *bytes = vec![0xff, 0xfe],
        1 => *bytes = vec![b'n'; 70_000],
        2 => bytes.push(b'_'),
        3 => *bytes = rng.of(DOMAINS).as_bytes().to_vec(),
        4 => *bytes = rng.of(EQUATIONS).as_bytes().to_vec(),
        _ => *bytes = rng.of(NAMES).as_bytes().to_vec(),
    }
}

/// Fields of a message removed, doubled, in another order.
fn siblings(f: &mut Field, rng: &mut Rng) {
    let Value::Message(inner) = &mut f.value else { return };
    if inner.is_empty() {
        return;
    }
    let i = rng.below(inner.len());
    match rng.below(4) {
        0 => {
            inner.remove(i);
        }
        1 => inner.insert(i, inner[i].clone()),
        2 => inner.clear(),
        _ => inner.reverse(),
    }
}

/// Uses of two values exchanged.
fn names_swapped(fields: &mut Vec<Field>, rng: &mut Rng) {
    let used = |f: &Field, k: Kind| k == Kind::Node && f.number == 1;
    let Some(one) = pick(fields, rng, |f, _| f.role == Role::Name) else { return };
    change(fields, rng, used, |f, _| f.value = one.value.clone());
}

/// A message of another model in place of one of the same kind, or beside it.
fn spliced(fields: &mut Vec<Field>, others: &[Vec<u8>], rng: &mut Rng) {
    let Some(donor) = decode(&others[rng.below(others.len())], Kind::Model) else { return };
    let kind =
        rng.of(&[Kind::Attribute, Kind::Tensor, Kind::Type, Kind::ValueInfo, Kind::Node, Kind::Graph, Kind::Function]);
    let same = |f: &Field, _: Kind| f.role == Role::Message(kind);
    let Some(part) = pick(&donor, rng, same) else { return };
    let mut left = rng.below(count(fields, Kind::Model, &same));
    let beside = rng.below(2) == 0;
    at(fields, Kind::Model, &mut left, &same, &mut |list, i| {
        if beside {
            list.insert(i, Field { number: list[i].number, ..part.clone() });
        } else {
            list[i].value = part.value.clone();
        }
    });
}

/// Initializers become inputs: what a converter would read is known at run time only.
fn inputs_of_initializers(fields: &mut [Field], rng: &mut Rng) {
    let all = rng.below(2) == 0;
    for model in fields.iter_mut().filter(|f| f.role == Role::Message(Kind::Graph)) {
        let Value::Message(graph) = &mut model.value else { continue };
        let mut inputs = Vec::new();
        graph.retain(|f| {
            let Some((Kind::Tensor, tensor)) = below(f) else { return true };
            if !all && rng.below(2) == 0 {
                return true;
            }
            inputs.extend(input(tensor));
            false
        });
        graph.extend(inputs);
    }
}

/// The input that stands for a tensor.
fn input(tensor: &[Field]) -> Option<Field> {
    let name = tensor.iter().find(|f| f.number == 8)?.clone();
    let element = tensor.iter().find(|f| f.number == 2)?.clone();
    let mut dims = Vec::new();
    for f in tensor.iter().filter(|f| f.number == 1) {
        match &f.value {
            Value::Varint(v) => dims.push(*v),
            Value::Bytes(bytes) => dims.extend(unpack(bytes)?),
            _ => {}
        }
    }
    let dim = |v| field(1, Value::Message(vec![field(1, Value::Varint(v))]));
    let shape = field(2, Value::Message(dims.into_iter().map(dim).collect()));
    let ty = field(1, Value::Message(vec![Field { number: 1, ..element }, shape]));
    Some(field(11, Value::Message(vec![Field { number: 1, ..name }, field(2, Value::Message(vec![ty]))])))
}

/// Extents get names, or none.
fn symbolic_dims(fields: &mut Vec<Field>, rng: &mut Rng) {
    for _ in 0..1 + rng.below(6) {
        let wanted = |f: &Field, _: Kind| f.role == Role::Message(Kind::Dim);
        let name = rng.of(&["n", "m", "batch", "?", "", "n*2", "main"]);
        let by = |f: &mut Field, _: &mut Rng| f.value = Value::Message(vec![field(2, Value::Bytes(name.into()))]);
        change(fields, rng, wanted, by);
    }
}
