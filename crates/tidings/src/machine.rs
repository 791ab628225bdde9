//! Resources of this machine: memory, file descriptors, disk space.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for files, databases and programs: these, and a sixteenth of all.
const KEPT_DESCRIPTORS: u64 = 64;
/// Free disk space below which a source with durable state is not ready.
const LEAST_SPACE: u64 = 16 << 20;

/// Raises the limit of open files to the maximum allowed, and returns the new limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// The number of connections that fit below a limit of open files.
pub(crate) fn connections_within(limit: u64) -> usize {
    let kept = KEPT_DESCRIPTORS + limit / 16;
    usize::try_from(limit.saturating_sub(kept).max(16)).unwrap_or(usize::MAX)
}

/// The number of files that can still be opened.
pub(crate) fn free_descriptors() -> Option<u64> {
    let open = Path::new("/proc/self/fd").read_dir().ok()?.count() as u64;
    Some(getrlimit(Resource::Nofile).current?.saturating_sub(open))
}

/// The memory the process may use: the limit of its control group, or the memory of the machine.
pub(crate) fn memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    limits.chain(machine).min()
}

/// The files that may hold memory limits: those of the process's control groups and of all groups
/// above, in both versions of control groups.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        files.extend(group.ancestors().map(|group| Path::new(root).join(group).join(name)));
    }
    files
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Checks that the disk of a directory has free space.
pub(crate) fn has_space(directory: &Path) -> Result<(), String> {
    match rustix::fs::statvfs(directory) {
        Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST_SPACE => {
            Err("the disk is full".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the directory cannot be used: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_all_groups_above_count() {
        let files = limit_files("0::/system.slice/tidings.service\n");
        assert_eq!(files[0], Path::new("/sys/fs/cgroup/system.slice/tidings.service/memory.max"));
        assert_eq!(files[2], Path::new("/sys/fs/cgroup/memory.max"));
        let files = limit_files("12:cpu,cpuacct:/a\n3:memory:/a/b\nnonsense\n");
        assert_eq!(files[0], Path::new("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes"));
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn descriptors_are_kept_for_files() {
        assert_eq!(connections_within(1024), 896);
        assert_eq!(connections_within(10), 16);
        assert!(memory().is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_space() {
        assert!(has_space(Path::new("/no/such/place")).is_err());
        assert_eq!(has_space(Path::new("/")), Ok(()));
    }
}
