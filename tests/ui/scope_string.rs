tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            let c = T::alloc_buffer((16,), f32, scope = 3);
            c[0] = 1.0f32;
        }
    }
}

fn main() {}
