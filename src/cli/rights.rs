//! Reports the rights that a plan requires and the user lacks, and the commands that grant only these rights.

use super::failure::Failure;
use super::hints::{list_permissions, set_permissions};
use crate::broker::Access;
use crate::model::{Address, ObjectId, QueueName, VhostName};
use crate::plan::rights::{MissingRights, User, missing_rights};
use crate::plan::{Info, Plan, VhostPlan};
use crate::render::shell::quote;

/// A right that a plan requires and the user lacks.
pub(super) struct MissingRight {
    user: String,
    /// The right, such as ``user `deployer` cannot write policies``, with the required tag or permission.
    text: String,
    /// The commands that grant the right.
    commands: Vec<String>,
}

/// Adds an info to the plan of each vhost and of the cluster for every right that the broker does not list for the
/// user. Returns these rights. Missing rights do not block a plan, because the apply often runs as a different user.
pub(super) async fn add_missing(
    access: &Access,
    plan: &mut Plan,
    lock: &str,
    cluster_lock_vhost: &str,
) -> Vec<MissingRight> {
    let mut all = Vec::new();
    if plan.step_count() == 0 {
        return all;
    }
    let Some(user) = access.broker.user().await else { return all };
    let lock = QueueName::new(lock);
    for part in plan.parts_mut().filter(|part| !part.steps.is_empty()) {
        // A lock in `cluster_lock_vhost` protects the cluster, and the user needs permission for the lock queue.
        let vhost = match part.vhost.is_cluster() {
            true => VhostName::new(cluster_lock_vhost),
            false => part.vhost.clone(),
        };
        let permission = match part.creates_vhost() {
            // The creator of a vhost has all permissions in it.
            true => None,
            false => access.broker.permission(&vhost, &user).await,
        };
        let missing = list_missing(part, &vhost, &user, &missing_rights(part, &lock, &user, permission.as_ref()));
        let address = Address::of(&part.vhost, &ObjectId::Vhost);
        if permission.is_none() && !part.creates_vhost() {
            part.infos.push(Info { address: address.clone(), text: unknown_permissions(&user) });
        }
        part.infos.extend(missing.iter().map(|missing| Info { address: address.clone(), text: missing.sentence() }));
        all.extend(missing);
    }
    all
}

/// Returns the failure for an apply that missing rights would stop at its first change or halfway. Returns `None` if no
/// right is missing.
pub(super) fn refusal(missing: Vec<MissingRight>) -> Option<Failure> {
    let user = &missing.first()?.user;
    let failure = Failure::failed(format!("user `{user}` lacks rights for this plan; nothing was changed"));
    let failure = missing.into_iter().fold(failure, |failure, missing| {
        let failure = failure.because(missing.text);
        missing
            .commands
            .into_iter()
            .fold(failure, |failure, command| failure.hint(format!("to grant the right: {command}")))
    });
    Some(failure.hint("if another backend (LDAP, OAuth 2) authorizes the user, pass --ignore-missing-rights"))
}

/// Returns the info for a user whose permissions topo cannot read.
fn unknown_permissions(user: &User) -> String {
    let name = &user.name;
    match user.is_administrator() {
        true => format!("topo cannot read the permissions of user `{name}`; the broker may still refuse an apply"),
        false => format!(
            "topo cannot read the permissions of user `{name}` (this requires the administrator tag); the broker may \
             still refuse an apply"
        ),
    }
}

impl MissingRight {
    fn sentence(&self) -> String {
        let commands: Vec<String> = self.commands.iter().map(|command| format!("`{command}`")).collect();
        format!(
            "{}; topo apply will refuse this plan for this user; to grant the right: {}",
            self.text,
            commands.join(", then ")
        )
    }
}

fn list_missing(part: &VhostPlan, vhost: &VhostName, user: &User, lacking: &MissingRights) -> Vec<MissingRight> {
    let vhost = vhost.as_str();
    let mut all = Vec::new();
    let grant = |patterns: &[String; 3]| set_permissions(vhost, &user.name, patterns);
    if lacking.administrator && part.creates_vhost() {
        let mut commands = vec![format!("rabbitmqctl add_vhost {}", quote(vhost))];
        commands.extend(lacking.patterns.as_ref().map(grant));
        // As of 4.2.9 and 4.3.3, the broker sends the same response for a missing vhost and for an inaccessible vhost.
        let text = format!(
            "user `{}` cannot create the vhost (or cannot see it): this requires the administrator tag",
            user.name
        );
        all.push(MissingRight { user: user.name.clone(), text, commands });
    } else if lacking.administrator {
        let text = format!("user `{}` cannot change the vhost: this requires the administrator tag", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, "administrator")] });
    }
    if lacking.policymaker {
        let text = format!("user `{}` cannot write policies: this requires the policymaker tag", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, "policymaker")] });
    }
    for row in lacking.records.iter().map(|kind| kind.row()) {
        let (plural, tag) = (row.plural, row.writer.as_str());
        let text = format!("user `{}` cannot write {plural}: this requires the {tag} tag", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, tag)] });
    }
    if !lacking.permissions.is_empty() {
        let text = format!("user `{}` has no permission to {}", user.name, list_permissions(&lacking.permissions));
        all.push(MissingRight {
            user: user.name.clone(),
            text,
            commands: lacking.patterns.iter().map(grant).collect(),
        });
    }
    all
}

/// Returns the command that adds a tag. `set_user_tags` replaces all tags, so the command repeats the other tags of the
/// user, except `management`, which the added tag includes.
fn set_tags(user: &User, tag: &str) -> String {
    let kept = user.tags.iter().filter(|tag| *tag != "management").map(String::as_str).chain([tag]).map(quote);
    format!("rabbitmqctl set_user_tags {} {}", quote(&user.name), kept.collect::<Vec<_>>().join(" "))
}
