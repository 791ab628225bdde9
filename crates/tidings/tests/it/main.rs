//! The program and its libraries over real bytes; one binary, one file for each subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod attack;
mod beside;
mod check;
mod command;
mod config;
mod console;
mod failing;
mod feeds;
mod feeds_cli;
mod folder;
mod folder_cli;
mod folder_env;
mod gateway;
mod http;
mod idle;
mod mirror;
mod ownership;
mod piped;
mod prober;
mod program;
mod raw;
mod socket;
mod stdio;
mod support;
mod tidy;
mod troublemaker;
mod upstream;
mod watching;
mod wire;
mod workspace;
