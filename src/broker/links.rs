//! Reads the shovels and federation upstreams that connect as a user.
//!
//! Their URIs contain passwords in plain text (3.8 to 4.3), so topo stores only the user names.

use super::connection::Broker;
use super::error::BrokerError;
use super::permissions::is_hidden;
use super::plain::Plain;
use crate::model::naming::is_shovel;
use crate::plan::request::path;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The components of runtime parameters with URIs, each with the noun for one parameter.
const COMPONENTS: [(&str, &str); 2] = [("shovel", "shovel"), ("federation-upstream", "federation upstream")];

/// An entry of `GET /api/parameters/COMPONENT`.
#[derive(Deserialize)]
struct Parameter {
    vhost: String,
    name: String,
    value: Uris,
}

/// The URIs of a shovel or of an upstream.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Uris {
    uri: Option<Plain>,
    src_uri: Option<Plain>,
    dest_uri: Option<Plain>,
}

impl Broker {
    /// Returns the shovels and federation upstreams of all vhosts that contain a user name in a URI, by user name. Omits
    /// topo's own shovels. `None` if this user may not read them.
    pub async fn links(&self) -> Result<Option<BTreeMap<String, BTreeSet<String>>>, BrokerError> {
        let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (component, word) in COMPONENTS {
            let parameters = match self.get::<Vec<Parameter>>(path("parameters", &[component])).await {
                Ok(parameters) => parameters,
                // The plugin is not enabled.
                Err(BrokerError::NotFound { .. }) => continue,
                Err(error) if is_hidden(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            for Parameter { vhost, name, value } in parameters.iter().filter(|parameter| !is_shovel(&parameter.name)) {
                for user in value.users() {
                    links.entry(user).or_default().insert(format!("{word} {name} of vhost {vhost}"));
                }
            }
        }
        Ok(Some(links))
    }
}

impl Uris {
    /// Returns the user names in the URIs.
    fn users(&self) -> BTreeSet<String> {
        let settings = [&self.uri, &self.src_uri, &self.dest_uri].into_iter().flatten();
        let uris = settings.flat_map(|setting| match setting {
            Plain::Text(uri) => vec![uri.as_str()],
            Plain::Texts(uris) => uris.iter().map(String::as_str).collect(),
            Plain::Boolean(_) | Plain::Integer(_) | Plain::Other => Vec::new(),
        });
        let urls = uris.filter_map(|uri| Url::parse(uri).ok());
        let user = |url: Url| percent_decode_str(url.username()).decode_utf8_lossy().into_owned();
        urls.map(user).filter(|user| !user.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn users_are_found_in_all_uris() {
        let uris = json!({"src-uri": ["amqp://a%2Fb:x@h", "amqp://"], "dest-uri": "amqps://c@h/v", "uri": "not a URI"});
        let uris: Uris = serde_json::from_value(uris).unwrap();
        assert_eq!(uris.users(), ["a/b".to_owned(), "c".to_owned()].into());
    }
}
