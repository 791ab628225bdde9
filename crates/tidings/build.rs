//! Names the commit and the platform that are built, for `tidings --version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=TIDINGS_TARGET={target}");
    // A copy of this package inside somebody else's checkout is not of that checkout's commit.
    let is_checkout = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).filter(|_| is_checkout);
    println!("cargo::rustc-env=TIDINGS_COMMIT={}", commit.unwrap_or_default());
    // It is written at every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|_| is_checkout) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// The first line that git prints; nothing if there is no git or it fails.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}
