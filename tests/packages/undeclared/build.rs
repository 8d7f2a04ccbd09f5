fn main() {
    tvm_build::Build::new().target("x86-64").opt_level(0).rust_source("src").compile();
}
