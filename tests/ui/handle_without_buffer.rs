tvm_macros::ir_module! {
    pub mod model {
        #[T::prim_func]
        fn kernel(b: T::Buffer<i32, 16>, h: T::handle) {
            b[0] = 1;
        }
    }
}

fn main() {}
