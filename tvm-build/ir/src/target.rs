//! What is compiled for: facts that schedules and back ends decide by. Never probed here; the toolchain fills it in.

/// Kind of device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeviceKind {
    /// A CPU, through C.
    Cpu,
}

/// A target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Kind of device.
    pub device: DeviceKind,
    /// Name shown to users, as `x86-64-v3` or `aarch64`.
    pub name: String,
    /// Bytes of the widest vector register worth using; 0 when there are no vectors.
    pub vector_bytes: u32,
    /// Number of vector registers.
    pub vector_registers: u32,
    /// Whether a fused multiply-add is one instruction.
    pub fma: bool,
    /// Bytes of the first-level data cache.
    pub l1_bytes: u64,
    /// Bytes of the second-level cache of a core.
    pub l2_bytes: u64,
    /// Flags for the C compiler, as `-mavx2`.
    pub flags: Vec<&'static str>,
}

impl Target {
    fn cpu(name: &str, vector_bytes: u32, vector_registers: u32, fma: bool, flags: &[&'static str]) -> Target {
        Target {
            device: DeviceKind::Cpu,
            name: name.into(),
            vector_bytes,
            vector_registers,
            fma,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            flags: flags.to_vec(),
        }
    }

    /// Every named target, least capable first.
    pub fn all() -> Vec<Target> {
        vec![
            Target::cpu("generic", 0, 0, false, &[]),
            Target::cpu("x86-64", 16, 16, false, &[]),
            Target::cpu("x86-64-v3", 32, 16, true, &["-march=x86-64-v3"]),
            Target::cpu("x86-64-v4", 64, 32, true, &["-march=x86-64-v4", "-mprefer-vector-width=512"]),
            Target::cpu("aarch64", 16, 32, true, &[]),
        ]
    }

    /// The target of a name.
    pub fn named(name: &str) -> Option<Target> {
        Target::all().into_iter().find(|t| t.name == name)
    }
}

impl Default for Target {
    /// `generic`: plain scalar C.
    fn default() -> Target {
        Target::cpu("generic", 0, 0, false, &[])
    }
}
