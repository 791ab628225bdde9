//! Feeds over TLS: who is trusted is read, who is not is refused before a word was said.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::news;
use crate::support::demo::{program, within};
use crate::support::piped::Server;

/// A feed behind a certificate of an authority of its own.
struct Secure {
    url: String,
    /// The certificate of the authority, as a file.
    authority: tempfile::NamedTempFile,
    /// How many requests were read.
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Secure {
    async fn start() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let authority = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authority.path(), issuer.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/feed", listener.local_addr().unwrap().port());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                // Who does not trust us does not come any further.
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    request.push(byte);
                }
                if request.is_empty() {
                    continue;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                let body = news(&["one"]);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { url, authority, requests, _tasks: tasks }
    }

    /// The program that follows the feed and trusts whoever this file names.
    async fn read_by(&self, trusted: &Path) -> (Server, String) {
        let feed = format!("--feed {} --in-memory --allow-private", self.url);
        let mut command = program(&format!("serve --stdio --silent {feed}"));
        command.env("SSL_CERT_FILE", trusted).env("SSL_CERT_DIR", "");
        command.current_dir(std::env::temp_dir());
        let mut server = Server::of(command).await;
        let all = server.read("feeds://all").await;
        let items = format!("feeds://feed/{}/items", all[0]["id"].as_str().unwrap());
        (server, items)
    }
}

/// Reads until there is something else to read than that the feed was not asked yet.
async fn first_answer(server: &mut Server, uri: &str) -> Result<Value, Value> {
    let reading = async {
        loop {
            let answer = server.try_read(uri).await;
            match &answer {
                Err(error) if is_not_asked_yet(error) => {}
                _ => return answer,
            }
        }
    };
    within(reading).await
}

fn is_not_asked_yet(error: &Value) -> bool {
    error["data"]["details"].as_str().is_some_and(|it| it.ends_with("not been fetched yet"))
}

#[tokio::test]
async fn a_feed_whose_authority_is_trusted_is_read() {
    let feed = Secure::start().await;
    let (mut server, items) = feed.read_by(feed.authority.path()).await;
    let answer = first_answer(&mut server, &items).await.unwrap();
    assert_eq!(answer[0]["title"], "one", "{answer}");
    assert_eq!(feed.requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_feed_whose_authority_is_not_trusted_is_refused() {
    let feed = Secure::start().await;
    let other = Secure::start().await;
    let (mut server, items) = feed.read_by(other.authority.path()).await;
    let answer = first_answer(&mut server, &items).await.unwrap_err();
    assert_eq!(answer["code"], -32603, "{answer}");
    let details = answer["data"]["details"].as_str().unwrap();
    assert!(details.contains("certificate"), "{details}");
    assert_eq!(feed.requests.load(Ordering::Relaxed), 0, "it was told nothing");
}
