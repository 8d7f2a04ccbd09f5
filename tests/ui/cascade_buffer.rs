tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            let c = T::alloc_bufer((16,), f32);
            for i in 0..16 {
                c[i] = a[[i, i]];
                a[[i, 0]] = c[i] + 1.0f32;
            }
        }
    }
}

fn main() {}
