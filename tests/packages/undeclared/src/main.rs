//! Calls that do not fit what they call.

tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4>) -> R::Tensor<f32, 4> {
            let y = R::call_dps_packed::<R::Tensor<f32, 4>>("absent", (x, 4));
            R::call_dps_packed::<R::Tensor<f32, 4>>("halve", (y, 4))
        }
    }
}

/// # Safety
///
/// `n` doubles are at `x` and at `y`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halve(x: *const f64, n: usize, y: *mut f64) {
    for i in 0..n {
        // SAFETY: as the caller promises.
        unsafe { *y.add(i) = *x.add(i) / 2.0 };
    }
}

fn main() {}
