//! Converts errors of the HTTP and TLS libraries into actionable messages.

use super::redact::foreign;
use rustls::{AlertDescription, CertificateError, Error as TlsError};
use std::error::Error;
use std::fmt;
use std::io;

/// The reason for a failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectProblem {
    /// Nothing listens there.
    Refused,
    /// The name does not resolve.
    NoSuchHost,
    /// The broker's certificate is of an authority that is not trusted.
    UnknownIssuer,
    /// The broker's certificate is for another name.
    WrongHost,
    /// The broker's certificate is out of date, or not valid yet.
    Expired,
    /// The broker wants a client certificate.
    CertificateRequired,
    /// The broker ends the handshake without saying why: with TLS 1.2 a missing client certificate looks like that.
    HandshakeRefused,
    /// The broker does not take the client certificate.
    CertificateRefused(String),
    /// TLS was spoken to a port that does not.
    HttpsToHttp,
    /// The other side hung up, or spoke no HTTP, at a port that may want TLS.
    HttpToHttps(String),
    /// Something else about TLS.
    Tls(String),
    /// The connection broke after the request was sent, or while the answer was read.
    Broken(String),
    /// Something else, before anything was sent.
    Other(String),
}

impl ConnectProblem {
    /// Whether it may go away by itself. A name that does not resolve may: containers start in any order.
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

    /// Whether the request may have reached the broker.
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

    /// Reads it off an error of reqwest, whose own text says "error sending request" and no more.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let texts = match Self::known(error.source()) {
            Ok(problem) => return problem,
            Err(texts) => texts,
        };
        let words = texts.last().cloned().unwrap_or_else(|| "no reason given".to_owned());
        if words.contains("invalid HTTP version") {
            return Self::HttpToHttps(words);
        }
        if error.is_connect() { Self::Other(words) } else { Self::Broken(words) }
    }

    /// Reads it off an error of connecting over AMQP.
    pub(super) fn of_io(error: &io::Error) -> Self {
        match Self::known(Some(error)) {
            // The words of that one are about URLs of HTTP.
            Ok(Self::HttpsToHttp) => Self::Tls("the port does not use TLS".to_owned()),
            Ok(problem) => problem,
            Err(texts) => Self::Other(texts.last().cloned().unwrap_or_default()),
        }
    }

    /// What one of the causes says clearly; otherwise the words of all of them.
    fn known(first: Option<&(dyn Error + 'static)>) -> Result<Self, Vec<String>> {
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
            texts.push(foreign(&cause.to_string()));
            next = cause.source();
        }
        let is_unresolved =
            |text: &String| text.starts_with("dns error") || text.starts_with("failed to lookup address");
        if texts.iter().any(is_unresolved) { Ok(Self::NoSuchHost) } else { Err(texts) }
    }

    fn of_tls(error: &TlsError) -> Self {
        // Both enums are open: new reasons read as "TLS: …".
        #[allow(clippy::wildcard_enum_match_arm)]
        match error {
            TlsError::InvalidCertificate(certificate) => match certificate {
                // A signature is bad when an authority was made again under its old name: same subject, other key.
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

/// The TLS library's error, also from inside I/O errors, whose `source()` skips what they wrap.
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
            Self::WrongHost => f.write_str("the broker's certificate is not for this host name"),
            Self::Expired => f.write_str("the broker's certificate is expired or not valid yet"),
            Self::CertificateRequired => f.write_str("the broker requires a client certificate"),
            Self::HandshakeRefused => {
                f.write_str("the broker refuses the TLS handshake; perhaps it requires a client certificate")
            }
            Self::CertificateRefused(words) => write!(f, "the broker does not accept the client certificate ({words})"),
            Self::HttpsToHttp => f.write_str("the port does not use TLS; did you mean http:// instead of https://?"),
            Self::HttpToHttps(words) => {
                write!(f, "the response is not HTTP; did you mean https:// instead of http://? ({words})")
            }
            Self::Tls(words) => write!(f, "TLS: {words}"),
            Self::Broken(words) => write!(f, "the connection was lost: {words}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}
