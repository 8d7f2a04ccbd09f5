tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            for i in 0..16 {
                b[i] = 0.5;
            }
        }
    }
}

fn main() {}
