//! ndarray views in and arrays out.

use crate::error::Error;
use crate::tensor::{Arg, Element, TensorView, dim};
use alloc::vec::Vec;
use ndarray::{Array, ArrayBase, ArrayView, Data, DataMut, Dimension, IntoDimension, IxDyn};

/// The extents of an array of rank `N`, for [`input`] and [`output`].
pub fn shape<const N: usize, S: Data, D: Dimension>(
    argument: &'static str,
    array: &ArrayBase<S, D>,
) -> Result<[i64; N], Error> {
    let extents = array.shape();
    let found = extents.len();
    let extents: [usize; N] = extents.try_into().map_err(|_| Error::WrongRank { argument, expected: N, found })?;
    Ok(extents.map(dim))
}

/// A tensor to read; the array must be contiguous in row-major order.
pub fn input<'a, T: Element, S: Data<Elem = T>, D: Dimension>(
    argument: &'static str,
    array: &'a ArrayBase<S, D>,
    shape: &'a [i64],
) -> Result<Arg<'a>, Error> {
    Ok(Arg::input(array.as_slice().ok_or(Error::NotContiguous { argument })?, shape))
}

/// A tensor to write; the array must be contiguous in row-major order.
pub fn output<'a, T: Element, S: DataMut<Elem = T>, D: Dimension>(
    argument: &'static str,
    array: &'a mut ArrayBase<S, D>,
    shape: &'a [i64],
) -> Result<Arg<'a>, Error> {
    Ok(Arg::output(array.as_slice_mut().ok_or(Error::NotContiguous { argument })?, shape))
}

/// A tensor that a call has given as a view.
pub fn view<'a, T: Element, D: Dimension, const N: usize>(
    argument: &'static str,
    tensor: TensorView<'a, T, N>,
) -> Result<ArrayView<'a, T, D>, Error> {
    let (shape, found) = (tensor.shape(), tensor.data().len());
    let view = ArrayView::from_shape(IxDyn(&shape), tensor.data());
    let view = view.map_err(|_| Error::WrongLength { argument, expected: shape.iter().product(), found })?;
    let expected = D::NDIM.unwrap_or(N);
    view.into_dimensionality().map_err(|_| Error::WrongRank { argument, expected, found: N })
}

/// An array of this shape from its elements in row-major order.
pub fn array<T, D: Dimension>(
    argument: &'static str,
    shape: impl IntoDimension<Dim = D>,
    elements: Vec<T>,
) -> Result<Array<T, D>, Error> {
    let (shape, found) = (shape.into_dimension(), elements.len());
    let expected = shape.size_checked().ok_or(Error::BadShape { argument })?;
    Array::from_shape_vec(shape, elements).map_err(|_| Error::WrongLength { argument, expected, found })
}
