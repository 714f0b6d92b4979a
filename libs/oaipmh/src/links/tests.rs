use super::*;
use crate::canonical::canonicalize;

fn of(document: &str) -> Links {
    let limits = Limits::default();
    links(&canonicalize(document, &limits).unwrap(), &limits, 100)
}

/// Role and URL of each link.
fn roles(document: &str) -> Vec<(LinkRole, String)> {
    of(document).links.into_iter().map(|link| (link.role, link.href)).collect()
}

fn dc(content: &str) -> String {
    format!(
        r#"<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
            xmlns:dc="http://purl.org/dc/elements/1.1/">{content}</oai_dc:dc>"#
    )
}

#[test]
fn eprints_lists_files_as_identifiers_in_step_with_their_formats() {
    let found = of(&dc(
        "<dc:format>application/pdf</dc:format><dc:identifier>https://e.org/1/1/a.pdf</dc:identifier>\
         <dc:format>text/html</dc:format><dc:identifier>https://e.org/1/2/b</dc:identifier>\
         <dc:identifier>Doe, J. (2020) A thing.</dc:identifier>",
    ));
    let links: Vec<_> =
        found.links.iter().map(|link| (link.role, link.media_type.as_deref().unwrap_or(""))).collect();
    assert_eq!(links, [(LinkRole::File, "application/pdf"), (LinkRole::LandingPage, "text/html")]);
    assert_eq!(found.format, Some(KnownFormat::OaiDc));
}

#[test]
fn a_galley_of_ojs_is_its_download() {
    let found = roles(&dc("<dc:identifier>https://j.org/index.php/j/article/view/12</dc:identifier>\
         <dc:identifier>10.1234/j.12</dc:identifier>\
         <dc:relation>https://j.org/index.php/j/article/view/12/34</dc:relation>"));
    assert_eq!(
        found,
        [
            (LinkRole::LandingPage, "https://j.org/index.php/j/article/view/12".to_owned()),
            (LinkRole::PersistentId, "https://doi.org/10.1234/j.12".to_owned()),
            (LinkRole::File, "https://j.org/index.php/j/article/download/12/34".to_owned()),
        ]
    );
}

/// bare-doi
#[test]
fn a_doi_without_scheme_gets_one_and_is_told() {
    let found =
        of(&dc("<dc:identifier>doi:10.1000/182</dc:identifier><dc:identifier>10.3/x</dc:identifier>"));
    let [link] = &found.links[..] else { panic!("{found:?}") };
    assert_eq!((link.href.as_str(), link.bare_doi), ("https://doi.org/10.1000/182", true));
}

#[test]
fn a_suffix_is_no_statement() {
    let found = roles(&dc("<dc:identifier>https://e.org/a.pdf</dc:identifier>"));
    assert_eq!(found, [(LinkRole::Unknown, "https://e.org/a.pdf".to_owned())]);
}

#[test]
fn mets_declares_fixity_of_its_original_files_only() {
    let found =
        of(r#"<mets xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"><fileSec>
        <fileGrp USE="ORIGINAL"><file MIMETYPE="application/pdf" SIZE="12" CHECKSUM="ab" CHECKSUMTYPE="MD5">
            <FLocat LOCTYPE="URL" xlink:href="https://d.org/bitstream/1/a.pdf"/></file></fileGrp>
        <fileGrp USE="TEXT"><file><FLocat xlink:href="https://d.org/bitstream/1/a.pdf.txt"/></file></fileGrp>
        <fileGrp USE="THUMBNAIL"><file><FLocat xlink:href="https://d.org/1.jpg"/></file></fileGrp>
        </fileSec></mets>"#);
    let roles: Vec<_> = found.links.iter().map(|link| link.role).collect();
    assert_eq!(roles, [LinkRole::File, LinkRole::Related, LinkRole::Thumbnail]);
    assert_eq!(found.links[0].length, Some(12));
    assert_eq!(found.links[0].digests, [("md5", "ab".to_owned())]);
}

#[test]
fn bundles_of_dspace_name_files_with_fixity_and_the_handle() {
    let found = of(r#"<metadata xmlns="http://www.lyncode.com/xoai">
        <element name="dc"><element name="identifier"><element name="uri"><element name="none">
            <field name="value">http://hdl.handle.net/1/2</field></element></element></element></element>
        <element name="bundles"><element name="bundle"><field name="name">ORIGINAL</field>
            <element name="bitstreams"><element name="bitstream"><field name="format">application/pdf</field>
                <field name="size">7</field><field name="url">https://d.org/b/1</field>
                <field name="checksum">cd</field><field name="checksumAlgorithm">MD5</field>
            </element></element></element></element></metadata>"#);
    let [file, id] = &found.links[..] else { panic!("{found:?}") };
    assert_eq!((file.role, file.length, file.digests.len()), (LinkRole::File, Some(7), 1));
    assert_eq!(id.role, LinkRole::PersistentId);
}

#[test]
fn items_of_didl_say_what_they_are() {
    let found = roles(
        r#"<d:DIDL xmlns:d="urn:mpeg:mpeg21:2002:02-DIDL-NS" xmlns:dip="urn:mpeg:mpeg21:2005:01-DIP-NS"><d:Item>
        <d:Item><d:Descriptor><d:Statement><dip:ObjectType>info:eu-repo/semantics/objectFile</dip:ObjectType>
            </d:Statement></d:Descriptor>
            <d:Component><d:Resource mimeType="application/pdf" ref="https://s.org/a"/></d:Component></d:Item>
        <d:Item><d:Descriptor><d:Statement><dip:ObjectType>info:eu-repo/semantics/humanStartPage</dip:ObjectType>
            </d:Statement></d:Descriptor>
            <d:Component><d:Resource mimeType="application/html" ref="https://s.org/p"/></d:Component></d:Item>
        <d:Component><d:Resource mimeType="text/html" ref="https://s.org/q"/></d:Component>
        </d:Item></d:DIDL>"#,
    );
    assert_eq!(
        found,
        [
            (LinkRole::File, "https://s.org/a".to_owned()),
            (LinkRole::LandingPage, "https://s.org/p".to_owned()),
            (LinkRole::LandingPage, "https://s.org/q".to_owned()),
        ]
    );
}

#[test]
fn every_other_format_gives_its_files_and_pages() {
    for (document, expected) in [
        (
            r#"<entry xmlns="http://www.w3.org/2005/Atom"><link rel="alternate" href="https://o.org/p"/>
               <link rel="http://www.openarchives.org/ore/terms/aggregates" href="https://o.org/f" length="3"/></entry>"#,
            vec![(LinkRole::LandingPage, "https://o.org/p"), (LinkRole::File, "https://o.org/f")],
        ),
        (
            r#"<mods xmlns="http://www.loc.gov/mods/v3"><location><url access="raw object">https://m.org/f</url>
               <url usage="primary display">https://m.org/p</url><url access="preview">https://m.org/t</url>
               </location></mods>"#,
            vec![
                (LinkRole::File, "https://m.org/f"),
                (LinkRole::LandingPage, "https://m.org/p"),
                (LinkRole::Thumbnail, "https://m.org/t"),
            ],
        ),
        (
            r#"<record xmlns="http://www.loc.gov/MARC21/slim"><datafield tag="856" ind1="4" ind2="0">
               <subfield code="u">https://c.org/f</subfield><subfield code="q">application/pdf</subfield></datafield>
               <datafield tag="856" ind1="4" ind2="2"><subfield code="u">https://c.org/r</subfield></datafield>
               </record>"#,
            vec![(LinkRole::File, "https://c.org/f"), (LinkRole::Related, "https://c.org/r")],
        ),
        (
            r#"<o:resource xmlns:o="http://namespace.openaire.eu/schema/oaire/"
                   xmlns:d="http://datacite.org/schema/kernel-4">
               <d:identifier identifierType="Handle">http://hdl.handle.net/1/2</d:identifier>
               <o:file mimeType="application/pdf" objectType="fulltext">https://a.org/f</o:file>
               <o:file mimeType="text/html">https://a.org/p</o:file></o:resource>"#,
            vec![
                (LinkRole::File, "https://a.org/f"),
                (LinkRole::LandingPage, "https://a.org/p"),
                (LinkRole::PersistentId, "http://hdl.handle.net/1/2"),
            ],
        ),
        (
            r#"<rioxx xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier>https://r.org/p</dc:identifier>
               <dc:relation rel="item" type="application/pdf">https://r.org/f</dc:relation>
               <dc:relation rel="cite-as">https://doi.org/10.1234/5</dc:relation></rioxx>"#,
            vec![
                (LinkRole::File, "https://r.org/f"),
                (LinkRole::PersistentId, "https://doi.org/10.1234/5"),
                (LinkRole::LandingPage, "https://r.org/p"),
            ],
        ),
        (
            r#"<j:jpcoar xmlns:j="https://github.com/JPCOAR/schema/blob/master/2.0/">
               <j:identifier identifierType="HDL">http://hdl.handle.net/2/3</j:identifier>
               <j:file><j:URI objectType="fulltext">https://j.org/f</j:URI><j:mimeType>application/pdf</j:mimeType>
               <j:extent>3MB</j:extent></j:file></j:jpcoar>"#,
            vec![(LinkRole::File, "https://j.org/f"), (LinkRole::PersistentId, "http://hdl.handle.net/2/3")],
        ),
        (
            r#"<o:oai_datacite xmlns:o="http://schema.datacite.org/oai/oai-1.1/"><o:payload>
               <resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">10.5072/1
               </identifier></resource></o:payload></o:oai_datacite>"#,
            vec![(LinkRole::PersistentId, "https://doi.org/10.5072/1")],
        ),
        (
            r#"<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:o="http://www.openarchives.org/ore/terms/"
                   xmlns:e="http://www.europeana.eu/schemas/edm/"><o:Aggregation>
               <e:isShownAt r:resource="https://e.org/p"/><e:isShownBy r:resource="https://e.org/f"/>
               <e:object r:resource="https://e.org/t"/></o:Aggregation></r:RDF>"#,
            vec![
                (LinkRole::LandingPage, "https://e.org/p"),
                (LinkRole::File, "https://e.org/f"),
                (LinkRole::Thumbnail, "https://e.org/t"),
            ],
        ),
        (
            r#"<lom xmlns="http://ltsc.ieee.org/xsd/LOM"><technical><format>text/html</format>
               <location>https://l.org/p</location></technical></lom>"#,
            vec![(LinkRole::LandingPage, "https://l.org/p")],
        ),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|(role, href)| (role, href.to_owned())).collect();
        assert_eq!(roles(document), expected, "{document}");
    }
}

#[test]
fn links_are_limited_and_other_schemes_and_formats_have_none() {
    let many: String = (0..7).map(|n| format!("<dc:identifier>https://e.org/{n}</dc:identifier>")).collect();
    let limits = Limits::default();
    let found = links(&canonicalize(&dc(&many), &limits).unwrap(), &limits, 5);
    assert_eq!((found.links.len(), found.more), (5, true));
    let odd =
        dc("<dc:identifier>javascript:alert(1)</dc:identifier><dc:identifier>file:///etc/x</dc:identifier>");
    assert!(of(&odd).links.is_empty());
    assert_eq!(of("<own><identifier>https://e.org/1</identifier></own>"), Links::default());
}

#[test]
fn a_file_is_an_item_with_what_the_record_declares_of_it() {
    let found = of(
        r#"<mets xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"><fileSec>
        <fileGrp USE="ORIGINAL"><file MIMETYPE="application/pdf" SIZE="12" CHECKSUM="AB01" CHECKSUMTYPE="SHA-1">
            <FLocat LOCTYPE="URL" xlink:href="https://d.org/bitstream/1/a.pdf"/></file></fileGrp></fileSec></mets>"#,
    );
    let link = found.links[0].to_link();
    assert_eq!((link.rel.as_str(), link.href.as_str()), ("item", "https://d.org/bitstream/1/a.pdf"));
    assert_eq!((link.hash.as_deref(), link.length), (Some("sha-1:AB01"), Some(12)));
    assert_eq!(link.media_type.as_deref(), Some("application/pdf"));
    let page = of(&dc("<dc:identifier>https://d.org/handle/1/2</dc:identifier>")).links[0].to_link();
    assert_eq!((page.rel.as_str(), page.hash), ("describes", None));
}
