//! Configures TLS for AMQP, with the same files and flags as for HTTP. The AMQP library accepts CAs, but cannot skip
//! verification.

use super::address::AmqpOptions;
use crate::broker::error::BrokerError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::sync::Arc;

/// Builds the TLS configuration. If CA certificates are given, only these are trusted; otherwise those of the system
/// and of Mozilla's list.
pub(super) fn config(options: &AmqpOptions) -> Result<ClientConfig, BrokerError> {
    let provider = Arc::new(ring::default_provider());
    let unusable = |what: &'static str| move |reason: String| BrokerError::Certificate { what, reason };
    let given = if options.ca_cert.is_some() { "CA certificate" } else { "TLS configuration" };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(given)(error.to_string()))?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else if let Some(pem) = &options.ca_cert {
        builder.with_root_certificates(authorities(pem).map_err(unusable(given))?)
    } else {
        let mozilla = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        let system = Verifier::new_with_extra_roots(mozilla, provider);
        let system = system.map_err(|error| unusable(given)(error.to_string()))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(system))
    };
    let Some(own) = &options.client_cert else { return Ok(builder.with_no_client_auth()) };
    let unusable = unusable("client certificate with its key");
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&own.cert).collect();
    let chain = chain.map_err(|error| unusable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&own.key).map_err(|error| unusable(error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| unusable(error.to_string()))
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        store.add(certificate).map_err(|error| error.to_string())?;
    }
    if store.is_empty() {
        return Err("it contains no certificate (expected PEM)".to_owned());
    }
    Ok(store)
}

/// The verifier of `--insecure`: accepts any certificate, but verifies that the peer has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        with_symbol: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, with_symbol, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        with_symbol: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, with_symbol, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
