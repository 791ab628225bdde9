//! Recorded exchanges: what clients send, what is done to the server, what it must say; each over
//! stdio and over HTTP, under paused time, with exact counts.
//!
//! A line of `wire/*.txt` is one of
//!
//! | line | meaning |
//! |---|---|
//! | `# …` | a comment |
//! | `A> METHOD {params}` | client A sends a legacy request, or a notification |
//! | `A» METHOD {params}` | client A sends a modern request |
//! | `A= {part}` | the answer to A's last request has this part |
//! | `A< METHOD {part}` | A has heard one such notice |
//! | `A.` | A has heard nothing else |
//! | `A stops` / `A reads` | A stops reading, or goes on |
//! | `A opens` | A opens its stream again |
//! | `A leaves` | A is gone |
//! | `A cancels ID` | A gives up its request of that id |
//! | `A hears N METHOD` | A has heard just so many of these; `hears-at-most` likewise |
//! | `! words` | something is done to the server |
//! | `@ 300` | 300 ms go by |
//! | `config silent` | the server does not announce lists |
//! | `token NAME LABEL…` | over HTTP, the token of that name has these labels from now on |
//! | `no token NAME` | it is withdrawn |
//! | `A is NAME LABEL…` | A, which is new, has that token; over stdio it has that name and labels |
//! | `grant NAME LABEL` / `withdraw NAME LABEL` | the hub gives a person a label, or takes it |

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::http::{self, HttpConfig, Token, TokenEntry, TokenHash, Tokens};
use tidings_server::{Config, Greeting, Hub, Identity, Labels};

use crate::support::client::{Client, Way, secret};
use crate::support::garden::Garden;

struct Stage {
    way: Way,
    hub: Hub,
    router: axum::Router,
    garden: Garden,
    clients: BTreeMap<String, Client>,
    asked: BTreeMap<String, Value>,
    tokens: Tokens,
    people: BTreeMap<String, Identity>,
}

impl Stage {
    async fn new(way: Way, script: &str) -> Self {
        let mut config = Config::new("garden", "1");
        if script.contains("config silent") {
            config.greeting = Greeting::Silent;
        }
        let hub = Hub::with_config(config);
        let garden = Garden::default();
        hub.add("garden", |shelf| garden.clone().on(&shelf)).await.unwrap();
        let mut config = HttpConfig::default();
        config.anonymous = true;
        let tokens = config.tokens.clone();
        let router = http::router(&hub, config);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (clients, asked, people) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { way, hub, router, garden, clients, asked, tokens, people }
    }

    /// The token of this name has these labels from now on; without any it is gone.
    async fn set_token(&mut self, name: &str, labels: Option<&[&str]>) {
        match labels {
            Some(labels) => {
                let identity = Identity::new(name, Labels::new(labels).unwrap());
                self.people.insert(name.to_owned(), identity);
            }
            None => drop(self.people.remove(name)),
        }
        let entries = self.people.iter().map(|(name, identity)| {
            let token = Token::new(&secret(name)).unwrap();
            TokenEntry::new(TokenHash::of(&token), identity.clone())
        });
        self.tokens.replace(entries.collect());
        settle().await;
    }

    /// A line about who somebody is; false if it is another.
    async fn who(&mut self, line: &str) -> bool {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["token", name, ref labels @ ..] => self.set_token(name, Some(labels)).await,
            ["no", "token", name] => self.set_token(name, None).await,
            ["grant", name, label] => self.hub.grant(name, label).unwrap(),
            ["withdraw", name, label] => self.hub.withdraw(name, label).unwrap(),
            [client, "is", name, ref labels @ ..] => {
                if !self.people.contains_key(name) {
                    self.set_token(name, Some(labels)).await;
                }
                let identity = self.people[name].clone();
                let new = Client::of(self.way, &self.hub, &self.router, identity);
                self.clients.insert(client.to_owned(), new);
            }
            _ => return false,
        }
        true
    }

    async fn line(&mut self, line: &str) {
        if line.is_empty() || line.starts_with('#') || line.starts_with("config ") {
            return;
        }
        if self.who(line).await {
            return;
        }
        if let Some(words) = line.strip_prefix("! ") {
            self.garden.act(&words.split_whitespace().collect::<Vec<_>>()).await;
            return;
        }
        if let Some(ms) = line.strip_prefix("@ ") {
            tokio::time::sleep(Duration::from_millis(ms.parse().unwrap())).await;
            return;
        }
        let split = line.find(|mark: char| !mark.is_alphanumeric()).unwrap();
        let (name, rest) = line.split_at(split);
        let (hub, router, way) = (&self.hub, &self.router, self.way);
        let client =
            self.clients.entry(name.to_owned()).or_insert_with(|| Client::new(way, hub, router));
        let words = rest.trim_start_matches(['>', '»', '<', '=']).trim();
        let (method, part) = words.split_once(' ').unwrap_or((words, ""));
        let part = || {
            let part = if part.is_empty() { "{}" } else { part };
            serde_json::from_str::<Value>(part).unwrap_or_else(|error| panic!("{error}"))
        };
        match rest.chars().next().unwrap() {
            '>' if method.starts_with("notifications/") => {
                let message = json!({ "jsonrpc": "2.0", "method": method, "params": part() });
                client.send(message).await;
                settle().await;
            }
            mark @ ('>' | '»') => {
                let id = client.request(method, part(), mark == '»').await;
                self.asked.insert(name.to_owned(), id);
                settle().await;
            }
            '=' => {
                let mut wanted: Value = serde_json::from_str(words).unwrap();
                wanted["id"] = self.asked[name].clone();
                expect(client, name, &wanted);
            }
            '<' => {
                let wanted = match part() {
                    empty if empty == json!({}) => json!({ "method": method }),
                    params => json!({ "method": method, "params": params }),
                };
                expect(client, name, &wanted);
            }
            '.' => {
                let rest = client.rest();
                assert!(rest.is_empty(), "{name} has heard more than it should: {rest:#?}");
            }
            ' ' => act(client, name, &rest.split_whitespace().collect::<Vec<_>>()).await,
            other => panic!("what does {other} mean?"),
        }
    }
}

/// A message that the client must have received.
fn expect(client: &Client, name: &str, wanted: &Value) {
    let message = client.take(wanted);
    assert!(message.is_some(), "{name} wants {wanted} and has heard {:#?}", client.rest());
}

/// Does as a client what the words say.
async fn act(client: &mut Client, name: &str, words: &[&str]) {
    match words {
        ["stops"] => client.read(false),
        ["reads"] => {
            client.read(true);
            settle().await;
        }
        ["opens"] => {
            client.open_stream().await;
            settle().await;
        }
        ["leaves"] => client.leave().await,
        ["hears", count, method] => {
            let count: usize = count.parse().unwrap();
            assert_eq!(take_all(client, method), count);
        }
        ["hears-at-most", count, method] => {
            let heard = take_all(client, method);
            assert!((1..=count.parse().unwrap()).contains(&heard), "{name}: {heard}");
        }
        ["cancels", id] => {
            client.cancel(id.parse().unwrap()).await;
            settle().await;
        }
        other => panic!("a client cannot {other:?}"),
    }
}

fn take_all(client: &Client, method: &str) -> usize {
    let wanted = json!({ "method": method });
    std::iter::from_fn(|| client.take(&wanted)).count()
}

/// Lets everybody do what they can do without time going by.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

fn play(way: Way, script: &str) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        let mut stage = Stage::new(way, script).await;
        for (number, line) in script.lines().enumerate() {
            // A test that fails shows the last line that was played.
            eprintln!("{}: {line}", number + 1);
            stage.line(line.trim()).await;
        }
        for (name, client) in &stage.clients {
            assert!(client.rest().is_empty(), "{name} has heard more: {:#?}", client.rest());
        }
    });
}

/// Over HTTP alone: over stdio there are no tokens.
macro_rules! exchanges_with_tokens {
    ($($name:ident),* $(,)?) => {
        mod with_tokens {
            $(#[test] fn $name() {
                super::play(super::Way::Http, include_str!(concat!("wire/", stringify!($name), ".txt")));
            })*
        }
    };
}

exchanges_with_tokens! {
    a_withdrawn_token_ends_its_streams_and_nobody_elses,
    the_labels_of_a_token_reach_its_streams,
}

macro_rules! exchanges {
    ($($name:ident),* $(,)?) => {
        mod over_stdio {
            $(#[test] fn $name() {
                super::play(super::Way::Stdio, include_str!(concat!("wire/", stringify!($name), ".txt")));
            })*
        }
        mod over_http {
            $(#[test] fn $name() {
                super::play(super::Way::Http, include_str!(concat!("wire/", stringify!($name), ".txt")));
            })*
        }
    };
}

exchanges! {
    a_fresh_session_is_told_of_each_list_once,
    a_handshake_that_leaves_things_out_is_a_legacy_one,
    a_silent_server_tells_only_of_changes,
    one_added_tool_is_one_notice,
    twenty_adds_in_one_window_are_one_notice,
    add_and_remove_in_one_window_are_silence,
    enabling_what_is_enabled_is_silence,
    nine_tools_toggled_across_awaits_are_one_notice,
    adds_without_end_are_told_of_in_time,
    content_that_goes_there_and_back_is_two_notices,
    each_session_hears_only_what_it_watches,
    the_session_that_made_the_change_is_told_too,
    a_hundred_updates_in_one_window_are_one_notice,
    a_reader_that_stops_is_told_once_of_each_thing,
    a_session_of_2025_03_26_is_told_of_no_lists,
    titles_are_shown_in_updates_of_2025_06_18,
    subscribing_twice_is_subscribing_once,
    what_cannot_be_watched_is_refused,
    a_deleted_resource_is_told_of_and_told_of_when_it_returns,
    a_listed_expansion_moves_the_list_only_when_it_moves,
    a_pattern_reaches_only_watched_uris,
    listening_acknowledges_what_is_honoured,
    two_listens_each_get_their_own_copy,
    completions_are_cut_and_counted,
    disabled_items_are_absent_and_refused,
    a_tool_that_panics_is_an_error,
    the_newest_handshake_version_answers_every_other,
    a_login_is_told_to_its_session_alone,
    a_login_within_a_window_and_back_is_silence,
    a_change_of_a_hidden_tool_is_told_to_who_sees_it,
    a_grant_to_a_person_reaches_all_its_sessions,
    a_template_for_one_role_is_told_to_that_role,
    what_leaves_the_view_is_told_of_like_a_deletion,
    lists_that_differ_are_private,
}
