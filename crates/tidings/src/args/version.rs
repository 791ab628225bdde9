//! `tidings --version`: the version, the commit, and what this build can do.

use std::sync::LazyLock;

use tidings_server::model::ProtocolVersion;

/// The version, and the commit if it was built from a checkout.
pub(super) static SHORT: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match env!("TIDINGS_COMMIT") {
        "" => version.to_owned(),
        commit => format!("{version} ({commit})"),
    }
});

/// The same, with protocol revisions, sources and platform.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let revisions = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str);
    let revisions: Vec<_> = revisions.collect();
    let allocator = if cfg!(all(target_os = "linux", target_env = "gnu")) {
        "jemalloc"
    } else {
        "the system's allocator"
    };
    format!(
        "{}\nprotocol: {}\nsources: demo, feeds, folder, upstream, workspace\nplatform: {}, {allocator}",
        *SHORT,
        revisions.join(", "),
        env!("TIDINGS_TARGET"),
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_its_version_and_what_it_speaks() {
        let long = LONG.as_str();
        assert!(long.starts_with(SHORT.as_str()), "{long}");
        assert!(SHORT.starts_with(env!("CARGO_PKG_VERSION")));
        assert!(long.contains("2024-11-05, ") && long.contains(", 2026-07-28\n"), "{long}");
        assert!(long.contains(std::env::consts::ARCH), "{long}");
    }
}
