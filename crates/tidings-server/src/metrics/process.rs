//! Metrics of the process, as far as the system reports them.

use std::path::Path;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The unit of processor time in `/proc`, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// The positions of the processor times in `/proc/self/stat`, counted after the name in brackets.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;

/// The current metrics, under the usual Prometheus names.
pub(super) fn figures() -> Registry {
    let mut registry = Registry::with_prefix("process");
    for (name, help, value) in [
        ("resident_memory_bytes", "Resident memory", resident().map(|bytes| bytes as f64)),
        ("open_fds", "Open file descriptors", open_files().map(|count| count as f64)),
        ("max_fds", "File descriptors that may be open", open_files_limit()),
        ("cpu_seconds", "Processor time used", processor_time()),
    ] {
        if let Some(value) = value {
            let gauge = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
    }
    registry
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn open_files() -> Option<usize> {
    // The descriptor opened to count is not counted.
    Path::new("/proc/self/fd").read_dir().ok().map(|files| files.count().saturating_sub(1))
}

fn open_files_limit() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn processor_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may contain anything, even brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(USER_TIME);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.nth(SYSTEM_TIME - USER_TIME - 1)?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_all_of_them() {
        assert!(resident().is_some_and(|bytes| bytes > 1 << 20));
        assert!(open_files().is_some_and(|count| count >= 3));
        assert!(open_files_limit().is_some_and(|limit| limit >= 3.0));
        assert!(processor_time().is_some());
    }
}
