use super::super::proto::StringStringEntryProto;
use super::*;

fn read(proto: TensorProto) -> Result<Tensor, String> {
    TensorCx::new(&Limits::default(), Folder::default()).read(proto)
}

fn proto(dtype: DataType, dims: &[i64]) -> TensorProto {
    TensorProto { dims: dims.to_vec(), data_type: dtype as i32, ..Default::default() }
}

#[test]
fn raw_data_is_not_copied() {
    let file = Bytes::from(vec![7u8; 64]);
    let raw = file.slice(16..40);
    let tensor = read(TensorProto { raw_data: Some(raw.clone()), ..proto(DataType::Float, &[2, 3]) }).unwrap();
    assert_eq!(tensor.data.as_ptr(), raw.as_ptr());
    assert_eq!((tensor.shape, tensor.data.len()), (vec![2, 3], 24));
}

#[test]
fn typed_fields() {
    let bytes = |p: TensorProto| read(p).unwrap().data.to_vec();
    assert_eq!(bytes(TensorProto { float_data: vec![1.0].into(), ..proto(DataType::Float, &[]) }), 1f32.to_le_bytes());
    assert_eq!(
        bytes(TensorProto { float_data: vec![1.0, 2.0].into(), ..proto(DataType::Complex64, &[1]) }),
        [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat()
    );
    assert_eq!(
        bytes(TensorProto { double_data: vec![1.0].into(), ..proto(DataType::Double, &[1]) }),
        1f64.to_le_bytes()
    );
    assert_eq!(bytes(TensorProto { int64_data: vec![-2], ..proto(DataType::Int64, &[1]) }), (-2i64).to_le_bytes());
    assert_eq!(bytes(TensorProto { uint64_data: vec![7], ..proto(DataType::Uint32, &[1]) }), 7u32.to_le_bytes());
    assert_eq!(bytes(TensorProto { uint64_data: vec![7], ..proto(DataType::Uint64, &[1]) }), 7u64.to_le_bytes());
    for (dtype, numbers, wanted) in [
        (DataType::Int32, vec![-1], vec![255, 255, 255, 255]),
        (DataType::Uint8, vec![255, 0], vec![255, 0]),
        (DataType::Int8, vec![-128, 127], vec![0x80, 0x7f]),
        (DataType::Uint16, vec![65535], vec![255, 255]),
        (DataType::Float16, vec![0x3c00], vec![0, 0x3c]),
        (DataType::Bfloat16, vec![0x3f80], vec![0x80, 0x3f]),
        (DataType::Bool, vec![1, 0], vec![1, 0]),
        (DataType::Float8E4M3Fn, vec![0x7e], vec![0x7e]),
    ] {
        let dims = [numbers.len() as i64];
        assert_eq!(bytes(TensorProto { int32_data: numbers, ..proto(dtype, &dims) }), wanted, "{dtype:?}");
    }
    // Five elements of four bits in three bytes, two of two bits in one.
    let int4 = TensorProto { int32_data: vec![0x21, 0x43, 0x05], ..proto(DataType::Int4, &[5]) };
    assert_eq!(bytes(int4), [0x21, 0x43, 0x05]);
    assert_eq!(bytes(TensorProto { int32_data: vec![0x06], ..proto(DataType::Uint2, &[2]) }), [6]);
}

#[test]
fn strings_and_bools() {
    let words = vec![Bytes::from("a"), Bytes::from("bc")];
    let tensor = read(TensorProto { string_data: words.clone(), ..proto(DataType::String, &[2]) }).unwrap();
    assert_eq!((tensor.strings, tensor.data.len()), (words, 0));
    let raw = Some(Bytes::from(vec![0, 1, 2, 255]));
    let tensor = read(TensorProto { raw_data: raw, ..proto(DataType::Bool, &[4]) }).unwrap();
    assert_eq!(tensor.data.to_vec(), [0, 1, 1, 1]);
}

#[test]
fn refuses_what_does_not_fit() {
    let raw = |n: usize| Some(Bytes::from(vec![0u8; n]));
    for (proto, words) in [
        (TensorProto { raw_data: raw(20), ..proto(DataType::Float, &[2, 3]) }, "needs 24 bytes, and 20 are given"),
        (proto(DataType::Float, &[2, 3]), "needs 24 bytes, and 0 are given"),
        (TensorProto { raw_data: raw(2), ..proto(DataType::Int4, &[5]) }, "needs 3 bytes"),
        (TensorProto { data_type: 9999, ..Default::default() }, "element type 9999 is unknown"),
        (TensorProto { data_type: 0, ..Default::default() }, "element type 0 is unknown"),
        (proto(DataType::Float, &[2, -3]), "dimension -3"),
        (proto(DataType::Float, &[1 << 40, 1 << 40]), "more elements than the limit"),
        (proto(DataType::Float, &[1 << 41]), "more elements than the limit"),
        (
            TensorProto { float_data: vec![1.0].into(), ..proto(DataType::Float, &[2]) },
            "needs 2 numbers in 'float_data', and 1",
        ),
        (TensorProto { int64_data: vec![1], ..proto(DataType::Float, &[1]) }, "belong in 'float_data'"),
        (
            TensorProto { int32_data: vec![300], ..proto(DataType::Uint8, &[1]) },
            "300 in 'int32_data' does not fit into uint8",
        ),
        (TensorProto { uint64_data: vec![1 << 32], ..proto(DataType::Uint32, &[1]) }, "does not fit into uint32"),
        (
            TensorProto { float_data: vec![1.0].into(), raw_data: raw(4), ..proto(DataType::Float, &[1]) },
            "given twice, in 'raw_data' and in 'float_data'",
        ),
        (TensorProto { raw_data: raw(4), ..proto(DataType::String, &[1]) }, "strings must be in"),
        (TensorProto { string_data: vec![Bytes::new()], ..proto(DataType::String, &[2]) }, "needs 2 strings"),
        (TensorProto { segment: Some(Default::default()), ..proto(DataType::Float, &[0]) }, "segments"),
        (TensorProto { data_location: 2, ..proto(DataType::Float, &[0]) }, "data location 2"),
    ] {
        let error = read(proto).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn external_data_stays_in_the_folder() {
    let root = std::env::temp_dir().join(format!("tvm-build-external-{}", std::process::id()));
    let folder = root.join("model");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(root.join("secret"), [9u8; 16]).unwrap();
    std::fs::write(folder.join("sub/w.bin"), (0u8..16).collect::<Vec<_>>()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("secret"), folder.join("link")).unwrap();
    let limits = Limits::default();
    let mut cx = TensorCx::new(&limits, Folder::of_model(&folder.join("m.onnx")));
    let mut read = |entries: &[(&str, &str)]| {
        let external_data = entries
            .iter()
            .map(|&(key, value)| StringStringEntryProto { key: key.to_owned(), value: value.to_owned() })
            .collect();
        cx.read(TensorProto { external_data, data_location: 1, ..proto(DataType::Float, &[2]) })
    };
    let tensor = read(&[("location", "sub/w.bin"), ("offset", "4"), ("length", "8")]).unwrap();
    assert_eq!(tensor.data.to_vec(), (4u8..12).collect::<Vec<_>>());
    assert_eq!(read(&[("location", "./sub/w.bin"), ("offset", "8")]).unwrap().data[0], 8);
    let secret = root.join("secret");
    for (entries, words) in [
        (vec![("location", "../secret"), ("length", "8")], "not a path inside"),
        (vec![("location", secret.to_str().unwrap()), ("length", "8")], "not a path inside"),
        (vec![("location", "sub/../../secret"), ("length", "8")], "not a path inside"),
        (vec![("location", "sub\\w.bin"), ("length", "8")], "not a path inside"),
        (vec![("location", "")], "not a path inside"),
        (vec![("location", "absent"), ("length", "8")], "is not there"),
        (vec![("location", "sub"), ("length", "8")], "not a regular file"),
        (vec![("location", "sub/w.bin"), ("offset", "12"), ("length", "8")], "8 bytes at offset 12"),
        (
            vec![("location", "sub/w.bin"), ("offset", "18446744073709551615"), ("length", "8")],
            "offset 18446744073709551615",
        ),
        (vec![("location", "sub/w.bin"), ("offset", "-1")], "not a count of bytes"),
        (vec![("location", "sub/w.bin"), ("length", "4")], "needs 8 bytes, and 4"),
        (vec![("location", "sub/w.bin"), ("lenght", "4")], "unknown entry 'lenght'"),
        (vec![("length", "8")], "no 'location'"),
    ] {
        let error = read(&entries).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    #[cfg(unix)]
    assert!(read(&[("location", "link"), ("length", "8")]).unwrap_err().contains("leads out"));
    std::fs::remove_dir_all(&root).unwrap();
    let model_in_memory = super::tests::proto(DataType::Float, &[2]);
    let entry = StringStringEntryProto { key: "location".into(), value: "w".into() };
    let error = super::tests::read(TensorProto { external_data: vec![entry], data_location: 1, ..model_in_memory });
    assert!(error.unwrap_err().contains("not read from a file"));
}
