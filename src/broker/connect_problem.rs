//! Converts errors from the HTTP and TLS libraries into actionable messages.

use super::redact::sanitize;
use rustls::{AlertDescription, CertificateError, Error as TlsError};
use std::error::Error;
use std::{fmt, io};

/// The reason for a failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectProblem {
    /// The connection was refused, usually because the port is closed.
    Refused,
    /// The host name does not resolve.
    NoSuchHost,
    /// An untrusted authority issued the broker's certificate.
    UnknownIssuer,
    /// The broker's certificate is for another host name.
    WrongHost,
    /// The broker's certificate has expired or is not yet valid.
    Expired,
    /// The broker requires a client certificate, and topo sent none.
    CertificateRequired,
    /// The broker ends the handshake without giving a reason. With TLS 1.2, a missing client certificate can have this
    /// effect.
    HandshakeRefused,
    /// The broker does not accept the client certificate.
    CertificateRefused(String),
    /// The URL scheme is `https`, but the port does not use TLS.
    HttpsToHttp,
    /// The URL scheme is `http`, and the response is not HTTP. The port may require TLS.
    HttpToHttps(String),
    /// Another TLS error.
    Tls(String),
    /// The connection was lost after the request was sent, or while the response was read.
    Broken(String),
    /// Another error before the request was sent.
    Other(String),
}

impl ConnectProblem {
    /// Returns true if the problem may be transient. An unknown host name may be transient, because containers can
    /// start in any order.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused | Self::NoSuchHost | Self::Broken(_) | Self::Other(_) => true,
            Self::UnknownIssuer
            | Self::WrongHost
            | Self::Expired
            | Self::CertificateRequired
            | Self::HandshakeRefused
            | Self::CertificateRefused(_)
            | Self::HttpsToHttp
            | Self::HttpToHttps(_)
            | Self::Tls(_) => false,
        }
    }

    /// Returns true if the request may have reached the broker.
    pub fn is_after_sending(&self) -> bool {
        match self {
            Self::Broken(_) => true,
            Self::Refused
            | Self::NoSuchHost
            | Self::UnknownIssuer
            | Self::WrongHost
            | Self::Expired
            | Self::CertificateRequired
            | Self::HandshakeRefused
            | Self::CertificateRefused(_)
            | Self::HttpsToHttp
            | Self::HttpToHttps(_)
            | Self::Tls(_)
            | Self::Other(_) => false,
        }
    }

    /// Converts a reqwest error according to its causes. The error's own message is only "error sending request".
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let texts = match Self::recognize(error.source()) {
            Ok(problem) => return problem,
            Err(texts) => texts,
        };
        let reason = texts.last().cloned().unwrap_or_else(|| "no reason given".to_owned());
        if reason.contains("invalid HTTP version") {
            return Self::HttpToHttps(reason);
        }
        if error.is_connect() { Self::Other(reason) } else { Self::Broken(reason) }
    }

    /// Converts an I/O error from an AMQP connection.
    pub(super) fn of_io(error: &io::Error) -> Self {
        match Self::recognize(Some(error)) {
            // The message of `HttpsToHttp` refers to HTTP URLs.
            Ok(Self::HttpsToHttp) => Self::Tls("the port does not use TLS".to_owned()),
            Ok(problem) => problem,
            Err(texts) => Self::Other(texts.last().cloned().unwrap_or_default()),
        }
    }

    /// Returns the problem for the first recognized cause.
    ///
    /// # Errors
    /// The messages of all causes, if none is recognized.
    fn recognize(first: Option<&(dyn Error + 'static)>) -> Result<Self, Vec<String>> {
        let mut texts = Vec::new();
        let mut next = first;
        while let Some(cause) = next {
            if let Some(tls) = tls_error(cause) {
                return Ok(Self::of_tls(tls));
            }
            if let Some(io) = cause.downcast_ref::<io::Error>()
                && io.kind() == io::ErrorKind::ConnectionRefused
            {
                return Ok(Self::Refused);
            }
            texts.push(sanitize(&cause.to_string()));
            next = cause.source();
        }
        let is_unresolved =
            |text: &String| text.starts_with("dns error") || text.starts_with("failed to lookup address");
        if texts.iter().any(is_unresolved) { Ok(Self::NoSuchHost) } else { Err(texts) }
    }

    /// Converts an error from the TLS library.
    fn of_tls(error: &TlsError) -> Self {
        // These enums are non-exhaustive. The message for other variants is "TLS: …".
        #[allow(clippy::wildcard_enum_match_arm)]
        match error {
            TlsError::InvalidCertificate(certificate) => match certificate {
                // The signature is invalid if the CA was recreated with the same subject and a different key.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Self::WrongHost,
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Self::Expired,
                _ => Self::Tls(error.to_string()),
            },
            TlsError::AlertReceived(alert) => match alert {
                AlertDescription::CertificateRequired => Self::CertificateRequired,
                AlertDescription::HandshakeFailure => Self::HandshakeRefused,
                AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::UnknownCA => Self::CertificateRefused(format!("{alert:?}")),
                _ => Self::Tls(error.to_string()),
            },
            TlsError::InvalidMessage(_) => Self::HttpsToHttp,
            _ => Self::Tls(error.to_string()),
        }
    }
}

/// Returns the TLS library's error. Also searches inside I/O errors, because their `source()` skips the inner error.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a TlsError> {
    if let Some(tls) = cause.downcast_ref::<TlsError>() {
        return Some(tls);
    }
    tls_error(cause.downcast_ref::<io::Error>()?.get_ref()?)
}

impl fmt::Display for ConnectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("connection refused"),
            Self::NoSuchHost => f.write_str("no such host"),
            Self::UnknownIssuer => f.write_str("the broker's certificate was issued by a CA that is not trusted"),
            Self::WrongHost => f.write_str("the broker's certificate is not valid for this host name"),
            Self::Expired => f.write_str("the broker's certificate has expired or is not yet valid"),
            Self::CertificateRequired => f.write_str("the broker requires a client certificate"),
            Self::HandshakeRefused => {
                f.write_str("the broker refused the TLS handshake; it may require a client certificate")
            }
            Self::CertificateRefused(reason) => {
                write!(f, "the broker does not accept the client certificate ({reason})")
            }
            Self::HttpsToHttp => f.write_str("the port does not use TLS; did you mean http:// instead of https://?"),
            Self::HttpToHttps(reason) => {
                write!(f, "the response is not HTTP; did you mean https:// instead of http://? ({reason})")
            }
            Self::Tls(reason) => write!(f, "TLS: {reason}"),
            Self::Broken(reason) => write!(f, "the connection was lost: {reason}"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}
