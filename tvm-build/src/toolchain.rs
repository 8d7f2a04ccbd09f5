//! The C toolchain: the only module that starts processes.

use crate::codegen::SourceFile;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::span::Span;
use tvm_ir::target::Target;

/// What compiles and links: triples, folder and flags. Within build scripts it is cargo's choice, elsewhere this machine.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// Triple of the machine the code is for.
    pub triple: String,
    /// Triple of this machine.
    pub host: String,
    /// Folder of sources, objects and libraries.
    pub out_dir: PathBuf,
    /// `-O` level, 0 to 3.
    pub opt_level: u32,
    /// Jobs at once.
    pub jobs: usize,
    /// Folder where objects of C files are kept and looked for, by what they were compiled from.
    pub cache: Option<PathBuf>,
}

/// Sources and the flags of the instruction set they are for.
#[derive(Clone, Debug)]
pub struct Unit {
    /// A `.c` or `.s` file, relative to the folder of the toolchain.
    pub file: String,
    /// As `-mavx2`.
    pub flags: Vec<String>,
}

impl Toolchain {
    /// From the environment that cargo gives build scripts. The level is 3 whatever the profile: kernels of a debug build
    /// are as fast as of a release build. Errors: not run by cargo.
    pub fn from_cargo() -> Result<Toolchain, Diag> {
        let var = |name: &str| {
            std::env::var(name).map_err(|_| {
                Diag::error(Span::NONE, format!("the environment variable {name} is not set"))
                    .help("call this from build.rs, which cargo runs")
            })
        };
        let jobs = std::env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
        Ok(Toolchain {
            triple: var("TARGET")?,
            host: var("HOST")?,
            out_dir: var("OUT_DIR")?.into(),
            opt_level: 3,
            jobs,
            cache: None,
        })
    }

    /// For this machine.
    pub fn for_host(out_dir: impl Into<PathBuf>) -> Toolchain {
        let jobs = std::thread::available_parallelism().map_or(1, |n| n.get());
        let (triple, out_dir) = (host_triple(), out_dir.into());
        Toolchain { host: triple.clone(), triple, out_dir, opt_level: 3, jobs, cache: None }
    }

    /// Writes generated files, and the header of the runtime they include; a file that is the same already is left alone.
    pub fn write_sources(&self, files: &[SourceFile]) -> Result<(), Diag> {
        std::fs::create_dir_all(&self.out_dir).map_err(|e| io_error("create the folder", &self.out_dir, &e))?;
        let header = SourceFile { name: "tvm_runtime.h".into(), text: tvm_runtime::C_HEADER.into() };
        files.iter().chain([&header]).try_for_each(|f| self.write_file(&f.name, &f.text))
    }

    /// Writes a file of the folder, unless it is the same already.
    pub fn write_file(&self, name: &str, text: &str) -> Result<(), Diag> {
        let path = self.out_dir.join(name);
        if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        std::fs::write(&path, text).map_err(|e| io_error("write", &path, &e))
    }

    /// Compiles to `lib{name}.a` in the folder and gives its path. Errors: no compiler, a compiler's own messages.
    pub fn static_library(&self, name: &str, units: &[Unit]) -> Result<PathBuf, Diags> {
        let objects = self.objects(units)?;
        let library = self.archive(name, objects.clone())?;
        // The library holds them; large weights need not be there twice.
        for object in objects {
            std::fs::remove_file(&object).map_err(|e| io_error("remove", &object, &e))?;
        }
        Ok(library)
    }

    fn archive(&self, name: &str, objects: Vec<PathBuf>) -> Result<PathBuf, Diag> {
        let path = self.out_dir.join(format!("lib{name}.a"));
        // An archive is added to, not replaced.
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_error("replace", &path, &e))?,
            _ => {}
        }
        self.build().objects(objects).try_compile(name).map_err(|e| cc_error(&e))?;
        Ok(path)
    }

    /// Compiles and links a shared library for this machine and gives its path.
    pub fn shared_library(&self, name: &str, units: &[Unit]) -> Result<PathBuf, Diags> {
        let objects = self.objects(units)?;
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let file = format!("{prefix}{name}{suffix}");
        let mut command = self.compiler()?;
        command.arg("-shared").arg("-o").arg(&file).args(objects);
        if !self.triple.contains("windows") && !self.triple.contains("apple") {
            command.arg("-lm");
        }
        self.run(command, &file)?;
        Ok(self.out_dir.join(file))
    }

    /// Compiles the user's own C sources to `lib{name}.a` in the folder. Errors: no compiler, a compiler's own messages.
    pub fn user_library(&self, name: &str, sources: &[PathBuf], include: &[PathBuf]) -> Result<(), Diags> {
        let mut diags = Diags::new();
        let mut objects = Vec::new();
        for (i, source) in sources.iter().enumerate() {
            let mut command = self.build().try_get_compiler().map_err(|e| cc_error(&e))?.to_command();
            command.args(include.iter().map(|f| format!("-I{}", f.display())));
            let object = self.out_dir.join(format!("{name}_{i}.o"));
            command.arg("-c").arg(source).arg("-o").arg(&object);
            let help = "correct the file, which the build script names in Build::c_source";
            diags.ok(self.run(command, &source.display().to_string()).map_err(|d| d.help(help)));
            objects.push(object);
        }
        diags.into_result(())?;
        self.archive(name, objects)?;
        Ok(())
    }

    fn build(&self) -> cc::Build {
        let mut build = cc::Build::new();
        build
            .target(&self.triple)
            .host(&self.host)
            .out_dir(&self.out_dir)
            .opt_level(self.opt_level)
            .debug(false)
            .warnings(false)
            .cargo_metadata(false)
            .cargo_output(false);
        build
    }

    /// The compiler with the flags of every unit, run in the folder.
    fn compiler(&self) -> Result<Command, Diag> {
        let tool = self.build().try_get_compiler().map_err(|e| cc_error(&e))?;
        if tool.is_like_msvc() {
            let message = format!("the C compiler for {} has no vector extension", self.triple);
            return Err(Diag::error(Span::NONE, message).help("set CC to clang, or build for a `-gnu` target"));
        }
        let mut command = tool.to_command();
        command.current_dir(&self.out_dir);
        command.args(["-std=c99", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]);
        if tool.is_like_gnu() {
            command.arg("-Wno-psabi");
            // Loops that gain from vectors are written as vectors. What gcc would still try, the rests of unknown length
            // above all, takes it most of its time.
            command.arg("-fvect-cost-model=very-cheap");
        }
        Ok(command)
    }

    fn objects(&self, units: &[Unit]) -> Result<Vec<PathBuf>, Diags> {
        let diags = Mutex::new(Diags::new());
        let next = Mutex::new(units.iter());
        let work = || {
            while let Some(unit) = next.lock().ok().and_then(|mut n| n.next()) {
                if let (Err(d), Ok(mut diags)) = (self.object(unit), diags.lock()) {
                    diags.push(d);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(units.len()) {
                scope.spawn(work);
            }
            work();
        });
        let objects = units.iter().map(|u| self.out_dir.join(object_name(&u.file))).collect();
        diags.into_inner().unwrap_or_default().into_result(objects)
    }

    fn object(&self, unit: &Unit) -> Result<(), Diag> {
        let object = object_name(&unit.file);
        let mut command = self.compiler()?;
        command.args(&unit.flags).arg("-c").arg(&unit.file).arg("-o").arg(&object);
        let Some(kept) = self.kept_object(&command, unit)? else { return self.run(command, &unit.file) };
        let object = self.out_dir.join(object);
        if std::fs::copy(&kept, &object).is_ok() {
            return Ok(());
        }
        self.run(command, &unit.file)?;
        // Under another name first: several processes may keep the same object.
        let partial = kept.with_extension(std::process::id().to_string());
        std::fs::copy(&object, &partial)
            .and_then(|_| std::fs::rename(&partial, &kept))
            .map_err(|e| io_error("write", &kept, &e))
    }

    /// Where the object of a C file is kept: its name tells the command, the compiler and the text. An assembler file
    /// names weights, which are not looked at, so its object is not kept.
    fn kept_object(&self, command: &Command, unit: &Unit) -> Result<Option<PathBuf>, Diag> {
        let (Some(cache), true) = (&self.cache, unit.file.ends_with(".c")) else { return Ok(None) };
        let path = self.out_dir.join(&unit.file);
        let text = std::fs::read(&path).map_err(|e| io_error("read", &path, &e))?;
        let compiler = std::fs::metadata(command.get_program()).and_then(|m| Ok((m.len(), m.modified()?)));
        let mut hash = Fnv128::default();
        let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
        hash.write(format!("{words:?} {:?}", compiler.ok()).as_bytes());
        hash.write(tvm_runtime::C_HEADER.as_bytes());
        hash.write(&text);
        Ok(Some(cache.join(format!("{:032x}.o", hash.0))))
    }

    fn run(&self, mut command: Command, what: &str) -> Result<(), Diag> {
        let output = command.output().map_err(|e| {
            let program = command.get_program().to_string_lossy();
            no_compiler(&format!("`{program}` cannot be run: {e}"))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let mut diag = Diag::error(Span::NONE, format!("the C compiler failed on {what}"));
        for line in String::from_utf8_lossy(&output.stderr).lines().take(40) {
            diag = diag.note(line);
        }
        Err(diag.help("this is a fault of the code generator: please report it with the generated file"))
    }
}

/// The hash FNV-1a of 128 bits.
struct Fnv128(u128);

impl Default for Fnv128 {
    fn default() -> Self {
        Fnv128(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv128 {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

fn object_name(file: &str) -> String {
    format!("{file}.o")
}

/// Flags of a target as strings.
pub fn target_flags(target: &Target) -> Vec<String> {
    target.flags.iter().map(|f| (*f).to_owned()).collect()
}

/// The targets to compile kernels for on a machine of this triple, least capable first; `features` are those that the
/// whole program takes for granted (cargo's `CARGO_CFG_TARGET_FEATURE`).
///
/// A program that takes the highest level for granted gets that alone.
pub fn isa_levels(triple: &str, features: &str) -> Vec<Target> {
    let named = |names: &[&str]| names.iter().filter_map(|n| Target::named(n)).collect();
    let has = |wanted: &[&str]| wanted.iter().all(|w| features.split(',').any(|f| f == *w));
    if triple.starts_with("x86_64") {
        if has(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]) {
            named(&["x86-64-v4"])
        } else if has(&["avx2", "fma"]) {
            named(&["x86-64-v3", "x86-64-v4"])
        } else {
            named(&["x86-64", "x86-64-v3", "x86-64-v4"])
        }
    } else if triple.starts_with("aarch64") || triple.starts_with("arm64") {
        named(&["aarch64"])
    } else {
        vec![Target::default()]
    }
}

/// The best named target that this machine runs.
pub fn host_target() -> Target {
    #[cfg(target_arch = "x86_64")]
    {
        let v4 = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512cd")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl");
        let v3 = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("f16c");
        let name = if v4 && v3 {
            "x86-64-v4"
        } else if v3 {
            "x86-64-v3"
        } else {
            "x86-64"
        };
        Target::named(name).unwrap_or_default()
    }
    #[cfg(target_arch = "aarch64")]
    {
        Target::named("aarch64").unwrap_or_default()
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Target::default()
}

/// The triple of this machine, as far as a C compiler must know it.
fn host_triple() -> String {
    let arch = std::env::consts::ARCH;
    match std::env::consts::OS {
        "macos" => format!("{arch}-apple-darwin"),
        "windows" if cfg!(target_env = "msvc") => format!("{arch}-pc-windows-msvc"),
        "windows" => format!("{arch}-pc-windows-gnu"),
        "linux" if cfg!(target_env = "musl") => format!("{arch}-unknown-linux-musl"),
        "linux" => format!("{arch}-unknown-linux-gnu"),
        os => format!("{arch}-unknown-{os}"),
    }
}

/// An error of the file system.
pub(crate) fn io_error(what: &str, path: &Path, e: &std::io::Error) -> Diag {
    Diag::error(Span::NONE, format!("cannot {what} {}: {e}", path.display()))
}

fn no_compiler(why: &str) -> Diag {
    Diag::error(Span::NONE, "no working C compiler was found").note(why).help(
        "install gcc or clang (Debian and Ubuntu: `apt install gcc`; Fedora: `dnf install gcc`; macOS: \
         `xcode-select --install`), or name one in the environment variable CC",
    )
}

fn cc_error(e: &cc::Error) -> Diag {
    no_compiler(&e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tvm-toolchain-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn file(name: &str, text: &str) -> SourceFile {
        SourceFile { name: name.into(), text: text.into() }
    }

    fn unit(name: &str) -> Unit {
        Unit { file: name.into(), flags: Vec::new() }
    }

    #[test]
    fn libraries() {
        let t = Toolchain::for_host(scratch("libraries"));
        t.write_sources(&[file("a.c", "int a(void) { return 1; }\n"), file("b.c", "int b(void) { return 2; }\n")])
            .unwrap();
        let library = t.static_library("ab", &[unit("a.c"), unit("b.c")]).unwrap();
        let first = std::fs::read(&library).unwrap();
        assert!(first.starts_with(b"!<arch>"));
        // Again from the start: the same bytes.
        t.static_library("ab", &[unit("a.c"), unit("b.c")]).unwrap();
        assert_eq!(first, std::fs::read(&library).unwrap());
        assert!(t.shared_library("ab", &[unit("a.c"), unit("b.c")]).unwrap().exists());
        std::fs::remove_dir_all(&t.out_dir).unwrap();
    }

    #[test]
    fn objects_are_kept() {
        let dir = scratch("cache");
        let cache = dir.join("kept");
        std::fs::create_dir_all(&cache).unwrap();
        let value = |folder: &str, text: &str| {
            let t = Toolchain { cache: Some(cache.clone()), ..Toolchain::for_host(dir.join(folder)) };
            t.write_sources(&[file("a.c", text)]).unwrap();
            std::fs::read(t.static_library("a", &[unit("a.c")]).unwrap()).unwrap()
        };
        let kept = || std::fs::read_dir(&cache).unwrap().count();
        let first = value("one", "int a(void) { return 1; }\n");
        assert_eq!(kept(), 1);
        assert_eq!(value("two", "int a(void) { return 1; }\n"), first);
        assert_eq!(kept(), 1);
        assert_ne!(value("one", "int a(void) { return 2; }\n"), first);
        assert_eq!(kept(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn every_bad_file_is_reported() {
        let t = Toolchain::for_host(scratch("bad"));
        t.write_sources(&[file("a.c", "int a(\n"), file("b.c", "float b(void) { return c; }\n")]).unwrap();
        let diags = t.static_library("ab", &[unit("a.c"), unit("b.c")]).unwrap_err();
        assert_eq!(diags.0.len(), 2);
        assert!(diags.0.iter().all(|d| d.notes.iter().any(|n| n.contains("error"))));
        std::fs::remove_dir_all(&t.out_dir).unwrap();
    }

    #[test]
    fn levels() {
        let names = |triple: &str, features: &str| -> Vec<String> {
            isa_levels(triple, features).into_iter().map(|t| t.name).collect()
        };
        assert_eq!(names("x86_64-unknown-linux-gnu", "fxsr,sse,sse2"), ["x86-64", "x86-64-v3", "x86-64-v4"]);
        assert_eq!(names("x86_64-unknown-linux-gnu", "avx2,bmi2,fma,sse2"), ["x86-64-v3", "x86-64-v4"]);
        assert_eq!(names("x86_64-apple-darwin", "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"), ["x86-64-v4"]);
        assert_eq!(names("aarch64-apple-darwin", "neon"), ["aarch64"]);
        assert_eq!(names("riscv64gc-unknown-linux-gnu", ""), ["generic"]);
    }
}
