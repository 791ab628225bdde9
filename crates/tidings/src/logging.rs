//! The log subscriber. It writes to standard error only: standard output is data or the protocol.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{LogFormat, LogLevel};

/// Starts logging. The access log is independent of the level.
pub(crate) fn start(level: LogLevel, format: LogFormat, access: bool) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // The protocol library logs every message at the level of our connection messages. Connection
    // errors are reported by the code that asked for the connection.
    let library = if level < LevelFilter::DEBUG { LevelFilter::OFF } else { LevelFilter::WARN };
    let chosen = Targets::new().with_default(level).with_target("rmcp", library);
    let access = if access { LevelFilter::INFO } else { LevelFilter::OFF };
    let chosen = chosen.with_target("access", access);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colour).with_target(false);
    let logs = tracing_subscriber::registry().with(chosen);
    match format {
        LogFormat::Text => logs.with(lines).init(),
        LogFormat::Json => logs.with(lines.json().flatten_event(true).with_ansi(false)).init(),
    }
}
