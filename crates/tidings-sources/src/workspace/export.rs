//! A workspace as plain files, for whoever wants to look without us.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::workspace::store::List;
use crate::workspace::{Search, Workspace, WorkspaceError};

/// How many are looked up at once.
const PAGE: usize = 500;

impl Workspace {
    /// Writes every artifact, archived or not, into a directory: its bytes as `ID.EXTENSION`, what
    /// is known of it as a line of `artifacts.jsonl`; the graph as `identities.jsonl` and
    /// `connections.jsonl`. Hears how many were written of how many; gives how many.
    ///
    /// # Errors
    ///
    /// The directory has something in it, or cannot be written.
    pub fn export(
        &self,
        directory: &Path,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<u64, WorkspaceError> {
        let failed = |error| WorkspaceError::path(directory, error);
        std::fs::create_dir_all(directory).map_err(failed)?;
        if std::fs::read_dir(directory).map_err(failed)?.next().is_some() {
            return Err(failed(std::io::ErrorKind::DirectoryNotEmpty.into()));
        }
        let summary = self.summary()?;
        let all = summary.artifacts + summary.archived;
        let mut lines = Lines::create(&directory.join("artifacts.jsonl"))?;
        let mut search = Search { archived: true, ..Search::default() };
        let mut done = 0;
        loop {
            let (entries, has_more) = self.search(&search, PAGE)?;
            search.after = entries.last().map(|entry| entry.id.clone());
            for entry in entries {
                progress(done, all.max(done));
                let Some(artifact) = self.artifact(&entry.id)? else { continue };
                lines.write(&artifact)?;
                let name = format!("{}.{}", entry.id, extension(&entry.mime_type));
                self.copy(&entry.hash, &directory.join(name))?;
                done += 1;
            }
            if !has_more {
                break;
            }
        }
        lines.finish()?;
        self.export_graph(directory)?;
        progress(done, done);
        Ok(done)
    }

    fn export_graph(&self, directory: &Path) -> Result<(), WorkspaceError> {
        let mut lines = Lines::create(&directory.join("identities.jsonl"))?;
        let mut after = None;
        loop {
            let page = self.identities(after.as_deref(), PAGE)?;
            for identity in page.items {
                if let Some(identity) = self.identity(&identity.id)? {
                    lines.write(&identity)?;
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        lines.finish()?;
        let mut lines = Lines::create(&directory.join("connections.jsonl"))?;
        loop {
            let page = self.connections(after.as_deref(), PAGE)?;
            for connection in page.items {
                lines.write(&connection)?;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        lines.finish()
    }

    /// Every artifact that is not archived, newest first, a page at a time.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn each_recent(
        &self,
        mut see: impl FnMut(crate::workspace::Entry),
    ) -> Result<(), WorkspaceError> {
        let mut after = None;
        loop {
            let page = self.list(&List::Recent, after.as_deref(), PAGE)?;
            page.items.into_iter().for_each(&mut see);
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn copy(&self, hash: &str, path: &Path) -> Result<(), WorkspaceError> {
        let failed = |error| WorkspaceError::path(path, error);
        let Some(blob) = self.open_blob(hash)? else { return Ok(()) };
        let mut file = File::create_new(path).map_err(failed)?;
        std::io::copy(&mut blob.into_file(), &mut file).map_err(failed)?;
        Ok(())
    }
}

/// A file of one JSON document a line.
struct Lines {
    path: std::path::PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn create(path: &Path) -> Result<Self, WorkspaceError> {
        let file = File::create_new(path).map_err(|error| WorkspaceError::path(path, error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), WorkspaceError> {
        let line = serde_json::to_string(value).expect("what a workspace shows is plain JSON");
        writeln!(self.file, "{line}").map_err(|error| WorkspaceError::path(&self.path, error))
    }

    fn finish(mut self) -> Result<(), WorkspaceError> {
        self.file.flush().map_err(|error| WorkspaceError::path(&self.path, error))
    }
}

/// The usual ending of files of a kind.
fn extension(mime: &str) -> &'static str {
    match mime.split(';').next().unwrap_or_default().trim() {
        "application/json" => "json",
        "application/pdf" => "pdf",
        "application/xml" | "text/xml" => "xml",
        "application/zip" => "zip",
        "audio/midi" | "audio/x-midi" => "mid",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/wav" | "audio/x-wav" => "wav",
        "image/gif" => "gif",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "image/webp" => "webp",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "text/plain" => "txt",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Bind, Config, Draft};

    #[test]
    fn every_artifact_is_a_file_and_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(Config::new(directory.path().join("workspace"))).unwrap();
        let make = |title: &str| {
            let draft = Draft::new(title, "", "tester");
            workspace.import(&mut title.as_bytes(), draft, "tester").unwrap()
        };
        let (one, two) = (make("one"), make("two"));
        workspace.archive(&one, true, "tester").unwrap();
        workspace.bind(Bind::new("a", "A"), "tester").unwrap();
        let target = directory.path().join("export");
        assert_eq!(workspace.export(&target, |_, _| {}).unwrap(), 2);
        assert_eq!(std::fs::read(target.join(format!("{two}.txt"))).unwrap(), b"two");
        let lines = |name: &str| std::fs::read_to_string(target.join(name)).unwrap();
        assert_eq!(lines("artifacts.jsonl").lines().count(), 2);
        assert!(lines("identities.jsonl").starts_with("{\"id\":\"a\""));
        assert_eq!(lines("connections.jsonl"), "");
        assert!(workspace.export(&target, |_, _| {}).is_err());
        let mut seen = Vec::new();
        workspace.each_recent(|entry| seen.push(entry.id)).unwrap();
        assert_eq!(seen, [two]);
    }
}
