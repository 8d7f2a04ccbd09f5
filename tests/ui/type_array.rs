tvm_macros::ir_module! {
    pub mod model {
        #[R::function]
        pub fn main(x: [f32; 784]) -> R::Object {
            x
        }
    }
}

fn main() {}
