//! A saved session, read from its file.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tidings_mirror::{Direction, List, Message};

use super::{ArchiveNote, FORMAT, VERSION};
use crate::args::Place;
use crate::console::log::{Lane, Row, Status, Way};
use crate::console::server::Facts;

/// The longest line. A message in the log has at most 1 MiB, a result 16 MiB.
const LONGEST: u64 = 64 << 20;

/// A session that was read.
pub(crate) struct Archive {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) over: &'static str,
    pub(crate) facts: Facts,
    pub(crate) note: ArchiveNote,
    /// The first line, for the identity of the server.
    pub(crate) head: Value,
}

/// Why a file is no saved session, with the number of the line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub(crate) struct BadLine {
    line: usize,
    why: String,
}

/// Reads a session. A file that was cut is read up to there, and the note says so.
///
/// # Errors
///
/// If it cannot be read, or a line before its end is not one of a saved session.
pub(crate) fn read(path: &Path) -> anyhow::Result<Archive> {
    use anyhow::Context as _;
    let reading = || format!("opening the saved session `{}`", path.display());
    let file = std::fs::File::open(path).with_context(reading)?;
    let mut archive = parse(BufReader::new(file)).with_context(reading)?;
    archive.note.file = path.display().to_string();
    Ok(archive)
}

fn parse(mut input: impl BufRead) -> anyhow::Result<Archive> {
    let mut number = 0;
    let mut archive: Option<Archive> = None;
    let mut is_whole = false;
    let mut cut = None;
    loop {
        let mut line = Vec::new();
        let length = (&mut input).take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        number += 1;
        let has_end = line.last() == Some(&b'\n');
        let bad = |why: String| BadLine { line: number, why };
        let value = match serde_json::from_slice::<Value>(&line) {
            Ok(value) => value,
            // The last line has no end: the file was cut inside it.
            Err(_) if !has_end && length as u64 != LONGEST && archive.is_some() => {
                cut = Some(format!("the file is cut in line {number}"));
                break;
            }
            Err(error) => return Err(bad(format!("not JSON: {error}")).into()),
        };
        match &mut archive {
            None => archive = Some(begin(value).map_err(bad)?),
            Some(_) if is_whole => {
                return Err(bad("there are lines after the end".to_owned()).into());
            }
            Some(_) if value.get("end").is_some() => is_whole = true,
            Some(archive) => take(archive, &value).map_err(bad)?,
        }
    }
    let Some(mut archive) = archive else {
        return Err(BadLine { line: 1, why: "the file is empty".to_owned() }.into());
    };
    if !is_whole {
        archive.note.cut = cut.or(Some(format!("the file is cut after line {number}")));
    }
    Ok(archive)
}

/// The first line.
fn begin(head: Value) -> Result<Archive, String> {
    let version = head.get(FORMAT).and_then(Value::as_u64);
    let version = version.ok_or("this is not a saved session of Tidings")?;
    if version > VERSION {
        let known = format!("this program reads versions up to {VERSION}");
        return Err(format!("the session has version {version} of the format, and {known}"));
    }
    let name = head["name"].as_str().ok_or("the name of the server is missing")?.to_owned();
    let place = serde_json::from_value(head["place"].clone());
    let place = place.map_err(|error| format!("the place of the server: {error}"))?;
    let over = match head["over"].as_str() {
        Some("HTTP") => "HTTP",
        Some("stdio") => "stdio",
        _ => "memory",
    };
    let saved = head["saved"].as_f64().unwrap_or_default();
    let note = ArchiveNote { file: String::new(), saved, cut: None, stderr: Vec::new() };
    let mut facts = Facts::default();
    facts.log.restore_missed(head["missed"].as_u64().unwrap_or(0));
    facts.changed_at = Some(time(saved));
    Ok(Archive { name, place, over, facts, note, head })
}

/// One further line. Lines of a kind that is not known are left out: they are of a newer version.
fn take(archive: &mut Archive, line: &Value) -> Result<(), String> {
    let facts = &mut archive.facts;
    if let Some(item) = line.get("item") {
        let list = line["list"].as_str().and_then(crate::console::list);
        let list: List = list.ok_or("the list of the item is missing")?;
        return facts.lists.restore(list, &item.to_string()).map_err(|it| it.to_string());
    }
    if line.get("resource").is_some() || line.get("version").is_some() {
        return facts.versions.restore(line);
    }
    if line.get("row").is_some() {
        let row = row(line)?;
        return facts.log.restore(row);
    }
    if line.get("call").is_some() {
        return facts.calls.restore(line);
    }
    if let Some(kind) = line["note"].as_str() {
        let at = time(line["at"].as_f64().unwrap_or_default());
        let text = line["text"].as_str().unwrap_or_default();
        match kind {
            "warning" => facts.warnings.push_back((at, text.to_owned())),
            "loss" => facts.losses.push_back((at, text.into())),
            _ => {}
        }
    } else if let Some(text) = line["stderr"].as_str() {
        archive.note.stderr.push(text.to_owned());
    }
    Ok(())
}

fn row(line: &Value) -> Result<Row, String> {
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    let number = line["row"].as_u64().ok_or("the number of the row is missing")?;
    let lane = Lane::ALL.into_iter().find(|lane| lane.name() == text("lane"));
    let lane = lane.ok_or_else(|| format!("`{}` is no lane", text("lane")))?;
    let ways = [Way::Sent, Way::Received, Way::Here];
    let way = ways.into_iter().find(|way| way.name() == text("way"));
    let way = way.ok_or_else(|| format!("`{}` is no direction", text("way")))?;
    let at = time(line["at"].as_f64().ok_or("the time of the row is missing")?);
    let mut row = Row::new(at, lane, way, text("what"));
    row.number = number;
    text("of").clone_into(&mut row.subject);
    row.status = match text("status") {
        "" => Status::Plain,
        "waits" => Status::Waits,
        "ok" => Status::Answered,
        why => Status::Failed(why.to_owned()),
    };
    row.took = line["took"].as_f64().and_then(span);
    row.bytes = usize::try_from(line["bytes"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    row.cause = line["cause"].as_u64();
    let by = line["by"].as_str();
    row.message = line.get("message").map(|it| message(number, it, by));
    row.answer = line.get("answer").map(|it| message(number, it, None));
    Ok(row)
}

fn message(number: u64, saved: &Value, by: Option<&str>) -> Arc<Message> {
    let at = time(saved["at"].as_f64().unwrap_or_default());
    let is_sent = saved["sent"] == true;
    let direction = if is_sent { Direction::Sent } else { Direction::Received };
    let body = saved.get("body").map(Value::to_string).unwrap_or_default();
    let mut message = Message::of_text(number, at, direction, &body);
    let bytes = saved["bytes"].as_u64().and_then(|it| usize::try_from(it).ok());
    // Secrets were left out, so a whole message may be shorter than it was.
    message.length = if saved["cut"] == true { bytes.unwrap_or(1).max(1) } else { body.len() };
    message.by = by.map(Into::into);
    Arc::new(message)
}

/// A time that was written in milliseconds. What no clock says is the beginning of time.
pub(crate) fn time(millis: f64) -> SystemTime {
    let since = span(millis).unwrap_or_default();
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A duration that was written in milliseconds.
pub(crate) fn span(millis: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(millis / 1e3).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        r#"{"tidings-session":1,"saved":5,"name":"a","place":{"named":"http://a/"},"over":"HTTP"}"#;
    const ROW: &str = r#"{"row":7,"at":1.5,"lane":"reads","way":"out","what":"resources/read","of":"a:b","status":"ok","took":2,"message":{"at":1.5,"sent":true,"bytes":9,"body":{"id":1}}}"#;

    #[track_caller]
    fn fails(text: &str, expected: &str) {
        let error = parse(text.as_bytes()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_whole_file_is_read() {
        let newer = r#"{"telescope":1}"#;
        let archive = parse(format!("{HEAD}\n{ROW}\n{newer}\n{{\"end\":4}}\n").as_bytes()).unwrap();
        assert_eq!((archive.name.as_str(), archive.note.cut), ("a", None));
        let row = archive.facts.log.row(7).unwrap();
        assert_eq!(row.message.as_ref().unwrap().text(), r#"{"id":1}"#);
        assert_eq!((row.status.name(), archive.facts.log.total()), ("ok", 7));
    }

    #[test]
    fn a_cut_file_is_read_up_to_there() {
        let whole = format!("{HEAD}\n{ROW}\n{{\"end\":3}}\n");
        for end in HEAD.len() + 1..whole.len() - 1 {
            let archive = parse(&whole.as_bytes()[..end]);
            let archive = archive.unwrap_or_else(|error| panic!("{end}: {error}"));
            let is_at_end = whole[..end].ends_with("{\"end\":3}");
            assert_eq!(archive.note.cut.is_none(), is_at_end, "{end}");
        }
        let archive = parse(format!("{HEAD}\n{ROW}\n{{\"en").as_bytes()).unwrap();
        assert_eq!(archive.note.cut.unwrap(), "the file is cut in line 3");
        assert_eq!(archive.facts.log.total(), 7);
    }

    #[test]
    fn what_is_no_session_is_refused_with_its_line() {
        fails("", "line 1: the file is empty");
        fails("hello\n", "line 1: not JSON");
        fails("{}\n", "line 1: this is not a saved session of Tidings");
        fails("[1]\n", "line 1: this is not a saved session");
        fails(r#"{"tidings-session":2,"name":"a"}"#, "version 2 of the format");
        fails(&format!("{HEAD}\nnonsense\n{ROW}\n"), "line 2: not JSON");
        fails(&format!("{HEAD}\n{ROW}\n{ROW}\n"), "line 3: row 7 follows row 7");
        fails(&format!("{HEAD}\n{{\"row\":1,\"lane\":\"x\"}}\n"), "line 2: `x` is no lane");
        fails(&format!("{HEAD}\n{{\"end\":2}}\n{ROW}\n"), "line 3: there are lines after the end");
        fails(&format!("{HEAD}\n{{\"item\":{{}},\"list\":\"tools\"}}\n{ROW}\n"), "line 2: ");
    }
}
