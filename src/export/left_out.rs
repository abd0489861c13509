//! What is live and not in the exported spec, and why.

use crate::model::{ObjectId, ObjectKind, PolicyName};
use std::collections::BTreeMap;
use std::fmt;

/// So many names are told of each kind.
const MOST_NAMES: usize = 8;

/// Why an object is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It belongs to one connection.
    Exclusive,
    /// The broker gave it its name.
    ServerNamed,
    /// It goes with its last consumer, or its last binding.
    AutoDelete,
    /// It does not survive a restart.
    Transient,
    /// Topo made it for itself.
    Topos,
    /// A plugin made it for itself.
    Plugins,
    /// A binding from something that is left out.
    FromLeftOut,
    /// No spec can say it; the sentence says why.
    Unsayable(String),
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    objects: BTreeMap<ObjectId, Why>,
    /// What an administrator sets over the policies; no spec knows them.
    pub(super) operator_policies: Vec<PolicyName>,
}

impl LeftOut {
    pub(super) fn add(&mut self, id: ObjectId, why: Why) {
        self.objects.entry(id).or_insert(why);
    }

    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// How many exchanges, queues and policies; what is an operator's not among them.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.objects.keys().filter(|id| !matches!(id, ObjectId::Binding(_))).count()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.operator_policies.is_empty()
    }

    /// One line for each reason: `2 exclusive queues: a, b`.
    pub fn lines(&self) -> Vec<String> {
        let mut groups: BTreeMap<(&Why, ObjectKind), Vec<String>> = BTreeMap::new();
        for (id, why) in &self.objects {
            let name = match id {
                ObjectId::Binding(binding) => binding.to_string(),
                ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Queue(_) => {
                    id.name().unwrap_or_default().to_owned()
                }
            };
            groups.entry((why, id.kind())).or_default().push(name);
        }
        let line = |((why, kind), names): ((&Why, ObjectKind), Vec<String>)| {
            let count = names.len();
            let names = listed(&names);
            let things = match (kind, count) {
                (ObjectKind::Policy, 2..) => "policies".to_owned(),
                (_, 1) => kind.to_string(),
                (_, _) => format!("{kind}s"),
            };
            match why {
                Why::FromLeftOut => format!("{count} {things} from what is left out: {names}"),
                Why::Unsayable(why) => format!("{count} {things} that no spec can say: {names} ({why})"),
                Why::Exclusive | Why::ServerNamed | Why::AutoDelete | Why::Transient | Why::Topos | Why::Plugins => {
                    format!("{count} {why} {things}: {names}")
                }
            }
        };
        let operators: Vec<String> = self.operator_policies.iter().map(ToString::to_string).collect();
        let operators = match operators.len() {
            0 => None,
            1 => Some(format!("1 operator policy: {}", listed(&operators))),
            count => Some(format!("{count} operator policies: {}", listed(&operators))),
        };
        groups.into_iter().map(line).chain(operators).collect()
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMES { format!("{shown} and {} more", names.len() - MOST_NAMES) } else { shown }
}

/// The word before the kind.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::ServerNamed => "server-named",
            Self::AutoDelete => "auto-delete",
            Self::Transient => "transient",
            Self::Topos => "of topo's own",
            Self::Plugins => "plugin-owned",
            Self::FromLeftOut => "from what is left out",
            Self::Unsayable(why) => why,
        })
    }
}
