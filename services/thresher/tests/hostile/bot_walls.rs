//! Challenge and login pages are never stored as the content they stand for.
