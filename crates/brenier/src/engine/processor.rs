//! What kind of processor this is, as far as it decides how sums are rounded: engines choose their kernels by the widest
//! vectors there are.

/// The architecture and its widest vectors, such as `x86_64 avx2`.
///
/// ```
/// assert!(brenier::engine::processor().starts_with(std::env::consts::ARCH));
/// ```
pub fn processor() -> String {
    format!("{} {}", std::env::consts::ARCH, vectors())
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> &'static str {
    if std::arch::is_x86_feature_detected!("avx512f") {
        "avx512"
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        "avx2"
    } else {
        "sse"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> &'static str {
    "vectors of the architecture"
}
