//! The log subscriber: standard error only, for standard output is data or the protocol.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::LogLevel;

/// Logs from here on.
pub(crate) fn start(level: LogLevel) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // The protocol library logs every message at the level at which we say that a client came, and
    // what goes wrong on a connection is told by whoever wanted the connection.
    let library = if level < LevelFilter::DEBUG { LevelFilter::OFF } else { LevelFilter::WARN };
    let chosen = Targets::new().with_default(level).with_target("rmcp", library);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colour).with_target(false);
    tracing_subscriber::registry().with(chosen).with(lines).init();
}
