//! Generated modules in a program: typed entry points, symbolic shapes, outputs of several types, errors of a call.

use tvm_runtime::{AnyList, AnyTensor, Arena, Error, F16, Text};

tvm_runtime::include_module!(found);
tvm_runtime::include_module!(lists);
tvm_runtime::include_module!(rows);
tvm_runtime::include_module!(pair);
tvm_runtime::include_module!(values);

fn softmax_rows(x: &[f32], w: &[f32], n: usize, m: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for i in 0..n {
        let row: Vec<f64> = (0..m)
            .map(|j| (0..8).map(|k| f64::from(x[i * 8 + k]) * f64::from(w[k * m + j])).sum::<f64>().max(0.0))
            .collect();
        let most = row.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = row.iter().map(|v| (v - most).exp()).sum();
        out.extend(row.iter().map(|v| ((v - most).exp() / total) as f32));
    }
    out
}

#[test]
fn symbolic_shapes() -> Result<(), Error> {
    let mut net = rows::Module::new();
    for (n, m) in [(1, 1), (3, 5), (17, 4), (2, 33)] {
        let x: Vec<f32> = (0..n * 8).map(|i| (i % 7) as f32 / 3.0 - 1.0).collect();
        let w: Vec<f32> = (0..8 * m).map(|i| (i % 5) as f32 / 2.0 - 1.0).collect();
        let mut out = vec![0.0; n * m];
        net.main_into(&x, &w, n, m, &mut out)?;
        for (a, b) in out.iter().zip(softmax_rows(&x, &w, n, m)) {
            assert!((a - b).abs() < 1e-5, "{n} {m}: {a} {b}");
        }
        // An output that does not fit says so.
        let short = net.main_into(&x, &w, n, m, &mut out[1..]);
        assert!(matches!(short, Err(Error::WrongLength { .. })), "{short:?}");
    }
    let mut out = [0.0; 12];
    net.double_rows_into(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, &mut out)?;
    assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    Ok(())
}

#[test]
fn several_outputs_and_types() {
    let mut arena = Arena::new();
    let mut net = pair::Module::with_arena(&mut arena);
    let (sum, less, whole) = net.main(&[1.5, -2.5, 3.0, f32::NAN, 1e20, 0.0], &[1.0, 0.0, 3.0, 0.0, 0.0, -0.9]);
    assert_eq!(sum[..3], [2.5, -2.5, 6.0]);
    assert_eq!(less, [false, true, false, false, false, false]);
    assert_eq!(whole, [2, -2, 6, 0, i32::MAX, 0]);
    let half = F16::from_f32(0.5);
    let one = F16::from_f32(1.0);
    let (a, b) = net.same(&[half, one]);
    assert_eq!((a, b), ([half, one], [half, one]));
}

#[test]
fn ndarray_views_in_and_arrays_out() -> Result<(), Error> {
    let mut net = rows::Module::new();
    let x = ndarray::Array2::from_shape_fn((3, 8), |(i, j)| (i * 8 + j) as f32 / 24.0);
    let w = ndarray::Array2::from_shape_fn((8, 5), |(i, j)| (i + j) as f32 / 12.0 - 0.5);
    let out = net.main_nd(x.view(), w.view())?;
    assert_eq!(out.shape(), [3, 5]);
    let expected = softmax_rows(&x.into_raw_vec_and_offset().0, &w.clone().into_raw_vec_and_offset().0, 3, 5);
    for (a, b) in out.iter().zip(expected) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    // A view that is not contiguous is refused, not misread.
    let wide = ndarray::Array2::<f32>::zeros((3, 16));
    assert!(net.main_nd(wide.slice(ndarray::s![.., ..;2]), w.view()).is_err());
    Ok(())
}

#[test]
fn tensors_in_the_modules_memory() -> Result<(), Error> {
    let mut net = found::Module::new();
    for n in [0, 1, 5, 2] {
        let x: Vec<f32> = (0..4 * n).map(|i| (i % 3) as f32).collect();
        let hits: Vec<usize> = (0..4 * n).filter(|i| x[*i] != 0.0).collect();
        let (at, twice) = net.main(&x, n)?;
        assert_eq!(at.shape(), [2, hits.len()]);
        let (rows, columns) = at.data().split_at(hits.len());
        assert!(hits.iter().zip(rows.iter().zip(columns)).all(|(h, (r, c))| *h as i64 == r * 4 + c));
        assert!(twice.iter().zip(&x).all(|(a, b)| *a == 2.0 * b));
        let array = ndarray::Array2::from_shape_vec((n, 4), x).map_err(|_| Error::BadShape { argument: "x" })?;
        let (at, twice) = net.main_nd(array.view())?;
        assert_eq!((at.shape(), twice.shape()), (&[2, hits.len()][..], &[n, 4][..]));
        assert!(hits.iter().enumerate().all(|(k, h)| at[[0, k]] * 4 + at[[1, k]] == *h as i64));
        // What has no bound comes from the heap; what is more than there is, is an error.
        let (head, all) = (net.first(&[3.0, 4.0, 5.0], &[2], 3)?.data().to_vec(), net.first(&[3.0], &[1], 1)?.shape());
        assert_eq!((head, all), (vec![3.0, 4.0], [1]));
    }
    // Bounded shapes need no heap.
    let mut arena = Arena::<{ found::ARENA_BYTES }>::new();
    let mut net = found::Module::with_arena(&mut arena);
    let (kinds, counts) = net.kinds(&[5, -1, 5, 5, 7, -1])?;
    assert_eq!((kinds.data(), counts.data()), (&[-1, 5, 7][..], &[2i64, 3, 1][..]));
    assert_eq!(net.state().overflow_bytes(), 0);
    Ok(())
}

#[test]
fn strings_in_and_out() -> Result<(), Error> {
    let mut net = values::Module::new();
    for all in [&["a", "", "é"][..], &[], &["b"]] {
        let (joined, same) = net.main(all, &["é"], all.len())?;
        assert_eq!(joined, all.iter().map(|s| format!("{s}é")).collect::<Vec<_>>());
        assert_eq!(same, all.iter().map(|s| *s == "é").collect::<Vec<_>>());
    }
    // Strings of earlier calls are gone: what a call takes and makes is all there is.
    let text = net.state().intern("é");
    assert_eq!(net.state().text(text), Some("é"));
    let wrong = net.main(&["a"], &["b"], 2);
    assert_eq!(wrong, Err(Error::WrongLength { argument: "x", expected: 2, found: 1 }));
    Ok(())
}

#[test]
fn lists_in_and_out() -> Result<(), Error> {
    let mut net = lists::Module::new();
    let mut list = AnyList::default();
    for k in 1..4usize {
        let (longer, count) = net.main(&list, &vec![k as f32; k], &["name"], k)?;
        assert_eq!(count, [2 * k as i64]);
        let first = longer.items()[0].as_tensor().expect("a tensor");
        assert_eq!((first.shape(), first.elements()), (&[k as i64][..], Some(&vec![k as f32; k][..])));
        let name = longer.items()[2 * k - 1].as_tensor().and_then(|t| t.elements::<Text>()).expect("a string");
        assert_eq!(net.state().text(name[0]), Some("name"));
        list = longer.clone();
    }
    let nested: AnyList = [list, AnyList::default()].into_iter().collect();
    let (out, _) = net.main(&nested, &[], &["x"], 0)?;
    assert_eq!(out.items()[1].as_list().map(|l| l.items().len()), Some(6));
    let tensor = AnyTensor::of(&[2], &[1i64, 2]).expect("a tensor");
    let (out, count) = net.main(&[tensor].into_iter().collect(), &[], &["x"], 0)?;
    assert_eq!(out.items()[1].as_tensor().and_then(|t| t.elements::<i64>()), Some(&[1, 2][..]));
    assert_eq!(count, [3]);
    Ok(())
}
