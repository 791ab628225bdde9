//! The first steps to a URL, tried anew: name, connection, TLS, an answer over HTTP.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tidings_mirror::{ConnectError, HttpTarget, Target};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::Diagnosis;
use crate::session;

/// The longest time for one step.
const PATIENCE: Duration = Duration::from_secs(5);
/// The addresses of one host that are tried.
const ADDRESSES: usize = 4;

/// Goes as far as an answer over HTTP. An error says what to do.
pub(super) async fn reach(target: &HttpTarget, diagnosis: &mut Diagnosis) -> Result<(), String> {
    let shown = target.shown_url();
    let url = reqwest::Url::parse(&target.url).map_err(|_| format!("`{shown}` is not a URL"))?;
    let is_tls = url.scheme() == "https";
    let rest: &[&str] = if is_tls { &["TLS", "HTTP"] } else { &["HTTP"] };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let Some(addresses) = resolve(&host, port, diagnosis).await else {
        diagnosis.skip(&["connect"]);
        diagnosis.skip(rest);
        return Err(format!("is `{host}` the name of the host, and is this machine online?"));
    };
    if !connect(&addresses, diagnosis).await {
        diagnosis.skip(rest);
        let unreachable = ConnectError::Unreachable(String::new());
        let advice = session::advice(&unreachable, &Target::Http(target.clone()));
        return Err(advice.unwrap_or_default());
    }
    let client = target.client().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let accept = (reqwest::header::ACCEPT, "text/event-stream");
    // Without headers and token: any status is an answer.
    let asked = client.get(url).header(accept.0, accept.1).timeout(PATIENCE).send().await;
    match asked {
        Ok(answer) => {
            if is_tls {
                diagnosis.good("TLS", "the certificate is trusted".to_owned(), None);
            }
            let words = format!("answers a GET with {}", answer.status());
            diagnosis.good("HTTP", words, Some(began));
            Ok(())
        }
        Err(error) if is_tls && error.is_connect() => {
            diagnosis.fail("TLS", innermost(&error), Some(began));
            diagnosis.skip(&["HTTP"]);
            Err("is the certificate valid for this host, and trusted by this machine? A server \
                 without TLS has an `http` URL"
                .to_owned())
        }
        Err(error) => {
            if is_tls {
                diagnosis.good("TLS", "the certificate is trusted".to_owned(), None);
            }
            diagnosis.fail("HTTP", innermost(&error), Some(began));
            Err("something listens there, and does not speak HTTP: is the port correct?".to_owned())
        }
    }
}

async fn resolve(host: &str, port: u16, diagnosis: &mut Diagnosis) -> Option<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        diagnosis.good("resolve", format!("{address} is an address"), None);
        return Some(vec![SocketAddr::new(address, port)]);
    }
    let began = Instant::now();
    let words = match timeout(PATIENCE, lookup_host((host, port))).await {
        Ok(Ok(found)) => {
            let found: Vec<_> = found.take(ADDRESSES).collect();
            let shown: Vec<_> = found.iter().map(|address| address.ip().to_string()).collect();
            if !shown.is_empty() {
                diagnosis.good("resolve", shown.join(", "), Some(began));
                return Some(found);
            }
            format!("`{host}` has no address")
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => late(),
    };
    diagnosis.fail("resolve", words, Some(began));
    None
}

/// Connects to one of the addresses.
async fn connect(addresses: &[SocketAddr], diagnosis: &mut Diagnosis) -> bool {
    let began = Instant::now();
    let mut words = String::new();
    for address in addresses {
        words = match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => {
                diagnosis.good("connect", address.to_string(), Some(began));
                return true;
            }
            Ok(Err(error)) => format!("{address}: {error}"),
            Err(_) => format!("{address}: {}", late()),
        };
    }
    diagnosis.fail("connect", words, Some(began));
    false
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// The last cause: those before it contain the URL, which may be secret.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
