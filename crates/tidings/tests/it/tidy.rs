//! The rules of the tree that a compiler does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The longest a source file may be.
const LINES: usize = 600;
/// The longest a function may be outside of tests: a screen.
const FUNCTION: usize = 60;
/// In how many modules one name of a type may be defined.
const MODULES: usize = 3;
/// The names of types that any module may define: where they are used, the module stands before them.
const QUALIFIED: [&str; 5] = ["Arguments", "Config", "Error", "Kind", "State"];
/// Names of modules that do not say what lives there.
const VAGUE: [&str; 9] =
    ["common", "helpers", "manager", "misc", "model", "shared", "types", "util", "utils"];
/// What a test begins with.
const TESTS: [&str; 3] = ["#[test]", "#[tokio::test", "proptest! {"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".venv", ".git"].contains(&name.as_str()) {
                files(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    files(&root.join("crates"), &mut found);
    files(&root.join("fuzz"), &mut found);
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The pages at the root of the tree and below `docs`.
fn documents() -> Vec<(String, String)> {
    let folders = ["", "docs", "docs/decisions"].map(|folder| root().join(folder));
    let pages = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    pages
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The code of a file, without the tests below it.
fn code(text: &str) -> &str {
    text.split("mod tests {").next().unwrap()
}

/// Whether a file holds nothing but tests.
fn is_test(name: &str) -> bool {
    name.contains("test")
}

#[test]
fn every_file_says_first_what_it_is_for() {
    for (name, text) in sources() {
        assert!(text.starts_with("//! "), "{name} does not begin with //!");
    }
}

#[test]
fn no_file_is_too_long() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES, "{name} has {lines} lines: where is the seam?");
    }
}

/// The name of the function that a line begins, and the line that would end its body.
fn begun_function(line: &str) -> Option<(&str, String)> {
    let item = line.trim_start();
    let indent = &line[..line.len() - item.len()];
    let (before, rest) = item
        .strip_prefix("fn ")
        .map_or_else(|| item.split_once(" fn "), |rest| Some(("", rest)))?;
    let is_item = before
        .split(' ')
        .all(|word| ["", "pub", "const", "async"].contains(&word) || word.starts_with("pub("));
    let name = rest.split(|it: char| it != '_' && !it.is_alphanumeric()).next()?;
    is_item.then(|| (name, format!("{indent}}}")))
}

/// The functions of a file with their numbers of lines. One without a body has none.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let functions = lines.iter().enumerate().filter_map(|(at, line)| {
        let (name, end) = begun_function(line)?;
        let head = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}']))?;
        let body = lines[at + head].ends_with('{');
        let last = lines[at..].iter().position(|line| *line == end).filter(|_| body)?;
        Some((name, last + 1))
    });
    functions.collect()
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let all = sources();
    let is_code = |name: &str| name.contains("/src/") && !is_test(name);
    let mut seen = 0;
    for (file, text) in all.iter().filter(|(file, _)| is_code(file)) {
        for (name, lines) in functions(code(text)) {
            assert!(lines <= FUNCTION, "`{name}` in {file} has {lines} lines: where is the seam?");
            seen += 1;
        }
    }
    assert!(seen > 1000, "functions are found: {seen}");
    let text = "fn short();\n    pub(crate) async fn long(\n    ) {\n        it\n    }\n";
    assert_eq!(functions(text), [("long", 4)]);
}

/// The type that a line defines. Associated types have the names that others gave them.
fn defined_type(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let is_associated = item != line && item.starts_with("type ");
    let item = match item.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => item,
    };
    let (keyword, rest) = item.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&keyword) && !is_associated;
    let name = rest.split(|it: char| it != '_' && !it.is_alphanumeric()).next()?;
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

#[test]
fn the_name_of_a_type_says_what_it_is() {
    let mut modules = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, text) in sources() {
        if file.contains("/src/") && !is_test(&file) {
            for name in code(&text).lines().filter_map(defined_type) {
                modules.entry(name.to_owned()).or_default().insert(file.clone());
            }
        }
    }
    assert!(modules.contains_key("Pipeline"), "types are found");
    for (name, files) in modules {
        let is_clear = files.len() <= MODULES || QUALIFIED.contains(&name.as_str());
        assert!(is_clear, "`{name}` is defined in {files:#?}");
    }
}

#[test]
fn the_name_of_a_module_says_what_lives_there() {
    for (name, _) in sources() {
        for part in name.trim_end_matches(".rs").split('/') {
            assert!(!VAGUE.contains(&part), "{name}: what is it?");
        }
    }
}

#[test]
fn the_path_of_a_test_says_that_it_is_one() {
    for (name, text) in sources() {
        let tests = TESTS.iter().any(|it| code(&text).contains(it));
        assert!(!tests || is_test(&name), "{name} has tests outside of `mod tests`");
        for declared in text.split("#[cfg(test)]\n").skip(1) {
            let line = declared.lines().next().unwrap();
            let module = line.split_once("mod ").filter(|_| line.ends_with(';'));
            let is_named = module.is_none_or(|(_, module)| is_test(module));
            assert!(is_named, "{name} declares tests: {line}");
        }
    }
}

#[test]
fn the_documents_hold_no_conflict_of_a_merge() {
    let marks = ["<".repeat(7), ">".repeat(7)];
    for (name, text) in documents() {
        for (line, content) in text.lines().enumerate() {
            let marked = marks.iter().any(|mark| content.starts_with(mark.as_str()));
            assert!(!marked, "{name}:{} is a mark of a conflict", line + 1);
        }
    }
}

#[test]
fn the_files_in_the_code_map_exist() {
    let sources = sources();
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for word in map.split('`').skip(1).step_by(2) {
        if Path::new(word).extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let path = word.trim_start_matches("…/");
        let exists = sources.iter().any(|(name, _)| {
            name.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        });
        assert!(exists, "ARCHITECTURE.md names {word}, which does not exist");
    }
}

#[test]
fn main_stays_short() {
    let main = std::fs::read_to_string(root().join("crates/tidings/src/main.rs")).unwrap();
    assert!(main.lines().count() < 60);
}

#[test]
fn the_core_knows_no_runtime_and_no_protocol() {
    let manifest = std::fs::read_to_string(root().join("crates/tidings-core/Cargo.toml")).unwrap();
    for word in ["tokio", "rmcp", "axum", "reqwest"] {
        assert!(!manifest.contains(word), "tidings-core depends on {word}");
    }
    for (name, text) in sources() {
        if name.starts_with("crates/tidings-core/src") {
            for word in ["std::fs", "std::net", "std::time", "std::thread", "std::env"] {
                assert!(!text.contains(word), "{name} uses {word}");
            }
        }
    }
}

/// The service and the transports of the protocol library stay behind our own.
#[test]
fn the_protocol_library_is_named_only_where_it_is_met() {
    for (name, text) in sources() {
        let meets = ["/handler/", "/transport/", "/connect/", "tidings-server/src/context.rs"]
            .iter()
            .any(|part| name.contains(part));
        let is_library = ["crates/tidings-server/src/", "crates/tidings-mirror/src/"]
            .iter()
            .any(|library| name.starts_with(library));
        if is_library && !meets {
            for word in ["rmcp::service", "rmcp::transport", "RoleServer", "RoleClient"] {
                assert!(!text.contains(word), "{name} names {word}");
            }
        }
    }
}

/// The modules of the server form no cycle: each knows only those below it.
#[test]
fn the_modules_of_the_server_form_no_cycle() {
    let root = "crates/tidings-server/src/";
    let mut knows = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, text) in sources() {
        let Some(file) = name.strip_prefix(root).filter(|file| !is_test(file)) else {
            continue;
        };
        let module = file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let code = code(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code.filter(|_| module != "lib") {
            for other in line.split("crate::").skip(1) {
                let other = other.split(|it: char| it != '_' && !it.is_alphanumeric()).next();
                let other = other.unwrap().to_owned();
                if other != module && other.starts_with(char::is_lowercase) {
                    knows.entry(module.clone()).or_default().insert(other);
                }
            }
        }
    }
    // Whoever knows nobody that is left can go; a cycle never can.
    loop {
        let left: BTreeSet<_> = knows.keys().cloned().collect();
        let before = knows.len();
        knows.retain(|_, others| others.iter().any(|other| left.contains(other)));
        if knows.len() == before {
            break;
        }
    }
    assert!(knows.is_empty(), "these know each other, directly or not: {knows:#?}");
}

/// Protocol revisions are compared in one file of the library.
#[test]
fn versions_are_compared_in_one_place() {
    for (name, text) in sources() {
        let library = name.starts_with("crates/tidings-server/src/")
            || name.starts_with("crates/tidings-mirror/src/");
        if library && !name.ends_with("era.rs") && !name.ends_with("tests.rs") {
            let code = text.split("#[cfg(test)]").next().unwrap();
            for version in ["V_2024", "V_2025", "V_2026", "\"2024-", "\"2025-", "\"2026-"] {
                assert!(!code.contains(version), "{name} names the revision {version}");
            }
        }
    }
}

/// Server and client know each other's wire and nothing else.
#[test]
fn the_server_and_the_mirror_do_not_know_each_other() {
    for (one, other) in [("server", "mirror"), ("mirror", "server")] {
        let manifest = root().join(format!("crates/tidings-{one}/Cargo.toml"));
        let manifest = std::fs::read_to_string(manifest).unwrap();
        assert!(!manifest.contains(&format!("tidings-{other}")), "{one} depends on {other}");
    }
}

/// What puts a client behind a server is one crate, and the program.
#[test]
fn only_upstreams_and_the_program_know_both_the_server_and_the_mirror() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let knows = |other: &str| manifest.contains(&format!("tidings-{other}.workspace"));
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let may = ["tidings", "tidings-upstream"].contains(&name.as_str());
        assert!(may || !(knows("server") && knows("mirror")), "{name} knows both");
    }
}

/// The crates that are a source each.
const SOURCES: [&str; 3] = ["feeds", "folder", "workspace"];

/// A source knows no session, no revision, no transport and no other source.
#[test]
fn sources_meet_neither_the_protocol_nor_a_transport() {
    for source in SOURCES {
        let manifest = root().join(format!("crates/tidings-{source}/Cargo.toml"));
        let manifest = std::fs::read_to_string(manifest).unwrap();
        assert!(!manifest.contains("rmcp"), "sources get the protocol's words from the server");
        for other in SOURCES.iter().filter(|other| **other != source) {
            assert!(!manifest.contains(&format!("tidings-{other}")), "{source} knows {other}");
        }
        assert!(!manifest.contains("clap"), "{source} knows no flag of the program");
    }
    for (name, text) in sources() {
        let is_source = |source: &&str| name.starts_with(&format!("crates/tidings-{source}/src/"));
        if SOURCES.iter().any(is_source) && !is_test(&name) {
            let code = text.split("#[cfg(test)]").next().unwrap();
            for word in ["stdio::", "http::serve", "http::router", "ProtocolVersion", "Hub::"] {
                assert!(!code.contains(word), "{name} names {word}");
            }
        }
    }
}

/// Libraries do not read the environment, print, or install a log subscriber.
#[test]
fn libraries_are_silent() {
    for (name, text) in sources() {
        let library = name.starts_with("crates/tidings-") && name.contains("/src/");
        if library {
            for word in ["std::env", "println!", "eprintln!", "tracing_subscriber"] {
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let code: Vec<_> = code.collect();
                assert!(!code.join("\n").contains(word), "{name} uses {word}");
            }
        }
    }
}

/// A library states the fact, and the program that uses it adds the hint.
#[test]
fn no_library_names_a_flag_or_a_command_of_the_program() {
    for (name, text) in sources() {
        if !name.starts_with("crates/tidings-") || !name.contains("/src/") {
            continue;
        }
        for line in text.lines() {
            let flag = line.split("`--").skip(1).any(|rest| rest.starts_with(char::is_alphabetic));
            assert!(!flag && !line.contains("`tidings "), "{name}: {line}");
        }
    }
}

/// Every recorded exchange is played.
#[test]
fn every_recorded_exchange_is_played() {
    let folder = root().join("crates/tidings/tests/it");
    let player = std::fs::read_to_string(folder.join("wire.rs")).unwrap();
    for entry in std::fs::read_dir(folder.join("wire")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".txt").unwrap();
        assert!(player.contains(&format!("    {name},")), "{name} is not played");
    }
}
