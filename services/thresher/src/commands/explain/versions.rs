//! Kept versions of a resource: their times, contents and locations.

use model::{Version, bytes};

use super::place;

/// The lines of kept versions, the oldest first.
pub(super) fn lines(versions: &[Version]) -> impl Iterator<Item = String> {
    versions.iter().flat_map(|version| {
        let Version { bitstream, from, until, lost, .. } = version;
        let length = bytes(bitstream.computed.length());
        let sha256 = bitstream.computed.sha256();
        let where_it_is = match lost {
            Some(lost) => format!("its bytes were damaged, and discarded at {lost}"),
            None => format!("stored at {}; `thresher cat --at {from}` prints it", place(&bitstream.location)),
        };
        [format!("{from}  stored until {until}: {length}, sha-256 {sha256}"), format!("    {where_it_is}")]
    })
}
