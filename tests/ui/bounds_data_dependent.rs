tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(table: T::Buffer<f32, N>, index: T::Buffer<i32, M>, out: T::Buffer<f32, M>) {
            for i in 0..M {
                out[i] = table[index[i]];
            }
        }
    }
}

fn main() {}
