//! The body of a request: within its limit, within the budget, and not too slow.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::transport::budget::Share;
use crate::transport::reply;

/// A body must end within this time, or send this many bytes in each such time: 16 KiB a second.
const WINDOW: Duration = Duration::from_secs(10);
const LEAST: usize = 160 << 10;
/// The size of a body's pieces. Pieces of one size can be reused at once when a body is abandoned;
/// buffers of all lengths would wait for the allocator.
const PIECE: usize = 64 << 10;

/// Reads a body of at most `limit` bytes, counting each in the share as it arrives.
pub(crate) async fn collect(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    share: &mut Share,
) -> Result<Collected, Response> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let announced = announced.map_or(0, |length| length.parse().unwrap_or(usize::MAX));
    if announced > limit {
        return Err(too_long(limit));
    }
    let mut collected = Collected::new(announced);
    let (mut deadline, mut before) = (Instant::now() + WINDOW, 0);
    loop {
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                return Err(reply::refuse(StatusCode::BAD_REQUEST, "the request was cut off"));
            }
            Ok(None) => return Ok(collected),
            Err(_) if collected.length - before >= LEAST => {
                (deadline, before) = (deadline + WINDOW, collected.length);
                continue;
            }
            Err(_) => {
                let details = "the body came too slowly; send at least 160 KiB every 10 seconds";
                return Err(reply::refuse(StatusCode::REQUEST_TIMEOUT, details));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        if collected.length + data.len() > limit {
            return Err(too_long(limit));
        }
        if !share.grow(data.len()) {
            return Err(busy());
        }
        collected.add(&data);
    }
}

/// The received part of a body.
#[derive(Debug)]
pub(crate) struct Collected {
    /// All but the last are full.
    pieces: Vec<Vec<u8>>,
    length: usize,
}

impl Collected {
    fn new(announced: usize) -> Self {
        Self { pieces: vec![Vec::with_capacity(announced.min(PIECE))], length: 0 }
    }

    fn add(&mut self, mut data: &[u8]) {
        self.length += data.len();
        while !data.is_empty() {
            let piece = self.pieces.last_mut().expect("there is one from the beginning");
            let (fits, rest) = data.split_at(data.len().min(PIECE - piece.len()));
            piece.extend_from_slice(fits);
            data = rest;
            if !data.is_empty() {
                self.pieces.push(Vec::with_capacity(PIECE));
            }
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The whole body. Each piece is freed after it was copied.
    pub(crate) fn join(mut self) -> Bytes {
        if self.pieces.len() == 1 {
            return self.pieces.remove(0).into();
        }
        let mut whole = Vec::with_capacity(self.length);
        for piece in self.pieces {
            whole.extend_from_slice(&piece);
        }
        whole.into()
    }
}

/// The refusal when the budget of bytes in flight is used up.
pub(crate) fn busy() -> Response {
    let details = "too many bytes are under way; try again in a moment";
    retry_later(reply::refuse(StatusCode::SERVICE_UNAVAILABLE, details))
}

/// Adds to an answer that the client may retry in a moment.
pub(crate) fn retry_later(mut response: Response) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn too_long(limit: usize) -> Response {
    let details = format!("a request body has at most {limit} bytes");
    reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, &details)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;
    use crate::metrics::Metrics;
    use crate::transport::budget::Budget;

    /// A body of `count` pieces of `size` bytes, one every `pause`.
    fn dripping(size: usize, count: usize, pause: Duration) -> Body {
        let pieces = stream::iter(0..count).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b'x'; size])))
        });
        Body::new(StreamBody::new(pieces))
    }

    async fn status_of(body: Body, length: Option<&str>, budget: usize) -> Result<usize, u16> {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.parse().unwrap());
        }
        let mut share = Budget::new(budget, Arc::new(Metrics::new())).share(None);
        let collected = collect(&headers, body, 100_000, &mut share).await;
        collected
            .map(|collected| collected.join().len())
            .map_err(|response| response.status().as_u16())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_its_time_but_not_any_time() {
        let second = Duration::from_secs(1);
        assert_eq!(status_of(dripping(100, 9, second), None, 1 << 20).await, Ok(900));
        assert_eq!(status_of(dripping(100, 11, second), None, 1 << 20).await, Err(408));
        assert_eq!(status_of(dripping(100, 2, 11 * second), None, 1 << 20).await, Err(408));
        // Many bytes at first give no more time for the rest.
        let slow = dripping(90_000, 1, Duration::ZERO);
        let rest = dripping(1, 11, second);
        let frames = slow.into_data_stream().chain(rest.into_data_stream());
        assert_eq!(status_of(Body::from_stream(frames), None, 1 << 20).await, Err(408));
    }

    #[test]
    fn pieces_are_joined_in_order() {
        for (announced, sizes) in [(0, &[0][..]), (5, &[2, 3]), (0, &[PIECE]), (9, &[1, PIECE, 7])]
        {
            let (mut collected, mut all) = (Collected::new(announced), Vec::new());
            for (number, size) in sizes.iter().enumerate() {
                let data = vec![u8::try_from(number).unwrap(); *size];
                collected.add(&data);
                all.extend(data);
            }
            assert_eq!(collected.length, all.len());
            assert!(collected.pieces.iter().all(|piece| piece.capacity() <= PIECE));
            assert_eq!(collected.join(), all);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_long_is_refused_before_it_is_read() {
        let endless =
            || Body::new(StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>()));
        for length in ["100001", "99999999999999999999999"] {
            assert_eq!(status_of(endless(), Some(length), 1 << 20).await, Err(413), "{length}");
        }
        let now = Duration::ZERO;
        assert_eq!(status_of(dripping(60_000, 2, now), None, 1 << 20).await, Err(413));
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_the_budget_is_refused() {
        assert_eq!(status_of(dripping(90_000, 1, Duration::ZERO), None, 80_000).await, Err(503));
    }
}
