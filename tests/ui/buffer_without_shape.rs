tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32>) {
            a[0] = 1.0f32;
        }
    }
}

fn main() {}
