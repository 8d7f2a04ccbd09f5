tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 28, 28>) -> R::Object {
            R::nn::max_pool2d(x, pool_size = [2, 2], layout = "NCXY")
        }
    }
}

fn main() {}
