//! A prober that asks for hidden names and for invented ones, and finds no difference in bytes, nor
//! in the order of magnitude of time: in both eras, over both transports.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};
use tidings_server::http::{self as served, HttpConfig, Token, TokenEntry, TokenHash};
use tidings_server::model::{Resource, ResourceTemplate, Tool};
use tidings_server::{
    AnswerError, Contents, Context, Hub, Identity, Labels, Offer, ResourceUri, Shelf, Source, stdio,
};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::support::client::secret;

/// The hidden name of each pair, and an invented one of the same length.
const HIDDEN: &str = "vault";
const INVENTED: &str = "vapor";

/// A source that claims addresses and has a template, with words of its own for what it has not.
struct Library;

impl Source for Library {
    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        match uri.as_ref() {
            "claim://vault" | "own://vault" => Ok(Contents::text(uri, "secret")),
            uri => Err(AnswerError::Absent(format!("{uri} is on no shelf of the library"))),
        }
    }

    fn claims(&self, uri: &ResourceUri) -> bool {
        uri.as_ref().starts_with("claim://")
    }
}

/// A hub with things for everyone, and with things for admins that are named `vault`.
async fn hub() -> Hub {
    let hub = Hub::new("prober", "1");
    let library = |shelf: Shelf| {
        shelf.add(ResourceTemplate::new("own://{name}", "own"))?;
        for uri in ["claim://vault", "own://vault"] {
            shelf.add(Offer::from(Resource::new(uri, HIDDEN)).audience("role:admin"))?;
        }
        Ok(Library)
    };
    hub.add("library", library).await.unwrap();
    let shelf = hub.source("all").unwrap();
    shelf.tool("open", "Is for everyone", || "open").unwrap();
    shelf
        .template("page://{name}", "page", |name: String| (name == "one").then_some("one"))
        .unwrap();
    let admins = "role:admin";
    shelf.add(Offer::tool(HIDDEN, "Hidden", || "done").audience(admins)).unwrap();
    shelf.add(Offer::prompt(HIDDEN, "Hidden", || "done").audience(admins)).unwrap();
    let off = Offer::tool("vault-off", "Hidden and disabled", || "done").disabled();
    shelf.add(off.audience(admins)).unwrap();
    let secret =
        |uri: &str| Offer::resource(uri, HIDDEN, || "secret").title("A secret").audience(admins);
    shelf.add(secret("thing://vault")).unwrap();
    // A template that everyone sees matches this one.
    shelf.add(secret("page://vault")).unwrap();
    let shed = Offer::template("vault://{name}", HIDDEN, |_: String| Some("secret"));
    let shed = shed.complete("name", |_: tidings_server::Completion| vec!["one".to_owned()]);
    let shed = shelf.add(shed.audience(admins)).unwrap();
    shed.expand(vec![Resource::new("vault://listed", HIDDEN)]).unwrap();
    shelf.add(mirrored("vault-header").audience(admins)).unwrap();
    hub
}

/// A tool whose argument must be repeated in a header.
fn mirrored(name: &str) -> Offer<Tool> {
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let Value::Object(schema) = schema else { unreachable!() };
    Offer::described(Tool::new(name.to_owned(), "Hidden", schema), |_: Map<String, Value>| "done")
}

/// Every request that names something, for one name.
fn probes(name: &str) -> Vec<(&'static str, Value)> {
    let mut probes = vec![
        ("tools/call", json!({ "name": name })),
        ("tools/call", json!({ "name": name, "arguments": { "x": 1 } })),
        ("tools/call", json!({ "name": format!("{name}-off") })),
        ("tools/call", json!({ "name": format!("{name}-header") })),
        ("tools/call", json!({ "name": format!("{name}-header"), "arguments": { "region": "x" } })),
        ("tools/call", json!({ "name": format!("{name}-header"), "arguments": long() })),
        ("prompts/get", json!({ "name": name })),
        ("completion/complete", completion(&json!({ "type": "ref/prompt", "name": name }))),
    ];
    let template = format!("{name}://{{name}}");
    probes.push((
        "completion/complete",
        completion(&json!({ "type": "ref/resource", "uri": template })),
    ));
    let uris = [
        format!("thing://{name}"),
        format!("page://{name}"),
        format!("claim://{name}"),
        format!("own://{name}"),
        format!("{name}://listed"),
        format!("{name}://other"),
        template,
    ];
    for uri in uris {
        probes.push(("resources/read", json!({ "uri": uri })));
        probes.push(("resources/subscribe", json!({ "uri": uri })));
        probes.push(("resources/unsubscribe", json!({ "uri": uri })));
    }
    probes
}

fn completion(of: &Value) -> Value {
    json!({ "ref": of, "argument": { "name": "name", "value": "" } })
}

/// Arguments that pass the protocol library by.
fn long() -> Value {
    json!({ "region": "x".repeat(200_000) })
}

const LISTS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// One client, whose answers are taken as bytes.
enum Prober {
    Http {
        router: Router,
        secret: Option<String>,
        session: Option<String>,
    },
    Stdio {
        input: tokio::io::WriteHalf<DuplexStream>,
        output: Lines<BufReader<ReadHalf<DuplexStream>>>,
        _serving: JoinSet<()>,
    },
}

impl Prober {
    fn over_http(hub: &Hub, who: &Identity) -> Self {
        let mut config = HttpConfig::default();
        config.anonymous = true;
        if let Some(name) = &who.name {
            let hash = TokenHash::of(&Token::new(&secret(name)).unwrap());
            config.tokens.replace(vec![TokenEntry::new(hash, who.clone())]);
        }
        let router = served::router(hub, config);
        Self::Http { router, secret: who.name.as_deref().map(secret), session: None }
    }

    fn over_stdio(hub: &Hub, who: &Identity) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (output, input) = tokio::io::split(ours);
        let (hub, who, mut serving) = (hub.clone(), who.clone(), JoinSet::new());
        serving.spawn(async move {
            let streams = tokio::io::split(theirs);
            stdio::serve_as(&hub, who, streams, CancellationToken::new()).await.unwrap();
        });
        let output = BufReader::new(output).lines();
        Self::Stdio { input, output, _serving: serving }
    }

    /// The whole answer: over HTTP with its status and headers.
    async fn ask(&mut self, method: &str, params: &Value, modern: bool) -> String {
        let mut params = params.clone();
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        match self {
            Self::Stdio { input, output, .. } => {
                input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                loop {
                    let line = output.next_line().await.unwrap().unwrap();
                    // A listen request is answered by its acknowledgement.
                    if line.contains("\"id\":7") || line.contains("acknowledged") {
                        return line;
                    }
                }
            }
            Self::Http { router, secret, session } => {
                let mut request = Request::post("/mcp")
                    .header("host", "localhost")
                    .header("accept", "application/json, text/event-stream")
                    .header("content-type", "application/json");
                if let Some(secret) = secret {
                    request = request.header("authorization", format!("Bearer {secret}"));
                }
                if modern {
                    request = request.header("mcp-protocol-version", "2026-07-28");
                    request = request.header("mcp-method", method);
                    let named = params.get("name").or(params.get("uri"));
                    if let Some(name) = named.and_then(Value::as_str) {
                        request = request.header("mcp-name", name);
                    }
                } else if let Some(session) = session {
                    request = request.header("mcp-session-id", session.as_str());
                }
                let request = request.body(Body::from(message.to_string())).unwrap();
                let answer = router.clone().oneshot(request).await.unwrap();
                if let Some(name) = answer.headers().get("mcp-session-id") {
                    *session = Some(name.to_str().unwrap().to_owned());
                }
                let (parts, mut body) = answer.into_parts();
                let mut text = format!("{} {:?} ", parts.status, parts.headers);
                while let Some(frame) = body.frame().await {
                    text += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
                    if method == "subscriptions/listen" {
                        break;
                    }
                }
                text
            }
        }
    }

    async fn begin(&mut self) {
        let info = json!({ "name": "prober", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        self.ask("initialize", &hello, false).await;
    }

    /// Every answer about this name, without the name.
    async fn answers(&mut self, name: &str, modern: bool) -> Vec<(String, String)> {
        let mut answers = Vec::new();
        for (method, params) in probes(name) {
            let answer = self.ask(method, &params, modern).await;
            let asked = format!("{method} {params}").replace(name, "NAME");
            answers.push((asked, answer.replace(name, "NAME")));
        }
        if modern {
            let named =
                ["thing", "page", "claim", "own"].map(|scheme| format!("{scheme}://{name}"));
            let uris: Vec<_> = named.into_iter().chain([format!("{name}://x")]).collect();
            let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
            let answer = self.ask("subscriptions/listen", &filter, true).await;
            answers.push(("listen".to_owned(), answer.replace(name, "NAME")));
        }
        answers
    }
}

async fn probe(new: impl Fn(&Hub, &Identity) -> Prober, modern: bool) {
    let hub = hub().await;
    for who in [Identity::anonymous(), Identity::new("bob", Labels::parse("role:guest").unwrap())] {
        // Each name has a client of its own: what one was told must not change what the other is.
        let (mut one, mut other) = (new(&hub, &who), new(&hub, &who));
        if !modern {
            one.begin().await;
            other.begin().await;
        }
        let hidden = one.answers(HIDDEN, modern).await;
        let invented = other.answers(INVENTED, modern).await;
        for ((asked, hidden), (_, invented)) in hidden.iter().zip(&invented) {
            assert_eq!(hidden, invented, "{asked}");
        }
        for list in LISTS {
            let listed = one.ask(list, &json!({}), modern).await;
            assert!(!listed.contains(HIDDEN), "{listed}");
        }
    }
    // An admin is told something else each time, so the comparison can fail.
    let admin = Identity::new("ada", Labels::parse("role:admin").unwrap());
    let (mut one, mut other) = (new(&hub, &admin), new(&hub, &admin));
    if !modern {
        one.begin().await;
        other.begin().await;
    }
    let shown = one.answers(HIDDEN, modern).await;
    let invented = other.answers(INVENTED, modern).await;
    let is_same =
        |asked: &str| asked.contains("unsubscribe") || modern && asked.contains("subscribe");
    for ((asked, shown), (_, invented)) in shown.iter().zip(&invented) {
        let is_anyones = ["page://", "claim://", "own://"].iter().any(|it| asked.contains(it));
        let is_watched = asked.contains("resources/subscribe") && is_anyones;
        if !is_same(asked) && !is_watched && !asked.contains("{name}\"") {
            assert_ne!(shown, invented, "{asked}");
        }
    }
    for list in LISTS {
        let listed = one.ask(list, &json!({}), modern).await;
        assert!(listed.contains(HIDDEN), "{listed}");
    }
}

#[tokio::test]
async fn a_legacy_client_over_stdio_learns_nothing_of_hidden_names() {
    probe(Prober::over_stdio, false).await;
}

#[tokio::test]
async fn a_modern_client_over_stdio_learns_nothing_of_hidden_names() {
    probe(Prober::over_stdio, true).await;
}

#[tokio::test]
async fn a_legacy_client_over_http_learns_nothing_of_hidden_names() {
    probe(Prober::over_http, false).await;
}

#[tokio::test]
async fn a_modern_client_over_http_learns_nothing_of_hidden_names() {
    probe(Prober::over_http, true).await;
}

/// Medians within this factor are of the same order of magnitude.
const FACTOR: u32 = 8;
/// How often each request of a pair is made.
const ROUNDS: usize = 7;
/// A machine that does something else may slow one request of a pair. It does not do so in every
/// attempt; a server that takes longer for one of them does.
const ATTEMPTS: usize = 4;

/// The medians of two requests that are made in turns, so that a busy machine slows both.
async fn medians(prober: &mut Prober, pair: [&(&str, Value); 2], modern: bool) -> [Duration; 2] {
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((method, params), taken) in pair.iter().zip(&mut taken) {
            let begun = Instant::now();
            prober.ask(method, params, modern).await;
            taken.push(begun.elapsed());
        }
    }
    taken.map(|mut taken| {
        taken.sort_unstable();
        taken[ROUNDS / 2]
    })
}

/// The medians of two requests if they are of different orders of magnitude in each attempt.
async fn difference(
    prober: &mut Prober,
    pair: [&(&str, Value); 2],
    modern: bool,
) -> Option<[Duration; 2]> {
    let mut found = None;
    for _ in 0..ATTEMPTS {
        let [one, other] = medians(prober, pair, modern).await;
        if one.max(other) <= one.min(other) * FACTOR {
            return None;
        }
        found = Some([one, other]);
    }
    found
}

async fn time(new: impl Fn(&Hub, &Identity) -> Prober, modern: bool) {
    let hub = hub().await;
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        "done"
    };
    let shelf = hub.source("slow").unwrap();
    shelf.add(Offer::tool("vault-slow", "Hidden", slow).audience("role:admin")).unwrap();
    let mut visitor = new(&hub, &Identity::anonymous());
    let mut admin = new(&hub, &Identity::new("ada", Labels::parse("role:admin").unwrap()));
    if !modern {
        visitor.begin().await;
        admin.begin().await;
    }
    let is_short = |probe: &(&str, Value)| probe.1.to_string().len() < 1000;
    let of = |name: &str| probes(name).into_iter().filter(is_short).collect::<Vec<_>>();
    for (hidden, invented) in of(HIDDEN).iter().zip(&of(INVENTED)) {
        let differ = difference(&mut visitor, [hidden, invented], modern).await;
        assert_eq!(differ, None, "{} {}", hidden.0, hidden.1);
    }
    // The same comparison finds the time that a tool takes for those who see it.
    let slow = |name: &str| ("tools/call", json!({ "name": format!("{name}-slow") }));
    let [one, other] = medians(&mut admin, [&slow(HIDDEN), &slow(INVENTED)], modern).await;
    assert!(one > other, "{one:?} {other:?}");
}

#[tokio::test]
async fn over_stdio_hidden_names_take_as_long_as_invented_ones() {
    time(Prober::over_stdio, false).await;
    time(Prober::over_stdio, true).await;
}

#[tokio::test]
async fn over_http_hidden_names_take_as_long_as_invented_ones() {
    time(Prober::over_http, false).await;
    time(Prober::over_http, true).await;
}
