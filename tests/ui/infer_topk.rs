tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 4, 10>) -> R::Object {
            R::topk(x, k = 1000)
        }
    }
}

fn main() {}
