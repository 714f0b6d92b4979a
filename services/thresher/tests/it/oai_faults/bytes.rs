//! Bytes and XML: compression, encodings, namespaces, and what is cut.

use simulated_source::{Failure, RepositoryFault as Fault};

use super::{bears, bears_in, quirk, records_are_problems, small};
use crate::common::{Run, thresher};
use crate::oai::Case;

#[tokio::test(flavor = "multi_thread")]
async fn gzip() {
    bears(Fault::UnlabelledGzip, "gzip").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_compression() {
    let (case, runs) = bears_in(small().gzip(true), Fault::BrokenGzip).await;
    assert_eq!(quirk(&runs[0], "no-compression"), 1, "{}", runs[0]);
    let requests = case.requests("ListRecords");
    assert_eq!(case.sync(&[]).exits(0).count("stored"), 0);
    assert_eq!(case.requests("ListRecords") - requests, 1, "it is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_character() {
    bears(Fault::IllegalCharacters(10), "illegal-character").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8() {
    records_are_problems(Fault::Latin1(10), 9).await;

    // The operator knows the encoding.
    let case = Case::of(small()).await;
    case.repository.set_fault(Fault::Latin1(10));
    case.sync(&[]).exits(1);
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains("name it with --encoding"), "{problems}");
    let run = case.sync(&["--encoding", "latin1"]).exits(0);
    assert!(quirk(&run, "invalid-utf8") >= 9, "{run}");
    case.is_whole();
    let read = |index| String::from_utf8(case.copy.cat(&case.uri(index))).expect("UTF-8");
    let whole = (0..95).filter(|index| read(*index).contains("<dc:creator>é")).count();
    assert!(whole >= 9, "{whole}");
    assert_eq!(case.sync(&["--encoding", "windows-1252"]).exits(0).count("stored"), 0);
    // What is said of the repository is read alike.
    let discover = |more: &[&str]| {
        let base = case.repository.base_url();
        Run::of(thresher().args(["discover", &base, "--json"]).args(more)).exits(0).stdout
    };
    assert!(discover(&[]).contains("A simulated d\u{fffd}pot"), "{}", discover(&[]));
    let named = discover(&["--encoding", "latin1"]);
    assert!(named.contains("A simulated d\u{e9}pot"), "{named}");
    for unknown in ["klingon", "utf-8", "utf-16"] {
        let refused = case.sync(&["--encoding", unknown]).exits(2);
        assert!(refused.stderr.contains("windows-1252"), "{unknown}: {}", refused.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_prefix() {
    records_are_problems(Fault::UndeclaredPrefix(10), 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_declared_on_the_envelope() {
    let (case, _) = bears_in(small(), Fault::EnvelopeNamespaces).await;
    for index in 0..30 {
        let text = String::from_utf8(case.copy.cat(&case.uri(index))).expect("UTF-8");
        let alone = oaipmh::canonicalize(&text, &oaipmh::Limits::default()).expect("it parses alone");
        assert_eq!((alone.document.as_str(), alone.root.as_str()), (text.as_str(), "dc"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_xml_declaration() {
    bears(Fault::InnerXmlDeclaration(10), "inner-xml-declaration").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_document() {
    let case = Case::of(small()).await;
    case.repository.fail_next(Failure::Cut(3_000), 1);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), quirk(&run, "cut-document")), (95, 1), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_record() {
    records_are_problems(Fault::BrokenRecord(10), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trailing_bytes() {
    bears(Fault::TrailingBytes, "trailing-bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixed_oai_namespace() {
    bears(Fault::Prefixed, "prefixed-oai-namespace").await;
}
