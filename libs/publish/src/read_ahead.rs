//! Reads what belongs to the next chunk while the one before it is used.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use tokio_util::task::AbortOnDropHandle;

use crate::PublishError;

/// A chunk that is waited for, and the one behind it.
const AT_A_TIME: usize = 2;

/// What is read of each chunk, in order. Reading takes processor time, so it has tasks of its own, which end when the
/// stream is dropped.
pub(crate) fn read_ahead<'a, C, R, T>(
    chunks: impl Stream<Item = Result<C, PublishError>> + Send + 'a,
    read: impl Fn(C) -> R + Send + 'a,
) -> BoxStream<'a, Result<T, PublishError>>
where
    C: Send + 'a,
    R: Future<Output = Result<T, PublishError>> + Send + 'static,
    T: Send + 'static,
{
    let reading = chunks.map_ok(move |chunk| {
        let reading = AbortOnDropHandle::new(tokio::spawn(read(chunk)));
        async move { reading.await.map_err(|error| PublishError::place("the records of changes", error))? }
    });
    reading.try_buffered(AT_A_TIME).boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Weak};

    use futures::stream;

    use super::*;

    #[tokio::test]
    async fn the_next_chunk_is_read_while_one_is_used_and_no_further_one() {
        let (begun, ended) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let mut read = read_ahead(stream::iter((0..10).map(Ok)), |number: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            let ended = Arc::clone(&ended);
            async move {
                // Later ones are quicker.
                for _ in number..10 {
                    tokio::task::yield_now().await;
                }
                ended.fetch_add(1, Ordering::Relaxed);
                Ok(number)
            }
        });
        for number in 0..10 {
            assert_eq!(read.try_next().await.unwrap(), Some(number));
            let most = (number + 2).min(10);
            while ended.load(Ordering::Relaxed) < most {
                tokio::task::yield_now().await;
            }
            assert_eq!(begun.load(Ordering::Relaxed), most);
        }
        assert_eq!(read.try_next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn reading_ends_when_the_stream_is_dropped() {
        let held = Arc::new(());
        let left: Weak<()> = Arc::downgrade(&held);
        let mut read = read_ahead(stream::iter([Ok(held)]), |held: Arc<()>| async move {
            std::future::pending::<()>().await;
            Ok(held)
        });
        assert!(futures::poll!(read.next()).is_pending());
        drop(read);
        while left.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }
}
