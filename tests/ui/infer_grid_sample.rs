tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: R::Tensor<f32, 1, 3, 8, 8>, g: R::Tensor<f32, 2, 4, 4, 2>) -> R::Object {
            R::image::grid_sample(x, g)
        }
    }
}

fn main() {}
