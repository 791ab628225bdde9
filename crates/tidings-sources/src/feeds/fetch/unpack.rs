//! Bodies, unpacked as they arrive and measured unpacked.
//!
//! The client could unpack too, but takes the first of several gzip members for the whole, and the
//! setting would hold for every other client in the program.

use std::io;
use std::pin::Pin;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use futures_util::TryStreamExt as _;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;

use super::failure::FetchError;

/// The packings that are understood, as a request says it.
pub(super) const UNDERSTOOD: &str = "gzip, br, zstd, deflate";
/// The largest window of zstd, as a power of two: what RFC 9659 allows on the web. Without it
/// a few bytes could ask for much memory.
const ZSTD_WINDOW: u32 = 23;

/// Reads a body to its end, or to one byte more than the limit: what does not fit is not unpacked.
pub(super) async fn collect(
    response: reqwest::Response,
    limit: u64,
) -> Result<Vec<u8>, FetchError> {
    let packing = packing(response.headers());
    if packing.is_empty() && response.content_length().is_some_and(|length| length > limit) {
        return Err(FetchError::TooLarge(limit));
    }
    let packed = StreamReader::new(response.bytes_stream().map_err(io::Error::other));
    // Four unpackers are four types, and which it is is known only now.
    let unpacked: Pin<Box<dyn AsyncRead + Send>> = match packing.as_str() {
        "" | "identity" => Box::pin(packed),
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        "br" => Box::pin(BrotliDecoder::new(packed)),
        "zstd" => {
            let window = DParameter::window_log_max(ZSTD_WINDOW);
            let mut decoder = ZstdDecoder::with_params(packed, &[window]);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        "deflate" => Box::pin(ZlibDecoder::new(packed)),
        other => {
            let reason = format!("it is packed as `{other}`");
            return Err(FetchError::Decode(io::Error::new(io::ErrorKind::Unsupported, reason)));
        }
    };
    let mut bytes = Vec::new();
    unpacked.take(limit.saturating_add(1)).read_to_end(&mut bytes).await.map_err(failure)?;
    if bytes.len() as u64 > limit {
        return Err(FetchError::TooLarge(limit));
    }
    Ok(bytes)
}

fn packing(headers: &HeaderMap) -> String {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    values.join(",").trim().to_ascii_lowercase()
}

/// What the client said comes through the unpackers unchanged; all else is theirs.
fn failure(error: io::Error) -> FetchError {
    match error.downcast::<reqwest::Error>() {
        Ok(error) => FetchError::Broken(error.without_url()),
        Err(error) => FetchError::Decode(error),
    }
}
