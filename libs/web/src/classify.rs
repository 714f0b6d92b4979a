//! Classifies errors of the HTTP library.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;

use crate::address_guard::{Refused, Unresolved};
use crate::connector::NotInTime;
use crate::{ConnectFault, ErrorKind, Phase, WebError};

/// An error before the response head arrived.
pub(crate) fn before_answer(error: &legacy::Error) -> WebError {
    WebError::new(kind(error, error.is_connect())).detail(root(error))
}

/// The kind of an error, by its chain of causes; `connecting` where there was no connection yet.
fn kind(error: &(dyn Error + 'static), connecting: bool) -> ErrorKind {
    if find::<Refused>(error).is_some() {
        return ErrorKind::RefusedAddress;
    }
    // Name look-up and TLS are part of connecting: the more specific cause is tested first.
    if find::<Unresolved>(error).is_some() {
        return ErrorKind::Dns;
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return ErrorKind::Tls { certificate: matches!(tls, rustls::Error::InvalidCertificate(_)) };
    }
    if is_timeout(error) {
        return ErrorKind::Timeout(if connecting { Phase::Connect } else { Phase::FirstByte });
    }
    if connecting {
        return ErrorKind::Connect(find::<io::Error>(error).map_or(ConnectFault::Other, connect_fault));
    }
    // A connection that ended, or did not speak HTTP.
    ErrorKind::Interrupted
}

/// Whether the server speaks none of the protocols that were offered to it (RFC 7301, 3.2). No request was sent.
pub(crate) fn speaks_no_offered_protocol(error: &legacy::Error) -> bool {
    let none_of_them = rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol);
    find::<rustls::Error>(error).is_some_and(|tls| *tls == none_of_them)
}

/// Whether our time limit, or the kernel's, was exceeded.
fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        cause.is::<NotInTime>()
            || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
            || cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
    })
}

fn connect_fault(error: &io::Error) -> ConnectFault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectFault::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
            ConnectFault::Unreachable
        }
        _ => ConnectFault::Other,
    }
}

/// The text of the innermost cause: the outer ones only say that there was an error.
pub(crate) fn root(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    // The innermost one, since an `io::Error` may wrap another.
    causes(error).filter_map(|cause| cause.downcast_ref::<T>()).last()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| next_cause(*error))
}

fn next_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    // The source of an `io::Error` is not the error in it, but that one's source.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_fault_is_found_inside_of_io_errors() {
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert!(matches!(find::<rustls::Error>(&wrapped), Some(rustls::Error::InvalidCertificate(_))));
        assert_eq!(root(&wrapped), "invalid peer certificate: Expired");
    }

    #[test]
    fn refused_and_unreachable_are_told_apart() {
        for (kind, expected) in [
            (io::ErrorKind::ConnectionRefused, ConnectFault::Refused),
            (io::ErrorKind::HostUnreachable, ConnectFault::Unreachable),
            (io::ErrorKind::NetworkUnreachable, ConnectFault::Unreachable),
            (io::ErrorKind::ConnectionReset, ConnectFault::Other),
        ] {
            assert_eq!(connect_fault(&kind.into()), expected, "{kind:?}");
        }
    }
}
