//! Hints for errors: the flag or the command that resolves an error of the broker, and the name that was probably
//! intended for an unknown one. For a missing permission, the command grants the least privilege.

use crate::broker::{BrokerError, ConnectProblem};
use crate::plan::rights::{Needs, added};
use crate::render::shell::quoted;
use crate::spec::closest;
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// The maximum number of names that are suggested for a part of a name.
const MOST_SUGGESTED: usize = 5;

/// The maximum number of names that are shown for each permission.
const MOST_NAMES: usize = 3;

/// Returns the hints for an error.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some have a hint")]
pub(super) fn hints(error: &BrokerError) -> Vec<String> {
    let text = match error {
        BrokerError::Connect { problem, .. } => return connect_hint(problem).into_iter().map(str::to_owned).collect(),
        BrokerError::Unauthorized { .. } => {
            "set the user with --username, and the password with TOPO_PASSWORD or --password-file"
        }
        BrokerError::AccessRefused { username, request, .. } => return permission_hints(username, request),
        BrokerError::WrongTag { username, request, .. } => return vec![tag(username, request)],
        BrokerError::NotManagementApi { .. } => {
            "set --url to the address of the management API, usually http://HOST:15672, with the path prefix of a proxy, if any"
        }
        BrokerError::Redirected { .. } => {
            "check --url (or TOPO_URL); topo does not follow redirects, because they would receive the password"
        }
        BrokerError::LockHeld { down: Some(_), .. } => {
            "the holder cannot renew the lock, so topo deletes it when the node has been down for a minute: wait with \
             --lock-timeout 2m"
        }
        BrokerError::LockHeld { down: None, .. } => {
            "wait for it with --lock-timeout 5m; the lock of a crashed holder expires within a minute; topo lock shows it"
        }
        BrokerError::AnotherBroker { .. } => {
            "set the AMQP address of the same broker with --amqp-url (a tunnel to the management port alone is not \
             enough), or let the broker move the messages: --transport shovel"
        }
        BrokerError::LockLost { .. } => "another apply may be running; wait until it ends, then run again",
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}

/// Returns the vhost of `PUT /api/queues/VHOST/…`, quoted for a shell.
fn vhost_of(request: &str) -> String {
    let segment = request.split('/').nth(3).unwrap_or("VHOST").split('?').next().unwrap_or_default();
    quoted(&percent_decode_str(segment).decode_utf8_lossy())
}

/// Returns the hint that grants a tag. `set_user_tags` replaces all tags, so the command contains all tags that the
/// request needs.
fn tag(username: &str, request: &str) -> String {
    let user = quoted(username);
    if request.contains(" /api/vhosts/") {
        format!("an administrator can create the vhost: rabbitmqctl add_vhost {}", vhost_of(request))
    } else if request.contains(" /api/policies/") {
        format!("policies need the tag policymaker: rabbitmqctl set_user_tags {user} policymaker")
    } else {
        format!("topo needs the tag management: rabbitmqctl set_user_tags {user} management")
    }
}

fn connect_hint(problem: &ConnectProblem) -> Option<&'static str> {
    match problem {
        ConnectProblem::Refused => Some(
            "check that the broker is running and that its management plugin is enabled: rabbitmq-plugins enable rabbitmq_management",
        ),
        ConnectProblem::UnknownIssuer => Some("set the CA that signed it: --ca-cert FILE"),
        ConnectProblem::WrongHost => Some("use a host name that the certificate contains: --url https://NAME:15671"),
        ConnectProblem::CertificateRequired
        | ConnectProblem::HandshakeRefused
        | ConnectProblem::CertificateRefused(_) => {
            Some("use one that the broker trusts: --client-cert FILE --client-key FILE")
        }
        // The address is correct.
        ConnectProblem::Broken(_) | ConnectProblem::Expired | ConnectProblem::Tls(_) => None,
        ConnectProblem::NoSuchHost
        | ConnectProblem::HttpsToHttp
        | ConnectProblem::HttpToHttps(_)
        | ConnectProblem::Other(_) => Some("check --url (or TOPO_URL)"),
    }
}

/// Returns the hints for a request that was refused for lack of a permission: the least privilege that permits it. topo
/// may not see the current permissions of the user.
fn permission_hints(username: &str, request: &str) -> Vec<String> {
    let (method, path) = request.split_once(' ').unwrap_or_default();
    let segments: Vec<String> = path
        .split('?')
        .next()
        .unwrap_or_default()
        .split('/')
        .skip(2)
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let vhost = segments.get(1).copied().unwrap_or("VHOST");
    match (method, &segments[..]) {
        ("PUT" | "DELETE", ["queues" | "exchanges", _, name]) => {
            let mut hints = grant_hints(vhost, username, &Needs::configure(name));
            if method == "PUT" {
                hints.push(format!(
                    "if the user may already configure it: a dead-letter or alternate exchange also requires read on {name} and write on that exchange"
                ));
            }
            hints
        }
        ("POST" | "DELETE", ["bindings", _, "e", source, _, destination, ..]) => {
            let one = |name: &str| [name.to_owned()].into();
            grant_hints(vhost, username, &Needs { write: one(destination), read: one(source), ..Needs::default() })
        }
        ("POST", ["queues", _, name, "get"]) => {
            grant_hints(vhost, username, &Needs { read: [(*name).to_owned()].into(), ..Needs::default() })
        }
        ("GET", _) => vec![format!(
            "a user with any permission in the vhost can read it, even one that matches no object: {}",
            set_permissions(vhost, username, &["^$", "^$", "^$"].map(str::to_owned))
        )],
        // Tags permit everything else. In the vhost, any permission is sufficient.
        _ => vec![format!(
            "a user with the right tag and any permission in the vhost can do that, even one that matches no object; if \
             the user has none: {}",
            set_permissions(vhost, username, &["^$", "^$", "^$"].map(str::to_owned))
        )],
    }
}

/// Returns the hints that grant permissions to a user whose other permissions are not known.
pub(super) fn grant_hints(vhost: &str, username: &str, needs: &Needs) -> Vec<String> {
    let [configure, write, read] = needs.by_permission().map(|(permission, names)| {
        let present = permission.to_uppercase();
        if names.is_empty() { present } else { format!("{}|{present}", added(names)) }
    });
    let what = listed(needs);
    let alone =
        needs.by_permission().into_iter().filter(|(_, names)| !names.is_empty()).map(|(permission, names)| {
            format!("if {} is empty, use only '{}'", permission.to_uppercase(), added(names))
        });
    vec![
        format!("let the user {what}: {}", set_permissions(vhost, username, &[configure, write, read])),
        // The command sets all three together. An empty pattern next to `|` would match everything.
        format!(
            "CONFIGURE, WRITE and READ are the current patterns of the user: rabbitmqctl list_user_permissions {}; {}",
            quoted(username),
            alone.collect::<Vec<_>>().join("; ")
        ),
    ]
}

/// Lists permissions with their names: `` configure `a` and 2 more; write `b` ``.
pub(super) fn listed(needs: &Needs) -> String {
    let of_each =
        needs.by_permission().into_iter().filter(|(_, names)| !names.is_empty()).map(|(permission, names)| {
            let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
            let more = match names.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{permission} {}{more}", shown.join(", "))
        });
    of_each.collect::<Vec<_>>().join("; ")
}

/// Returns the command that sets all three patterns together.
pub(super) fn set_permissions(vhost: &str, user: &str, patterns: &[String; 3]) -> String {
    let patterns = patterns.iter().map(|pattern| match quoted(pattern) {
        plain if plain == *pattern => format!("'{plain}'"),
        quoted => quoted,
    });
    let patterns: Vec<String> = patterns.collect();
    format!("rabbitmqctl set_permissions -p {} {} {}", quoted(vhost), quoted(user), patterns.join(" "))
}

/// Returns a hint with the name that was probably intended: the one with a similar spelling, otherwise those that
/// contain it.
pub(super) fn suggestion(asked: &str, known: &BTreeSet<String>) -> Option<String> {
    let names = || known.iter().map(String::as_str);
    if let Some(near) = closest(asked, names()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let with_it: Vec<&str> = names().filter(|name| name.contains(asked)).take(MOST_SUGGESTED).collect();
    match &with_it[..] {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        several => Some(format!("did you mean one of `{}`?", several.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_names_one_or_several_matches() {
        let known = ["orders.dead", "orders.mail", "rest"].map(str::to_owned).into();
        let hint = |asked: &str| suggestion(asked, &known).unwrap_or_default();
        assert_eq!(hint("rset"), "did you mean `rest`?");
        assert_eq!(hint("dead"), "did you mean `orders.dead`?");
        assert_eq!(hint("ders."), "did you mean one of `orders.dead`, `orders.mail`?");
        assert_eq!(hint("billing"), "");
    }
}
