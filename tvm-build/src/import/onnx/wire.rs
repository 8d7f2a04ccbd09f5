//! A walk over the bytes of a model before it is decoded.
//!
//! Decoding allocates as it goes, and an element of two bytes may become a structure of hundreds. The walk
//! follows the same messages without allocating, so that a file with more elements than allowed, nested too
//! deeply, or cut short is refused first, with the byte at which it goes wrong.

use super::limits::Limits;

/// Deepest nesting of messages; the decoder's own bound is 100.
const MAX_DEPTH: u32 = 96;

/// Messages that are walked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Function,
    Tensor,
    Sparse,
    Sequence,
    Optional,
    ValueInfo,
    Type,
    TensorType,
    ElementType,
    MapType,
    Shape,
    Leaf,
}

impl Message {
    fn name(self) -> &'static str {
        match self {
            Message::Model => "ModelProto",
            Message::Graph => "GraphProto",
            Message::Node => "NodeProto",
            Message::Attribute => "AttributeProto",
            Message::Function => "FunctionProto",
            Message::Tensor => "TensorProto",
            Message::Sparse => "SparseTensorProto",
            Message::Sequence => "SequenceProto",
            Message::Optional => "OptionalProto",
            Message::ValueInfo => "ValueInfoProto",
            Message::Type => "TypeProto",
            Message::TensorType => "TypeProto.Tensor",
            Message::ElementType => "TypeProto.Sequence",
            Message::MapType => "TypeProto.Map",
            Message::Shape => "TensorShapeProto",
            Message::Leaf => "message",
        }
    }

    /// The message that a length-delimited field holds; `None` for strings, bytes, packed lists and fields
    /// that are not read.
    fn field(self, number: u64) -> Option<Message> {
        use Message::*;
        Some(match (self, number) {
            (Model, 7) => Graph,
            (Model, 8) | (Function, 9) | (Tensor, 3 | 13) | (Shape, 1) | (Type, 7) => Leaf,
            (Model, 25) => Function,
            (Graph, 1) | (Function, 7) => Node,
            (Graph, 5) => Tensor,
            (Graph, 11..=13) | (Function, 12) => ValueInfo,
            (Graph, 15) => Sparse,
            (Node, 5) | (Function, 11) => Attribute,
            (Attribute, 5 | 10) => Tensor,
            (Attribute, 6 | 11) => Graph,
            (Attribute, 14 | 15) => Type,
            (Attribute, 22 | 23) => Sparse,
            (Sparse, 1 | 2) => Tensor,
            (Sequence | Optional, 3) => Tensor,
            (Sequence | Optional, 5) => Sequence,
            (Sequence | Optional, 7) => Optional,
            (ValueInfo, 2) => Type,
            (Type, 1 | 8) => TensorType,
            (Type, 4 | 9) => ElementType,
            (Type, 5) => MapType,
            (TensorType, 2) => Shape,
            (ElementType, 1) | (MapType, 2) => Type,
            _ => return None,
        })
    }
}

/// Walks `bytes` as a message of the kind `root`. The error is a sentence that says where and what.
pub(super) fn check(bytes: &[u8], root: Message, limits: &Limits) -> Result<(), String> {
    let mut walk = Walk { bytes, at: 0, items: 0, limits };
    walk.message(root, bytes.len(), 0)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    items: u64,
    limits: &'a Limits,
}

impl Walk<'_> {
    fn message(&mut self, kind: Message, end: usize, depth: u32) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("byte {}: messages nest deeper than {MAX_DEPTH} levels", self.at));
        }
        while self.at < end {
            let start = self.at;
            let key = self.varint(end)?;
            let number = key >> 3;
            match key & 7 {
                0 => {
                    self.varint(end)?;
                }
                1 => self.skip(8, end, kind, number)?,
                5 => self.skip(4, end, kind, number)?,
                2 => {
                    self.items += 1;
                    if self.items > self.limits.items {
                        return Err(format!(
                            "byte {start}: more than {} elements (nodes, attributes, names, …); raise Limits::items to allow them",
                            self.limits.items
                        ));
                    }
                    let length = self.varint(end)?;
                    match kind.field(number) {
                        Some(inner) => {
                            let inner_end = self.end_of(length, end, kind, number)?;
                            self.message(inner, inner_end, depth + 1)?;
                        }
                        None => self.skip(length, end, kind, number)?,
                    }
                }
                wire => return Err(format!("byte {start}: wire type {wire} in {} is not valid", kind.name())),
            }
        }
        Ok(())
    }

    /// The index just after the next `length` bytes, which must lie within the enclosing message.
    fn end_of(&self, length: u64, end: usize, kind: Message, number: u64) -> Result<usize, String> {
        let left = end - self.at;
        usize::try_from(length).ok().filter(|&n| n <= left).map(|n| self.at + n).ok_or_else(|| {
            format!(
                "byte {}: field {number} of {} takes {length} bytes and {left} are left; the file is truncated or damaged",
                self.at,
                kind.name()
            )
        })
    }

    fn skip(&mut self, length: u64, end: usize, kind: Message, number: u64) -> Result<(), String> {
        self.at = self.end_of(length, end, kind, number)?;
        Ok(())
    }

    fn varint(&mut self, end: usize) -> Result<u64, String> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at).filter(|_| self.at < end) else {
                return Err(format!("byte {start}: a number is cut short; the file is truncated or damaged"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(format!("byte {start}: a number is longer than 64 bits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits::default()
    }

    #[test]
    fn accepts_an_empty_message_and_unknown_fields() {
        assert_eq!(check(&[], Message::Model, &limits()), Ok(()));
        // Field 15 (varint), field 1000 (two bytes), field 3 (32 bits).
        assert_eq!(check(&[0x78, 5, 0xc2, 0x3e, 2, 1, 1, 0x1d, 0, 0, 0, 0], Message::Model, &limits()), Ok(()));
    }

    #[test]
    fn says_at_which_byte_a_length_is_wrong() {
        let error = check(&[0x3a, 4, 0x0a, 9, 0, 0], Message::Model, &limits()).unwrap_err();
        assert!(error.starts_with("byte 4: field 1 of GraphProto takes 9 bytes and 2 are left"), "{error}");
        let error = check(&[0x3a], Message::Model, &limits()).unwrap_err();
        assert!(error.starts_with("byte 1: a number is cut short"), "{error}");
        let error = check(&[0xff; 12], Message::Model, &limits()).unwrap_err();
        assert!(error.contains("longer than 64 bits"), "{error}");
    }

    #[test]
    fn a_field_may_not_leave_its_message() {
        // The graph is 3 bytes long; the varint in it would need one of the bytes behind it.
        let error = check(&[0x3a, 3, 0x78, 0x80, 0x80, 1], Message::Model, &limits()).unwrap_err();
        assert!(error.contains("cut short"), "{error}");
    }

    #[test]
    fn counts_elements() {
        let nodes = [0x3a, 6, 0x0a, 0, 0x0a, 0, 0x0a, 0];
        assert_eq!(check(&nodes, Message::Model, &Limits { items: 4, ..limits() }), Ok(()));
        let error = check(&nodes, Message::Model, &Limits { items: 3, ..limits() }).unwrap_err();
        assert!(error.starts_with("byte 6: more than 3 elements"), "{error}");
    }

    #[test]
    fn bounds_the_nesting() {
        // A sequence type of a sequence type of …
        let mut bytes = Vec::new();
        for i in 0..100 {
            let field = if i % 2 == 0 { 0x0a } else { 0x22 };
            let mut next = vec![field];
            prost::encoding::encode_varint(bytes.len() as u64, &mut next);
            next.extend(&bytes);
            bytes = next;
        }
        let error = check(&bytes, Message::Type, &limits()).unwrap_err();
        assert!(error.contains("deeper than 96"), "{error}");
    }
}
