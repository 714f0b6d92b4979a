//! A bucket: an object is one PUT, or an upload in parts that is completed at its end.

use std::io::{self, Read as _};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Attribute, Attributes, ObjectStore, PutMultipartOptions, PutOptions, WriteMultipart};
use tempfile::NamedTempFile;

use super::{About, Cause, key};

/// The size of the parts of an upload; a smaller object is one PUT.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts that are uploaded at a time.
const PARTS_IN_FLIGHT: usize = 2;
/// How much of a temporary file is read at a time.
const PIECE_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    objects: Arc<dyn ObjectStore>,
}

impl Bucket {
    pub(super) fn new(objects: Arc<dyn ObjectStore>) -> Self {
        Self { objects }
    }

    pub(super) async fn upload(&self, path: &str, file: NamedTempFile, about: &About) -> Result<(), Cause> {
        let pieces = stream::try_unfold(file.reopen()?, |mut file| async move {
            let (file, piece) = tokio::task::spawn_blocking(move || {
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
                Ok::<_, io::Error>((file, piece))
            })
            .await
            .map_err(io::Error::other)??;
            Ok::<_, io::Error>((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
        });
        Ok(self.put(path, pieces.boxed(), about).await??)
    }

    pub(super) async fn put<E>(
        &self,
        path: &str,
        mut pieces: stream::BoxStream<'_, Result<Bytes, E>>,
        about: &About,
    ) -> Result<Result<(), E>, object_store::Error> {
        let path = key(path);
        let mut held = BytesMut::new();
        let mut upload: Option<WriteMultipart> = None;
        loop {
            match pieces.try_next().await {
                Ok(Some(piece)) => held.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => {
                    if let Some(upload) = upload {
                        // Parts left behind are removed by the bucket's lifecycle rule.
                        let _ = upload.abort().await;
                    }
                    return Ok(Err(error));
                }
            }
            if held.len() < PART_BYTES {
                continue;
            }
            let upload = match &mut upload {
                Some(upload) => upload,
                none => {
                    let options = PutMultipartOptions::from(attributes(about));
                    let begun = self.objects.put_multipart_opts(&path, options).await?;
                    none.insert(WriteMultipart::new_with_chunk_size(begun, PART_BYTES))
                }
            };
            upload.put(held.split().freeze());
            upload.wait_for_capacity(PARTS_IN_FLIGHT).await?;
        }
        match upload {
            Some(mut upload) => {
                upload.put(held.freeze());
                upload.finish().await?;
            }
            None => {
                let options = PutOptions { attributes: attributes(about), ..PutOptions::default() };
                self.objects.put_opts(&path, held.freeze().into(), options).await?;
            }
        }
        Ok(Ok(()))
    }
}

/// What the server tells of an object.
pub(super) fn attributes(about: &About) -> Attributes {
    let media_type = about.media_type.as_deref().unwrap_or("application/octet-stream");
    let mut attributes = Attributes::from_iter([(Attribute::ContentType, media_type.to_owned())]);
    if let Some(encoding) = &about.encoding {
        attributes.insert(Attribute::ContentEncoding, encoding.clone().into());
    }
    attributes
}
