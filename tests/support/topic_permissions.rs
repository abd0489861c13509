//! Sets and reads topic permissions, and starts a node that deletes them together with their exchange.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Node, Options, Vhost};

/// Returns a node with metadata in Khepri, if this version supports it.
pub(crate) fn khepri() -> Option<&'static Node> {
    static OPTED_IN: LazyLock<Node> = LazyLock::new(|| {
        let node = Node::start(Options::default());
        node.ctl(["enable_feature_flag", "--opt-in", "khepri_db"]);
        node
    });
    let shared = Node::shared();
    match (shared.at_least(4, 0), shared.at_least(4, 3)) {
        (false, _) => None,
        (true, false) => Some(&OPTED_IN),
        (true, true) => Some(shared),
    }
}

pub(crate) fn restrict(vhost: &Vhost<'_>, user: &str, exchange: &str, write: &str) {
    let body = json!({"exchange": exchange, "write": write, "read": ".*"});
    let put = vhost.http().put(&vhost.path("topic-permissions", &[user]), &body);
    assert!(put.is_success(), "{put:?}");
}

/// Returns the topic permissions in order, for example `alice: ^a\. on events`.
pub(crate) fn permissions(vhost: &Vhost<'_>) -> Vec<String> {
    let path = vhost.path("vhosts", &[]) + "/topic-permissions";
    let listed = vhost.http().get(&path).expect_status(200);
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let line =
        |entry: &Value| format!("{}: {} on {}", text(entry, "user"), text(entry, "write"), text(entry, "exchange"));
    let mut lines: Vec<String> = listed.as_array().expect("a list").iter().map(line).collect();
    lines.sort();
    lines
}
