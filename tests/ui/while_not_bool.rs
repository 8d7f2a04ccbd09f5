tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            while b[0] {
                b[0] = b[0] - 1;
            }
        }
    }
}

fn main() {}
