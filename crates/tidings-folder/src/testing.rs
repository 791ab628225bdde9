//! Fixtures for the tests of this crate.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidings_server::model::Tool;

use crate::Config;
use crate::offer::{Dialect, Patience, Program, ToolScript};
use crate::workshop::{Hosts, Workshop};

/// A temporary folder.
pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) config: Config,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(folder.path().canonicalize().unwrap());
        config.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        Self { folder, config }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn workshop(&self) -> Workshop {
        let mut workshop = Workshop::new(&self.config, &Hosts::default());
        workshop.grace = Duration::from_millis(50);
        // Inside the folder, so that tests see leftovers.
        workshop.scratch = self.config.root.join("scratch");
        std::fs::create_dir_all(&workshop.scratch).unwrap();
        workshop
    }

    /// A shell script.
    pub(crate) fn script(&self, name: &str, text: &str) -> Program {
        let path = self.config.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Program { path, interpreter: Vec::new() }
    }

    /// A tool named `try` that accepts any arguments.
    pub(crate) fn tool(&self, text: &str) -> ToolScript {
        let program = self.script("tools/try/tool.sh", text);
        let schema = json!({ "type": "object" });
        ToolScript {
            tool: Tool::new("try", "tries", Arc::new(schema.as_object().unwrap().clone())),
            directory: program.path.parent().unwrap().to_owned(),
            program,
            dialect: Dialect::Own,
            patience: Patience::fixed(Duration::from_secs(20)),
            hint: None,
            metadata: json!({ "name": "try" }),
            input: schema_of(&schema),
            output: None,
        }
    }
}

pub(crate) fn schema_of(schema: &Value) -> Arc<jsonschema::Validator> {
    Arc::new(jsonschema::validator_for(schema).unwrap())
}
