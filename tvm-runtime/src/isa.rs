//! Choice of the instruction set level of kernels.

/// Level of the instruction set that a copy of the kernels needs, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum IsaLevel {
    /// What the target guarantees.
    Baseline = 0,
    /// x86-64-v3: AVX2, FMA, BMI, F16C, LZCNT, MOVBE.
    V3 = 1,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4 = 2,
}

/// The level of this machine, looked up once.
///
/// With `std`, the environment variable `TVM_ISA` (`baseline`, `v3`, `v4`) lowers it; it never
/// raises it. Without `std` it is what the crate was compiled for.
pub fn isa_level() -> IsaLevel {
    #[cfg(feature = "std")]
    {
        static LEVEL: std::sync::OnceLock<IsaLevel> = std::sync::OnceLock::new();
        *LEVEL.get_or_init(|| match std::env::var("TVM_ISA").as_deref() {
            Ok("baseline") => IsaLevel::Baseline,
            Ok("v3") => detect().min(IsaLevel::V3),
            _ => detect(),
        })
    }
    #[cfg(not(feature = "std"))]
    detect()
}

macro_rules! all_features {
    ($($feature:tt)*) => {{
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        { $(std::is_x86_feature_detected!($feature))&&* }
        #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
        { $(cfg!(target_feature = $feature))&&* }
    }};
}

fn detect() -> IsaLevel {
    if !all_features!("avx2" "fma" "bmi1" "bmi2" "f16c" "lzcnt" "movbe") {
        IsaLevel::Baseline
    } else if !all_features!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
        IsaLevel::V3
    } else {
        IsaLevel::V4
    }
}
