//! Finds the place that a token of a pointer names: a child that is there, or where a new one is written.

use std::borrow::Cow;

use crate::PatchError;
use crate::pointer::{Index, index};
use crate::scan::{Child, Scan};

/// Where new members of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberOrder {
    /// After the others.
    Appended,
    /// In the order of keys, where the other members have it.
    Sorted,
}

/// The place that a pointer names in an existing container.
pub(crate) struct Place {
    /// The child that is there; none in the place after the last element, or for a new member.
    pub(crate) child: Option<Child>,
    /// The child before it.
    pub(crate) previous: Option<Child>,
    /// The child after it, or that a new member comes before.
    pub(crate) next: Option<Child>,
    /// The closing bracket, if no child comes after it.
    pub(crate) closing: usize,
}

/// The place that a token names in the container that begins at `container`. What comes after an existing child is
/// read only if `has_next` asks for it.
pub(crate) fn find(
    scan: &Scan<'_>,
    order: MemberOrder,
    container: usize,
    token: &str,
    has_next: bool,
) -> Result<Place, PatchError> {
    let is_object = scan.byte(container) == Some(b'{');
    let mut children = scan.children(container).ok_or(PatchError::NotApplicable)?;
    let wanted = if is_object { None } else { Some(index(token).ok_or(PatchError::NotApplicable)?) };
    let mut place = Place { child: None, previous: None, next: None, closing: container };
    // Where a new member comes in the order of keys: before this one, after that one.
    let mut before: Option<(Child, Option<Child>)> = None;
    let mut is_sorted = true;
    let mut last: Option<Child> = None;
    let mut n = 0;
    while let Some(child) = children.next()? {
        if place.child.is_some() {
            place.next = Some(child);
            return Ok(place);
        }
        let is_it = match wanted {
            Some(wanted) => wanted == Index::At(n),
            None => {
                let key = key_of(scan, &child)?;
                if before.is_none() && *key > *token {
                    before = Some((child.clone(), last.clone()));
                }
                if let Some(last) = &last {
                    is_sorted &= key_of(scan, last)? <= key;
                }
                *key == *token
            }
        };
        if is_it {
            (place.previous, place.child) = (last.take(), Some(child));
            if !has_next {
                return Ok(place);
            }
        } else {
            last = Some(child);
        }
        n += 1;
    }
    place.closing = children.end;
    if place.child.is_some() {
        return Ok(place);
    }
    match (wanted, before) {
        (Some(Index::At(at)), _) if at != n => return Err(PatchError::NotApplicable),
        (None, Some((next, previous))) if is_sorted && order == MemberOrder::Sorted => {
            (place.previous, place.next) = (previous, Some(next));
        }
        _ => place.previous = last,
    }
    Ok(place)
}

/// The name of a member, decoded.
fn key_of<'t>(scan: &Scan<'t>, child: &Child) -> Result<Cow<'t, str>, PatchError> {
    let written = scan.text(child.key.clone());
    if !written.contains(&b'\\') {
        let inner = written.get(1..written.len() - 1).unwrap_or_default();
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| PatchError::NotApplicable);
    }
    serde_json::from_slice(written).map(Cow::Owned).map_err(|_| PatchError::NotApplicable)
}
