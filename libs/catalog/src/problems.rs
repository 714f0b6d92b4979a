//! Problems: one per resource, document or entry that could not be brought in sync, and per dead letter.
//! Keyed by the kind of the subject and its URI, since a document may be a resource too.

use model::{Persisted, ProblemRecord, ResourceUri, Subject};

use crate::keyspace::{Key, KeySpace, read_text};
use crate::scan::ProblemScan;
use crate::{Batch, CatalogError, Lookups};

/// `xr<uri>`, `xd<uri>`, `xe<uri>#<line>:<column>`, `xm<message>`
pub(crate) enum Problems {}

const RESOURCE: u8 = b'r';
const DOCUMENT: u8 = b'd';
const ENTRY: u8 = b'e';
const MESSAGE: u8 = b'm';

impl KeySpace for Problems {
    const PREFIX: u8 = Persisted::Problems.letter();
    const NAME: &'static str = "problem";
    type Name = Subject;
    type Record = ProblemRecord;

    fn read_name(name: &[u8]) -> Result<Subject, String> {
        match name.split_first() {
            Some((&RESOURCE, uri)) => read_text(uri).map(Subject::Resource),
            Some((&DOCUMENT, uri)) => read_text(uri).map(Subject::Document),
            Some((&ENTRY, at)) => read_text(at).map(Subject::Entry),
            Some((&MESSAGE, id)) => read_text(id).map(Subject::Message),
            _ => Err("its key names no kind of subject (r, d, e or m)".to_owned()),
        }
    }

    fn show_name(name: &[u8]) -> String {
        match Self::read_name(name) {
            Ok(subject) => format!("of {subject}"),
            Err(_) => String::from_utf8_lossy(name).into_owned(),
        }
    }
}

impl Problems {
    fn key(subject: &Subject) -> Key<Self> {
        let kind = match subject {
            Subject::Resource(_) => RESOURCE,
            Subject::Document(_) => DOCUMENT,
            Subject::Entry(_) => ENTRY,
            Subject::Message(_) => MESSAGE,
        };
        Key::of([&[kind], subject.uri().as_bytes()].concat())
    }
}

impl Lookups {
    /// The problem with a subject, if there is one.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn problem(&self, subject: &Subject) -> Result<Option<ProblemRecord>, CatalogError> {
        self.get(&Problems::key(subject)).await
    }

    /// The problems with several subjects, in the given order; reads are concurrent.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn problems_many(
        &self,
        subjects: &[Subject],
    ) -> Result<Vec<Option<ProblemRecord>>, CatalogError> {
        self.get_many(subjects.iter().map(Problems::key)).await
    }

    /// All problems: documents, then entries, then messages, then resources, each in the order of their URIs' bytes.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_problems(&self) -> Result<ProblemScan, CatalogError> {
        self.scan::<Problems>(b"", None).await
    }

    /// All problems in the same order, from the one after `after`.
    ///
    /// # Errors
    /// As [`scan_problems`](Self::scan_problems).
    pub async fn scan_problems_after(&self, after: Option<&Subject>) -> Result<ProblemScan, CatalogError> {
        self.scan::<Problems>(b"", after.map(Problems::key)).await
    }

    /// The problems with resources whose URI begins with `prefix`, from the one after `after`.
    ///
    /// # Errors
    /// As [`scan_problems`](Self::scan_problems).
    pub async fn scan_resource_problems(
        &self,
        prefix: &str,
        after: Option<&ResourceUri>,
    ) -> Result<ProblemScan, CatalogError> {
        let after = after.map(|uri| Problems::key(&Subject::Resource(uri.to_string())));
        self.scan::<Problems>(&[&[RESOURCE], prefix.as_bytes()].concat(), after).await
    }

    /// The problems with messages, in the order of their names.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_message_problems(&self) -> Result<ProblemScan, CatalogError> {
        self.scan::<Problems>(&[MESSAGE], None).await
    }

    /// The problems with entries whose position begins with `prefix`: with `<document>#`, those of one
    /// document.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_entry_problems(&self, prefix: &str) -> Result<ProblemScan, CatalogError> {
        self.scan::<Problems>(&[&[ENTRY], prefix.as_bytes()].concat(), None).await
    }
}

impl Batch {
    /// Writes a problem over an earlier one.
    pub fn put_problem(&mut self, subject: &Subject, record: &ProblemRecord) {
        self.put(Problems::key(subject), record);
    }

    /// Removes a problem: it is resolved.
    pub fn delete_problem(&mut self, subject: &Subject) {
        self.delete(Problems::key(subject));
    }
}
