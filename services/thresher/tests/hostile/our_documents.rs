//! Every document that Thresher writes passes the strict inspection.
