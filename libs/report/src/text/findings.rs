//! The findings, each with places, frequency, and advice.

use model::counted;
use resourcesync::Force;

use super::numbers::times;
use super::page::Page;
use crate::Finding;

pub(super) fn write(page: &mut Page, findings: &[Finding]) {
    page.heading("Findings");
    if findings.is_empty() {
        page.words(0, "No findings: nothing was met that goes against the specification.");
        return;
    }
    page.words(0, &summary(findings));
    for (at, finding) in findings.iter().enumerate() {
        page.blank();
        let number = format!("{}.", at + 1);
        page.whole(0, &format!("{number:4}{} ({})", finding.finding, severity(finding.severity)));
        page.words(4, &format!("{}.", capitalised(&finding.what)));
        page.hanging(4, 8, &format!("See: {}", finding.section));
        page.hanging(4, 8, &format!("Change: {}", finding.advice));
        place(page, finding);
    }
}

fn place(page: &mut Page, finding: &Finding) {
    let met = match finding.document_count {
        0 => format!("Met {}", times(finding.count)),
        n => format!("Met {} in {}", times(finding.count), counted(n, "document", "documents")),
    };
    let named = finding.documents.len() as u64;
    let first = if finding.document_count > named { ", the first of them:" } else { ":" };
    match (&finding.documents[..], &finding.first_place) {
        ([], None) => page.words(4, &format!("{met}.")),
        ([], Some(place)) => {
            page.words(4, &format!("{met}, first at:"));
            page.whole(8, place);
        }
        (documents, _) => {
            page.words(4, &format!("{met}{first}"));
            documents.iter().for_each(|uri| page.whole(8, uri));
        }
    }
}

fn summary(findings: &[Finding]) -> String {
    let of = |force| findings.iter().filter(|finding| finding.severity == force).count() as u64;
    let must = of(Force::Must);
    let should = of(Force::Should);
    let hint = of(Force::Hint);
    let parts = [
        (must, counted(must, "breaks a MUST", "break a MUST")),
        (should, counted(should, "goes against a SHOULD", "go against a SHOULD")),
        (hint, counted(hint, "is a hint", "are hints")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect();
    let all = counted(findings.len() as u64, "finding", "findings");
    format!("{all}: {}.", parts.join(", "))
}

fn severity(force: Force) -> &'static str {
    match force {
        Force::Must => "breaks a MUST",
        Force::Should => "goes against a SHOULD",
        Force::Hint => "a hint",
        Force::Allowed => "allowed",
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
