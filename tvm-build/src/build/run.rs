//! What a build does.

use super::stamp::Stamp;
use super::{Build, Source};
use crate::cfg::Cfg;
use crate::compile::{Artifacts, Options, compile_module};
use crate::dims;
use crate::external::{CTypes, Declaration, Externals};
use crate::import::onnx::ImportOptions;
use crate::model::{self, Model};
use crate::rust_source::{Found, RustSources};
use crate::toolchain::{Toolchain, isa_levels};
use crate::vm::rust::{self, RustOptions, WeightSource};
use crate::weights;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tvm_ir::diag::{Diag, Diags};
use tvm_ir::name::Name;
use tvm_ir::render::{render, render_all};
use tvm_ir::span::{SourceMap, Span};
use tvm_ir::target::Target;

/// A model of the build.
enum Input {
    Source(Source),
    Inline(Box<Found>),
}

/// Names that models have.
#[derive(Default)]
struct Seen {
    symbols: Vec<Name>,
    overridable: Vec<String>,
}

/// What all models of a build share.
struct Setting {
    toolchain: Toolchain,
    targets: Vec<Target>,
    externals: Externals,
    package: u32,
}

impl Build {
    pub(super) fn try_compile_with(
        self,
        toolchain: Result<Toolchain, Diag>,
        cargo: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        let mut sources = SourceMap::default();
        self.run(toolchain, &mut sources, cargo).map_err(|diags| render_all(&diags, &sources))
    }

    fn run(
        mut self,
        toolchain: Result<Toolchain, Diag>,
        sources: &mut SourceMap,
        cargo: &mut dyn FnMut(&str),
    ) -> Result<(), Diags> {
        for (_, source) in &self.models {
            if let Source::File(path) = source {
                changed(cargo, path);
            }
        }
        for variable in ["CC", "CFLAGS", "AR"] {
            cargo(&format!("cargo::rerun-if-env-changed={variable}"));
        }
        let mut diags = Diags::new();
        let mut found = RustSources::default();
        let cfg = Cfg::from_cargo();
        for path in &self.rust_sources {
            changed(cargo, path);
            diags.ok(found.read(path, &cfg, sources));
        }
        let externals = self.externals(std::mem::take(&mut found.functions), &mut diags, cargo);
        let mut toolchain = toolchain?;
        toolchain.opt_level = self.opt_level.unwrap_or(toolchain.opt_level);
        let targets = self.targets(&toolchain)?;
        let mut setting = Setting { toolchain, targets, externals, package: package_hash() };
        if let Err(found) = self.c_objects(&mut setting, cargo) {
            diags.extend(found);
        }
        let models = std::mem::take(&mut self.models).into_iter().map(|(n, s)| (n, Span::NONE, Input::Source(s)));
        let inline = found.modules.into_iter().map(|f| (f.checked.name.clone(), f.place, Input::Inline(Box::new(f))));
        let mut names: BTreeMap<String, Span> = BTreeMap::new();
        let mut seen = Seen::default();
        for (name, place, input) in models.chain(inline) {
            if let Some(first) = names.get(&name) {
                diags.push(
                    Diag::error(place, format!("two models are named `{name}`")).label(*first, "the first one").help(
                        "rename one: what is generated for a package lies in one folder, under the models' names",
                    ),
                );
                continue;
            }
            names.insert(name.clone(), place);
            let done = self.model(&name, input, &setting, &mut seen, sources, cargo);
            if let Err(found) = done {
                diags.extend(Diags(found.0.into_iter().map(|d| d.note(format!("in the model `{name}`"))).collect()));
            }
        }
        diags.extend(self.bounds.unknown(&seen.symbols));
        // A model that could not be read may have them.
        let unknown = self.overridable.iter().filter(|n| diags.0.is_empty() && !seen.overridable.contains(n));
        let unknown: Vec<Diag> = unknown
            .map(|n| Diag::error(Span::NONE, format!("no model has an initializer '{n}' to override")))
            .collect();
        diags.extend(Diags(unknown));
        diags.into_result(())
    }

    /// Compiles a model, and notes what its names are.
    fn model(
        &self,
        name: &str,
        input: Input,
        setting: &Setting,
        seen: &mut Seen,
        sources: &mut SourceMap,
        cargo: &mut dyn FnMut(&str),
    ) -> Result<(), Diags> {
        let fingerprint = match &input {
            Input::Inline(found) => Some(found.checked.fingerprint),
            Input::Source(_) => None,
        };
        // Two packages of one name and version, as a fork and its origin, may hold different modules of one name.
        let package = fingerprint.map_or(setting.package, |f| setting.package ^ fold(f));
        let mut options = Options {
            prefix: format!("{name}_{package:08x}_"),
            targets: setting.targets.clone(),
            externals: setting.externals.clone(),
            arena_limit: self.arena_limit,
            weights_limit: self.weights_limit,
            files: setting.toolchain.jobs.clamp(1, 4),
            ..Options::new(name, Target::default())
        };
        if let Some(steps) = &self.pipeline {
            options.pipeline.clone_from(steps);
        }
        match input {
            Input::Source(source) => {
                let mut model = match source {
                    Source::Module(module) => {
                        Model { module: *module, files: Vec::new(), overridable: Vec::new(), warnings: Diags::new() }
                    }
                    Source::File(path) => {
                        let (ops, overridable) = (self.ops.clone(), self.overridable.clone());
                        let onnx = ImportOptions { ops, overridable, ..ImportOptions::default() };
                        model::load_with(&path, onnx, sources)?
                    }
                };
                for warning in &model.warnings.0 {
                    let text = render(&warning.clone().note(format!("in the model `{name}`")), sources);
                    text.lines().for_each(|line| cargo(&format!("cargo::warning={line}")));
                }
                seen.symbols.extend(dims::symbols(&model.module));
                seen.overridable.append(&mut model.overridable);
                self.bounds.apply(&mut model.module)?;
                model.files.iter().skip(1).for_each(|file| changed(cargo, file));
                let artifacts = compile_module(model.module, &options)?;
                self.write(&artifacts, &options, None, setting)?;
            }
            Input::Inline(found) => {
                seen.symbols.extend(dims::symbols(&found.checked.module));
                // A source file changes more often than the modules in it.
                let stamp = Stamp::new(self, &options, &found, &setting.toolchain);
                if !stamp.is_current() {
                    let mut module = found.checked.module.clone();
                    self.bounds.apply(&mut module)?;
                    let artifacts = compile_module(module, &options).map_err(|d| found.locate(d))?;
                    self.write(&artifacts, &options, Some(&found), setting)?;
                    stamp.write()?;
                }
            }
        }
        // The module itself says what to link: cargo would tell the package's library alone, if it has one.
        cargo(&format!("cargo::rustc-link-search=native={}", setting.toolchain.out_dir.display()));
        if setting.toolchain.triple.contains("linux") {
            cargo("cargo::rustc-link-lib=m");
        }
        Ok(())
    }

    /// Compiles the sources of a module and writes its Rust text.
    fn write(
        &self,
        artifacts: &Artifacts,
        options: &Options,
        found: Option<&Found>,
        setting: &Setting,
    ) -> Result<(), Diags> {
        let library = format!("{}kernels", options.prefix);
        let (units, weights) = if self.without_weights {
            artifacts.write_weights(&setting.toolchain)?;
            (artifacts.write_kernels(&setting.toolchain)?, WeightSource::Caller)
        } else {
            check_linkable(artifacts.weights.len(), &setting.toolchain.triple)?;
            (artifacts.write(&setting.toolchain)?, WeightSource::Symbol(artifacts.weights_symbol.clone()))
        };
        let options = RustOptions {
            name: artifacts.name.clone(),
            levels: artifacts
                .levels
                .iter()
                .map(|l| rust::Level { level: l.level, symbols: l.symbols.clone() })
                .collect(),
            weights,
            library: Some(library.clone()),
            libraries: setting.externals.libraries.clone(),
            heap: !self.without_heap,
            ndarray: self.ndarray,
            docs: found.map(|f| f.checked.docs.clone()).unwrap_or_default(),
        };
        let mut text = rust::print(&artifacts.program, &options)?;
        if let Some(found) = found {
            text.push_str(&format!(
                "\n/// What `ir_module!` compares its own with.\npub const FINGERPRINT: u64 = {:#018x};\n",
                found.checked.fingerprint
            ));
        }
        setting.toolchain.write_file(&format!("{}.rs", artifacts.name), &text)?;
        // Lists and shapes alone need no kernels, and there is no archive without members.
        if !units.is_empty() {
            setting.toolchain.static_library(&library, &units)?;
        }
        Ok(())
    }

    /// The external functions of the build, and what cargo must know of them.
    fn externals(&self, functions: Vec<Declaration>, diags: &mut Diags, cargo: &mut dyn FnMut(&str)) -> Externals {
        let types = CTypes::from_cargo();
        let mut externals = Externals::default();
        for text in &self.extern_fns {
            if let Some(d) = diags.ok(Declaration::parse(text, "build.rs, Build::extern_fn", types)) {
                externals.add(d);
            }
        }
        functions.into_iter().for_each(|d| externals.add(d));
        let folders = self.header_folders();
        for path in &self.c_headers {
            changed(cargo, path);
            let files = diags.ok(externals.read_header(path, &folders, types)).unwrap_or_default();
            // Headers of the system change with it.
            let ours = |f: &&PathBuf| folders.iter().any(|folder| f.starts_with(folder)) && *f != path;
            files.iter().filter(ours).for_each(|f| changed(cargo, f));
        }
        externals.libraries.extend(self.c_libraries.iter().map(|name| (name.clone(), false)));
        externals
    }

    /// Compiles the user's C sources.
    fn c_objects(&self, setting: &mut Setting, cargo: &mut dyn FnMut(&str)) -> Result<(), Diags> {
        self.c_sources.iter().for_each(|path| changed(cargo, path));
        if self.c_sources.is_empty() {
            return Ok(());
        }
        let name = format!("externs_{:08x}", setting.package);
        setting.toolchain.user_library(&name, &self.c_sources, &self.header_folders())?;
        setting.externals.libraries.push((name, true));
        Ok(())
    }

    /// The folders of the headers, each once.
    fn header_folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self
            .c_headers
            .iter()
            .filter_map(|h| h.parent())
            .map(|f| if f == Path::new("") { ".".into() } else { f.into() })
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }

    fn targets(&self, toolchain: &Toolchain) -> Result<Vec<Target>, Diag> {
        let Some(name) = &self.target else {
            let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
            return Ok(isa_levels(&toolchain.triple, &features));
        };
        Target::named(name).map(|t| vec![t]).ok_or_else(|| {
            let known: Vec<String> = Target::all().into_iter().map(|t| t.name).collect();
            Diag::error(Span::NONE, format!("unknown target `{name}`")).help(format!("known are {}", known.join(", ")))
        })
    }
}

fn changed(cargo: &mut dyn FnMut(&str), path: &Path) {
    cargo(&format!("cargo::rerun-if-changed={}", path.display()));
}

/// Errors when so many bytes of weights cannot be linked into a program.
fn check_linkable(bytes: u64, triple: &str) -> Result<(), Diag> {
    let most = weights::most_linked(triple);
    if bytes <= most {
        return Ok(());
    }
    let message = format!("{bytes} bytes of weights cannot be linked into a program for {triple}, at most {most} can");
    Err(Diag::error(Span::NONE, message)
        .help("leave them out with Build::without_weights, and give them to the module's constructor"))
}

/// Tells apart modules of one name in different packages of one program.
fn package_hash() -> u32 {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let text = format!("{} {}", var("CARGO_PKG_NAME"), var("CARGO_PKG_VERSION"));
    text.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

/// Both halves of a hash in one.
fn fold(hash: u64) -> u32 {
    let [a, b, c, d, e, f, g, h] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) ^ u32::from_le_bytes([e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_cannot_be_linked_are_refused() {
        assert!(check_linkable(3 << 30, "x86_64-unknown-linux-gnu").is_ok());
        let error = check_linkable(3 << 30, "x86_64-pc-windows-gnu").unwrap_err().to_string();
        assert!(error.contains("3221225472 bytes of weights") && error.contains("x86_64-pc-windows-gnu"), "{error}");
    }
}
