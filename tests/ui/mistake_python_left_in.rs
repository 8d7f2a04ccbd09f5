tvm_macros::ir_module! {
    pub mod model {
        @R.function
        def main(x: R.Tensor((1, 784), "float32")):
            return R.nn.relu(x)
    }
}

fn main() {}
