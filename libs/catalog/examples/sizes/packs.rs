//! What a pack has beside the bytes of its members.

use serde_json::json;
use store::{PackBuilder, PackLimits, PackMember};

use crate::{Outcome, records};

/// Bytes of each member.
const MEMBER: usize = 256;

/// Prints the bytes beside each member of a full pack, by part.
pub(crate) fn print() -> Outcome<()> {
    let source = "repository-example-org-0123456789ab".parse()?;
    let limits = PackLimits::default();
    let mut builder = PackBuilder::new(source, records::lastmod(0), limits)?;
    for n in 0..limits.members as u64 {
        // Bytes that are none of the parts around them.
        let bytes = [(n % 251) as u8; MEMBER];
        let computed = fixity::Computed::of(&[&bytes[..], &n.to_be_bytes()].concat());
        let bytes = [&bytes[..], &n.to_be_bytes()].concat();
        let uri = records::uri(n);
        builder.add(PackMember {
            uri: &uri,
            bytes: &bytes,
            computed: &computed,
            media_type: Some("application/pdf"),
            last_modified: Some(records::lastmod(n)),
        })?;
    }
    let pack = builder.finish()?;
    let members = limits.members as f64;
    let body = pack.body();
    let all = body.len() as f64 / members - (MEMBER + 8) as f64;
    // The end of the directory names its length: 22 bytes, of which 12 to 15 are that.
    let directory = body.get(body.len() - 10..body.len() - 6).ok_or("no directory")?;
    let directory = u32::from_le_bytes(directory.try_into()?);
    println!(
        "{}",
        json!({"figure": "pack, beside each member", "members": limits.members, "bytes": all,
               "directory": f64::from(directory) / members,
               "uri": records::uri(500).as_str().len()})
    );
    Ok(())
}
