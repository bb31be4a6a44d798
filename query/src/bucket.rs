//! A place in a bucket of S3 that is an archive.

use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    RetryConfig, UpdateVersion,
};

use crate::Failure;

/// A part of a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    prefix: Path,
    /// Its address as the user wrote it.
    pub(crate) url: String,
}

/// An object of the archive.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Its name below the prefix.
    pub(crate) name: String,
    pub(crate) meta: ObjectMeta,
}

/// The outcome of putting an object under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Done,
    /// The condition did not hold.
    Refused,
}

impl Bucket {
    /// Opens `s3://BUCKET/PREFIX`, with what the variables `AWS_*` of the environment say.
    pub(crate) fn open(url: &str) -> Result<Self, Failure> {
        let (bucket, prefix) = url
            .strip_prefix("s3://")
            .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            .filter(|(bucket, _)| !bucket.is_empty())
            .ok_or_else(|| {
                Failure::new(format_args!("{url} is no address of a bucket"))
                    .hint("write it as s3://BUCKET/PREFIX")
            })?;
        let wrong = |error: &dyn std::fmt::Display| Failure::new(format_args!("{url}: {error}"));
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| wrong(&error))?;
        let retry = RetryConfig {
            backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() },
            max_retries: 5,
            retry_timeout: Duration::from_secs(60),
        };
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
        Ok(Self { store: store.map_err(|error| wrong(&error))?, prefix, url: url.to_owned() })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The objects below a folder.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<Object>, Failure> {
        let listed: Vec<ObjectMeta> = self
            .store
            .list(Some(&self.path(folder)))
            .try_collect()
            .await
            .map_err(|error| self.wrong("list", folder, &error))?;
        let start = match self.prefix.as_ref() {
            "" => 0,
            prefix => prefix.len() + 1,
        };
        let named = listed
            .into_iter()
            .filter_map(|meta| Some(Object { name: meta.location.as_ref().get(start..)?.to_owned(), meta }));
        Ok(named.collect())
    }

    /// Whether there is any object in it.
    pub(crate) async fn is_empty(&self) -> Result<bool, Failure> {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        let first =
            self.store.list(prefix).try_next().await.map_err(|error| self.wrong("list", "", &error))?;
        Ok(first.is_none())
    }

    /// The description of an object; nothing if it is not there.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<ObjectMeta>, Failure> {
        match self.store.head(&self.path(name)).await {
            Err(Error::NotFound { .. }) => Ok(None),
            found => found.map(Some).map_err(|error| self.wrong("read", name, &error)),
        }
    }

    /// The content of an object and its version; nothing if it is not there.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Option<String>)>, Failure> {
        let read = match self.store.get(&self.path(name)).await {
            Err(Error::NotFound { source, .. }) if !is_bucket_missing(&*source) => return Ok(None),
            Err(error) => return Err(self.wrong("read", name, &error)),
            Ok(read) => read,
        };
        let version = read.meta.e_tag.clone();
        let content = read.bytes().await.map_err(|error| self.wrong("read", name, &error))?;
        Ok(Some((content.into(), version)))
    }

    /// Puts an object that is not there.
    pub(crate) async fn create(&self, name: &str, content: Vec<u8>) -> Result<Put, Failure> {
        self.put(name, content, PutMode::Create).await
    }

    /// Puts an object in the place of the one that has this version.
    pub(crate) async fn replace(&self, name: &str, content: Vec<u8>, version: &str) -> Result<Put, Failure> {
        let version = UpdateVersion { e_tag: Some(version.to_owned()), version: None };
        self.put(name, content, PutMode::Update(version)).await
    }

    /// Puts an object, whatever is there.
    pub(crate) async fn overwrite(&self, name: &str, content: Vec<u8>) -> Result<(), Failure> {
        self.put(name, content, PutMode::Overwrite).await.map(drop)
    }

    async fn put(&self, name: &str, content: Vec<u8>, mode: PutMode) -> Result<Put, Failure> {
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(&self.path(name), PutPayload::from(content), options).await {
            Ok(_) => Ok(Put::Done),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Put::Refused),
            Err(error) => Err(self.wrong("write", name, &error)),
        }
    }

    /// Removes an object; one that is not there is no error.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Failure> {
        match self.store.delete(&self.path(name)).await {
            Err(Error::NotFound { .. }) => Ok(()),
            removed => removed.map_err(|error| self.wrong("remove", name, &error)),
        }
    }

    /// The error of a request, and what helps.
    fn wrong(&self, doing: &str, name: &str, error: &Error) -> Failure {
        let url = &self.url;
        if is_bucket_missing(error) {
            return Failure::new(format_args!("{url}: there is no bucket of that name"))
                .hint("make it first; it is not made by treering");
        }
        let of = if name.is_empty() { url.clone() } else { format!("{}/{name}", url.trim_end_matches('/')) };
        // Responses follow, in XML.
        let said = error.to_string();
        let said = said.lines().next().unwrap_or_default();
        let failure = Failure::new(format_args!("cannot {doing} {of}: {said}"));
        let is_busy = ["status code: 5", "status code: 429"].iter().any(|status| said.contains(status));
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => failure.hint(WHO_ASKS),
            _ if is_busy => failure.hint("the store is busy or out of order: try again later; what it has is whole"),
            // The client looks for them elsewhere then, where there may be nothing.
            _ if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() => failure.hint(WHO_ASKS),
            _ => failure.hint("AWS_ENDPOINT_URL names a store that is not Amazon's; AWS_ALLOW_HTTP=true allows one without TLS"),
        }
    }
}

const WHO_ASKS: &str = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION say who asks; the bucket must allow it to list, get and put";

/// Whether it is the bucket that a response did not find.
fn is_bucket_missing(error: &dyn std::error::Error) -> bool {
    let mut error = Some(error);
    while let Some(found) = error {
        if found.to_string().contains("NoSuchBucket") {
            return true;
        }
        error = found.source();
    }
    false
}
