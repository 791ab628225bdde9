//! Tests of running real programs, well and badly behaved.

use std::cell::RefCell;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// A folder with one script in it.
struct ScriptFixture(TempDir);

impl ScriptFixture {
    fn new(script: &str) -> Self {
        let fixture = Self(TempDir::new().unwrap());
        fixture.write("run", script);
        fixture
    }

    fn write(&self, name: &str, script: &str) {
        let path = self.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn job(&self) -> Job {
        Job {
            program: Program { path: self.path().join("run"), interpreter: Vec::new() },
            arguments: Vec::new(),
            directory: self.path().to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            input: Vec::new(),
            patience: Patience::fixed(LIMIT),
            output_limit: 1 << 20,
            grace: Duration::from_millis(50),
            stream: None,
            keeper: None,
        }
    }

    /// Reads a FIFO until no process holds it, and returns what was written.
    fn held(&self, name: &str) -> JoinSet<String> {
        let path = self.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let mut reading = JoinSet::new();
        reading.spawn_blocking(move || std::fs::read_to_string(path).unwrap());
        reading
    }
}

async fn silent(job: Job) -> Run {
    run(job, |_| std::future::ready(())).await.unwrap()
}

async fn run_with_signs(job: Job) -> (Run, Vec<Sign>) {
    let signs = RefCell::new(Vec::new());
    let run = run(job, |sign| {
        signs.borrow_mut().push(sign);
        std::future::ready(())
    });
    (run.await.unwrap(), signs.into_inner())
}

/// Returns once no process holds the FIFO, which must be soon.
async fn let_go(mut held: JoinSet<String>) -> String {
    let end = tokio::time::timeout(Duration::from_secs(5), held.join_next());
    end.await.expect("some process is left").unwrap().unwrap()
}

fn short(limit: u64) -> Patience {
    Patience::fixed(Duration::from_millis(limit))
}

#[tokio::test]
async fn a_program_gets_its_arguments_its_input_its_directory_and_nothing_else() {
    let fixture =
        ScriptFixture::new("cat; echo \" $1 $2\"; pwd -P; env | cut -d= -f1 | sort | tr '\\n' ' '");
    let mut job = fixture.job();
    job.arguments = vec!["a b".into(), "c".into()];
    job.input = b"in".to_vec();
    let run = silent(job).await;
    let root = fixture.path().canonicalize().unwrap();
    let expected = format!("in a b c\n{}\nPATH PWD ", root.display());
    assert_eq!(String::from_utf8(run.output).unwrap().replace("OLDPWD ", "").replace("_ ", ""), {
        expected
    });
    assert_eq!(run.ending, Ending::Code(0));
}

#[tokio::test]
async fn an_interpreter_runs_what_may_not_be_run() {
    let fixture = ScriptFixture::new("echo \"$0 $1\"");
    let mut job = fixture.job();
    std::fs::set_permissions(&job.program.path, Permissions::from_mode(0o644)).unwrap();
    job.program.interpreter = vec!["/usr/bin/env".into(), "sh".into()];
    job.arguments = vec!["x".into()];
    let output = silent(job.clone()).await.output;
    assert_eq!(output, format!("{} x\n", job.program.path.display()).into_bytes());
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    assert_eq!(silent(ScriptFixture::new("exit 7").job()).await.ending, Ending::Code(7));
    assert_eq!(silent(ScriptFixture::new("kill -9 $$").job()).await.ending, Ending::Signal(9));
}

#[tokio::test]
async fn input_nobody_reads_holds_nothing_up() {
    for script in ["echo ok", "exec <&-; echo ok", "head -c 1 >/dev/null; echo ok"] {
        let fixture = ScriptFixture::new(script);
        let mut job = fixture.job();
        job.input = vec![b'x'; 1 << 20];
        let run = silent(job).await;
        assert_eq!((run.ending, run.output), (Ending::Code(0), b"ok\n".to_vec()), "{script}");
    }
}

#[tokio::test]
async fn input_is_fed_while_output_is_read() {
    let fixture = ScriptFixture::new("exec cat");
    let mut job = fixture.job();
    job.input = vec![b'x'; 500_000];
    let run = silent(job.clone()).await;
    assert!(run.output == job.input, "{}", run.output.len());
}

#[tokio::test]
async fn a_flood_on_stdout_ends_the_program() {
    let fixture = ScriptFixture::new("yes");
    let mut job = fixture.job();
    job.output_limit = 100_000;
    assert_eq!(silent(job).await.ending, Ending::TooMuchOutput);
}

#[tokio::test]
async fn output_of_just_the_limit_is_all_there() {
    let fixture = ScriptFixture::new("printf 12345");
    let mut job = fixture.job();
    job.output_limit = 5;
    assert_eq!(silent(job.clone()).await.output, b"12345");
    job.output_limit = 4;
    assert_eq!(silent(job).await.ending, Ending::TooMuchOutput);
}

#[tokio::test]
async fn a_flood_on_stderr_is_read_to_its_end() {
    let fixture = ScriptFixture::new("yes complaint | head -c 5000000 >&2; echo last >&2; echo ok");
    let run = silent(fixture.job()).await;
    assert_eq!(run.output, b"ok\n");
    assert!(run.errors.len() <= 4096 && run.errors.ends_with("complaint\nlast"), "{}", run.errors);
}

#[tokio::test]
async fn signs_come_in_order_and_before_the_end() {
    let fixture = ScriptFixture::new(
        "echo '::log info first' >&2; echo '::progress 1/2 half' >&2; echo plain >&2
         echo '::log warn second' >&2; echo '::progress 50% x' >&2; printf '::progress 2/2' >&2",
    );
    let (run, signs) = run_with_signs(fixture.job()).await;
    let told: Vec<_> = signs
        .iter()
        .map(|sign| match sign {
            Sign::Progress { done, .. } => done.to_string(),
            Sign::Log { data, .. } => data.as_str().unwrap().to_owned(),
        })
        .collect();
    let without_merged: Vec<_> =
        told.iter().filter(|it| !["1", "50"].contains(&it.as_str())).collect();
    assert_eq!(without_merged, ["first", "second", "2"]);
    assert_eq!(run.errors, "plain");
}

/// Output from before the exit is read after it, however late that is.
#[tokio::test]
async fn output_that_waits_in_the_pipe_is_not_lost_on_a_busy_machine() {
    let fixture = ScriptFixture::new(
        "head -c 60000 /dev/zero | tr '\\0' x; sleep 60 & echo '::log info end' >&2",
    );
    let job = fixture.job();
    let mut run = std::pin::pin!(run(job, |_| {
        // Stands in for a machine that is busy for longer than output is waited for.
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(150) {
            std::hint::spin_loop();
        }
        std::future::ready(())
    }));
    assert_eq!((&mut run).await.unwrap().output.len(), 60_000);
}

#[tokio::test]
async fn every_log_line_of_a_burst_arrives() {
    let fixture = ScriptFixture::new("seq 5000 | sed 's/^/::log info /' >&2; echo ok");
    let (mut job, mut told) = (fixture.job(), 0);
    // A busy machine is slow to send.
    job.grace = LIMIT;
    let run = run(job, |sign| {
        told += 1;
        let Sign::Log { data, .. } = sign else { panic!("{sign:?}") };
        assert_eq!(data, told.to_string().as_str());
        tokio::task::yield_now()
    });
    assert_eq!(run.await.unwrap().output, b"ok\n");
    assert_eq!(told, 5000);
}

#[tokio::test]
async fn a_client_that_does_not_listen_does_not_keep_a_program_alive() {
    let fixture = ScriptFixture::new("echo '::log info x' >&2; exec sleep 60");
    let mut job = fixture.job();
    job.patience = short(100);
    tokio::time::timeout(Duration::from_secs(10), async {
        let run = run(job, |_| std::future::pending()).await.unwrap();
        assert_eq!(run.ending, Ending::TimedOut(Reason::Fixed));
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn time_is_up_for_three_reasons() {
    let busy = "while :; do echo '::progress 1' >&2; sleep 0.02; done";
    let ms = Duration::from_millis;
    let patient = |limit, most| Patience { limit: ms(limit), extended: true, at_most: ms(most) };
    for (script, patience, reason) in [
        (busy, short(100), Reason::Fixed),
        ("echo '::progress 1' >&2; exec sleep 60", patient(100, 10_000), Reason::Idle),
        (busy, patient(5_000, 300), Reason::MaxExceeded),
    ] {
        let fixture = ScriptFixture::new(script);
        let mut job = fixture.job();
        job.patience = patience;
        assert_eq!(silent(job).await.ending, Ending::TimedOut(reason), "{script}");
    }
}

/// What `mcp-bash` does with its progress stream while a wrapped program has events.
#[tokio::test]
async fn touching_the_progress_stream_is_a_sign_of_life() {
    let fixture = ScriptFixture::new(
        "for i in 1 2 3 4 5 6; do touch /dev/stderr; sleep 0.1; done; echo done",
    );
    let mut job = fixture.job();
    let (limit, at_most) = (Duration::from_millis(350), Duration::from_secs(20));
    job.patience = Patience { limit, extended: true, at_most };
    assert_eq!(silent(job).await.ending, Ending::Code(0));
}

#[tokio::test]
async fn a_program_that_obeys_may_say_why_it_was_late() {
    let fixture = ScriptFixture::new(
        "trap 'echo late >&2; exit 3' TERM; echo begun >&2; while :; do sleep 0.01; done",
    );
    let mut job = fixture.job();
    (job.patience, job.grace) = (short(400), LIMIT);
    let run = silent(job).await;
    assert_eq!(run.ending, Ending::TimedOut(Reason::Fixed));
    let said = &run.errors;
    assert!(said.starts_with("begun") && said.ends_with("late"), "{said}");
}

#[tokio::test]
async fn a_program_that_ignores_the_request_to_end_is_gone_with_its_children() {
    let fixture = ScriptFixture::new(
        "trap '' TERM; exec 3>held; (echo child; sleep 60) >&3 & echo parent >&3; sleep 60; sleep 60",
    );
    let held = fixture.held("held");
    let mut job = fixture.job();
    job.patience = short(400);
    assert_eq!(silent(job).await.ending, Ending::TimedOut(Reason::Fixed));
    let said = let_go(held).await;
    assert!(said.contains("parent") && said.contains("child"), "{said}");
}

#[tokio::test]
async fn dropping_a_run_ends_the_group() {
    let fixture = ScriptFixture::new(
        "trap '' TERM; exec 3>held; sleep 60 & echo \"::log info $$\" >&2; wait",
    );
    let held = fixture.held("held");
    let (heard, hearing) = tokio::sync::oneshot::channel();
    let mut heard = Some(heard);
    let running = run(fixture.job(), |sign| {
        drop(heard.take().map(|heard| heard.send(sign)));
        std::future::ready(())
    });
    let sign = tokio::select! {
        _ = running => panic!("it runs for a minute"),
        sign = hearing => sign.unwrap(),
    };
    let Sign::Log { data, .. } = sign else { panic!("{sign:?}") };
    let_go(held).await;
    let id = Pid::from_raw(data.as_str().unwrap().parse().unwrap()).unwrap();
    let reaped = async {
        while rustix::process::test_kill_process(id).is_ok() {
            // The runtime reaps its orphans when another child ends.
            silent(ScriptFixture::new("exit 0").job()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), reaped).await.expect("it is not reaped");
}

#[tokio::test]
async fn a_child_that_holds_the_output_open_is_not_waited_for() {
    let fixture = ScriptFixture::new("exec 3>held; sleep 60 & echo done; exit 4");
    let held = fixture.held("held");
    let run = silent(fixture.job()).await;
    assert_eq!((run.ending, run.output), (Ending::Code(4), b"done\n".to_vec()));
    let_go(held).await;
}

#[tokio::test]
async fn a_child_that_closed_the_output_is_gone_too() {
    let fixture = ScriptFixture::new("exec 3>held; sleep 60 >/dev/null 2>&1 & exit 0");
    let held = fixture.held("held");
    assert_eq!(silent(fixture.job()).await.ending, Ending::Code(0));
    let_go(held).await;
}

#[tokio::test]
async fn what_cannot_be_run_is_named_with_what_to_do() {
    let fixture = ScriptFixture::new("exit 0");
    let failure = async |job: Job| {
        let error = run(job, |_| std::future::ready(())).await.unwrap_err();
        error.within(fixture.path()).to_string()
    };
    let with = |name: &str| {
        let mut job = fixture.job();
        job.program.path = fixture.path().join(name);
        job
    };
    let text = |name: &str, mode: u32, text: &str| {
        let path = fixture.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        with(name)
    };
    let check = async |job: Job, expected: &str| {
        let message = failure(job).await;
        assert!(message.contains(expected), "{message}");
    };
    check(with("none"), "`none` does not exist").await;
    check(text("plain", 0o644, "#!/bin/sh\n"), "`plain` may not be run; give it").await;
    check(text("odd", 0o755, "#!/nowhere/sh\n"), "`odd` cannot be run: the program its `#!`").await;
    check(text("empty", 0o755, "x"), "has no `#!` line").await;
    let fifo = fixture.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    check(with("fifo"), "`fifo` is not a file").await;
    let mut job = fixture.job();
    job.directory = fixture.path().join("gone");
    check(job, "its directory").await;
    let mut job = fixture.job();
    job.environment.push(("BIG".into(), "x".repeat(4 << 20).into()));
    check(job, "pass less").await;
}

#[tokio::test]
async fn a_program_that_is_being_written_is_tried_again() {
    let fixture = ScriptFixture::new("exit 0");
    let path = fixture.path().join("program");
    std::fs::copy("/bin/sh", &path).unwrap();
    let writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut job = fixture.job();
    job.program.path = path;
    job.arguments = vec!["-c".into(), "exit 5".into()];
    let written = async {
        tokio::task::yield_now().await;
        drop(writer);
    };
    let (run, ()) = tokio::join!(silent(job), written);
    assert_eq!(run.ending, Ending::Code(5));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_without_where_it_is() {
    let fixture = ScriptFixture::new("exit 0");
    let said = async |path: &Path| {
        let mut job = fixture.job();
        job.program.path = path.to_owned();
        let error = run(job, |_| std::future::ready(())).await.unwrap_err();
        error.within(fixture.path()).to_string()
    };
    let inside = said(&fixture.path().join("tools/gone")).await;
    assert!(inside.starts_with("`tools/gone` does not exist"), "{inside}");
    let outside = said(Path::new("/srv/secret/gone")).await;
    assert!(outside.starts_with("`gone` does not exist"), "{outside}");
}
