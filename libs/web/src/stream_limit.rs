//! How many requests an HTTP/2 server takes at a time on a connection. The client library obeys that limit and does not
//! tell it. So the first frame that a server sends is read as it passes: that is its settings (RFC 9113, 3.4).

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a frame's head: its length, its type, flags, and its stream.
const HEAD: usize = 9;
/// The type of settings, and the setting that is looked for.
const SETTINGS: u8 = 4;
const MAX_CONCURRENT_STREAMS: [u8; 2] = [0, 3];
/// Bytes of a setting: its name and its value.
const SETTING: usize = 6;
/// The longest first frame that is read: 169 settings, of some ten that exist. Of a longer one no limit is known.
const LONGEST: usize = 1_024;

/// The limit of a connection, as soon as its server has stated one. Each response over HTTP/2 has it as an extension.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamLimit(Arc<OnceLock<u32>>);

/// A connection whose server's limit is read along, if it is one of HTTP/2.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    first: Option<FirstFrame>,
    limit: Option<StreamLimit>,
}

/// What came of a server's first frame.
#[derive(Debug)]
struct FirstFrame {
    bytes: Vec<u8>,
    limit: StreamLimit,
}

impl StreamLimit {
    /// The limit, if the server has stated one.
    pub(crate) fn stated(&self) -> Option<u32> {
        self.0.get().copied()
    }
}

impl<S> Watched<S> {
    /// Reads along where `is_http2`.
    pub(crate) fn new(stream: S, is_http2: bool) -> Self {
        let limit = is_http2.then(StreamLimit::default);
        let first = limit.clone().map(|limit| FirstFrame { bytes: Vec::new(), limit });
        Self { stream, first, limit }
    }

    fn see(&mut self, bytes: &[u8]) {
        if self.first.as_mut().is_some_and(|first| first.is_over_with(bytes)) {
            self.first = None;
        }
    }
}

impl FirstFrame {
    /// Adds bytes; whether nothing more can be learned.
    fn is_over_with(&mut self, bytes: &[u8]) -> bool {
        let room = LONGEST - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let Some(settings) = settings_in(&self.bytes) else { return self.bytes.len() == LONGEST };
        // The last one holds (RFC 9113, 6.5).
        let mut limits =
            settings.chunks_exact(SETTING).filter(|setting| setting[..2] == MAX_CONCURRENT_STREAMS);
        if let Some([_, _, value @ ..]) = limits.next_back()
            && let Ok(value) = <[u8; 4]>::try_from(value)
        {
            let _ = self.limit.0.set(u32::from_be_bytes(value));
        }
        true
    }
}

/// The settings in a first frame; nothing in one of another type. None while it is incomplete.
fn settings_in(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    if head[3] != SETTINGS {
        return Some(&[]);
    }
    rest.get(..u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize)
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buf))?;
        self.see(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

impl<S> Connection for Watched<S> {
    fn connected(&self) -> Connected {
        match &self.limit {
            Some(limit) => Connected::new().negotiated_h2().extra(limit.clone()),
            None => Connected::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings, in a frame of this type.
    fn frame(kind: u8, settings: &[(u16, u32)]) -> Vec<u8> {
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
            .collect();
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], &payload[..]].concat()
    }

    /// The limit that is known after these pieces, and whether more is waited for.
    fn seen<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Option<u32>, bool) {
        let mut watched = Watched::new((), true);
        pieces.into_iter().for_each(|piece| watched.see(piece));
        (watched.limit.unwrap().stated(), watched.first.is_some())
    }

    #[test]
    fn the_limit_is_read_however_the_frame_is_cut() {
        let mut bytes = frame(4, &[(4, 65_535), (3, 100), (5, 16_384)]);
        bytes.extend_from_slice(b"whatever follows");
        assert_eq!(seen([&bytes[..]]), (Some(100), false));
        for cut in 0..bytes.len() {
            assert_eq!(seen([&bytes[..cut], &bytes[cut..]]), (Some(100), false), "{cut}");
        }
        assert_eq!(seen(bytes.chunks(1)), (Some(100), false));
        assert_eq!(seen([&bytes[..20]]), (None, true));
    }

    #[test]
    fn the_last_of_several_limits_holds() {
        assert_eq!(seen([&frame(4, &[(3, 1), (3, 250)])[..]]), (Some(250), false));
    }

    #[test]
    fn where_no_limit_is_stated_none_is_known() {
        for bytes in
            [frame(4, &[]), frame(4, &[(4, 100)]), frame(7, &[(3, 100)]), b"HTTP/1.1 400 Bad".to_vec()]
        {
            assert_eq!(seen([&bytes[..]]), (None, false));
        }
    }

    #[test]
    fn a_frame_without_end_is_kept_to_its_bound() {
        let long = frame(4, &vec![(3, 100); 10_000]);
        assert_eq!(seen(long.chunks(7)), (None, false));
        let mut first = FirstFrame { bytes: Vec::new(), limit: StreamLimit::default() };
        assert!(first.is_over_with(&long) && first.bytes.len() == LONGEST);
    }

    #[test]
    fn other_protocols_are_not_read_along() {
        let watched = Watched::new((), false);
        assert!(watched.first.is_none() && !watched.connected().is_negotiated_h2());
        assert!(Watched::new((), true).connected().is_negotiated_h2());
    }
}
