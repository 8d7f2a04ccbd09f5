//! ONNX files as trees of protobuf fields: enough of the format to change a model anywhere, whatever it means.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A message.
    Message(Kind),
    /// The name of a value of the graph.
    Name,
    /// Any other text.
    Text,
    /// Bytes.
    Raw,
    /// A number.
    Int,
    /// Numbers, packed or one a field.
    Ints,
    /// What is not looked into.
    Other,
}

/// Messages of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Opset,
    Graph,
    Node,
    Attribute,
    Function,
    Tensor,
    Entry,
    Sparse,
    ValueInfo,
    Type,
    TensorType,
    ElementType,
    Shape,
    Dim,
}

impl Kind {
    pub(crate) fn role(self, number: u64) -> Role {
        use Kind::*;
        use Role::{Int, Ints, Message, Name, Raw, Text};
        match (self, number) {
            (Model, 7) => Message(Graph),
            (Model, 8) | (Function, 9) => Message(Opset),
            (Model, 25) => Message(Function),
            (Model, 1) | (Opset, 2) | (Attribute, 3 | 20) | (Tensor, 2 | 14) | (TensorType, 1) | (Dim, 1) => Int,
            (Graph, 1) | (Function, 7) => Message(Node),
            (Graph, 5) | (Attribute, 5 | 10) | (Sparse, 1 | 2) => Message(Tensor),
            (Graph, 11..=13) | (Function, 12) => Message(ValueInfo),
            (Graph, 15) | (Attribute, 22 | 23) => Message(Sparse),
            (Node, 5) | (Function, 11) => Message(Attribute),
            (Attribute, 6 | 11) => Message(Graph),
            (Attribute, 14 | 15) | (ValueInfo, 2) | (ElementType, 1) => Message(Type),
            (Tensor, 13) => Message(Entry),
            (Type, 1 | 8) => Message(TensorType),
            (Type, 4 | 9) => Message(ElementType),
            (TensorType, 2) => Message(Shape),
            (Shape, 1) => Message(Dim),
            (Node, 1 | 2) | (Function, 4 | 5) | (Tensor, 8) | (ValueInfo, 1) => Name,
            (Node, 3 | 4 | 7 | 8) | (Function, 1 | 6 | 10 | 13) | (Attribute, 1 | 21) | (Entry, 1 | 2) => Text,
            (Opset, 1) | (Dim, 2) => Text,
            (Attribute, 4 | 9) | (Tensor, 6 | 9) => Raw,
            (Attribute, 8) | (Tensor, 1 | 5 | 7 | 11) | (Sparse, 3) => Ints,
            _ => Role::Other,
        }
    }
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) number: u64,
    pub(crate) role: Role,
    pub(crate) value: Value,
}

/// What a field holds.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Varint(u64),
    /// Eight or four bytes.
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// The fields of a message; `None` if the bytes are none.
pub(crate) fn decode(bytes: &[u8], kind: Kind) -> Option<Vec<Field>> {
    let mut at = 0;
    let mut fields = Vec::new();
    while at < bytes.len() {
        let key = varint(bytes, &mut at)?;
        let (number, role) = (key >> 3, kind.role(key >> 3));
        let value = match key & 7 {
            0 => Value::Varint(varint(bytes, &mut at)?),
            1 => Value::Fixed(take(bytes, &mut at, 8)?.to_vec()),
            5 => Value::Fixed(take(bytes, &mut at, 4)?.to_vec()),
            2 => {
                let length = usize::try_from(varint(bytes, &mut at)?).ok()?;
                let inner = take(bytes, &mut at, length)?;
                match role {
                    Role::Message(kind) => Value::Message(decode(inner, kind)?),
                    _ => Value::Bytes(inner.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { number, role, value });
    }
    Some(fields)
}

fn take<'a>(bytes: &'a [u8], at: &mut usize, count: usize) -> Option<&'a [u8]> {
    let taken = bytes.get(*at..at.checked_add(count)?)?;
    *at += count;
    Some(taken)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The bytes of a message.
pub(crate) fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match &field.value {
            Value::Varint(value) => {
                put(&mut out, field.number << 3);
                put(&mut out, *value);
            }
            Value::Fixed(bytes) => {
                put(&mut out, field.number << 3 | if bytes.len() == 8 { 1 } else { 5 });
                out.extend(bytes);
            }
            Value::Bytes(bytes) => delimited(&mut out, field.number, bytes),
            Value::Message(fields) => delimited(&mut out, field.number, &encode(fields)),
        }
    }
    out
}

fn delimited(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put(out, number << 3 | 2);
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The numbers of a packed list.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut at = 0;
    let mut values = Vec::new();
    while at < bytes.len() {
        values.push(varint(bytes, &mut at)?);
    }
    Some(values)
}

/// A packed list of numbers.
pub(crate) fn pack(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|v| put(&mut out, *v));
    out
}

/// A field of a number, text or message.
pub(crate) fn field(number: u64, value: Value) -> Field {
    Field { number, role: Role::Other, value }
}
