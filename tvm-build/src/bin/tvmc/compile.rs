//! `tvmc compile`

use crate::args::CompileArgs;
use crate::session::{Failure, Session};
use std::time::Instant;
use tvm_build::codegen::SourceFile;
use tvm_build::compile::{Options, check_name, compile_module};
use tvm_build::toolchain::Toolchain;

pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    let mut session = Session::new();
    let target = session.target(&args.target)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => {
            let stem = args.model.model.file_stem().and_then(|s| s.to_str()).unwrap_or("model");
            let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            // A Rust module cannot be named `3d_unet`, `_` or `loop`.
            if check_name(&name).is_ok() { name } else { format!("model_{name}") }
        }
    };
    let start = Instant::now();
    let module = session.load(&args.model)?;
    let mut times = vec![("import", start.elapsed())];
    session.progress("compiling");
    let artifacts = session.check(compile_module(module, &Options::new(name, target)))?;
    times.extend(&artifacts.times);
    let start = Instant::now();
    let toolchain = Toolchain::for_host(&args.out);
    let units = session.check(artifacts.write(&toolchain).map_err(Into::into))?;
    let report = SourceFile { name: format!("{}.report.txt", artifacts.name), text: artifacts.report() };
    session.check(toolchain.write_sources(&[artifacts.header(), report]).map_err(Into::into))?;
    times.push(("writing", start.elapsed()));
    session.progress("running the C compiler");
    let start = Instant::now();
    let library = session.check(toolchain.static_library(&artifacts.name, &units))?;
    times.push(("C compiler", start.elapsed()));
    if args.times {
        times.iter().for_each(|(what, time)| eprintln!("{:8.3} s {what}", time.as_secs_f64()));
    }
    print!("{}", artifacts.report());
    println!("library  {}", library.display());
    Ok(())
}
