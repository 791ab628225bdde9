//! The policy of an `mcp-bash` project: a shell function that must allow each tool call.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tidings_server::AnswerError;

use crate::offer::{Patience, Program, ToolScript};
use crate::problem::{Problem, Setting};
use crate::register::distrust;
use crate::script::{self, Ending};
use crate::tree::Root;
use crate::withheld;
use crate::workshop::Workshop;

pub(crate) const FILE: &str = "server.d/policy.sh";
/// The function that a policy must define.
const FUNCTION: &str = "mcp_tools_policy_check";
/// The caller name under which policy checks queue.
const CALLER: &str = "policy";
/// Time limit of a decision.
const LIMIT: Duration = Duration::from_secs(10);
const OUTPUT: usize = 64 << 10;
/// How much of a policy is searched for variables.
const TEXT: u64 = 1 << 20;
/// The longest description that is passed as an argument. Systems refuse arguments of 128 KiB.
const METADATA: usize = 64 << 10;
/// Calls the function with the tool's name and description. Whatever the policy expects of
/// `mcp-bash` that is not here ends the shell: a policy that is half understood allows nothing.
const ASK: &str = r#"set -uo pipefail
command_not_found_handle() {
    printf 'it calls `%s`, which does not exist here\n' "$1" >&2
    kill -KILL $$
}
mcp_tools_error() { _MCP_TOOLS_ERROR_MESSAGE=${2-}; }
mcp_logging_debug() { :; }
mcp_logging_info() { :; }
mcp_logging_warning() { :; }
mcp_logging_error() { :; }
_MCP_TOOLS_ERROR_CODE=0
_MCP_TOOLS_ERROR_MESSAGE=
. "$1" >&2 || exit 1
if ! declare -F mcp_tools_policy_check >/dev/null; then
    printf 'it defines no function `mcp_tools_policy_check`\n' >&2
    exit 1
fi
mcp_tools_policy_check "$2" "$3" >&2 && exit 0
printf '%s' "$_MCP_TOOLS_ERROR_MESSAGE"
exit 1
"#;

/// What the operator should know about a folder's policy, if it has one.
pub(crate) fn problem(root: &Root) -> Option<Problem> {
    let file = Path::new(FILE);
    root.absolute(file).symlink_metadata().ok()?;
    distrusted(root).or_else(|| {
        let Ok(text) = root.read(file, TEXT) else {
            let reason = "it is too long, or cannot be read; every call of a tool is refused";
            return Some(Problem::error(file, reason, "correct its permissions or its length"));
        };
        if !may_define(&String::from_utf8_lossy(&text)) {
            let reason =
                format!("it defines no function `{FUNCTION}`; every call of a tool is refused");
            return Some(Problem::error(file, reason, "write the function, or remove the file"));
        }
        let reason = "its function `mcp_tools_policy_check` is asked before every call of a tool";
        let problem = Problem::note(file, reason, "pass the variables it reads to programs");
        Some(problem.for_want_of(Setting::Variable(None)))
    })
}

/// Whether a policy may define the function, directly or by sourcing another file.
fn may_define(text: &str) -> bool {
    let sources = |line: &str| {
        line.trim_start().starts_with(". ") || line.trim_start().starts_with("source ")
    };
    text.contains(FUNCTION) || text.lines().any(sources)
}

/// Why the policy is not run, so that every call is refused.
fn distrusted(root: &Root) -> Option<Problem> {
    let file = Path::new(FILE);
    let is_link = root.absolute(file).symlink_metadata().is_ok_and(|it| !it.is_file());
    let problem = if is_link {
        let reason = "it is not run: it is a link, or not a file";
        Some(Problem::error(file, reason, "put a copy of the file there"))
    } else {
        distrust(root, file)
    };
    problem.map(|it| {
        let reason = format!("{}; every call of a tool is refused", it.reason);
        Problem { reason, ..it }
    })
}

/// Asks the policy, if there is one, whether a tool may be called.
///
/// # Errors
///
/// The policy denies the call or cannot be asked.
pub(crate) async fn ask(
    workshop: &Workshop,
    root: &Root,
    script: &ToolScript,
) -> Result<(), AnswerError> {
    let policy = root.absolute(Path::new(FILE));
    let looked = policy.symlink_metadata().map_err(|error| error.kind());
    if let Err(ErrorKind::NotFound | ErrorKind::NotADirectory) = looked {
        return Ok(());
    }
    let name = script.tool.name.as_ref();
    let refused = |why: &str| {
        let details = format!("`{name}` is refused by `{FILE}`: {why}");
        Err(AnswerError::invalid("name", name, details))
    };
    if looked.is_err() {
        return refused("it cannot be read");
    }
    if let Some(problem) = distrusted(root) {
        return refused(&problem.reason);
    }
    // If a policy reads a withheld variable, it would decide as if the variable were not set.
    let Ok(text) = root.read(Path::new(FILE), TEXT) else {
        return refused("it is too long, or cannot be read");
    };
    let text = String::from_utf8_lossy(&text);
    if let Some(variable) = withheld::read_by(&text, &workshop.withheld) {
        return refused(&format!("it reads `{variable}`; {}", (workshop.withheld_hint)(variable)));
    }
    let Some(bash) = workshop.along_path("bash".as_ref()) else {
        return refused("there is no `bash` to run it with");
    };
    let metadata = script.metadata.to_string();
    if metadata.len() > METADATA {
        return refused("the tool's description is too long to be passed");
    }
    // Queues like every other program.
    let turn = workshop.queue.enter(CALLER).await;
    let _permit = turn.map_err(|full| AnswerError::Unavailable(full.to_string()))?;
    let program = Program { path: bash, interpreter: Vec::new() };
    let mut job = workshop.job(&program, &workshop.root, Patience::fixed(LIMIT));
    job.arguments =
        vec!["-c".into(), ASK.into(), "policy".into(), policy.into(), name.into(), metadata.into()];
    job.output_limit = OUTPUT;
    let run = match script::run(job, |_| std::future::ready(())).await {
        Ok(run) => run,
        Err(error) => return refused(&error.within(&workshop.root).to_string()),
    };
    match run.ending {
        Ending::Code(0) => Ok(()),
        Ending::TimedOut(_) => refused(&format!("it took longer than {} s", LIMIT.as_secs())),
        _ => {
            let said = String::from_utf8_lossy(&run.output);
            let last = run.errors.lines().next_back().unwrap_or_default();
            let why = if said.trim().is_empty() { last } else { said.trim() };
            refused(if why.is_empty() { "it does not allow it" } else { why })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::testing::Fixture;

    /// The answer to a call of the tool `try` under this policy.
    async fn check(policy: &str, prepare: impl FnOnce(&mut Fixture)) -> Result<(), String> {
        let mut fixture = Fixture::new();
        fixture.script(FILE, "");
        let file = fixture.config.root.join(FILE);
        std::fs::write(&file, policy).unwrap();
        for (place, mode) in [(file.as_path(), 0o600), (&fixture.config.root, 0o700)] {
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(file.parent().unwrap(), std::fs::Permissions::from_mode(0o700))
            .unwrap();
        prepare(&mut fixture);
        let root = Root::new(&fixture.config.root).unwrap();
        let asked = ask(&fixture.workshop(), &root, &fixture.tool("true")).await;
        asked.map_err(|error| error.to_string())
    }

    const READ_ONLY: &str = r#"mcp_tools_policy_check() {
        if [ "${READ_ONLY:-0}" = 1 ] && [[ $1 != get* ]]; then
            mcp_tools_error -32602 "read-only mode"; return 1
        fi
    }"#;

    #[tokio::test]
    async fn a_policy_decides_over_each_call() {
        assert_eq!(check(READ_ONLY, |_| {}).await, Ok(()));
        let set = |fixture: &mut Fixture| {
            fixture.config.environment.push(("READ_ONLY".into(), "1".into()));
        };
        let refused = "`try` is refused by `server.d/policy.sh`: read-only mode";
        assert_eq!(check(READ_ONLY, set).await, Err(refused.to_owned()));
        let named =
            r#"mcp_tools_policy_check() { [ "$2" = '{"name":"try"}' ] && [ "$1" = try ]; }"#;
        assert_eq!(check(named, |_| {}).await, Ok(()));
    }

    /// With its variable withheld, the policy would believe that read-only mode is off.
    #[tokio::test]
    async fn a_policy_is_not_asked_without_the_variables_it_reads() {
        let withhold = |fixture: &mut Fixture| {
            fixture.config.withheld.insert("READ_ONLY".into());
        };
        let refused = check(READ_ONLY, withhold).await.unwrap_err();
        let hint = "`READ_ONLY` is set and not passed to programs";
        assert!(refused.contains(hint), "{refused}");
    }

    #[tokio::test]
    async fn a_policy_that_is_half_understood_allows_nothing() {
        let refused = async |policy: &str, why: &str| {
            let refused = check(policy, |_| {}).await.unwrap_err();
            assert!(refused.contains(why), "{refused}");
        };
        let unknown = "mcp_tools_policy_check() { if mcp_denied; then return 1; fi; return 0; }";
        refused(unknown, "`mcp_denied`, which does not exist here").await;
        refused("true", "it defines no function").await;
        refused("mcp_tools_policy_check() {", "syntax error").await;
        refused("mcp_tools_policy_check() { [ -n \"$NO_SUCH\" ]; return 0; }", "unbound").await;
    }

    #[tokio::test]
    async fn a_policy_that_others_can_write_allows_nothing() {
        let open = |fixture: &mut Fixture| {
            let mode = std::fs::Permissions::from_mode(0o666);
            std::fs::set_permissions(fixture.config.root.join(FILE), mode).unwrap();
        };
        let refused = check(READ_ONLY, open).await.unwrap_err();
        assert!(refused.contains("can be written by others"), "{refused}");
    }
}
