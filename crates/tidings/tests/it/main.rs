//! The program and its libraries over real bytes; one binary, one file for each subject.

mod http;
mod program;
mod stdio;
mod support;
mod tidy;
mod wire;
