//! What the check of `timed` is compared with.

fn main() {
    println!("no model");
}
