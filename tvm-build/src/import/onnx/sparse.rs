//! Sparse tensors made dense.

use bytes::Bytes;

use super::data_type::DataType;
use super::proto::SparseTensorProto;
use super::tensor::{Tensor, TensorCx, elements, shape};

/// The dense tensor that `proto` describes; `Limits::dense_bytes` bounds what all of a model's take together.
pub(super) fn read(cx: &mut TensorCx<'_>, proto: SparseTensorProto) -> Result<Tensor, String> {
    let shape = shape(&proto.dims)?;
    let count = elements(&shape, cx.limits)?;
    let values = cx.read(proto.values.ok_or("sparse tensor has no values")?).map_err(|e| format!("values: {e}"))?;
    let indices = cx.read(proto.indices.ok_or("sparse tensor has no indices")?).map_err(|e| format!("indices: {e}"))?;
    let dtype = values.dtype;
    if dtype.bits() < 8 {
        return Err(format!("sparse tensors of {} are not supported", dtype.name()));
    }
    let [nnz] = values.shape[..] else {
        return Err(format!("values of a sparse tensor have one axis, not shape {:?}", values.shape));
    };
    if indices.dtype != DataType::Int64 {
        return Err(format!("indices of a sparse tensor are int64, not {}", indices.dtype.name()));
    }
    let rank = shape.len() as u64;
    let coordinates = match indices.shape[..] {
        [n] if n == nnz => false,
        [n, axes] if n == nnz && axes == rank => true,
        _ => {
            return Err(format!(
                "indices of shape {:?} fit neither [{nnz}] nor [{nnz}, {rank}] of {nnz} values in {rank} dimensions",
                indices.shape
            ));
        }
    };
    let too_large =
        || format!("shape {shape:?} of {} made dense is beyond the limit (Limits::dense_bytes)", dtype.name());
    let bytes = dtype.bytes(count).filter(|&b| b <= cx.dense_bytes_left).ok_or_else(too_large)?;
    cx.dense_bytes_left -= bytes;
    let mut dense = vec![0u8; usize::try_from(bytes).map_err(|_| too_large())?];
    let width = (dtype.bits() / 8) as usize;
    let mut numbers = indices.data.chunks_exact(8).map(|c| {
        let mut word = [0; 8];
        word.copy_from_slice(c);
        i64::from_le_bytes(word)
    });
    let mut previous: Option<u64> = None;
    for value in values.data.chunks_exact(width) {
        let mut linear = 0u64;
        let extents: &[u64] = if coordinates { &shape } else { &[count] };
        for &extent in extents {
            let index = numbers.next().unwrap_or(-1);
            match u64::try_from(index) {
                // `count` was checked not to overflow, so a linear index below it does not either.
                Ok(index) if index < extent => linear = linear * extent + index,
                _ => {
                    return Err(format!(
                        "index {index} is outside of 0..{extent} of a sparse tensor of shape {shape:?}"
                    ));
                }
            }
        }
        if previous.is_some_and(|p| p >= linear) {
            return Err("indices of a sparse tensor must ascend without duplicates".to_owned());
        }
        previous = Some(linear);
        // A scalar given by coordinates has no index at all; every other index is below `count`.
        let at = usize::try_from(linear).map_err(|_| too_large())? * width;
        match dense.get_mut(at..at + width) {
            Some(place) => place.copy_from_slice(value),
            None => return Err(format!("a sparse tensor of shape {shape:?} has values")),
        }
    }
    Ok(Tensor { dtype, shape, data: Bytes::from(dense), strings: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::onnx::external::Folder;
    use crate::import::onnx::limits::Limits;
    use crate::import::onnx::proto::TensorProto;

    fn sparse(dims: &[i64], values: &[f32], indices: &[i64], index_shape: &[i64]) -> SparseTensorProto {
        SparseTensorProto {
            values: Some(TensorProto {
                dims: vec![values.len() as i64],
                data_type: 1,
                float_data: values.to_vec().into(),
                ..Default::default()
            }),
            indices: Some(TensorProto {
                dims: index_shape.to_vec(),
                data_type: 7,
                int64_data: indices.to_vec(),
                ..Default::default()
            }),
            dims: dims.to_vec(),
        }
    }

    fn dense(proto: SparseTensorProto, limits: &Limits) -> Result<Vec<f32>, String> {
        let tensor = read(&mut TensorCx::new(limits, Folder::default()), proto)?;
        Ok(tensor.data.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect())
    }

    #[test]
    fn both_forms_of_index() {
        let limits = Limits::default();
        let wanted = vec![0.0, 2.0, 0.0, 0.0, 0.0, 3.0];
        assert_eq!(dense(sparse(&[2, 3], &[2.0, 3.0], &[1, 5], &[2]), &limits).unwrap(), wanted);
        assert_eq!(dense(sparse(&[2, 3], &[2.0, 3.0], &[0, 1, 1, 2], &[2, 2]), &limits).unwrap(), wanted);
        assert_eq!(dense(sparse(&[2, 0], &[], &[], &[0]), &limits).unwrap(), Vec::<f32>::new());
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let limits = Limits { dense_bytes: 64, ..Limits::default() };
        for (proto, words) in [
            (sparse(&[2, 3], &[2.0], &[6], &[1]), "index 6 is outside of 0..6"),
            (sparse(&[2, 3], &[2.0], &[-1], &[1]), "index -1 is outside"),
            (sparse(&[2, 3], &[2.0], &[1, 3], &[1, 2]), "index 3 is outside of 0..3"),
            (sparse(&[2, 3], &[2.0, 1.0], &[4, 4], &[2]), "must ascend"),
            (sparse(&[2, 3], &[2.0], &[1, 1, 1], &[1, 3]), "fit neither"),
            (sparse(&[5, 5], &[2.0], &[1], &[1]), "beyond the limit"),
            (sparse(&[-5, 5], &[2.0], &[1], &[1]), "negative"),
            (sparse(&[0], &[2.0], &[0], &[1]), "outside of 0..0"),
            (SparseTensorProto::default(), "no values"),
        ] {
            let error = dense(proto, &limits).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
