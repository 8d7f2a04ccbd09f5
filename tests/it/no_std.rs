//! The runtime's core is built without std and without alloc.

use std::path::Path;
use std::process::Command;

#[test]
fn the_core_needs_neither_std_nor_alloc() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-std");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "-p", "tvm-runtime", "--no-default-features", "--target-dir"])
        .arg(target)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
