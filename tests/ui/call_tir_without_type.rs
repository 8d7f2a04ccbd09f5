tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>, i: R::Tensor<i32, N>, c: R::Tensor<bool, ()>) -> R::Object {
            R::call_tir(kernel, (x,))
        }

        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            b[0] = 1;
        }
    }
}

fn main() {}
