//! Returns hints for errors: the flag or the command that resolves a broker error, or the name that the user probably
//! intended. For a missing permission, the command grants the least privilege.

use crate::broker::{BrokerError, ConnectProblem};
use crate::plan::rights::{Needs, pattern_for};
use crate::render::shell::quote;
use crate::spec::closest;
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;

/// The maximum number of suggested names that contain the unknown name.
const MAX_SUGGESTED: usize = 5;

/// The maximum number of object names that are listed for each permission.
const MAX_NAMES: usize = 3;

/// Returns the hints for a broker error.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some errors have a hint")]
pub(super) fn hints(error: &BrokerError) -> Vec<String> {
    let text = match error {
        BrokerError::Connect { problem, .. } => return connect_hint(problem).into_iter().map(str::to_owned).collect(),
        BrokerError::Unauthorized { .. } => {
            "set the user with --username, and the password with TOPO_PASSWORD or --password-file"
        }
        BrokerError::AccessRefused { username, request, .. } => return permission_hints(username, request),
        BrokerError::WrongTag { username, request, reason } => return vec![tag_hint(username, request, reason)],
        BrokerError::NotManagementApi { .. } => {
            "set --url to the address of the management API, usually http://HOST:15672, including the proxy's path prefix, if any"
        }
        BrokerError::Redirected { .. } => {
            "check --url (or TOPO_URL); topo does not follow redirects, because the target would receive the password"
        }
        BrokerError::LockHeld { down: Some(_), .. } => {
            "the holder cannot renew the lock; with --lock-timeout 2m, topo deletes the lock after the node has been down for a full \
             minute"
        }
        BrokerError::LockHeld { down: None, .. } => {
            "wait for the lock with --lock-timeout 5m, or show its holder with topo lock; the lock of a crashed holder \
             expires within a minute"
        }
        BrokerError::DifferentBroker { .. } => {
            "set the AMQP address of the same broker with --amqp-url (a tunnel to the management port alone is not \
             enough), or let the broker move the messages: --transport shovel"
        }
        BrokerError::LockLost { .. } => "another apply may be running; wait until it ends, then run the command again",
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}

/// Returns the vhost in a request such as `PUT /api/vhosts/VHOST`, quoted for a shell.
fn vhost_of(request: &str) -> String {
    let segment = request.split('/').nth(3).unwrap_or("VHOST").split('?').next().unwrap_or_default();
    quote(&percent_decode_str(segment).decode_utf8_lossy())
}

/// Returns the hint for a request that requires a tag. The `set_user_tags` command replaces all tags of the user, which
/// topo cannot read here. The `policymaker` and `administrator` tags include `management`.
fn tag_hint(username: &str, request: &str, reason: &str) -> String {
    if request.contains(" /api/vhosts/") {
        let vhost = vhost_of(request);
        return format!(
            "creating or changing a vhost requires the administrator tag; an administrator can create the vhost: \
             rabbitmqctl add_vhost {vhost}"
        );
    }
    let (what, tag) = if reason.to_lowercase().contains("administrator") {
        ("this request requires", "administrator")
    } else if request.contains(" /api/policies/") {
        ("policies require", "policymaker")
    } else {
        ("topo requires", "management")
    };
    format!(
        "{what} the {tag} tag; append the user's current tags to this command, which replaces all tags: \
         rabbitmqctl set_user_tags {} {tag}",
        quote(username)
    )
}

fn connect_hint(problem: &ConnectProblem) -> Option<&'static str> {
    match problem {
        ConnectProblem::Refused => Some(
            "check that the broker is running and that its management plugin is enabled: rabbitmq-plugins enable rabbitmq_management",
        ),
        ConnectProblem::UnknownIssuer => Some("set the CA that signed the certificate: --ca-cert FILE"),
        ConnectProblem::WrongHost => Some("use a host name that the certificate contains: --url https://NAME:15671"),
        ConnectProblem::CertificateRequired
        | ConnectProblem::HandshakeRefused
        | ConnectProblem::CertificateRefused(_) => {
            Some("use a client certificate that the broker trusts: --client-cert FILE --client-key FILE")
        }
        // The address is correct, so checking it does not help.
        ConnectProblem::Broken(_) | ConnectProblem::Expired | ConnectProblem::Tls(_) => None,
        ConnectProblem::NoSuchHost
        | ConnectProblem::HttpsToHttp
        | ConnectProblem::HttpToHttps(_)
        | ConnectProblem::Other(_) => Some("check --url (or TOPO_URL)"),
    }
}

/// Returns the hints for a request that the broker refused because of a missing permission. The hints grant the least
/// privilege that permits the request. topo cannot always read the current permissions of the user.
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
                    "if the user already has the configure permission, note that a dead-letter or alternate exchange also \
                     requires read on {name} and write on that exchange"
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
            "a user with any permission in the vhost can read the vhost, even if the permission matches no object: {}",
            set_permissions(vhost, username, &["^$", "^$", "^$"].map(str::to_owned))
        )],
        // Any other request requires a tag. In the vhost, any permission is sufficient.
        _ => vec![format!(
            "this request requires a tag and any permission in the vhost, even a permission that matches no object; to \
             grant such a permission: {}",
            set_permissions(vhost, username, &["^$", "^$", "^$"].map(str::to_owned))
        )],
    }
}

/// Returns the hints that grant permissions to a user whose other permissions are unknown.
pub(super) fn grant_hints(vhost: &str, username: &str, needs: &Needs) -> Vec<String> {
    let [configure, write, read] = needs.by_permission().map(|(permission, names)| {
        let present = permission.to_uppercase();
        if names.is_empty() { present } else { format!("{}|{present}", pattern_for(names)) }
    });
    let what = list_permissions(needs);
    let alone = needs.by_permission().into_iter().filter(|(_, names)| !names.is_empty()).map(|(permission, names)| {
        format!("if {} is empty, use only '{}'", permission.to_uppercase(), pattern_for(names))
    });
    vec![
        format!("let the user {what}: {}", set_permissions(vhost, username, &[configure, write, read])),
        // The command sets all three patterns. An empty alternative next to `|` would match every name.
        format!(
            "replace CONFIGURE, WRITE and READ with the current patterns of the user (rabbitmqctl \
             list_user_permissions {}); {}",
            quote(username),
            alone.collect::<Vec<_>>().join("; ")
        ),
    ]
}

/// Lists permissions with the names of objects: `` configure `a`, `b`, `c` and 2 more; write `d` ``.
pub(super) fn list_permissions(needs: &Needs) -> String {
    let of_each =
        needs.by_permission().into_iter().filter(|(_, names)| !names.is_empty()).map(|(permission, names)| {
            let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
            let more = match names.len().saturating_sub(MAX_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{permission} {}{more}", shown.join(", "))
        });
    of_each.collect::<Vec<_>>().join("; ")
}

/// Returns the command that sets all three patterns together.
pub(super) fn set_permissions(vhost: &str, user: &str, patterns: &[String; 3]) -> String {
    let patterns = patterns.iter().map(|pattern| match quote(pattern) {
        plain if plain == *pattern => format!("'{plain}'"),
        quoted => quoted,
    });
    let patterns: Vec<String> = patterns.collect();
    format!("rabbitmqctl set_permissions -p {} {} {}", quote(vhost), quote(user), patterns.join(" "))
}

/// Suggests the known names that the user probably intended: a name with a similar spelling or, failing that, the
/// names that contain the unknown name. Returns `None` if no name matches.
pub(super) fn suggestion(unknown: &str, known: &BTreeSet<String>) -> Option<String> {
    let names = || known.iter().map(String::as_str);
    if let Some(near) = closest(unknown, names()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let containing: Vec<&str> = names().filter(|name| name.contains(unknown)).take(MAX_SUGGESTED).collect();
    match &containing[..] {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        several => Some(format!("did you mean one of `{}`?", several.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_lists_one_or_several_matches() {
        let known = ["orders.dead", "orders.mail", "rest"].map(str::to_owned).into();
        let hint = |unknown: &str| suggestion(unknown, &known).unwrap_or_default();
        assert_eq!(hint("rset"), "did you mean `rest`?");
        assert_eq!(hint("dead"), "did you mean `orders.dead`?");
        assert_eq!(hint("ders."), "did you mean one of `orders.dead`, `orders.mail`?");
        assert_eq!(hint("billing"), "");
    }
}
