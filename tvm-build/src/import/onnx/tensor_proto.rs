//! `TensorProto`, decoded by hand: lists of floats are on the wire as they are in memory, and stay where they lie.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{self as wire, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::proto::{Segment, StringStringEntryProto};

/// A tensor: raw bytes, a typed list, or a place in another file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TensorProto {
    pub(super) dims: Vec<i64>,
    pub(super) data_type: i32,
    pub(super) segment: Option<Segment>,
    pub(super) float_data: Fixed<4>,
    pub(super) int32_data: Vec<i32>,
    pub(super) string_data: Vec<Bytes>,
    pub(super) int64_data: Vec<i64>,
    pub(super) name: String,
    pub(super) raw_data: Option<Bytes>,
    pub(super) double_data: Fixed<8>,
    pub(super) uint64_data: Vec<u64>,
    pub(super) external_data: Vec<StringStringEntryProto>,
    pub(super) data_location: i32,
}

impl Message for TensorProto {
    fn merge_field(
        &mut self,
        tag: u32,
        kind: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => wire::int64::merge_repeated(kind, &mut self.dims, buf, ctx),
            2 => wire::int32::merge(kind, &mut self.data_type, buf, ctx),
            3 => wire::message::merge(kind, self.segment.get_or_insert_default(), buf, ctx),
            4 => self.float_data.merge(kind, WireType::ThirtyTwoBit, buf, ctx),
            5 => wire::int32::merge_repeated(kind, &mut self.int32_data, buf, ctx),
            6 => wire::bytes::merge_repeated(kind, &mut self.string_data, buf, ctx),
            7 => wire::int64::merge_repeated(kind, &mut self.int64_data, buf, ctx),
            8 => wire::string::merge(kind, &mut self.name, buf, ctx),
            9 => wire::bytes::merge(kind, self.raw_data.get_or_insert_default(), buf, ctx),
            10 => self.double_data.merge(kind, WireType::SixtyFourBit, buf, ctx),
            11 => wire::uint64::merge_repeated(kind, &mut self.uint64_data, buf, ctx),
            13 => wire::message::merge_repeated(kind, &mut self.external_data, buf, ctx),
            14 => wire::int32::merge(kind, &mut self.data_location, buf, ctx),
            _ => wire::skip_field(kind, tag, buf, ctx),
        }
    }

    fn encode_raw(&self, buf: &mut impl BufMut) {
        wire::int64::encode_repeated(1, &self.dims, buf);
        wire::int32::encode(2, &self.data_type, buf);
        self.segment.iter().for_each(|s| wire::message::encode(3, s, buf));
        self.float_data.encode(4, buf);
        wire::int32::encode_packed(5, &self.int32_data, buf);
        wire::bytes::encode_repeated(6, &self.string_data, buf);
        wire::int64::encode_packed(7, &self.int64_data, buf);
        wire::string::encode(8, &self.name, buf);
        self.raw_data.iter().for_each(|raw| wire::bytes::encode(9, raw, buf));
        self.double_data.encode(10, buf);
        wire::uint64::encode_packed(11, &self.uint64_data, buf);
        wire::message::encode_repeated(13, &self.external_data, buf);
        wire::int32::encode(14, &self.data_location, buf);
    }

    fn encoded_len(&self) -> usize {
        wire::int64::encoded_len_repeated(1, &self.dims)
            + wire::int32::encoded_len(2, &self.data_type)
            + self.segment.as_ref().map_or(0, |s| wire::message::encoded_len(3, s))
            + self.float_data.encoded_len(4)
            + wire::int32::encoded_len_packed(5, &self.int32_data)
            + wire::bytes::encoded_len_repeated(6, &self.string_data)
            + wire::int64::encoded_len_packed(7, &self.int64_data)
            + wire::string::encoded_len(8, &self.name)
            + self.raw_data.as_ref().map_or(0, |raw| wire::bytes::encoded_len(9, raw))
            + self.double_data.encoded_len(10)
            + wire::uint64::encoded_len_packed(11, &self.uint64_data)
            + wire::message::encoded_len_repeated(13, &self.external_data)
            + wire::int32::encoded_len(14, &self.data_location)
    }

    fn clear(&mut self) {
        *self = TensorProto::default();
    }
}

/// A list of numbers of `WIDTH` bytes, little endian, as chunks of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fixed<const WIDTH: usize> {
    chunks: Vec<Bytes>,
    /// Numbers behind the chunks that were written one by one.
    single: BytesMut,
}

impl<const WIDTH: usize> Fixed<WIDTH> {
    /// Reads a field: a chunk of numbers, or one number, whose wire type is `one`.
    fn merge(
        &mut self,
        kind: WireType,
        one: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if kind == one {
            if buf.remaining() < WIDTH {
                // The decoder's own words for it.
                return wire::fixed64::merge(WireType::SixtyFourBit, &mut 0, buf, ctx);
            }
            self.single.put(buf.take(WIDTH));
            return Ok(());
        }
        let mut chunk = Bytes::new();
        wire::bytes::merge(kind, &mut chunk, buf, ctx)?;
        self.flush();
        self.chunks.push(chunk);
        Ok(())
    }

    /// The chunks, the last one of the numbers that came one by one.
    fn all(&self) -> impl Iterator<Item = Bytes> {
        let single = (!self.single.is_empty()).then(|| Bytes::copy_from_slice(&self.single));
        self.chunks.iter().cloned().chain(single)
    }

    fn encode(&self, tag: u32, buf: &mut impl BufMut) {
        self.all().for_each(|chunk| wire::bytes::encode(tag, &chunk, buf));
    }

    fn encoded_len(&self, tag: u32) -> usize {
        self.all().map(|chunk| wire::bytes::encoded_len(tag, &chunk)).sum()
    }

    fn flush(&mut self) {
        if !self.single.is_empty() {
            self.chunks.push(std::mem::take(&mut self.single).freeze());
        }
    }

    /// Whether there are no numbers.
    pub(super) fn is_empty(&self) -> bool {
        self.single.is_empty() && self.chunks.iter().all(Bytes::is_empty)
    }

    /// The bytes of all numbers: those of the file, where they are in one piece. `None` when a number is cut.
    pub(super) fn into_bytes(mut self) -> Option<Bytes> {
        self.flush();
        if self.chunks.iter().any(|c| c.len() % WIDTH != 0) {
            return None;
        }
        match self.chunks.pop() {
            Some(last) if self.chunks.iter().all(Bytes::is_empty) => Some(last),
            None => Some(Bytes::new()),
            Some(last) => {
                let all = self.chunks.iter().chain([&last]);
                let mut joined = BytesMut::with_capacity(all.clone().map(Bytes::len).sum());
                all.for_each(|c| joined.extend_from_slice(c));
                Some(joined.freeze())
            }
        }
    }
}

#[cfg(test)]
impl From<Vec<f32>> for Fixed<4> {
    fn from(values: Vec<f32>) -> Self {
        Fixed { chunks: vec![values.iter().flat_map(|v| v.to_le_bytes()).collect()], single: BytesMut::new() }
    }
}

#[cfg(test)]
impl From<Vec<f64>> for Fixed<8> {
    fn from(values: Vec<f64>) -> Self {
        Fixed { chunks: vec![values.iter().flat_map(|v| v.to_le_bytes()).collect()], single: BytesMut::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(tag: u8, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | kind];
        if kind == 2 {
            bytes.push(content.len() as u8);
        }
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let tensor = TensorProto {
            dims: vec![2, 300],
            data_type: 1,
            segment: Some(Segment { begin: 1, end: 2 }),
            float_data: vec![1.0, -2.5].into(),
            int32_data: vec![1, -2],
            string_data: vec![Bytes::from_static(b"a"), Bytes::new()],
            int64_data: vec![-3],
            name: "w".into(),
            raw_data: Some(Bytes::from_static(b"raw")),
            double_data: vec![0.5].into(),
            uint64_data: vec![7, u64::MAX],
            external_data: vec![StringStringEntryProto { key: "location".into(), value: "f".into() }],
            data_location: 1,
        };
        let bytes = tensor.encode_to_vec();
        assert_eq!(bytes.len(), tensor.encoded_len());
        assert_eq!(TensorProto::decode(Bytes::from(bytes)), Ok(tensor));
    }

    #[test]
    fn a_list_of_floats_is_not_copied() {
        let values: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let file = Bytes::from(field(4, 2, &values));
        let read = TensorProto::decode(file.clone()).unwrap().float_data.into_bytes().unwrap();
        assert_eq!(read, values);
        assert_eq!(read.as_ptr(), file[2..].as_ptr());
    }

    #[test]
    fn floats_in_pieces_are_joined_in_order() {
        let number = |v: f32| v.to_le_bytes();
        let mut file = field(4, 5, &number(1.0));
        file.extend(field(4, 5, &number(2.0)));
        file.extend(field(4, 2, &[number(3.0), number(4.0)].concat()));
        file.extend(field(4, 2, &[]));
        file.extend(field(4, 5, &number(5.0)));
        file.extend(field(10, 1, &6f64.to_le_bytes()));
        let tensor = TensorProto::decode(Bytes::from(file)).unwrap();
        let floats: Vec<u8> = [1f32, 2.0, 3.0, 4.0, 5.0].into_iter().flat_map(number).collect();
        let again = TensorProto::decode(Bytes::from(tensor.encode_to_vec())).unwrap();
        assert_eq!(again.float_data.into_bytes().unwrap(), floats);
        assert_eq!(tensor.float_data.into_bytes().unwrap(), floats);
        assert_eq!(tensor.double_data.into_bytes().unwrap(), 6f64.to_le_bytes()[..]);
    }

    #[test]
    fn a_number_that_is_cut_is_refused() {
        let cut = TensorProto::decode(Bytes::from(field(4, 2, &[0; 6]))).unwrap();
        assert!(!cut.float_data.is_empty());
        assert_eq!(cut.float_data.into_bytes(), None);
        for (kind, content) in [(5, &[0; 3][..]), (1, &[0; 8]), (0, &[0])] {
            assert!(TensorProto::decode(Bytes::from(field(4, kind, content))).is_err(), "{kind}");
        }
    }
}
