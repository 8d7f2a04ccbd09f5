tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, N, 784>, w: R::Tensor<f32, 256, 784>, i: R::Tensor<i32, N>, c: R::Tensor<bool, ()>) -> R::Object {
            R::dataflow({
                let h = R::nn::relu(x);
            });
            x
        }
    }
}

fn main() {}
