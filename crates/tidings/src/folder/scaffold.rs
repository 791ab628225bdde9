//! Template files: a whole folder, or one more tool, prompt or resource.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::args::{Language, Shape};
use crate::report::Usage;

/// The longest name of a tool or a prompt.
const NAME: usize = 64;

/// A file to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Relative to the folder.
    pub(crate) path: PathBuf,
    text: String,
    executable: bool,
}

impl Piece {
    fn file(path: impl Into<PathBuf>, text: String) -> Self {
        Self { path: path.into(), text, executable: false }
    }

    fn program(path: impl Into<PathBuf>, text: String) -> Self {
        Self { executable: true, ..Self::file(path, text) }
    }
}

/// A small folder with an item of each kind.
pub(crate) fn example(server: &str) -> Vec<Piece> {
    let named = |text: &str| text.replace("@SERVER@", server);
    macro_rules! template {
        ($file:literal) => {
            named(include_str!(concat!("template/example/", $file)))
        };
    }
    vec![
        Piece::file("README.md", template!("README.md")),
        Piece::file(".tidingsignore", template!("tidingsignore")),
        Piece::file("prompts/explain.md", template!("prompts/explain.md")),
        Piece::file("resources/colours.json", template!("resources/colours.json")),
        Piece::file("resources/notes.jsonl", template!("resources/notes.jsonl")),
        Piece::file(
            "resources/notes.jsonl.meta.json",
            template!("resources/notes.jsonl.meta.json"),
        ),
        Piece::file("resources/welcome.md", template!("resources/welcome.md")),
        Piece::file(
            "server.d/server.instructions.md",
            template!("server.d/server.instructions.md"),
        ),
        Piece::file("server.d/server.meta.json", template!("server.d/server.meta.json")),
        Piece::file("tools/greet/tool.meta.json", template!("tools/greet/tool.meta.json")),
        Piece::program("tools/greet/tool.sh", template!("tools/greet/tool.sh")),
        Piece::program("tools/note.sh", template!("tools/note.sh")),
    ]
}

/// A tool that prints its arguments.
pub(crate) fn tool(name: &str, language: Language, shape: Shape) -> Result<Vec<Piece>, Usage> {
    check_name("tool", name)?;
    let folder = Path::new("tools");
    let program = match (language, shape) {
        (Language::Sh, Shape::Directory) => include_str!("template/item/tool.sh"),
        (Language::Sh, Shape::Single) => include_str!("template/item/single.sh"),
        (Language::Python, Shape::Directory) => include_str!("template/item/tool.py"),
        (Language::Python, Shape::Single) => include_str!("template/item/single.py"),
    };
    let program = program.replace("@NAME@", name);
    let ending = match language {
        Language::Sh => "sh",
        Language::Python => "py",
    };
    Ok(match shape {
        Shape::Single => vec![Piece::program(folder.join(format!("{name}.{ending}")), program)],
        Shape::Directory => {
            let folder = folder.join(name);
            let description = include_str!("template/item/tool.meta.json").to_owned();
            vec![
                Piece::file(folder.join("tool.meta.json"), description),
                Piece::program(folder.join(format!("tool.{ending}")), program),
            ]
        }
    })
}

/// A prompt with an argument.
pub(crate) fn prompt(name: &str) -> Result<Vec<Piece>, Usage> {
    check_name("prompt", name)?;
    let text = include_str!("template/item/prompt.md").replace("@NAME@", name);
    Ok(vec![Piece::file(format!("prompts/{name}.md"), text)])
}

/// A resource and its description. Without an extension, it is Markdown.
pub(crate) fn resource(name: &Path) -> Result<Vec<Piece>, Usage> {
    let wrong = |reason: &str| {
        Usage::new(format!("`{}` cannot name a resource: {reason}", name.display()))
            .hint("give a path below `resources`, such as `notes/today.md`")
    };
    for component in name.components() {
        match component {
            Component::Normal(part) if !part.as_encoded_bytes().starts_with(b".") => {}
            Component::Normal(_) => return Err(wrong("hidden files are not served")),
            Component::ParentDir => return Err(wrong("it leads out of the folder")),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(wrong("it is absolute")),
        }
    }
    let text = name.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
    if text.chars().any(char::is_control) {
        return Err(wrong("it has control characters"));
    }
    let stem = name.file_stem().filter(|_| !text.ends_with('/'));
    let stem = stem.ok_or_else(|| wrong("it names no file"))?.to_string_lossy();
    if text.ends_with(".meta.json") || text.ends_with(".meta.toml") {
        return Err(wrong("`.meta.json` and `.meta.toml` describe another file"));
    }
    let ending = name.extension().and_then(|ending| ending.to_str());
    let path = Path::new("resources").join(match ending {
        Some(_) => name.to_owned(),
        None => name.with_extension("md"),
    });
    // Inside JSON, a name is escaped; the template has the quotes.
    let escaped = serde_json::to_string(&stem).expect("texts are JSON");
    let escaped = &escaped[1..escaped.len() - 1];
    let content = match ending {
        None | Some("md" | "markdown") => {
            include_str!("template/item/resource.md").replace("@NAME@", &stem)
        }
        Some("json") => include_str!("template/item/resource.json").replace("@NAME@", escaped),
        Some(_) => include_str!("template/item/resource.txt").replace("@NAME@", &stem),
    };
    let mut description = path.clone().into_os_string();
    description.push(".meta.json");
    let about = include_str!("template/item/resource.meta.json").replace("@NAME@", escaped);
    Ok(vec![Piece::file(path, content), Piece::file(description, about)])
}

/// The file in the way of a new tool: the same tool in another form or language.
pub(crate) fn tool_in_the_way(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder.join("tools")).ok()?;
    let mut names = entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let taken = names.find(|file| {
        let stem = file.to_str().map(|file| file.split('.').next().unwrap_or(file));
        stem == Some(name)
    });
    taken.map(|file| Path::new("tools").join(file))
}

/// Creates the files. If one of them exists, creates none.
pub(crate) fn make(folder: &Path, pieces: &[Piece]) -> Result<()> {
    for piece in pieces {
        let path = folder.join(&piece.path);
        if std::fs::symlink_metadata(&path).is_ok() {
            return Err(taken(&path).into());
        }
    }
    for piece in pieces {
        let path = folder.join(&piece.path);
        let making = || format!("creating `{}`", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(making)?;
        }
        let mode = if piece.executable { 0o777 } else { 0o666 };
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(taken(&path).into());
            }
            Err(error) => return Err(error).with_context(making),
        };
        file.write_all(piece.text.as_bytes()).with_context(making)?;
    }
    Ok(())
}

/// The error for a file that exists.
pub(crate) fn taken(path: &Path) -> Usage {
    Usage::new(format!("`{}` already exists", path.display()))
        .hint("choose another name, or remove it first")
}

fn check_name(kind: &str, name: &str) -> Result<(), Usage> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if (1..=NAME).contains(&name.len()) && name.chars().all(plain) {
        return Ok(());
    }
    Err(Usage::new(format!("`{name}` is not a valid {kind} name"))
        .hint(format!("use 1 to {NAME} letters A to Z or a to z, digits, `_` or `-`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(name: &str, because: &str) {
        let usage = resource(Path::new(name)).unwrap_err();
        assert!(usage.to_string().contains(because), "{usage}");
    }

    fn paths(pieces: &[Piece]) -> Vec<&str> {
        pieces.iter().filter_map(|piece| piece.path.to_str()).collect()
    }

    #[test]
    fn resources_stay_inside() {
        refused("../x.md", "leads out");
        refused("a/../../x.md", "leads out");
        refused("/etc/x.md", "absolute");
        refused(".x", "hidden");
        refused("", "names no file");
        refused("x/", "names no file");
        refused("x.md.meta.json", "describe another");
        refused("a\nb.md", "control");
    }

    #[test]
    fn a_resource_is_made_with_its_description() {
        let made = resource(Path::new("a/to\"day")).unwrap();
        assert_eq!(paths(&made), ["resources/a/to\"day.md", "resources/a/to\"day.md.meta.json"]);
        let about: serde_json::Value = serde_json::from_str(&made[1].text).unwrap();
        assert_eq!(about["name"], "to\"day");
        let made = resource(Path::new("x.json")).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&made[0].text).is_ok());
    }

    #[test]
    fn names_of_tools_and_prompts_are_plain() {
        for name in ["", "a b", "../x", "é", "a.b", &"x".repeat(65)] {
            assert!(tool(name, Language::Sh, Shape::Single).is_err(), "{name}");
            assert!(prompt(name).is_err(), "{name}");
        }
        assert!(prompt(&"x".repeat(64)).is_ok());
    }

    #[test]
    fn every_template_is_filled_in_and_every_description_is_json() {
        let mut pieces = example("hello");
        for language in [Language::Sh, Language::Python] {
            for shape in [Shape::Single, Shape::Directory] {
                pieces.extend(tool("it", language, shape).unwrap());
            }
        }
        pieces.extend(prompt("it").unwrap());
        for piece in &pieces {
            let path = piece.path.display();
            assert!(!piece.text.contains("@NAME@") && !piece.text.contains("@SERVER@"), "{path}");
            assert_eq!(piece.executable, piece.text.starts_with("#!"), "{path}");
            if piece.path.extension().is_some_and(|ending| ending == "json") {
                assert!(serde_json::from_str::<serde_json::Value>(&piece.text).is_ok(), "{path}");
            }
        }
    }

    #[test]
    fn nothing_is_made_if_something_is_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tools/greet")).unwrap();
        std::fs::write(folder.path().join("tools/greet/tool.sh"), "mine").unwrap();
        let error = make(folder.path(), &example("hello")).unwrap_err();
        assert!(error.to_string().ends_with("tools/greet/tool.sh` already exists"), "{error}");
        assert!(!folder.path().join("README.md").exists());
        assert_eq!(tool_in_the_way(folder.path(), "greet"), Some("tools/greet".into()));
        assert_eq!(tool_in_the_way(folder.path(), "gree"), None);
    }
}
