tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Tensor<f32, N, 784> {
            R::call_tir::<R::Tensor<f32, N, 784>>(double, (x,))
        }

        #[T::prim_func]
        fn double(out: T::Buffer<f32, M, 784>, a: T::Buffer<f32, M, 784>) {
            for (i, j) in T::grid(M, 784) {
                T::block("double", {
                    let (vi, vj) = T::axis::remap("SS", [i, j]);
                    out[[vi, vj]] = a[[vi, vj]] * 2.0f32;
                });
            }
        }
    }
}

fn main() {}
