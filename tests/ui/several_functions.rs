tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>) -> R::Object {
            R::nn::relu(y)
        }

        #[R::function]
        pub fn second(x: &R::Tensor<f32, 4>) -> R::Object {
            R::nn::rellu(x)
        }
        #[T::prim_func]
        fn third(a: T::Buffer<f32, 16>) {
            a[0] = T::expp(a[1]);
            c[0] = 1.0f32;
        }
    }
}

fn main() {}
