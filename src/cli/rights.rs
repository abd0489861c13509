//! Reports the rights that the user lacks for a plan, before an apply, with the least command that grants them.

use super::failure::Failure;
use super::hints::{listed, set_permissions};
use crate::broker::Access;
use crate::model::{Address, ObjectId, QueueName, VhostName};
use crate::plan::rights::{MissingRights, User, lacking};
use crate::plan::{Info, Plan, VhostPlan};
use crate::render::shell::quoted;

/// A right that the user lacks for a plan.
pub(super) struct MissingRight {
    user: String,
    text: String,
    commands: Vec<String>,
}

/// Adds a note to the plan of each vhost, and of the cluster, for every right that the user lacks, as far as the broker reports it. A plan
/// is often made by a user with fewer rights than the apply, so missing rights do not stop a plan.
pub(super) async fn note(access: &Access, plan: &mut Plan, lock: &str, cluster_lock_vhost: &str) -> Vec<MissingRight> {
    let mut all = Vec::new();
    if plan.step_count() == 0 {
        return all;
    }
    let Some(user) = access.broker.user().await else { return all };
    let lock = QueueName::new(lock);
    for part in plan.parts_mut().filter(|part| !part.steps.is_empty()) {
        // The lock of a vhost protects the cluster, and the user needs permission for it.
        let vhost = match part.vhost.is_cluster() {
            true => VhostName::new(cluster_lock_vhost),
            false => part.vhost.clone(),
        };
        let permission = match part.creates_vhost() {
            // The creator of a vhost has all permissions in it.
            true => None,
            false => access.broker.permission(&vhost, &user).await,
        };
        let missing = missing(part, &vhost, &user, &lacking(part, &lock, &user, permission.as_ref()));
        let address = Address::of(&part.vhost, &ObjectId::Vhost);
        if permission.is_none() && !part.creates_vhost() {
            part.infos.push(Info { address: address.clone(), text: unknown_permissions(&user) });
        }
        part.infos.extend(missing.iter().map(|missing| Info { address: address.clone(), text: missing.sentence() }));
        all.extend(missing);
    }
    all
}

/// Returns the refusal of an apply that would fail at its first change, or halfway.
pub(super) fn refusal(missing: Vec<MissingRight>) -> Option<Failure> {
    let user = &missing.first()?.user;
    let failure = Failure::failed(format!("user `{user}` lacks rights for this plan; nothing was changed"));
    let failure = missing.into_iter().fold(failure, |failure, missing| {
        let failure = failure.because(missing.text);
        missing.commands.into_iter().fold(failure, |failure, command| failure.hint(format!("grant it with: {command}")))
    });
    Some(failure.hint("if another backend (LDAP, OAuth 2) authorizes the user: --ignore-missing-rights"))
}

/// Returns the info for a user whose permissions cannot be read before an apply.
fn unknown_permissions(user: &User) -> String {
    let name = &user.name;
    match user.is_administrator() {
        true => format!("topo cannot read the permissions of user `{name}`; the broker may still refuse an apply"),
        false => format!(
            "topo cannot read the permissions of user `{name}` (this requires the tag administrator); the broker may still \
             refuse an apply"
        ),
    }
}

impl MissingRight {
    fn sentence(&self) -> String {
        let commands: Vec<String> = self.commands.iter().map(|command| format!("`{command}`")).collect();
        format!(
            "{}; topo apply will refuse this plan; to grant the permission: {}",
            self.text,
            commands.join(
                ", then \
                 "
            )
        )
    }
}

fn missing(part: &VhostPlan, vhost: &VhostName, user: &User, lacking: &MissingRights) -> Vec<MissingRight> {
    let vhost = vhost.as_str();
    let mut all = Vec::new();
    let grant = |patterns: &[String; 3]| set_permissions(vhost, &user.name, patterns);
    if lacking.administrator && part.creates_vhost() {
        let mut commands = vec![format!("rabbitmqctl add_vhost {}", quoted(vhost))];
        commands.extend(lacking.patterns.as_ref().map(grant));
        // From 4.2.9 and 4.3.3 on, both look the same.
        let text = format!(
            "user `{}` cannot create the vhost (or cannot see it): this requires the tag administrator",
            user.name
        );
        all.push(MissingRight { user: user.name.clone(), text, commands });
    } else if lacking.administrator {
        let text = format!("user `{}` cannot change the vhost: this requires the tag administrator", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, "administrator")] });
    }
    if lacking.policymaker {
        let text = format!("user `{}` cannot write policies: this requires the tag policymaker", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, "policymaker")] });
    }
    for row in lacking.records.iter().map(|kind| kind.row()) {
        let (plural, tag) = (row.plural, row.writer.as_str());
        let text = format!("user `{}` cannot write {plural}: this requires the tag {tag}", user.name);
        all.push(MissingRight { user: user.name.clone(), text, commands: vec![set_tags(user, tag)] });
    }
    if !lacking.permissions.is_empty() {
        let text = format!("user `{}` has no permission to {}", user.name, listed(&lacking.permissions));
        all.push(MissingRight {
            user: user.name.clone(),
            text,
            commands: lacking.patterns.iter().map(grant).collect(),
        });
    }
    all
}

/// Returns the command that adds a tag. It sets all tags together, without those that another one includes.
fn set_tags(user: &User, tag: &str) -> String {
    let kept = user.tags.iter().filter(|tag| *tag != "management").map(String::as_str).chain([tag]).map(quoted);
    format!("rabbitmqctl set_user_tags {} {}", quoted(&user.name), kept.collect::<Vec<_>>().join(" "))
}
