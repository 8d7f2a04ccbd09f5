tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(c: R::Tensor<bool, 3>, x: R::Tensor<f32, 4, 8>) -> R::Object {
            R::r#where(c, x, x)
        }
    }
}

fn main() {}
