//! The files of a folder: list and read them without leaving it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use tidings_store::date::Moment;

use crate::Problem;
use crate::hidden::Hidden;

/// The directories that are served. Everything else in the folder belongs to the project.
pub(crate) const PARTS: [&str; 6] =
    ["tools", "resources", "providers", "prompts", "completions", "server.d"];
/// How deep directories are followed: deeper ones are a mistake or an attack.
const DEPTH: usize = 32;
/// How many links to directories are followed. Nested links could multiply with each level.
const FOLLOWED: usize = 256;

/// Metadata of a file. Equal metadata does not mean equal content: it decides what is read again,
/// never who is notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
    /// When content or attributes changed; programs cannot set it.
    changed: (i64, i64),
    inode: u64,
    /// How many hard links the file has.
    names: u64,
    pub(crate) executable: bool,
    /// The target of a link, relative to the folder.
    pub(crate) target: Option<PathBuf>,
}

impl Stat {
    fn new(metadata: &Metadata, target: Option<PathBuf>) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            names: metadata.nlink(),
            executable: metadata.permissions().mode() & 0o111 != 0,
            target,
        }
    }

    /// Whether both are the same file under different names.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.names > 1 && self.inode == other.inode
    }

    /// Whether the file may have changed again with the same time: file system clocks tick slowly.
    pub(crate) fn is_fresh(&self, now: Moment) -> bool {
        // If the clock is before 1970, so are the times of files.
        (0..3).contains(&now.unix().saturating_sub(self.changed.0))
    }
}

/// What a path is.
#[derive(Debug)]
pub(crate) enum PathKind {
    File(Stat),
    Directory,
    /// A link to a directory inside the folder.
    LinkedDirectory(PathBuf),
    /// Nothing that exists or is served.
    Nothing,
    /// Something that is not served, which is reported.
    Refused(Problem),
    /// A link that is not followed; its target may change later.
    BadLink(Problem),
}

/// The files and directories that a walk found.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    pub(crate) files: BTreeMap<PathBuf, Stat>,
    /// Every directory that was read, parents first.
    pub(crate) directories: Vec<PathBuf>,
    /// Every link, followed or not.
    pub(crate) links: Vec<PathBuf>,
    /// The links to directories that were followed, with their targets.
    pub(crate) linked: BTreeMap<PathBuf, PathBuf>,
    pub(crate) problems: Vec<Problem>,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it does not exist")]
    Missing,
    #[error("it leads out of the folder")]
    Outside,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Io(std::io::Error),
}

/// The folder's directory. Paths in and out are relative to it.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    path: PathBuf,
}

impl Root {
    /// A directory, by its real path.
    pub(crate) fn new(path: &Path) -> std::io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(std::io::Error::from(std::io::ErrorKind::NotADirectory));
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn absolute(&self, relative: &Path) -> PathBuf {
        self.path.join(relative)
    }

    /// A path relative to the folder; `None` if it is outside.
    pub(crate) fn relative(&self, absolute: &Path) -> Option<PathBuf> {
        absolute.strip_prefix(&self.path).ok().map(Path::to_owned)
    }

    /// What a path is: a file, a directory, a link or nothing.
    pub(crate) fn inspect(&self, relative: &Path) -> PathKind {
        let absolute = self.absolute(relative);
        let Ok(metadata) = absolute.symlink_metadata() else { return PathKind::Nothing };
        if metadata.is_dir() {
            return PathKind::Directory;
        }
        if metadata.is_file() {
            return PathKind::File(Stat::new(&metadata, None));
        }
        if metadata.is_symlink() {
            return self.follow(relative, &absolute);
        }
        let kind = "a pipe, a socket or a device";
        PathKind::Refused(Problem::error(
            relative,
            format!("it is {kind}, and is not served"),
            "put a file there, or name it in `.tidingsignore`",
        ))
    }

    fn follow(&self, relative: &Path, absolute: &Path) -> PathKind {
        let refused = |reason: &str, advice: &str| {
            PathKind::BadLink(Problem::error(relative, reason, advice))
        };
        let Ok(target) = absolute.canonicalize() else {
            return refused("the link leads nowhere, or in a circle", "remove or correct the link");
        };
        let Some(inside) = self.relative(&target) else {
            return refused(
                "the link leads out of the folder, and is not followed",
                "put a copy of the file there",
            );
        };
        match target.metadata() {
            Ok(metadata) if metadata.is_file() => {
                PathKind::File(Stat::new(&metadata, Some(inside)))
            }
            Ok(metadata) if metadata.is_dir() => PathKind::LinkedDirectory(inside),
            _ => refused("the link does not lead to a file", "remove or correct the link"),
        }
    }

    /// Everything at and below a path that is not hidden, up to `limit` files. `enter` is called
    /// with each directory before it is read, so that no change is missed in between.
    pub(crate) fn walk(
        &self,
        from: &Path,
        hidden: &Hidden,
        limit: usize,
        enter: &mut dyn FnMut(&Path),
    ) -> WalkResult {
        let mut found = WalkResult { linked: self.links_above(from), ..WalkResult::default() };
        let mut waiting = vec![from.to_owned()];
        while let Some(path) = waiting.pop() {
            if found.files.len().max(found.directories.len()) >= limit {
                found.problems.push(too_many(from, limit));
                break;
            }
            match self.inspect(&path) {
                PathKind::File(stat) => {
                    if stat.target.is_some() {
                        found.links.push(path.clone());
                    }
                    found.files.insert(path, stat);
                }
                PathKind::BadLink(problem) => {
                    found.links.push(path);
                    found.problems.push(problem);
                }
                PathKind::Directory => {
                    enter(&path);
                    self.list(&path, hidden, &mut waiting, &mut found.problems);
                    found.directories.push(path);
                }
                PathKind::LinkedDirectory(real) => {
                    found.links.push(path.clone());
                    if let Some(problem) = self.unfollowed(&path, &real, found.linked.len()) {
                        found.problems.push(problem);
                        continue;
                    }
                    found.linked.insert(path.clone(), real);
                    enter(&path);
                    self.list(&path, hidden, &mut waiting, &mut found.problems);
                    found.directories.push(path);
                }
                PathKind::Nothing => {}
                PathKind::Refused(problem) => found.problems.push(problem),
            }
        }
        found
    }

    /// The links to directories on the way to a path.
    fn links_above(&self, path: &Path) -> BTreeMap<PathBuf, PathBuf> {
        let above = path.ancestors().skip(1).filter(|above| above.file_name().is_some());
        let links = above.filter(|above| self.absolute(above).is_symlink());
        links.filter_map(|link| Some((link.to_owned(), self.resolve(link).ok()?))).collect()
    }

    /// Why a link to a directory is not followed: too many are followed already, or the path of the
    /// link leads through that directory, which would never end.
    fn unfollowed(&self, link: &Path, real: &Path, followed: usize) -> Option<Problem> {
        if followed >= FOLLOWED {
            let reason = format!("more than {FOLLOWED} links to directories are not followed");
            let advice = "name what should not be served in `.tidingsignore`";
            return Some(Problem::error(link, reason, advice));
        }
        let mut way = link.ancestors().skip(1).filter_map(|above| self.resolve(above).ok());
        way.any(|place| place.starts_with(real)).then(|| {
            let reason = "the link leads to a directory that it is in, and is not followed";
            Problem::error(link, reason, "remove or correct the link")
        })
    }

    fn list(
        &self,
        directory: &Path,
        hidden: &Hidden,
        waiting: &mut Vec<PathBuf>,
        problems: &mut Vec<Problem>,
    ) {
        if directory.components().count() > DEPTH {
            let reason = format!("directories are followed {DEPTH} deep, and this is deeper");
            problems.push(Problem::error(directory, reason, "move it up"));
            return;
        }
        let entries = match std::fs::read_dir(self.absolute(directory)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                let reason = format!("the directory cannot be read: {error}");
                problems.push(Problem::error(directory, reason, "correct its permissions"));
                return;
            }
        };
        for entry in entries.flatten() {
            let path = directory.join(entry.file_name());
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !hidden.hides(&path, is_directory) {
                waiting.push(path);
            }
        }
    }

    /// The real path, relative to the folder.
    pub(crate) fn resolve(&self, relative: &Path) -> Result<PathBuf, ReadError> {
        let real = self.absolute(relative).canonicalize().map_err(missing)?;
        self.relative(&real).ok_or(ReadError::Outside)
    }

    /// The content of a file in the folder.
    pub(crate) fn read(&self, relative: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
        let (file, metadata) = self.open(relative)?;
        if metadata.len() > limit {
            return Err(ReadError::TooLarge(limit));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        // A file may grow while it is read.
        file.take(limit + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        if bytes.len() as u64 > limit {
            return Err(ReadError::TooLarge(limit));
        }
        Ok(bytes)
    }

    /// The first bytes of a file in the folder.
    pub(crate) fn head(&self, relative: &Path, length: u64) -> Result<Vec<u8>, ReadError> {
        let (file, _) = self.open(relative)?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        Ok(bytes)
    }

    /// Opens a file without leaving the folder and without blocking, as a pipe in its place would.
    fn open(&self, relative: &Path) -> Result<(File, Metadata), ReadError> {
        let file = match self.open_beneath(relative) {
            Ok(file) => file,
            // The system lacks the call, or a link inside the folder has an absolute target.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::XDEV | rustix::io::Errno::PERM) => {
                self.open_checked(relative)?
            }
            Err(rustix::io::Errno::LOOP) => return Err(ReadError::Missing),
            Err(error) => return Err(missing(error.into())),
        };
        let metadata = file.metadata().map_err(ReadError::Io)?;
        if !metadata.is_file() {
            return Err(ReadError::NotAFile);
        }
        Ok((file, metadata))
    }

    /// In one step, so that no link can be put in the way.
    #[cfg(target_os = "linux")]
    fn open_beneath(&self, relative: &Path) -> rustix::io::Result<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags};
        let root = rustix::fs::open(
            &self.path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve).map(File::from)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_beneath(&self, _relative: &Path) -> rustix::io::Result<File> {
        Err(rustix::io::Errno::NOSYS)
    }

    fn open_checked(&self, relative: &Path) -> Result<File, ReadError> {
        let inside = self.resolve(relative)?;
        match self.open_beneath(&inside) {
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return opened.map_err(|error| missing(error.into())),
        }
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let real = self.absolute(&inside);
        File::options().read(true).custom_flags(flags).open(real).map_err(missing)
    }
}

fn too_many(from: &Path, limit: usize) -> Problem {
    let reason =
        format!("there are more than {limit} files or directories; the rest is not served");
    Problem::error(from, reason, "name what should not be served in `.tidingsignore`")
}

fn missing(error: std::io::Error) -> ReadError {
    match error.kind() {
        std::io::ErrorKind::NotFound
        | std::io::ErrorKind::NotADirectory
        | std::io::ErrorKind::InvalidFilename
        | std::io::ErrorKind::InvalidInput => ReadError::Missing,
        _ => ReadError::Io(error),
    }
}

/// Joins a written path to a directory of the folder; `None` if it leads out of the folder.
pub(crate) fn join(directory: &Path, written: &str) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for component in Path::new(written).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        (directory, root)
    }

    fn walked(root: &Root) -> (Vec<String>, Vec<String>) {
        let found = root.walk(Path::new("resources"), &Hidden::default(), 100, &mut |_| {});
        let files = found.files.keys().map(|path| path.display().to_string()).collect();
        (files, found.problems.iter().map(|it| it.file.display().to_string()).collect())
    }

    #[test]
    fn links_that_leave_the_folder_circles_and_pipes_are_refused() {
        let (directory, root) = folder();
        let at = directory.path().join("resources");
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("plain"), "x").unwrap();
        symlink("plain", at.join("inside")).unwrap();
        symlink("/etc/hostname", at.join("outside")).unwrap();
        symlink("loop", at.join("loop")).unwrap();
        symlink("..", at.join("up")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let (files, problems) = walked(&root);
        assert_eq!(files, ["resources/inside", "resources/plain"]);
        let mut refused = problems;
        refused.sort();
        assert_eq!(
            refused,
            ["resources/loop", "resources/outside", "resources/pipe", "resources/up"]
        );
        assert!(matches!(root.read(Path::new("resources/outside"), 9), Err(ReadError::Outside)));
        assert!(matches!(root.read(Path::new("resources/pipe"), 9), Err(ReadError::NotAFile)));
        assert!(matches!(root.read(Path::new("resources/none"), 9), Err(ReadError::Missing)));
        assert_eq!(root.read(Path::new("resources/inside"), 9).unwrap(), b"x");
    }

    #[test]
    fn links_to_directories_are_followed_unless_they_lead_in_circles() {
        let (directory, root) = folder();
        let at = |path: &str| directory.path().join(path);
        for (here, name, there) in
            [("resources/a", "a", "../../common/b"), ("common/b", "b", "../../resources/a")]
        {
            std::fs::create_dir_all(at(here)).unwrap();
            std::fs::write(at(here).join(name), "x").unwrap();
            symlink(there, at(here).join("other")).unwrap();
        }
        symlink("/etc", at("resources/outside")).unwrap();
        symlink(".", at("resources/self")).unwrap();
        let (files, mut problems) = walked(&root);
        assert_eq!(files, ["resources/a/a", "resources/a/other/b"]);
        problems.sort();
        assert_eq!(problems, ["resources/a/other/other", "resources/outside", "resources/self"],);
    }

    #[test]
    fn links_that_double_with_each_level_are_followed_to_a_limit() {
        let (directory, root) = folder();
        let at = |level: usize| directory.path().join(format!("resources/d{level}"));
        for level in 0..20 {
            std::fs::create_dir_all(at(level)).unwrap();
            for name in ["a", "b"] {
                symlink(format!("../d{}", level + 1), at(level).join(name)).unwrap();
            }
        }
        std::fs::create_dir_all(at(20)).unwrap();
        let found = root.walk(Path::new("resources"), &Hidden::default(), 10_000, &mut |_| {});
        assert_eq!(found.linked.len(), FOLLOWED);
        assert!(found.problems.iter().any(|it| it.reason.contains("are not followed")));
    }

    #[test]
    fn a_file_above_the_limit_is_refused_and_its_head_can_be_read() {
        let (directory, root) = folder();
        let file = File::create(directory.path().join("large")).unwrap();
        file.set_len(4 << 30).unwrap();
        let large = Path::new("large");
        assert!(matches!(root.read(large, 1 << 20), Err(ReadError::TooLarge(_))));
        assert_eq!(root.head(large, 16).unwrap().len(), 16);
    }

    #[test]
    fn a_written_path_cannot_leave_the_folder() {
        let check = |written: &str| join(Path::new("tools/a"), written);
        assert_eq!(check("./b.sh"), Some("tools/a/b.sh".into()));
        assert_eq!(check("../b.sh"), Some("tools/b.sh".into()));
        assert_eq!(check("../../b"), Some("b".into()));
        assert_eq!(check("../../../b"), None);
        assert_eq!(check("/etc/passwd"), None);
    }

    #[test]
    fn too_many_files_and_too_deep_directories_are_told() {
        let (directory, root) = folder();
        let deep: PathBuf = std::iter::repeat_n("d", 40).collect();
        std::fs::create_dir_all(directory.path().join("resources").join(deep)).unwrap();
        let (_, problems) = walked(&root);
        assert_eq!(problems.len(), 1);
        for number in 0..120 {
            let path = directory.path().join(format!("resources/{number}"));
            std::fs::write(path, "").unwrap();
        }
        let (files, problems) = walked(&root);
        assert!(files.len() <= 101, "{}", files.len());
        assert!(problems.iter().any(|file| file == "resources"));
    }
}
