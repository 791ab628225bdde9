//! Advice for problems of a folder, as options of the command line.

use tidings_folder::{Problem, Setting};

/// The problem, with this program's way to fix it.
pub(crate) fn advised(problem: &Problem) -> Problem {
    let mut advised = problem.clone();
    if let Some(setting) = &problem.setting
        && let Some(advice) = advice(setting)
    {
        advised.advice = advice;
    }
    if problem.fix.is_some() {
        advised.advice += ", or run `tidings lint --fix`";
    }
    advised
}

fn advice(setting: &Setting) -> Option<String> {
    Some(match setting {
        Setting::Variable(None) => "pass the variables it reads with `--env NAME`".to_owned(),
        Setting::Variable(Some(name)) => {
            format!("set it, and serve the folder with `--env {name}`")
        }
        Setting::Register => "run it with `--allow-register`, if you trust it".to_owned(),
        Setting::Poll => "allow more watches (`sysctl fs.inotify.max_user_watches`), or serve it \
            with `--poll`"
            .to_owned(),
        _ => return None,
    })
}

/// The advice for a caller about a variable that programs do not get.
pub(crate) fn of_withheld(variable: &str) -> String {
    format!(
        "`{variable}` is set and not passed to programs: serve the folder with `--env {variable}`"
    )
}

#[cfg(test)]
mod tests {
    use tidings_folder::{Config, Folder};

    use super::*;

    #[tokio::test]
    async fn what_a_folder_wants_is_said_as_options_of_this_program() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("server.d/server.meta.json", r#"{ "env": ["API_KEY"] }"#);
        write("tools/a/tool.sh", "#!/bin/sh\n");
        write("tools/a/tool.meta.json", r#"{ "name": "a", "description": "A" }"#);
        let mut config = Config::new(folder.path().to_owned());
        config.checks = false;
        let problems = Folder::open(config).await.unwrap().problems();
        let advice: Vec<_> = problems.iter().map(|problem| advised(problem).advice).collect();
        for expected in [
            "`chmod +x` it, or run `tidings lint --fix`",
            "set it, and serve the folder with `--env API_KEY`",
        ] {
            assert!(advice.iter().any(|it| it == expected), "{advice:?}");
        }
    }
}
