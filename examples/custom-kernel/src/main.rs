//! A kernel scheduled by hand and a function of a C library, in one module with operators that the compiler schedules.
//!
//! Runs the module, compares it with plain Rust, prints how long both take.

use std::time::Instant;

tvm_macros::ir_module! {
    /// `relu(x w) v`, for a matrix product written by hand and a matrix-vector product of a C library.
    pub mod net {
        /// The product of two matrices in tiles of 4 rows and 16 columns, which stay in vector registers.
        #[T::prim_func]
        #[T::func_attr("tir.noalias" = true, "tir.is_scheduled" = true)]
        fn matmul(a: T::Buffer<f32, 64, 128>, b: T::Buffer<f32, 128, 256>, c: T::Buffer<f32, 64, 256>) {
            let tile = T::alloc_buffer((4, 16), f32, scope = "local");
            for (i, j) in T::grid(16, 16) {
                for row in T::unroll(4) {
                    for lane in T::vectorized(16) {
                        tile[[row, lane]] = 0.0f32;
                    }
                }
                for k in 0..128 {
                    for row in T::unroll(4) {
                        for lane in T::vectorized(16) {
                            tile[[row, lane]] =
                                tile[[row, lane]] + a[[i * 4 + row, k]] * b[[k, j * 16 + lane]];
                        }
                    }
                }
                for row in T::unroll(4) {
                    for lane in T::vectorized(16) {
                        c[[i * 4 + row, j * 16 + lane]] = tile[[row, lane]];
                    }
                }
            }
        }

        /// `relu(x w) v`.
        #[R::function]
        pub fn main(
            x: R::Tensor<f32, 64, 128>,
            w: R::Tensor<f32, 128, 256>,
            v: R::Tensor<f32, 256>,
        ) -> R::Tensor<f32, 64> {
            let product = R::call_tir::<R::Tensor<f32, 64, 256>>(matmul, (x, w));
            let positive = R::nn::relu(product);
            // BlasRowMajor, 64 rows, 256 columns, 1.0 times the matrix with rows of 256 elements.
            R::call_dps_packed::<R::Tensor<f32, 64>>("blas_sgemv", (101, 64, 256, 1.0, positive, 256, v))
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |i: usize, seed: usize| ((i * seed + 11) % 31) as f32 / 31.0 - 0.5;
    let x: Box<[f32; 64 * 128]> =
        (0..64 * 128).map(|i| number(i, 7)).collect::<Vec<_>>().try_into().map_err(|_| "x")?;
    let w: Box<[f32; 128 * 256]> =
        (0..128 * 256).map(|i| number(i, 13)).collect::<Vec<_>>().try_into().map_err(|_| "w")?;
    let v: [f32; 256] = std::array::from_fn(|i| number(i, 3));

    let mut net = net::Module::new();
    let y = net.main(&x, &w, &v)?;
    let expected = plain(&x[..], &w[..], &v);
    let worst = y.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("largest difference from plain Rust: {worst:e}");
    if y.iter().chain(&expected).any(|v| v.is_nan()) || worst > 1e-3 {
        return Err("the results differ".into());
    }

    let compiled = microseconds(|| net.main(&x, &w, &v).map(|y| y[0]).unwrap_or(f32::NAN));
    let plain = microseconds(|| plain(&x[..], &w[..], &v)[0]);
    println!("compiled: {compiled:.1} µs, plain Rust: {plain:.1} µs");
    Ok(())
}

/// What the module computes.
fn plain(x: &[f32], w: &[f32], v: &[f32; 256]) -> Vec<f32> {
    let rows = x.chunks_exact(128).map(|row| {
        let mut product = [0.0f32; 256];
        for (a, b) in row.iter().zip(w.chunks_exact(256)) {
            product.iter_mut().zip(b).for_each(|(p, b)| *p += a * b);
        }
        product.iter().zip(v).map(|(p, v)| p.max(0.0) * v).sum()
    });
    rows.collect()
}

/// The fastest of many runs.
fn microseconds(mut run: impl FnMut() -> f32) -> f64 {
    let once = |run: &mut dyn FnMut() -> f32| {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..200).map(|_| once(&mut run)).fold(f64::INFINITY, f64::min)
}
