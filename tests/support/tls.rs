//! Creates a CA for a test, with a server certificate and a client certificate, as PEM files.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::temp_dir;

/// The folder with `ca.pem`, `server.pem`, `server.key`, `client.pem` and `client.key`. It is removed when the value is
/// dropped.
pub(crate) struct Tls {
    folder: TempDir,
}

impl Tls {
    /// Creates a CA. The server certificate is valid for `localhost` and 127.0.0.1.
    pub(crate) fn create() -> Self {
        let folder = temp_dir::folder();
        let key = KeyPair::generate().unwrap();
        let mut params = named("topo test CA", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        let ca = Issuer::new(params, key);
        let tls = Self { folder };
        tls.issue(&ca, "server", named("localhost", &["localhost", "127.0.0.1"]), ExtendedKeyUsagePurpose::ServerAuth);
        tls.issue(&ca, "client", named("topo test client", &[]), ExtendedKeyUsagePurpose::ClientAuth);
        tls
    }

    fn issue(
        &self,
        ca: &Issuer<'_, KeyPair>,
        file: &str,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) {
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        fs::write(self.path(&format!("{file}.pem")), params.signed_by(&key, ca).unwrap().pem()).unwrap();
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of one of the files: `path("ca.pem")`.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("written when this value was made")
    }

    /// Returns the CA certificate as PEM.
    pub(crate) fn ca(&self) -> String {
        self.read("ca.pem")
    }

    /// Returns the client certificate and its key as one PEM text.
    pub(crate) fn client(&self) -> String {
        self.read("client.pem") + &self.read("client.key")
    }
}

fn named(name: &str, addresses: &[&str]) -> CertificateParams {
    let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
    let mut params = CertificateParams::new(addresses).expect("plain names and addresses");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
