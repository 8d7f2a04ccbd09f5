tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(a: T::Buffer<f32, 16, 16>, b: T::Buffer<i32, 16>) {
            let f = |x| x + 1;
            b[0] = f(b[1]);
        }
    }
}

fn main() {}
