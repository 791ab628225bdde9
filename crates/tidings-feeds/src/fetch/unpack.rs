//! Decompression of bodies as they arrive, with a limit on the decompressed size.
//!
//! The client could decompress too, but it reads only the first of several gzip members, and the
//! setting would apply to every other client in the program.

use std::io;
use std::pin::Pin;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use futures_util::TryStreamExt as _;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _};
use tokio_util::io::StreamReader;

use super::failure::FetchError;

/// The supported encodings, for the request.
pub(super) const UNDERSTOOD: &str = "gzip, br, zstd, deflate";
/// The largest window of zstd, as a power of two, allowed by RFC 9659 on the web. Without a limit a
/// few bytes could demand much memory.
const ZSTD_WINDOW: u32 = 23;
/// How often a body may be compressed: some servers do so twice, and their proxy once more.
const TIMES: usize = 3;
/// The number of bytes that identify an encoding, or an uncompressed body.
const HEAD: usize = 16;

/// The received part of a body.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Why the rest is missing, if so.
    pub(super) broken: Option<FetchError>,
}

/// Reads a body to its end, or to one byte more than the limit; the rest is not decompressed.
pub(super) async fn collect(response: reqwest::Response, limit: u64) -> Result<Body, FetchError> {
    let packings = packings(response.headers())?;
    let packed = StreamReader::new(response.bytes_stream().map_err(io::Error::other));
    let mut packings = packings.into_iter().rev();
    let mut body = read(packed, packings.next().unwrap_or(Packing::None), limit).await?;
    // Order: the last encoding is undone first. The limit applies each time, because a small body
    // could become large in between.
    for packing in packings {
        let Body { bytes, broken } = read(body.bytes.as_slice(), packing, limit).await?;
        body = Body { bytes, broken: body.broken.or(broken) };
    }
    Ok(body)
}

/// The encoding in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Brotli,
    Zstd,
    /// With the frame of zlib, as the standard wants it, or without.
    Deflate,
}

fn packings(headers: &HeaderMap) -> Result<Vec<Packing>, FetchError> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let mut packings = Vec::new();
    for name in values.join(",").to_ascii_lowercase().split(',').map(str::trim) {
        packings.push(match name {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => Packing::Gzip,
            "br" => Packing::Brotli,
            "zstd" => Packing::Zstd,
            "deflate" => Packing::Deflate,
            other => return Err(unsupported(format!("its encoding is `{other}`"))),
        });
    }
    if packings.len() > TIMES {
        return Err(unsupported(format!("it is encoded {} times", packings.len())));
    }
    Ok(packings)
}

fn unsupported(reason: String) -> FetchError {
    FetchError::Decode(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Decompresses once, up to the limit.
async fn read(
    mut packed: impl AsyncBufRead + Send + Unpin,
    packing: Packing,
    limit: u64,
) -> Result<Body, FetchError> {
    let mut head = Vec::with_capacity(HEAD);
    let began = (&mut packed).take(HEAD as u64).read_to_end(&mut head).await;
    if let Err(error) = began {
        return Ok(Body { bytes: Vec::new(), broken: Some(failure(error)) });
    }
    let is_gzip = head.starts_with(&[0x1f, 0x8b]);
    // The first byte names the method, and both together are divisible by 31.
    let is_zlib = matches!(*head, [first, second, ..]
        if first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0);
    // The header is wrong: the body is not compressed.
    let is_bare = is_text(&head) || packing == Packing::Gzip && !is_gzip;
    let packing = if is_bare { Packing::None } else { packing };
    let packed = head.as_slice().chain(packed);
    // The decoders have different types, chosen at run time.
    let unpacked: Pin<Box<dyn AsyncRead + Send + '_>> = match packing {
        Packing::Gzip => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Packing::None => Box::pin(packed),
        Packing::Brotli => Box::pin(BrotliDecoder::new(packed)),
        Packing::Zstd => {
            let window = DParameter::window_log_max(ZSTD_WINDOW);
            let mut decoder = ZstdDecoder::with_params(packed, &[window]);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Packing::Deflate if is_zlib => Box::pin(ZlibDecoder::new(packed)),
        Packing::Deflate => Box::pin(DeflateDecoder::new(packed)),
    };
    let mut bytes = Vec::new();
    let ended = unpacked.take(limit.saturating_add(1)).read_to_end(&mut bytes).await;
    if bytes.len() as u64 > limit {
        bytes.pop();
        return Ok(Body { bytes, broken: Some(FetchError::TooLarge(limit)) });
    }
    let broken = ended.err().map(failure).map(|error| match error {
        // This decoder's error for a missing end, and only for that.
        FetchError::Decode(error)
            if packing == Packing::Deflate && error.kind() == io::ErrorKind::Other =>
        {
            FetchError::Decode(io::Error::new(io::ErrorKind::UnexpectedEof, error))
        }
        error => error,
    });
    Ok(Body { bytes, broken })
}

/// Whether a body begins like a document and not like compressed data: with markup or an object, in
/// readable characters.
fn is_text(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let is_read = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    head.iter().all(is_read) && matches!(head.trim_ascii_start(), [b'<' | b'{', ..])
}

/// Errors of the client pass through the decoders unchanged; all others are theirs.
fn failure(error: io::Error) -> FetchError {
    match error.downcast::<reqwest::Error>() {
        Ok(error) => FetchError::of_body(&error),
        Err(error) => FetchError::Decode(error),
    }
}
