tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn double(a: T::Buffer<f32, 16>) -> T::Buffer<f32, 16> {
            a[0] = a[0] * 2.0f32;
        }
    }
}

fn main() {}
