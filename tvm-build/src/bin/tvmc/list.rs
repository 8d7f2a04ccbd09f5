//! `tvmc list`

use crate::session::Failure;
use tvm_build::{passes, pipeline};
use tvm_ir::target::Target;

pub fn run() -> Result<(), Failure> {
    println!("pipelines:");
    for p in pipeline::all() {
        println!("  {:<28} {}", p.name, p.doc);
    }
    println!("passes:");
    for p in passes::all() {
        println!("  {:<28} {}", p.name, p.doc);
        for a in p.params {
            let default = a.default.map_or("required".to_owned(), |d| format!("{:?}", d.value()));
            println!("  {:<28}   {}: {:?} = {default}", "", a.name, a.kind);
        }
    }
    println!("targets:");
    for t in Target::all() {
        println!("  {:<28} {} vector bytes", t.name, t.vector_bytes);
    }
    Ok(())
}
