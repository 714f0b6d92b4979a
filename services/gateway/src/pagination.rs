//! Pages of a list, with an opaque cursor for the next page.

use api::Page;
use data_encoding::BASE64URL_NOPAD;

use crate::api_error::ApiError;

/// Items per page where the request has no limit.
const USUAL: u16 = 100;
/// The most items of a page.
pub(crate) const MOST: u16 = 1000;

/// The number of items of a page.
///
/// # Errors
/// When the limit is zero or too large.
pub(crate) fn limit(asked: Option<u16>) -> Result<usize, ApiError> {
    match asked.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit.into()),
        _ => Err(ApiError::bad_request(format!("limit is 1 to {MOST}"))),
    }
}

/// Decodes a cursor: the name of the last item of the previous page, for this kind of list.
///
/// # Errors
/// When it is no cursor of such a list.
pub(crate) fn decode_cursor(kind: &str, cursor: Option<&str>) -> Result<Option<String>, ApiError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let read = || {
        let text = String::from_utf8(BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?).ok()?;
        text.strip_prefix(kind)?.strip_prefix(' ').map(str::to_owned)
    };
    let refuse = || {
        ApiError::bad_request("cursor is none of this list: take `next` of a page as it is, or leave it out")
    };
    read().ok_or_else(refuse).map(Some)
}

/// The cursor for the page after an item.
pub(crate) fn cursor(kind: &str, last: &str) -> String {
    BASE64URL_NOPAD.encode(format!("{kind} {last}").as_bytes())
}

/// A page of an in-memory list: the items after a cursor, in the order of their names.
pub(crate) fn paginate<T>(
    kind: &str,
    items: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
    asked: Option<u16>,
    cursor_before: Option<&str>,
) -> Result<Page<T>, ApiError> {
    let limit = limit(asked)?;
    let behind = decode_cursor(kind, cursor_before)?;
    let mut left =
        items.into_iter().filter(|item| behind.as_deref().is_none_or(|behind| name(item) > behind));
    let items: Vec<T> = left.by_ref().take(limit).collect();
    let more = left.next().is_some();
    let next = items.last().filter(|_| more).map(|last| cursor(kind, name(last)));
    Ok(Page { items, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_on_to_each_other_and_end() {
        let all = ["a", "b", "c", "d", "e"];
        let page = |cursor: Option<&str>| paginate("letters", all, |item| item, Some(2), cursor).unwrap();
        let first = page(None);
        let second = page(first.next.as_deref());
        let third = page(second.next.as_deref());
        assert_eq!((first.items, second.items, third.items), (vec!["a", "b"], vec!["c", "d"], vec!["e"]));
        assert_eq!(third.next, None);
    }

    #[test]
    fn a_page_that_ends_with_the_list_has_no_next() {
        assert_eq!(paginate("letters", ["a", "b"], |item| item, Some(2), None).unwrap().next, None);
    }

    #[test]
    fn foreign_cursors_and_impossible_limits_are_refused() {
        for wrong in ["", "!", &cursor("numbers", "1"), "bGV0dGVycw"] {
            assert!(decode_cursor("letters", Some(wrong)).is_err(), "{wrong}");
        }
        assert!(limit(Some(0)).is_err() && limit(Some(1001)).is_err());
        assert_eq!(limit(None).unwrap(), 100);
    }
}
