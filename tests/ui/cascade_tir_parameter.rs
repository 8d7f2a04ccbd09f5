tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Bufer<f32, 16>, b: T::Buffer<f32, 16>) {
            for i in 0..16 {
                a[i] = b[i] + 1.0f32;
            }
        }
    }
}

fn main() {}
